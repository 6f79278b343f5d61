// Which hardware class every node of an inventory has: `reflex check --nodes INVENTORY`.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/app/check_parts.h"
#include "runtime/app/load_packs.h"
#include "runtime/engine/inventory.h"
#include "runtime/topology/topology.h"

namespace reflex::app {
namespace {

// Why: a line that is still read; the rest is counted.
constexpr size_t kNamesMax = 5;

using Pair = std::pair<std::string, std::string>;

source::Span span_of_profile(const compiler::Compilation& c, const std::string& name) {
  for (const auto& module : c.modules) {
    for (const auto& decl : module.decls) {
      const auto* profile = std::get_if<ast::ProfileDecl>(&decl.node);
      if (profile != nullptr && profile->name.text == name) return profile->name.span;
    }
  }
  return {};
}

void report(const compiler::Compilation& c, const Pair& pair, const std::vector<std::string>& nodes,
            diag::Sink& sink) {
  std::string names;
  for (size_t i = 0; i < std::min(nodes.size(), kNamesMax); ++i) {
    names += (i == 0 ? "" : ", ") + nodes[i];
  }
  if (nodes.size() > kNamesMax) names += fmt::format(" and {} more", nodes.size() - kNamesMax);
  auto& d = sink.report(
      diag::Id::kAmbiguousProfile, span_of_profile(c, pair.second),
      fmt::format("{} node(s) match both '{}' and '{}', which are not on one inheritance line: {}",
                  nodes.size(), pair.first, pair.second, names));
  d.notes.push_back({span_of_profile(c, pair.first), "the other one is declared here"});
  d.help = fmt::format("exclude one by a label, or write: profile {} extends {}", pair.second,
                       pair.first);
}

/// The first two matching classes of which neither is above the other.
Pair ambiguous_pair(const abi::CompiledPack& pack, const std::vector<abi::ClassId>& matches) {
  const auto above = [&](abi::ClassId a, abi::ClassId b) {
    for (int depth = pack.classes[b].depth; depth >= 0; --depth, b = pack.classes[b].parent) {
      if (a == b) return true;
    }
    return false;
  };
  for (size_t i = 0; i < matches.size(); ++i) {
    for (size_t j = i + 1; j < matches.size(); ++j) {
      if (above(matches[i], matches[j]) || above(matches[j], matches[i])) continue;
      return std::minmax(pack.classes[matches[i]].name, pack.classes[matches[j]].name);
    }
  }
  return {};
}

}  // namespace

int bind_nodes(const compiler::Compilation& c, const std::string& inventory, diag::Sink& sink,
               const CommonFlags& common) {
  topology::Topology topology(c.pack);
  auto summary = engine::load_inventory(inventory, *c.pack->symbols, topology);
  if (!summary.ok()) {
    print_error(common, summary.error().message);
    return summary.error().exit_code;
  }
  for (const auto& warning : summary.value().warnings) print_note(common, warning);
  if (topology.nodes().empty()) {
    // An empty answer would pass for "no node is ambiguous".
    print_error(common,
                inventory + ": names no node; `nodes` must be a list of objects with `node`");
    return kUsage;
  }
  std::map<std::string, size_t> counts;
  std::map<Pair, std::vector<std::string>> ambiguous;
  const auto& listed = topology.ambiguous_nodes();
  for (const SymbolId node : topology.nodes()) {
    const std::string name(c.pack->symbols->name(node));
    const std::string& hw_class = c.pack->classes[topology.hw_class(node, 0)].name;
    ++counts[hw_class];
    Pair pair;
    if (std::binary_search(listed.begin(), listed.end(), name)) {
      pair = ambiguous_pair(*c.pack, topology.matching_classes(node, 0));
      ambiguous[pair].push_back(name);
    }
    if (common.format == "json") {
      nlohmann::ordered_json line{{"node", name}, {"class", hw_class}};
      if (!pair.first.empty()) line["ambiguous"] = {pair.first, pair.second};
      fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else if (common.format == "text") {
      fmt::print("{:<24} {}{}\n", name, hw_class,
                 pair.first.empty()
                     ? ""
                     : fmt::format("  (ambiguous: {} and {})", pair.first, pair.second));
    }
  }
  for (const auto& [hw_class, count] : counts) {
    print_note(common, fmt::format("{} node(s) are {}", count, hw_class));
  }
  for (const auto& [pair, nodes] : ambiguous) report(c, pair, nodes, sink);
  return ambiguous.empty() ? kOk : kFindings;
}

}  // namespace reflex::app
