// Policy: rules on verdicts (A10) -> alerts and actions that are asked for.
//
// Contract: verdicts come in event time. A rule fires per (rule, incident, top node); a later
// revision updates the same alert, one that no longer satisfies the rule resolves it with reason
// `revised`, as does another top node. Alerts repeat and resolve by event time, never by a clock.
// Actions are requests handed to the sink, once when an alert fires: nothing is executed here. The
// default mode is dry_run. Rate limits are in event time and hold for an action's name over all
// rules. Deterministic: the same verdicts give the same lines and ids.
// Not thread-safe: the one thread that takes verdicts calls.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"
#include "runtime/base/state_stream.h"
#include "runtime/policy/verdict_record.h"
#include "runtime/topology/topology.h"

namespace reflex::policy {

using Named = std::vector<std::pair<std::string, std::string>>;

struct Alert {
  std::string id;  // of (pack set, rule, incident, node)
  std::string rule;
  std::string state;   // "firing" | "resolved"
  /// firing: "new", "updated", "repeat"; resolved: "revised", "expired", "rule changed",
  /// "rule removed" (another pack set)
  std::string reason;
  std::string incident;
  std::string job;
  std::string node;     // "" when the top hypothesis is no node
  std::string verdict;  // id of the revision behind it
  uint32_t revision = 0;
  int64_t ts_ns = 0;     // of this line
  int64_t since_ns = 0;  // when it first fired
  std::string severity;
  Named labels;
  Named annotations;
};

struct ActionRequest {
  std::string alert;
  std::string rule;
  std::string action;
  std::vector<std::string> args;
  std::string mode;     // "dry_run" | "live"
  std::string outcome;  // "dry_run", "requested", "limited", "skipped"
  std::string reason;   // of limited and skipped
  int64_t ts_ns = 0;
};

struct PolicySinks {
  std::function<void(const Alert&)> alert;           // required
  std::function<void(const ActionRequest&)> action;  // required
};

class Policy {
 public:
  Policy(std::shared_ptr<const abi::CompiledPack> pack,
         std::shared_ptr<const topology::Topology> topology, PolicySinks sinks);

  void on_verdict(const abi::Verdict& verdict);
  /// Repeats and resolutions that are due up to a time. In live use: to the watermark - 1, once all
  /// verdicts before it have been told; else they wait for the next verdict.
  void advance(int64_t to_ns);
  /// The same at the end of the input.
  void finish(int64_t end_ns);
  [[nodiscard]] size_t firing() const { return active_.size(); }

  void save(StateWriter& writer) const;
  /// Before the first verdict. Alerts whose rule is gone, or no longer holds for the verdict that
  /// they were last told of, are resolved (`rule removed`, `rule changed`) with the next verdict.
  Status load(StateReader& reader, std::vector<std::string>& notes);

 private:
  struct Active {
    Alert alert;
    std::string record;  // of the last verdict, as a state: what another set's rules are asked of
    const abi::RulePlan* rule = nullptr;
    int64_t repeat_ns = INT64_MAX;   // when it is said again
    int64_t resolve_ns = INT64_MAX;  // when it ends by itself
  };
  using Key = std::pair<std::string, std::string>;  // rule, incident
  /// What an action has done lately, for its limit: (time, value of `per`).
  struct Meter {
    const abi::ActionPlan* plan = nullptr;
    std::deque<std::pair<int64_t, std::string>> done;
  };

  void apply(const abi::RulePlan& rule, const abi::Verdict& verdict);
  void save_meters(StateWriter& writer) const;
  void load_meters(StateReader& reader);
  void load_active(StateReader& reader, bool same_set, std::vector<std::string>& notes);
  /// Whether a rule holds of a saved record.
  bool still_holds(const abi::RulePlan& rule, std::string_view record, int64_t& ts_ns);
  void fire(const abi::RulePlan& rule, const abi::Verdict& verdict, const std::string& node);
  void update(Active& active, const abi::Verdict& verdict);
  void resolve(const Key& key, int64_t ts_ns, const char* reason);
  void describe(const abi::RulePlan& rule, const abi::Verdict& verdict, Alert& out);
  void run_actions(const abi::RulePlan& rule, const Alert& alert);
  [[nodiscard]] std::string limited_by(const abi::ActionPlan& plan, int64_t ts_ns);
  void count_action(const std::string& name, int64_t ts_ns);
  /// The value as text; empty when it is unknown.
  std::string text_of(abi::ExprId expr, const std::string& format = "");
  abi::Truth eval(abi::ExprId expr, uint64_t& out);

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const topology::Topology> topology_;
  PolicySinks sinks_;
  VerdictRecord record_;
  const abi::Record* now_ = nullptr;  // of the verdict being looked at
  std::map<Key, Active> active_;
  std::vector<std::pair<Key, const char*>> ended_;  // by a load: (alert, reason), not yet told
  std::vector<Meter> meters_;  // of every action with a limit, in the order of the plans
};

/// One line of NDJSON each, with the '\n'.
std::string to_json(const Alert& alert);
std::string to_json(const ActionRequest& action);

}  // namespace reflex::policy
