// Inventory files: see inventory.h.
#include "runtime/engine/inventory.h"

#include <fmt/format.h>

#include <algorithm>
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

constexpr std::string_view kForm =
    R"({"nodes": [{"node": "n1", "labels": {"rack": "r1"}}], "jobs": [{"job": "j1", "nodes": ["n1"]}]})";

/// `byte`: where the parser stood, from 1 on.
std::string not_json(const std::string& text, size_t byte) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fmt::format("the inventory is empty; write {}", kForm);
  }
  const size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  const std::string why =
      at >= text.size() ? std::string("it ends too early")
                        : fmt::format("line {} cannot be read from column {} on", line,
                                      at - (text.rfind('\n', at == 0 ? 0 : at - 1) + 1) + 1);
  return fmt::format("the inventory is not JSON: {}; write one object like {}", why, kForm);
}

}  // namespace

Result<InventorySummary> load_inventory_text(const std::string& text, SymbolTable& symbols,
                                             topology::Topology& topology) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Error{not_json(text, error.byte)};
  }
  if (!document.is_object()) {
    return Error{fmt::format("the inventory is JSON but no object; write {}", kForm)};
  }
  InventorySummary summary;
  if (!document.contains("nodes") && !document.contains("jobs")) {
    summary.warnings.push_back(
        fmt::format("it has neither 'nodes' nor 'jobs', so nothing is known from it; write {}", kForm));
  }
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
