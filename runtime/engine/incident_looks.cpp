// Looks at an incident: gathering its evidence, ranking (on a crew when there is one), giving out.
// See incident_tracker.h.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/engine/incident_tracker.h"

namespace reflex::engine {
namespace {

// Why: enough to keep a few threads busy; a verdict waits for no more than these.
constexpr size_t kPendingMax = 8;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

attribution::Input IncidentTracker::gather(const Open& incident, int64_t at_ns) {
  attribution::Input input;
  input.opened_ns = incident.opened_ns;
  input.now_ns = at_ns;
  input.job = incident.job;
  input.plan = incident.plan;
  input.hypotheses_max = options_.hypotheses_max;
  input.model = options_.model.get();
  input.switches.history = !options_.ablate.history;
  input.switches.common_mode = !options_.ablate.common_mode;
  input.switches.explain_away = !options_.ablate.explain_away;
  input.switches.shared_fate = !options_.ablate.explain_away;
  input.switches.by_class = !options_.ablate.class_thresholds;
  input.nodes = incident.nodes;
  // Why: a node shows three weak signals of three days; a list that grows is copied each time.
  input.evidence.reserve(incident.nodes.size() * 4);
  collect_evidence(incident, at_ns, input.evidence);
  adaptation_.prepare(input);
  // A first verdict must be fast; nobody acts on its rivals.
  input.counterfactual = at_ns >= incident.final_ns && options_.counterfactual;
  return input;
}

void IncidentTracker::rank(Pending& pending) const {
  pending.asked = {&coverage_, pending.input.now_ns};
  pending.input.observed = [](const void* state, abi::SignalId signal, SymbolId node) {
    const auto* a = static_cast<const Pending::Asked*>(state);
    return a->coverage->observed(signal, node, a->at_ns);
  };
  pending.input.observed_state = &pending.asked;
  pending.verdict = graph_->attribute_unless(pending.input, pending.signature);
}

void IncidentTracker::evaluate(Open& incident, int64_t at_ns, const EngineSinks& sinks) {
  if (options_.elsewhere && options_.elsewhere->is_elsewhere(name_of(incident.job))) {
    return pass_over(incident, at_ns, sinks);
  }
  const auto same = [&](const auto& p) { return p->incident == &incident; };
  const bool final_revision = at_ns >= incident.final_ns;
  const bool next_hour = !pending_.empty() && pending_.front()->input.now_ns / adapt::kEpochNs !=
                                                  at_ns / adapt::kEpochNs;
  // A final verdict goes into the history that the next one is made from.
  if (final_revision || next_hour || std::any_of(pending_.begin(), pending_.end(), same)) {
    flush(sinks);
  }
  incident.next_ns = kNever;
  incident.looked_ns = at_ns;
  auto pending = std::make_unique<Pending>();
  pending->incident = &incident;
  pending->input = gather(incident, at_ns);
  if (!final_revision) pending->signature = incident.signature;  // a final one is always given out
  pending_.push_back(std::move(pending));
  if (final_revision || !crew_ || pending_.size() >= kPendingMax) flush(sinks);
}

void IncidentTracker::flush(const EngineSinks& sinks) {
  if (pending_.empty()) return;
  if (crew_ && pending_.size() > 1) {
    crew_->run(pending_.size(), [this](size_t i) { rank(*pending_[i]); });
  } else {
    for (const auto& pending : pending_) rank(*pending);
  }
  for (const auto& pending : pending_) {
    give_out(*pending, sinks);
    for (auto& evidence : pending->input.evidence) spare_.take_back(std::move(evidence));
  }
  pending_.clear();
  for (const abi::Firing* firing : habits_waiting_) adaptation_.on_firing(*firing);
  habits_waiting_.clear();
}

void IncidentTracker::give_out(Pending& pending, const EngineSinks& sinks) {
  if (!pending.verdict) return;
  Open& incident = *pending.incident;
  attribution::Input& input = pending.input;
  abi::Verdict& verdict = *pending.verdict;
  const bool final_revision = input.now_ns >= incident.final_ns;
  ++incident.revision;
  incident.signature = std::move(pending.signature);
  incident.closed = final_revision;
  verdict.revision = incident.revision;
  verdict.final_revision = final_revision;
  verdict.ts_ns = input.now_ns;
  verdict.table_version = input.tables ? input.tables->version() : 0;
  identify(incident, verdict);
  verdict.baseline_shifts = adaptation_.shifts(input);
  if (final_revision) {
    const Adaptation::Outcome outcome = Adaptation::outcome_of(verdict);
    adaptation_.on_final(input, outcome);
    if (options_.elsewhere) options_.elsewhere->tell(key_of(incident), outcome);
    if (sinks.final_input) {
      if (input.tables) input.tables = adaptation_.frozen(input);
      sinks.final_input(input, verdict);
    }
  }
  sinks.verdict(std::move(verdict));
}

/// Another process weighs it; only what its end says of nodes matters here.
void IncidentTracker::pass_over(Open& incident, int64_t at_ns, const EngineSinks& sinks) {
  flush(sinks);
  attribution::Input input;
  input.opened_ns = incident.opened_ns;
  input.now_ns = at_ns;
  input.job = incident.job;
  input.nodes = incident.nodes;
  adaptation_.prepare(input);
  incident.next_ns = kNever;
  incident.looked_ns = at_ns;
  if (at_ns < incident.final_ns) return;
  incident.closed = true;
  adaptation_.on_final(input, options_.elsewhere->outcome(key_of(incident)));
}

std::string IncidentTracker::key_of(const Open& incident) const {
  return fmt::format("{}|{}|{}|{}", incident.plan->name, incident.id, name_of(incident.job),
                     incident.opened_ns);
}

}  // namespace reflex::engine
