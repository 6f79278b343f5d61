// Inventory files: see inventory.h.
#include "runtime/engine/inventory.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/time.h"

namespace reflex::engine {
namespace {

using Json = nlohmann::json;

// Why: labels of an inventory describe the cluster as it was all along.
constexpr int64_t kSinceEverNs = kNoTimeNs + 1;

std::optional<int64_t> time_of(const Json& value) {
  if (value.is_number()) {  // epoch ms; the bound keeps the conversion to ns in range
    const double ms = value.get<double>();
    if (!(std::abs(ms) < 9e12)) return std::nullopt;
    return static_cast<int64_t>(ms * 1e6);
  }
  if (value.is_string()) {
    if (const auto t = parse_rfc3339(value.get<std::string>())) return t->ns;
  }
  return std::nullopt;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void load_node(const Json& entry, SymbolTable& symbols, topology::Topology& topology,
               InventorySummary& summary) {
  if (!entry.is_object() || !entry.contains("node") || !entry["node"].is_string()) {
    summary.warnings.push_back("an entry of 'nodes' has no 'node' name: skipped");
    return;
  }
  topology::Labels labels;
  if (entry.contains("labels") && !entry["labels"].is_object()) {
    summary.warnings.push_back(fmt::format("node {}: 'labels' is not an object: ignored",
                                           entry["node"].get<std::string>()));
  }
  if (entry.contains("labels") && entry["labels"].is_object()) {
    for (const auto& [key, value] : entry["labels"].items()) {
      labels.emplace_back(symbols.intern(key), symbols.intern(text_of(value)));
    }
  }
  topology.set_labels(symbols.intern(entry["node"].get<std::string>()), kSinceEverNs,
                      std::move(labels));
  ++summary.nodes;
}

void load_job(const Json& entry, SymbolTable& symbols, topology::Topology& topology,
              InventorySummary& summary) {
  if (!entry.is_object() || !entry.contains("job") || !entry["job"].is_string() ||
      !entry.contains("nodes") || !entry["nodes"].is_array()) {
    summary.warnings.push_back("an entry of 'jobs' needs 'job' and 'nodes': skipped");
    return;
  }
  std::vector<SymbolId> nodes;
  for (const auto& node : entry["nodes"]) {
    if (node.is_string()) nodes.push_back(symbols.intern(node.get<std::string>()));
  }
  const SymbolId job = symbols.intern(entry["job"].get<std::string>());
  int64_t start = kSinceEverNs;
  if (entry.contains("start")) {
    const auto given = time_of(entry["start"]);
    if (!given) {
      summary.warnings.push_back(
          fmt::format("job {}: 'start' is not a time: skipped", entry["job"].get<std::string>()));
      return;
    }
    start = *given;
  }
  topology.start_job(job, start, std::move(nodes));
  if (entry.contains("end")) {
    const auto end = time_of(entry["end"]);
    if (end && *end >= start) {
      topology.end_job(job, *end);
    } else {
      summary.warnings.push_back(fmt::format("job {}: 'end' is no time after its start: ignored",
                                             entry["job"].get<std::string>()));
    }
  }
  ++summary.jobs;
}

}  // namespace

Result<InventorySummary> load_inventory_text(const std::string& text, SymbolTable& symbols,
                                             topology::Topology& topology) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return Error{"the inventory is not JSON"};
  if (!document.is_object()) return Error{"the inventory is not a JSON object"};
  InventorySummary summary;
  for (const char* list : {"nodes", "jobs"}) {
    if (document.contains(list) && !document[list].is_array()) {
      summary.warnings.push_back(fmt::format("'{}' is not a list: ignored", list));
    }
  }
  if (document.contains("nodes") && document["nodes"].is_array()) {
    for (const auto& entry : document["nodes"]) load_node(entry, symbols, topology, summary);
  }
  if (document.contains("jobs") && document["jobs"].is_array()) {
    for (const auto& entry : document["jobs"]) load_job(entry, symbols, topology, summary);
  }
  return summary;
}

Result<InventorySummary> load_inventory(const std::string& path, SymbolTable& symbols,
                                        topology::Topology& topology) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("cannot read the inventory {}", path)};
  std::ostringstream text;
  text << file.rdbuf();
  auto summary = load_inventory_text(text.str(), symbols, topology);
  if (!summary.ok()) return Error(summary.error()).in(path);
  return summary;
}

}  // namespace reflex::engine
