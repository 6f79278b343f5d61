// What packs say of causes: faults, edges, masks, synergies, suppression, maintenance, incidents.
//
// Part of the plans (plan.h): plain data, all times int64 nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/plan_ids.h"

namespace reflex::abi {

enum class CauseKind : uint8_t { kFault, kExternal };
/// kPerIncident: the share of incidents that this cause makes, on whichever node of the job: the
/// prior of one node is that share over the number of the job's nodes.
enum class RateUnit : uint8_t { kPerJob, kPerHour, kPerIncident };

struct CausePlan {
  std::string name;
  CauseKind kind = CauseKind::kFault;
  EntityKindId entity_kind = 0;  // (node), (node, gpu); (tor), (job), ... for externals
  double prior = 1e-4;
  RateUnit prior_unit = RateUnit::kPerJob;
  int64_t half_life_ns = 0;               // of the node's own confirmed history
  std::string severity;                   // info | warning | critical | ""
  std::string remedy;                     // drain, reset, ...
  std::vector<double> class_prior_scale;  // [ClassId]; empty = 1 everywhere
  SourceRef where;
};

/// kPod, kZone: nodes with the same label; kClass: nodes of the same hardware class.
enum class Scope : uint8_t { kSelf, kPeers, kRack, kTor, kJob, kAll, kPod, kZone, kClass };
/// The word of the language: "self", "peers", ..
inline constexpr std::string_view scope_word(Scope scope) {
  constexpr std::array<std::string_view, 9> kWords{"self", "peers", "rack", "tor",  "job",
                                                   "all",  "pod",   "zone", "class"};
  return kWords[static_cast<size_t>(scope)];
}

struct EdgePlan {
  bool from_signal = false;  // signal -> signal
  CauseId cause = kNone32;   // when !from_signal
  SignalId from = kNone32;   // when from_signal
  SignalId to = kNone32;
  double p = 0.5;
  std::vector<double> class_p;  // [ClassId] when p is a profile parameter; else empty
  bool has_weight = false;      // `weight n nats` in place of p
  double weight_nats = 0;
  int64_t lag_lo_ns = 0;
  int64_t lag_hi_ns = 0;
  Scope scope = Scope::kSelf;
  SourceRef where;
};

/// `CAUSE masks SIGNAL, .. when at least 30% of members in 60s`: common mode. When so many members
/// of one group (the entity kind of `cause`) show a signal of the list within within_ns, the cause
/// accounts for the members' firings (attribution.md section 6): explained away, not deleted.
struct MaskPlan {
  CauseId cause = kNone32;
  std::vector<SignalId> signals;
  int64_t lag_lo_ns = 0;
  int64_t lag_hi_ns = 0;
  double at_least = 0.3;  // share of the group's members
  int64_t within_ns = 60'000'000'000;
  SourceRef where;
};

/// `synergy FAULT from S1 and S2 weight 1.5 nats`: what two signals on one entity say together
/// beyond their sum. Counts when all have fired for the hypothesis.
struct SynergyPlan {
  CauseId cause = kNone32;
  std::vector<SignalId> signals;  // 2..4
  double weight_nats = 0;
  SourceRef where;
};

/// `suppress NAME { signals .. where .. until .. reason .. }`: firings stay, with weight 0.
struct SuppressPlan {
  std::string name;
  std::vector<SignalId> signals;  // empty: every signal
  ExprId where = kNone32;         // predicate over the labels of EvalContext::entity[0] (a node)
  int64_t until_ns = INT64_MAX;
  std::string reason;
  SourceRef where_declared;
};

/// `maintenance from event KIND until KIND on node grace 15m`.
struct MaintenancePlan {
  KindId from = 0;
  KindId until = 0;
  uint16_t from_slot = 0;  // the field that names the node
  uint16_t until_slot = 0;
  int64_t grace_ns = 0;  // goes on for so long after the end
  SourceRef where;
};

/// `SIGNAL explained by maintenance on node`: only such signals are explained by maintenance of
/// their node; a pack without such a statement has all of them explained.
struct ExplainedByMaintenance {
  SignalId signal = kNone32;
  SourceRef where;
};

/// `repair from event KIND on node`: a site's own word for node.repaired.
struct RepairPlan {
  KindId kind = 0;
  uint16_t node_slot = 0;
  SourceRef where;
};

/// `cohort from event KIND by FIELD on node`: such an event moves the node into another cohort of
/// its class (a driver rollout, new firmware). Benign rates and thresholds are kept per cohort.
struct CohortPlan {
  KindId kind = 0;
  uint16_t node_slot = 0;
  uint16_t value_slot = 0;
  SourceRef where;
};

struct IncidentPlan {
  std::string name;
  EntityKindId entity_kind = 0;  // (job)
  std::vector<SignalId> open_signals;
  std::vector<KindId> open_kinds;       // e.g. incident.open
  std::vector<ExprId> open_predicates;  // parallel to open_kinds: `where` over the record;
                                        // kNone32 = every event of the kind opens
  int64_t settle_ns = 30'000'000'000;
  int64_t merge_ns = 600'000'000'000;
  double confirm = 0.90;
  double suspect = 0.50;
  double unexplained_prior = 1e-3;  // per job: the prior odds of "no faulty node"
  SourceRef where;
};

}  // namespace reflex::abi
