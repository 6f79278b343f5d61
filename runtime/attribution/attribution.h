// Attribution: evidence on a dependency graph -> a verdict (attribution.md sections 1-3, 8, 9).
//
// Contract: pure and deterministic. The same input, in any order of its vectors, gives the same
// verdict. No Boost type shows here; graph_boost.cpp is the only file that sees Boost.Graph.
// Cost: O(nodes with evidence x faults x children) + O(classes x faults x children); a `peers`
// term is total-over-job minus the candidate's own. 10,000-node jobs stay in milliseconds.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/model.h"
#include "runtime/abi/past.h"
#include "runtime/abi/table.h"
#include "runtime/abi/verdict.h"
#include "runtime/attribution/latent.h"
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
    /// Graded counts: events by lead bin before Input::opened_ns (the last bin also holds what came
    /// after it), since the node's last repair at most. One episode an entity.
    std::array<uint16_t, abi::kLeadBins> lead_counts{};
    uint64_t part = 0;  // graded counts: the part that most events name (Firing::part)
    /// Not empty: counts for nothing, for this reason ("maintenance", "suppress NAME: reason").
    std::string suppressed_by;
  };
  std::vector<Episode> episodes;  // by onset
};

struct NodeView {
  SymbolId node = kNoSymbol;
  abi::ClassId hw_class = 0;
  SymbolId rack = kNoSymbol;
  SymbolId tor = kNoSymbol;
  SymbolId pod = kNoSymbol;
  SymbolId zone = kNoSymbol;
  bool in_job = true;   // false: a member of a rack/tor of the job, for external causes
  double hazard = 1.0;  // of the node's own history (section 3), all faults; apply_history()
  std::string hazard_origin;
  int64_t repaired_ns = kNoTimeNs;  // last repair before the opening: graded counts begin there
};

/// A node's hazard for one fault, where it differs from NodeView::hazard.
struct CauseHazard {
  SymbolId node = kNoSymbol;
  abi::CauseId cause = 0;
  double factor = 1.0;  // in place of NodeView::hazard
};

/// What is known of the earlier faults of one node.
struct NodePast {
  SymbolId node = kNoSymbol;
  abi::Past past;
};

/// Parts that can be left out, to see what each is worth. All on by default.
struct Switches {
  bool history = true;  // hazards
  /// Rivals in the posterior, observed parent signals, residual evidence of further culprits. Off:
  /// each node is held against nothing but "not at fault", and may count what others explain.
  bool explain_away = true;
  /// External causes on more than one node (places, the job), masks, the job-relative leak.
  bool common_mode = true;
  bool by_class = true;  // priors and levels of a hardware class
  bool shared_fate = true;   // members of a group share one hidden level (README 5)
  bool synergies = true;
  bool ailing = true;     // a node may be degrading for another reason (README 8)
  bool agreement = true;  // graded signals of a fault name the same part (README 16)
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
  std::vector<CauseHazard> cause_hazards;  // sorted by (node, cause); apply_history()
  std::vector<NodePast> pasts;  // of nodes with a history, in the order of `nodes`
  /// Benign rates measured at run time; null: the authors' leaks.
  std::shared_ptr<const abi::TableSnapshot> tables;
  /// Learned numbers; null: the authors'. Outlives the call.
  const abi::Model* model = nullptr;
  Switches switches;
  uint32_t hypotheses_max = 10;  // how many are listed in the verdict
  /// The counterfactual costs more than all the rest: leave it out to only see the answer.
  bool counterfactual = true;
};

/// One hypothesis of an incident as numbers: what learning and baselines work on.
///
/// `nats` is before multiplier and temperature. One member (own, or an entity without a node):
///   nats = log(1 - p + p * exp(log_ratio))   when it fired,
///   nats = log(1 - p * silent_share * (1 - R0)) when silent; R0 = 0 for a binary signal.
/// A group: nats = latent sum over members (latent.h) + background; term_nats() and group_shape()
/// do both for another p, exactly for one member and with the members' mean ratio for a group.
/// Terms of edges with `weight` do not depend on p. log_odds of a hypothesis = (prior_nats +
/// sum of multiplier * nats) / temperature.
struct DossierTerm {
  uint32_t edge = 0;  // index into CompiledPack::edges; kNone32: a synergy, ailing, agreement
  uint32_t synergy = abi::kNone32;
  double nats = 0;       // with the author's (or the model's) numbers, before multiplier
  double leak = 0;       // benign chance in the window (mean over the fired members)
  uint32_t members = 0;  // fired or observed
  uint32_t fired = 0;
  uint32_t unobserved = 0;
  bool explained = false;   // observed parents or masks took most of it
  bool group = false;       // a term over a group of nodes
  double p = 0;             // strength behind `nats`
  double log_ratio = 0;     // log P(seen | active) / P(seen | benign), mean of the fired members
  double silent_ratio = 0;  // the same ratio (not its log) of a silent member, open windows too
  double background = 0;    // group: what a benign storm takes off, within `nats`
  bool ailing = false;      // "ailing for another reason": edge and synergy are kNone32
  bool agreement = false;   // "same gpu": edge and synergy are kNone32
};
struct DossierHypothesis {
  abi::CauseId cause = 0;
  SymbolId node = kNoSymbol;  // kNoSymbol: an external cause of no node
  abi::EntityKey entity;
  abi::ClassId hw_class = 0;
  uint32_t alike = 0;  // stands for so many further nodes without own evidence
  double prior_nats = 0;
  double hazard = 1;
  int64_t onset_ns = kNoTimeNs;
  double log_odds_nats = 0;
  std::vector<DossierTerm> terms;
};
struct Dossier {
  std::vector<DossierHypothesis> hypotheses;  // every one that was weighed; "none" is 0 nats
};
/// A group term taken apart, so that it can be weighed again under other strengths:
/// nats at strength p = rest + mix(level weights of p, levels).
struct GroupShape {
  Levels levels{};
  double rest = 0;
};
/// `term.group` holds, and it has members.
GroupShape group_shape(const DossierTerm& term, LevelWeights& weights);
/// The weight of a term of one member if its edge had strength `p`; terms without an edge keep theirs.
double term_nats(const DossierTerm& term, double p);

/// The graph of one pack set: built once, used by every verdict.
class Graph {
 public:
  /// Fails when the edges form a cycle (the compiler reports it first, with the place).
  static Result<std::unique_ptr<Graph>> build(std::shared_ptr<const abi::CompiledPack> pack);
  virtual ~Graph() = default;
  /// Fills everything of the verdict but identity (id, incident, revision, pack, engine).
  [[nodiscard]] abi::Verdict attribute(const Input& input) const {
    std::string signature;
    return *attribute_unless(input, signature);
  }
  /// Nothing when the verdict's signature (level, culprits, first three hypotheses) is `signature`
  /// still, which costs much less; else the verdict, and its own signature in `signature`.
  [[nodiscard]] virtual std::optional<abi::Verdict> attribute_unless(
      const Input& input, std::string& signature) const = 0;
  /// The hypotheses of an incident, each at its best onset, before any culprit is accepted.
  [[nodiscard]] virtual Dossier dossier(const Input& input) const = 0;
  /// How far back before an incident's opening a firing can matter.
  [[nodiscard]] virtual int64_t lookback_ns(abi::SignalId signal) const = 0;
  /// How long after the opening a firing can matter.
  [[nodiscard]] virtual int64_t lookahead_ns(abi::SignalId signal) const = 0;
};

}  // namespace reflex::attribution
