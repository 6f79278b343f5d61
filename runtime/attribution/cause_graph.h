// CauseGraph: the dependency graph of one pack set as plain lists (attribution.md section 1).
//
// Vertices are causes and signals, edges are EdgePlans by index. Made by graph_boost.cpp, the only
// file that sees Boost.Graph; everybody else reads these lists.
// Order: every list is sorted by names and places, never by id, so that it does not depend on
// the order in which packs were read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/attribution/level_cache.h"
#include "runtime/attribution/pack_shape.h"
#include "runtime/base/result.h"

namespace reflex::attribution {

struct CauseGraph {
  /// [CauseId] edges that leave the cause: by signal name, then from the narrowest scope.
  std::vector<std::vector<uint32_t>> cause_edges;
  /// [SignalId] edges from signals into this signal.
  std::vector<std::vector<uint32_t>> parent_edges;
  /// Signals so that a parent signal stands before its children.
  std::vector<abi::SignalId> signal_order;
  /// Causes by name.
  std::vector<abi::CauseId> cause_order;
  PackShape shape;
  std::shared_ptr<LevelCache> levels = std::make_shared<LevelCache>();
};

/// Errors: a cycle (its signals are named in the message), an edge with an id that does not exist.
Result<CauseGraph> build_cause_graph(const abi::CompiledPack& pack);

}  // namespace reflex::attribution
