// Feeding and asking runtime/adapt: see adaptation.h.
#include "runtime/engine/adaptation.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/attribution/past.h"
#include "runtime/base/time.h"

namespace reflex::engine {
namespace {

// Why: what leads to an incident shows minutes before it is opened.
constexpr int64_t kHeldBeforeNs = 15 * kNsPerMinute;
// Why: a shift of a baseline explains verdicts for as long as old habits are remembered.
constexpr int64_t kShiftToldNs = 14 * kNsPerDay;

adapt::RateOptions rate_options(const abi::CompiledPack& pack, const EngineOptions& options) {
  adapt::RateOptions rates;
  rates.by_class = !options.ablate.class_thresholds;
  // What an incident looks back at must not be part of the habit that it is held against.
  rates.delay_ns = kNsPerDay;
  for (const abi::SignalPlan& s : pack.signals) {
    const bool graded = s.shape == abi::SignalShape::kCount && s.count.graded.on;
    if (graded) rates.delay_ns = std::max(rates.delay_ns, s.count.window_ns);
  }
  return rates;
}

}  // namespace

Adaptation::Adaptation(std::shared_ptr<const abi::CompiledPack> pack,
                       std::shared_ptr<const topology::Topology> topology,
                       const EngineOptions& options)
    : pack_(std::move(pack)),
      topology_(std::move(topology)),
      options_(options),
      rates_(pack_, rate_options(*pack_, options)),
      thresholds_(pack_, {!options.ablate.dynamic, !options.ablate.class_thresholds}),
      history_(pack_, {}),
      suppression_(pack_, topology_),
      wanted_(pack_->kinds.size(), 0),
      cohorts_(pack_->kinds.size()) {
  if (options_.known) {
    for (const auto& known : *options_.known) known_.emplace(known.incident, &known);
  }
  for (const auto& plan : pack_->cohorts) {
    cohorts_[plan.kind].push_back(&plan);
    wanted_[plan.kind] = 1;
  }
  for (abi::KindId kind = 0; kind < wanted_.size(); ++kind) {
    if (kind == abi::kNodeLabels || kind == abi::kGpuReplaced || suppression_.wants(kind)) {
      wanted_[kind] = 1;
    }
  }
}

void Adaptation::see_inventory() {
  for (const SymbolId node : topology_->nodes()) {
    if (rates_.knows(node)) continue;  // after a load: its class may have changed since
    const abi::ClassId hw_class = topology_->hw_class(node, kNoTimeNs);
    rates_.see_node(node, hw_class, kNoTimeNs);
    nodes_.try_emplace(node);
  }
}

void Adaptation::see(SymbolId node, int64_t ts_ns) {
  if (rates_.knows(node)) return;
  const abi::ClassId hw_class = topology_->hw_class(node, ts_ns);
  rates_.see_node(node, hw_class, ts_ns);
  nodes_.try_emplace(node);
}

void Adaptation::on_record(const abi::Record& record) {
  for (const abi::CohortPlan* plan : cohorts_[record.kind]) {
    if (!record.has(plan->node_slot) || !record.has(plan->value_slot)) continue;
    const auto node = static_cast<SymbolId>(record.i64(plan->node_slot));
    const auto value = static_cast<SymbolId>(record.i64(plan->value_slot));
    see(node, record.ts_ns);
    rates_.set_cohort(node, value, record.ts_ns);
    nodes_[node].cohort = value;
  }
  if (record.kind == abi::kNodeLabels && record.has(0)) {
    const auto node = static_cast<SymbolId>(record.i64(0));
    const abi::ClassId hw_class = topology_->hw_class(node, record.ts_ns);
    rates_.see_node(node, hw_class, record.ts_ns);
    nodes_.try_emplace(node);
  }
  if (record.kind == abi::kGpuReplaced && record.has(0)) {
    history_.part_replaced(static_cast<SymbolId>(record.i64(0)), record.ts_ns);
  }
  if (suppression_.wants(record.kind)) suppression_.apply(record);
}

void Adaptation::on_firing(const abi::Firing& firing) {
  rates_.advance(firing.ts_ns);
  see(static_cast<SymbolId>(firing.entity.values[0]), firing.ts_ns);
  const auto node = static_cast<SymbolId>(firing.entity.values[0]);
  if (!held(node, firing.ts_ns)) rates_.add(firing);
}

void Adaptation::on_opened(const std::vector<attribution::NodeView>& nodes, int64_t opened_ns,
                           int64_t final_ns) {
  for (const auto& view : nodes) {
    if (!view.in_job) continue;
    NodeState& state = nodes_[view.node];
    const int64_t from_ns = opened_ns - kHeldBeforeNs;
    if (state.held_until_ns == kNoTimeNs || state.held_until_ns < from_ns) {
      state.held_from_ns = from_ns;
    }
    state.held_until_ns = std::max(state.held_until_ns, final_ns);
    rates_.forget_waiting(view.node, from_ns);
  }
}

void Adaptation::prepare(attribution::Input& input) {
  rates_.advance(input.now_ns);
  if (!options_.ablate.dynamic) input.tables = tables();
  suppression_.mark(input.evidence);
  if (options_.ablate.history) return;
  learn_older(input.opened_ns);
  for (const auto& view : input.nodes) {
    const int64_t repaired_ns = topology_->last_repair_ns(view.node, input.opened_ns);
    auto past = history_.past(view.node, repaired_ns, input.opened_ns);
    if (past) input.pasts.push_back({view.node, std::move(*past)});
  }
  attribution::apply_history(input, input.model ? input.model->history : abi::HistoryLaw{});
}

void Adaptation::set_confirmed(SymbolId node, int64_t at_ns) {
  // What was counted of a faulty node shortly before is no habit of healthy ones.
  rates_.forget_waiting(node);
  nodes_[node].confirmed_ns = at_ns;
}

void Adaptation::learn_known(const KnownIncident& known, int64_t at_ns) {
  abi::CauseId cause = 0;
  while (cause < pack_->causes.size() && pack_->causes[cause].name != known.fault) ++cause;
  if (cause == pack_->causes.size()) cause = abi::kNone32;
  for (const auto& name : known.culprits) {
    const SymbolId node = pack_->symbols->find(name);
    if (node == kNoSymbol) continue;
    set_confirmed(node, at_ns);
    history_.confirm(node, cause, at_ns);
  }
}

void Adaptation::learn_older(int64_t opened_ns) {
  if (!options_.known) return;
  // Why 1 h: an incident that opens here has had its final verdict by then.
  constexpr int64_t kSurelyOverNs = kNsPerHour;
  const auto& all = *options_.known;
  for (; known_next_ < all.size(); ++known_next_) {
    const KnownIncident& known = all[known_next_];
    if (known.ts_ns >= opened_ns - kSurelyOverNs) break;
    if (known_.erase(known.incident) > 0) learn_known(known, known.ts_ns);
  }
}

void Adaptation::learn(const KnownIncident& known, bool is_over, int64_t now_ns) {
  if (is_over) return learn_known(known, now_ns);
  told_[known.incident] = known;
}

Adaptation::Outcome Adaptation::outcome_of(const abi::Verdict& verdict) {
  Outcome outcome;
  outcome.incident = verdict.incident;
  outcome.no_node =
      verdict.answer == abi::Answer::kNone || verdict.answer == abi::Answer::kUndetermined;
  for (const auto& node : verdict.nodes) {
    if (node.level.empty()) continue;
    outcome.blamed.push_back(
        {node.node, node.top_cause, std::min(node.p, 1.0), node.level == "confirmed"});
  }
  return outcome;
}

void Adaptation::confirm(const attribution::Input& input, const Outcome& outcome,
                         const KnownIncident* known) {
  if (known) return learn_known(*known, input.now_ns);
  // A suspected one counts as far as it is believed, and its habit is none while it is suspected.
  for (const auto& blamed : outcome.blamed) {
    const SymbolId symbol = pack_->symbols->find(blamed.node);
    if (symbol == kNoSymbol) continue;
    if (blamed.confirmed)
      set_confirmed(symbol, input.now_ns);
    else
      rates_.forget_waiting(symbol);
    abi::CauseId cause = 0;
    while (cause < pack_->causes.size() && pack_->causes[cause].name != blamed.cause) ++cause;
    history_.confirm(symbol, cause, input.now_ns, blamed.p);
  }
}

void Adaptation::on_final(const attribution::Input& input, const Outcome& outcome) {
  const auto it = known_.find(outcome.incident);
  const KnownIncident* known = it == known_.end() ? nullptr : it->second;
  if (known) known_.erase(it);
  const auto told = told_.extract(outcome.incident);
  if (told) known = &told.mapped();
  confirm(input, outcome, known);
  std::vector<SymbolId> of_job;
  for (const auto& view : input.nodes) {
    if (view.in_job) of_job.push_back(view.node);
  }
  const bool unexplained = known ? known->culprits.empty() : outcome.no_node;
  history_.blame(of_job, unexplained, input.now_ns);
}

std::vector<std::string> Adaptation::shifts(const attribution::Input& input) const {
  std::vector<std::string> out;
  const auto tell = [&](const adapt::Shift& shift) {
    if (shift.at_ns > input.now_ns || input.now_ns - shift.at_ns > kShiftToldNs) return;
    const bool here = std::any_of(input.nodes.begin(), input.nodes.end(), [&](const auto& view) {
      return view.in_job && view.hw_class == shift.hw_class;
    });
    if (!here || shift.hw_class >= pack_->classes.size()) return;
    out.push_back(fmt::format("class {} moved at {}: {} x{:.3g}", pack_->classes[shift.hw_class].name,
                              to_rfc3339(EventTime{shift.at_ns}), shift.what, shift.factor));
  };
  for (const auto& shift : thresholds_.shifts()) tell(shift);
  for (const auto& shift : rates_.shifts()) tell(shift);
  return out;
}

std::shared_ptr<const abi::TableSnapshot> Adaptation::frozen(
    const attribution::Input& input) const {
  std::vector<SymbolId> nodes;
  for (const auto& view : input.nodes) nodes.push_back(view.node);
  return adapt::freeze(rates_, thresholds_.rows(), pack_->signals.size(), nodes);
}

bool Adaptation::held(SymbolId node, int64_t at_ns) const {
  if (suppression_.in_maintenance(node, at_ns)) return true;
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return false;
  const NodeState& s = it->second;
  return s.held_until_ns != kNoTimeNs && s.held_from_ns <= at_ns && at_ns <= s.held_until_ns;
}

bool Adaptation::contaminated(SymbolId node, int64_t at_ns) const {
  if (held(node, at_ns)) return true;
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return false;
  const NodeState& s = it->second;
  return s.confirmed_ns != kNoTimeNs && topology_->last_repair_ns(node, at_ns) < s.confirmed_ns;
}

void Adaptation::boundary(int64_t at_ns, SignalStage& signals) {
  rates_.advance(at_ns);
  const auto& features = thresholds_.features();
  std::vector<FeatureSample> samples;
  signals.sample(features, at_ns, samples);
  std::map<abi::FeatureId, std::unordered_map<SymbolId, bool>> visited;
  for (const FeatureSample& s : samples) {
    if (thresholds_.counts(s.feature)) visited[s.feature][s.node] = true;
    if (contaminated(s.node, at_ns)) continue;
    const auto it = nodes_.find(s.node);
    const SymbolId cohort = it == nodes_.end() ? kNoSymbol : it->second.cohort;
    thresholds_.sample(s.feature, s.node, s.hw_class, cohort, s.x);
  }
  for (const abi::FeatureId feature : features) {
    if (!thresholds_.counts(feature)) continue;
    for (const auto& [node, state] : nodes_) {  // any order: samples commute
      if (visited[feature].contains(node) || contaminated(node, at_ns)) continue;
      thresholds_.sample(feature, node, topology_->hw_class(node, at_ns), state.cohort, 0);
    }
  }
  thresholds_.close(at_ns);
  signals.set_tables(tables());
}

std::shared_ptr<const abi::TableSnapshot> Adaptation::tables() const {
  return adapt::live(options_.ablate.dynamic ? nullptr : &rates_, thresholds_.rows());
}

}  // namespace reflex::engine
