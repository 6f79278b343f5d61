// Attribution: evidence on a dependency graph -> a verdict (attribution.md sections 1-3, 8, 9).
//
// Contract: pure and deterministic. The same input, in any order of its vectors, gives the same
// verdict. No Boost type shows here; graph_boost.cpp is the only file that sees Boost.Graph.
// Cost: O(nodes with evidence x faults x children) + O(classes x faults x children); a `peers`
// term is total-over-job minus the candidate's own. 10,000-node jobs stay in milliseconds.
#pragma once

#include <memory>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"

namespace reflex::attribution {

/// A signal's activity on one entity during the incident's look-back: one or more episodes.
struct Evidence {
  abi::SignalId signal = 0;
  abi::EntityKey entity;
  struct Episode {
    int64_t onset_ns = 0;  // when the evidence began
    int64_t end_ns = 0;    // last firing + holds (or the end of a condition)
    uint32_t firings = 1;
    abi::Value value;
    abi::Value limit;
    std::vector<abi::EventRef> events;
  };
  std::vector<Episode> episodes;  // by onset
};

struct NodeView {
  SymbolId node = kNoSymbol;
  abi::ClassId hw_class = 0;
  SymbolId rack = kNoSymbol;
  SymbolId tor = kNoSymbol;
  bool in_job = true;   // false: a member of a rack/tor of the job, for external causes
  double hazard = 1.0;  // of the node's own confirmed history (section 3)
};

/// Everything about one incident that the mathematics needs.
struct Input {
  int64_t opened_ns = 0;
  int64_t now_ns = 0;  // nothing later than this is in `evidence`
  SymbolId job = kNoSymbol;
  const abi::IncidentPlan* plan = nullptr;
  std::vector<NodeView> nodes;
  std::vector<Evidence> evidence;  // of those nodes, the job, its racks and tors
  /// Whether the source of `signal` on `node` reports. Never null.
  bool (*observed)(const void* state, abi::SignalId signal, SymbolId node) = nullptr;
  const void* observed_state = nullptr;
  uint32_t hypotheses_max = 10;  // how many are listed in the verdict
  /// The counterfactual costs more than all the rest: leave it out to only see the answer.
  bool counterfactual = true;
};

/// The graph of one pack set: built once, used by every verdict.
class Graph {
 public:
  /// Fails when the edges form a cycle (the compiler reports it first, with the place).
  static Result<std::unique_ptr<Graph>> build(std::shared_ptr<const abi::CompiledPack> pack);
  virtual ~Graph() = default;
  /// Fills everything of the verdict but identity (id, incident, revision, pack, engine).
  [[nodiscard]] virtual abi::Verdict attribute(const Input& input) const = 0;
  /// How far back before an incident's opening a firing can matter.
  [[nodiscard]] virtual int64_t lookback_ns(abi::SignalId signal) const = 0;
  /// How long after the opening a firing can matter.
  [[nodiscard]] virtual int64_t lookahead_ns(abi::SignalId signal) const = 0;
};

}  // namespace reflex::attribution
