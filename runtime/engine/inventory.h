// Inventory:
// `{"nodes":[{"node":..,"labels":{..}}],"jobs":[{"job":..,"nodes":[..],"start":..,"end":..}]}` as
// topology events (events.md). Labels hold from the beginning of time; jobs from their start.
//
// Errors: unreadable or malformed files are Errors with the path; an entry without a name is
// skipped and reported in `warnings`.
#pragma once

#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

struct InventorySummary {
  size_t nodes = 0;
  size_t jobs = 0;
  std::vector<std::string> warnings;
};

Result<InventorySummary> load_inventory(const std::string& path, SymbolTable& symbols,
                                        topology::Topology& topology);
Result<InventorySummary> load_inventory_text(const std::string& text, SymbolTable& symbols,
                                             topology::Topology& topology);

}  // namespace reflex::engine
