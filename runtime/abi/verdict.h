// Verdict: the ranked hypotheses of one incident with everything an explanation shows.
//
// Plain data, names already resolved to text, so that rendering (JSON, text, Markdown) needs
// nothing else. JSON form: language.md B8, schema in runtime/verdict.schema.json.
// Invariant: for every hypothesis, log_odds_nats == prior_nats + sum of contributions[].nats
// to within 1e-9 (attribution.md section 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi/firing.h"

namespace reflex::abi {

struct EventRefText {
  std::string source;
  uint64_t seq = 0;
  int64_t ts_ns = 0;
  std::string id;
};

enum class SignalState : uint8_t { kFired, kSilent, kUnobserved, kSuppressed };

/// One signal held against one hypothesis.
struct Contribution {
  std::string signal;
  std::string entity;  // "n3/5", "job j1"; "12 peers" for an aggregated term
  std::string scope;   // self, peers, rack, tor, job, all
  SignalState state = SignalState::kFired;
  double nats = 0;
  uint32_t entity_count = 1;  // how many entities this term sums over
  uint32_t fired_count = 0;   // of them, how many fired
  int64_t onset_ns = kNoTimeNs;
  uint32_t firings = 0;  // refirings folded into the one that counts
  std::optional<double> value;
  std::optional<double> limit;
  std::string limit_origin;
  double p = 0;
  double leak = 0;          // probability in this window
  std::string leak_origin;  // "author", "class hw.h100, 41000 h", "node n3, shrunk", "model"
  double multiplier = 1;    // of the model's calibration layer; `nats` holds it already
  SourceRef rule;           // the edge
  SourceRef signal_where;
  std::vector<EventRefText> events;
};

struct ExplainedAway {
  std::string signal;
  std::string entity;
  std::string by;  // the parent signal or hypothesis that accounts for it
  double nats_lost = 0;
};

/// A firing that counts for nothing, with the reason (attribution.md section 6).
struct Suppressed {
  std::string signal;
  std::string entity;
  std::string by;  // "maintenance", "suppress lab_noise: burn-in racks", "mask tor_switch on t1"
  double nats_lost = 0;
};

struct Unobserved {
  std::string signal;
  std::string entity;  // a node, or "3 nodes"
  std::string reason;
};

struct Hypothesis {
  enum class What : uint8_t { kNone, kExternal, kNode };
  What what = What::kNone;
  std::string node;    // kNode
  std::string entity;  // "n3/5" or "tor t1"
  std::string cause;   // fault or external cause; "" for kNone
  std::string hw_class;
  std::string severity;
  std::string remedy;
  double p = 0;                  // posterior
  double prior_nats = 0;         // log prior odds against "none"
  double log_odds_nats = 0;      // prior_nats + sum of contributions
  int64_t onset_ns = kNoTimeNs;  // the onset that explains the evidence best
  std::vector<Contribution> contributions;
  double hazard = 1;          // of the node's own history; prior_nats holds it
  std::string hazard_origin;  // "2 confirmed faults in 9 days", "" = no history
  std::vector<ExplainedAway> explained_away;
  std::vector<Suppressed> suppressed;
  std::vector<Unobserved> unobserved;
};

struct NodeProbability {
  std::string node;
  double p = 0;
  std::string level;  // "confirmed" | "suspected" | ""
  std::string top_cause;
  std::string top_entity;
};

/// The smallest set of contributions without which the answer changes.
struct Counterfactual {
  std::vector<std::string> without;  // "xid_48 on n3/5"
  std::string answer;                // what the verdict would be then
  bool exact = true;                 // no smaller set does it (all were tried)
};

enum class Answer : uint8_t { kNodes, kExternal, kNone, kUndetermined };

struct Verdict {
  std::string id;             // deterministic: pack set, incident, revision
  std::string incident;       // incident id
  std::string incident_type;  // "job_hang"
  std::string job;
  std::string symptom;
  uint32_t revision = 1;
  bool final_revision = false;
  int64_t ts_ns = 0;  // event time of this revision
  int64_t opened_ns = 0;
  std::string opened_by;                // the trigger signal or kind
  std::vector<std::string> pack_names;  // "std.nvidia 1.0.0"
  std::string pack_sha256;
  std::string model_sha256;                  // empty: no model
  uint64_t table_version = 0;                // of thresholds and benign rates
  std::vector<std::string> baseline_shifts;  // "class hw.h100 moved at ..: pcie.aer_corr x4"
  std::string engine;
  Answer answer = Answer::kUndetermined;
  std::string level;                   // confirmed | suspected | external | none | undetermined
  std::vector<std::string> culprits;   // node names, best first
  std::string external;                // "tor_switch on t1"
  std::vector<NodeProbability> nodes;  // p >= 0.01 or top 5, best first
  std::vector<Hypothesis> hypotheses;  // best first, the listed ones
  std::vector<Counterfactual> counterfactual;
  uint32_t job_node_count = 0;
  uint32_t late_events = 0;
  double latency_ms = 0;  // wall clock; only printed with --timings
};

}  // namespace reflex::abi
