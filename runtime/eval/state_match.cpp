// Pairing of states: see state_match.h.
#include "runtime/eval/state_match.h"

#include <algorithm>
#include <map>

namespace reflex::eval {
namespace {

bool is_kept(abi::Fate fate) { return fate == abi::Fate::kKept || fate == abi::Fate::kTrimmed; }

void adopt(const abi::StateItem& before, size_t number, const abi::StateShape& now, bool changed,
           StateOrigin& origin) {
  origin.saved = number;
  origin.changed = changed;
  origin.missing_ns = std::max<int64_t>(0, now.window_ns - before.shape.window_ns);
}

/// Features without a name: first those that are the same, then those of one shape.
void pair_unnamed(const std::vector<abi::StateItem>& before, const abi::CompiledPack& pack,
                  bool same, std::vector<StateOrigin>& origins) {
  std::vector<uint8_t> taken(before.size(), 0);
  for (const StateOrigin& origin : origins) {
    if (origin.saved != SIZE_MAX) taken[origin.saved] = 1;
  }
  for (size_t f = 0; f < pack.features.size(); ++f) {
    if (!pack.features[f].name.empty() || origins[f].saved != SIZE_MAX) continue;
    for (size_t i = 0; i < before.size(); ++i) {
      if (taken[i] != 0 || !before[i].name.empty()) continue;
      const abi::StateChange change = abi::judge_state(before[i].shape, pack.features[f].state);
      if (!is_kept(change.fate) || (same && change.changed)) continue;
      taken[i] = 1;
      adopt(before[i], i, pack.features[f].state, change.changed, origins[f]);
      break;
    }
  }
}

}  // namespace

StateItems items_of(const abi::CompiledPack& pack) {
  StateItems items;
  for (abi::StateItem& item : abi::state_items(pack)) {
    if (!item.is_feature) items.signals.push_back(std::move(item));
  }
  for (const abi::FeaturePlan& plan : pack.features) {
    items.features.push_back({plan.name, plan.was, true, plan.state, 0});
  }
  return items;
}

StateMatch match_states(const StateItems& before, const abi::CompiledPack& pack) {
  std::map<std::string_view, size_t> signal_at;
  std::map<std::string_view, size_t> feature_at;
  std::vector<abi::StateItem> named;
  for (size_t i = 0; i < before.signals.size(); ++i) {
    signal_at[before.signals[i].name] = i;
    named.push_back(before.signals[i]);
  }
  for (size_t i = 0; i < before.features.size(); ++i) {
    if (before.features[i].name.empty()) continue;
    feature_at[before.features[i].name] = i;
    named.push_back(before.features[i]);
  }
  StateMatch match;
  match.signals.resize(pack.signals.size());
  match.features.resize(pack.features.size());
  std::map<std::string_view, size_t> new_signal;
  std::map<std::string_view, size_t> new_feature;
  for (size_t s = 0; s < pack.signals.size(); ++s) new_signal[pack.signals[s].name] = s;
  for (size_t f = 0; f < pack.features.size(); ++f) new_feature[pack.features[f].name] = f;
  for (const abi::StateChange& change : abi::state_plan(named, abi::state_items(pack))) {
    const std::string& old_name = change.old_name.empty() ? change.name : change.old_name;
    const auto& at = change.is_feature ? feature_at : signal_at;
    const auto saved = at.find(old_name);
    match.report_saved.push_back(saved == at.end() ? SIZE_MAX : saved->second);
    match.report.push_back({change.name, change.is_feature, change.fate, change.why,
                            change.old_name, change.changed, change.incomplete, 0});
    if (!is_kept(change.fate)) continue;
    if (change.is_feature) {
      const size_t f = new_feature.at(change.name);
      adopt(before.features[saved->second], saved->second, pack.features[f].state, change.changed,
            match.features[f]);
    } else {
      const size_t s = new_signal.at(change.name);
      adopt(before.signals[saved->second], saved->second, pack.signals[s].state, change.changed,
            match.signals[s]);
    }
  }
  pair_unnamed(before.features, pack, true, match.features);
  pair_unnamed(before.features, pack, false, match.features);
  return match;
}

void StateMatch::spread_changes(const Program& program) {
  for (abi::SignalId s = 0; s < signals.size(); ++s) {
    for (const abi::FeatureId f : program.needs_of(s)) {
      signals[s].changed = signals[s].changed || features[f].changed;
    }
  }
}

std::vector<int64_t> incomplete_until(const std::vector<StateOrigin>& origins,
                                      const std::vector<int64_t>& before, int64_t at_ns) {
  std::vector<int64_t> until(origins.size(), INT64_MIN);
  for (size_t i = 0; i < origins.size(); ++i) {
    const StateOrigin& origin = origins[i];
    if (origin.saved == SIZE_MAX) continue;
    until[i] = before[origin.saved];
    if (origin.missing_ns == 0 || at_ns == INT64_MIN) continue;
    until[i] = std::max(until[i], at_ns > INT64_MAX - origin.missing_ns
                                      ? INT64_MAX
                                      : at_ns + origin.missing_ns);
  }
  return until;
}

void spread_incomplete(const Program& program, const std::vector<int64_t>& features,
                       std::vector<int64_t>& signals) {
  const bool any = std::any_of(features.begin(), features.end(),
                               [](int64_t until) { return until != INT64_MIN; });
  for (abi::SignalId s = 0; any && s < signals.size(); ++s) {
    for (const abi::FeatureId f : program.needs_of(s)) {
      signals[s] = std::max(signals[s], features[f]);
    }
  }
}

}  // namespace reflex::eval
