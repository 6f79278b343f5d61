// Builds the CauseGraph with Boost.Graph: adjacency list, cycle check, topological order.
//
// The only file of the project that sees Boost.Graph; its exceptions end here.
#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/topological_sort.hpp>
#include <tuple>

#include "runtime/attribution/cause_graph.h"

namespace reflex::attribution {
namespace {

struct EdgeProperty {
  uint32_t plan = 0;
};
using BoostGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                         boost::no_property, EdgeProperty>;
using Vertex = boost::graph_traits<BoostGraph>::vertex_descriptor;
using Edge = boost::graph_traits<BoostGraph>::edge_descriptor;

// Remembers the first cycle: the tree path from the back edge's target to its source.
struct CycleFinder : boost::default_dfs_visitor {
  std::vector<Vertex>* parent;
  std::vector<Vertex>* cycle;
  void tree_edge(Edge e, const BoostGraph& g) const { (*parent)[target(e, g)] = source(e, g); }
  void back_edge(Edge e, const BoostGraph& g) const {
    if (!cycle->empty()) return;
    for (Vertex v = source(e, g); v != target(e, g); v = (*parent)[v]) cycle->push_back(v);
    cycle->push_back(target(e, g));
    std::reverse(cycle->begin(), cycle->end());
  }
};

std::string cycle_text(const abi::CompiledPack& pack, const std::vector<Vertex>& cycle) {
  std::string text;
  for (Vertex v : cycle) text += pack.signals[v - pack.causes.size()].name + " -> ";
  return text + pack.signals[cycle.front() - pack.causes.size()].name;
}

bool ids_exist(const abi::CompiledPack& pack, const abi::EdgePlan& e) {
  const bool from = e.from_signal ? e.from < pack.signals.size() : e.cause < pack.causes.size();
  return from && e.to < pack.signals.size();
}

// From the narrowest scope to the widest: an entity belongs to the first that reaches it.
int scope_width(abi::Scope s) {
  constexpr std::array<int, 9> kWidth{0, 1, 2, 3, 7, 8, 4, 5, 6};  // by abi::Scope
  return kWidth[static_cast<size_t>(s)];
}

auto edge_rank(const abi::CompiledPack& pack, uint32_t index) {
  const abi::EdgePlan& e = pack.edges[index];
  const std::string& from = e.from_signal ? pack.signals[e.from].name : pack.causes[e.cause].name;
  return std::make_tuple(std::string_view(pack.signals[e.to].name), scope_width(e.scope),
                         std::string_view(from), std::string_view(e.where.file), e.where.line,
                         e.where.column, e.lag_lo_ns, e.lag_hi_ns, e.p);
}

}  // namespace

Result<CauseGraph> build_cause_graph(const abi::CompiledPack& pack) {
  const size_t causes = pack.causes.size();
  BoostGraph g(causes + pack.signals.size());
  std::vector<uint32_t> by_name(pack.edges.size());
  for (uint32_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  for (const abi::EdgePlan& e : pack.edges) {
    if (!ids_exist(pack, e)) {
      return Error{"cause edge at " + e.where.file + ":" + std::to_string(e.where.line) +
                       " names an unknown cause or signal",
                   4};
    }
  }
  std::sort(by_name.begin(), by_name.end(),
            [&](uint32_t a, uint32_t b) { return edge_rank(pack, a) < edge_rank(pack, b); });
  for (uint32_t i : by_name) {
    const abi::EdgePlan& e = pack.edges[i];
    boost::add_edge(e.from_signal ? causes + e.from : e.cause, causes + e.to, EdgeProperty{i}, g);
  }

  std::vector<Vertex> parent(num_vertices(g));
  std::vector<Vertex> cycle;
  CycleFinder finder;
  finder.parent = &parent;
  finder.cycle = &cycle;
  boost::depth_first_search(g, boost::visitor(finder));
  if (!cycle.empty()) return Error{"the cause graph has a cycle: " + cycle_text(pack, cycle), 2};

  CauseGraph out;
  out.cause_edges.resize(causes);
  out.parent_edges.resize(pack.signals.size());
  for (Vertex v = 0; v < num_vertices(g); ++v) {
    for (auto [it, end] = out_edges(v, g); it != end; ++it) {
      if (v < causes)
        out.cause_edges[v].push_back(g[*it].plan);
      else
        out.parent_edges[target(*it, g) - causes].push_back(g[*it].plan);
    }
  }
  for (auto& list : out.parent_edges) {  // gathered by source id: back to the order of names
    std::sort(list.begin(), list.end(),
              [&](uint32_t a, uint32_t b) { return edge_rank(pack, a) < edge_rank(pack, b); });
  }
  std::vector<Vertex> reversed;
  boost::topological_sort(g, std::back_inserter(reversed));
  for (auto it = reversed.rbegin(); it != reversed.rend(); ++it) {
    if (*it >= causes) out.signal_order.push_back(static_cast<abi::SignalId>(*it - causes));
  }
  for (abi::CauseId c = 0; c < causes; ++c) out.cause_order.push_back(c);
  std::sort(out.cause_order.begin(), out.cause_order.end(), [&](abi::CauseId a, abi::CauseId b) {
    return pack.causes[a].name < pack.causes[b].name;
  });
  out.shape = pack_shape_of(pack, out.cause_edges, out.cause_order);
  return out;
}

}  // namespace reflex::attribution
