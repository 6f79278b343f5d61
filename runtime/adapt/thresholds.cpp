// Sketches per class, cohort and node: see thresholds.h.
#include "runtime/adapt/thresholds.h"

#include <algorithm>
#include <cmath>

#include "runtime/adapt/tail.h"
#include "runtime/base/time.h"

namespace reflex::adapt {
namespace {

// Source: methods.md 6.3(4): w = n / (n + 500) when backing off; KS distance .1 for a class.
constexpr double kBlendSamples = 500;
constexpr double kDistance = 0.1;
// Source: methods.md 6.3(4): fast sketch one day, slow 14 days.
constexpr double kFastHours = 24;
constexpr double kSlowHours = 14 * 24;
// Share of nodes beyond the old quartile on one side: 25 % by definition when nothing moves.
constexpr double kMovedShare = 0.5;
constexpr double kNodesMin = 4;
constexpr double kFastSamplesMin = 100;
// Why: a shift takes about a day to be seen; what follows within three days is the same one.
constexpr int64_t kSameShiftNs = 3 * kNsPerDay;
// A node differs from its class when it exceeds the class's value so much more often than meant.
constexpr double kOwnSeenMin = 24;
constexpr double kOwnOverMin = 0.05;
constexpr double kOwnOverTimes = 20;
constexpr size_t kLonersOneIn = 10;
constexpr size_t kShiftsMax = 1000;

bool is_count(abi::FeatureOp op) {
  switch (op) {
    case abi::FeatureOp::kDecayed:
    case abi::FeatureOp::kResetCount:
    case abi::FeatureOp::kStreak:
    case abi::FeatureOp::kRecurrences:
    case abi::FeatureOp::kCount:
    case abi::FeatureOp::kDistinct:
      return true;
    default:
      return false;
  }
}

}  // namespace

Thresholds::Thresholds(std::shared_ptr<const abi::CompiledPack> pack,
                       const ThresholdOptions& options)
    : pack_(std::move(pack)), options_(options) {
  for (const auto& plan : pack_->adaptives) {
    if (plan.feature != abi::kNone32) features_.push_back(plan.feature);
  }
  std::sort(features_.begin(), features_.end());
  features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
  by_feature_.resize(features_.size());
  for (abi::AdaptiveId a = 0; a < pack_->adaptives.size(); ++a) {
    const auto at =
        std::lower_bound(features_.begin(), features_.end(), pack_->adaptives[a].feature);
    if (at != features_.end() && *at == pack_->adaptives[a].feature) {
      by_feature_[static_cast<size_t>(at - features_.begin())].push_back(a);
    }
  }
  classes_.resize(std::max<size_t>(pack_->classes.size(), 1));
  for (auto& c : classes_) c.resize(pack_->adaptives.size());
  rebuild();
}

const abi::AdaptiveSettings& Thresholds::settings(abi::ClassId c, abi::AdaptiveId a) const {
  static const abi::AdaptiveSettings kNone;
  if (c >= pack_->classes.size() || a >= pack_->classes[c].adaptive.size()) return kNone;
  return pack_->classes[c].adaptive[a];
}

bool Thresholds::counts(abi::FeatureId feature) const {
  const abi::FeaturePlan& plan = pack_->features[feature];
  // How many gpus or nics a node has is not known: only whole nodes have zeros.
  return is_count(plan.op) && pack_->entity_kinds[plan.entity_kind].keys.size() == 1;
}

void Thresholds::sample(abi::FeatureId feature, SymbolId node, abi::ClassId hw_class,
                        SymbolId cohort, double x) {
  const auto at = std::lower_bound(features_.begin(), features_.end(), feature);
  if (at == features_.end() || *at != feature || hw_class >= classes_.size()) return;
  NodeState& state = nodes_[std::string(pack_->symbols->name(node))];
  state.node = node;
  state.hw_class = hw_class;
  state.cohort = cohort;
  state.own.resize(pack_->adaptives.size());
  for (const abi::AdaptiveId a : by_feature_[static_cast<size_t>(at - features_.begin())]) {
    Level& level = classes_[options_.by_class ? hw_class : 0][a];
    level.seen += 1;
    const double slack = QuantileSketch::kAccuracy;
    if (x > level.upper + slack * std::fabs(level.upper)) level.high += 1;
    if (x < level.lower - slack * std::fabs(level.lower)) level.low += 1;
    Own& own = state.own[a];
    // A node that is known to differ speaks for itself only; a class that moves takes it along.
    (own.sketched ? level.fresh_loners : level.fresh).add(x);
    if (cohort != kNoSymbol && !own.sketched) {
      auto& sketches = cohorts_[{hw_class, std::string(pack_->symbols->name(cohort))}];
      sketches.resize(pack_->adaptives.size());
      sketches[a].add(x);
    }
    if (level.slow.samples() >= kBlendSamples) {
      own.seen += 1;
      if (x > level.limit + slack * std::fabs(level.limit)) own.over += 1;
    }
    if (own.sketched) own.sketch.add(x);
  }
}

void Thresholds::close_level(Level& level, abi::ClassId c, abi::AdaptiveId a, int64_t at_ns) {
  if (level.seen == 0 && level.slow.samples() == 0) return;
  level.fast.merge(level.fresh);
  level.fast.merge(level.fresh_loners);
  const double step = 1 - std::exp2(-1 / kFastHours);
  if (level.seen > 0 && level.slow.samples() > 0) {
    level.high_share += step * (level.high / level.seen - level.high_share);
    level.low_share += step * (level.low / level.seen - level.low_share);
  }
  const double moved = std::max(level.high_share, level.low_share);
  const bool enough = level.seen >= kNodesMin && level.fast.samples() >= kFastSamplesMin;
  if (enough && moved >= kMovedShare &&
      QuantileSketch::distance(level.fast, level.slow) > kDistance) {
    const double before = level.slow.quantile(0.5).value_or(0);
    const double after = level.fast.quantile(0.5).value_or(0);
    const bool new_shift =
        level.shifted_ns == kNoTimeNs || at_ns - level.shifted_ns > kSameShiftNs;
    if (new_shift && shifts_.size() < kShiftsMax) {
      shifts_.push_back({c, pack_->adaptives[a].name, at_ns, before != 0 ? after / before : 0});
    }
    level.shifted_ns = at_ns;
    level.slow = level.fast;
    level.high_share = level.low_share = 0.25;
    for (auto& [name, state] : nodes_) {  // who differs is asked anew
      if (state.hw_class == c && a < state.own.size()) state.own[a] = {};
    }
  } else {
    level.slow.merge(level.fresh);
  }
  level.fresh = {};
  level.fresh_loners = {};
  level.upper = level.slow.quantile(0.75).value_or(0);
  level.lower = level.slow.quantile(0.25).value_or(0);
  level.limit = level.slow.quantile(settings(c, a).quantile).value_or(0);
  level.high = level.low = level.seen = 0;
}

void Thresholds::close(int64_t at_ns) {
  for (abi::ClassId c = 0; c < classes_.size(); ++c) {
    for (abi::AdaptiveId a = 0; a < pack_->adaptives.size(); ++a) {
      Level& level = classes_[c][a];
      close_level(level, c, a, at_ns);
      const double hours = static_cast<double>(settings(c, a).window_ns) /
                           static_cast<double>(kNsPerHour);
      level.fast.forget(1 / kFastHours);
      level.slow.forget(1 / (hours > 0 ? hours : kSlowHours));
    }
  }
  for (auto& [key, sketches] : cohorts_) {
    for (auto& sketch : sketches) sketch.forget(1 / kSlowHours);
  }
  find_loners();
  rebuild();
}

void Thresholds::find_loners() {
  std::vector<size_t> sketched(pack_->adaptives.size(), 0);
  std::map<std::pair<abi::ClassId, abi::AdaptiveId>, size_t> loners;
  std::map<abi::ClassId, size_t> nodes;
  for (const auto& [name, state] : nodes_) {
    ++nodes[state.hw_class];
    for (abi::AdaptiveId a = 0; a < state.own.size(); ++a) {
      if (!state.own[a].sketched) continue;
      ++sketched[a];
      ++loners[{state.hw_class, a}];
    }
  }
  const double keep = std::exp2(-1 / kSlowHours);
  for (auto& [name, state] : nodes_) {
    for (abi::AdaptiveId a = 0; a < state.own.size(); ++a) {
      Own& own = state.own[a];
      own.seen *= keep;
      own.over *= keep;
      if (own.sketched) own.sketch.forget(1 / kSlowHours);
      const double meant = 1 - settings(state.hw_class, a).quantile;
      const bool differs = own.seen >= kOwnSeenMin &&
                           own.over > own.seen * std::max(kOwnOverMin, kOwnOverTimes * meant);
      size_t& alike = loners[{state.hw_class, a}];
      // Many that differ are no loners: they are the class.
      const bool few = (alike + 1) * kLonersOneIn <= nodes[state.hw_class];
      if (own.sketched || !differs || !few || sketched[a] >= kOwnMax) continue;
      own.sketched = true;
      ++sketched[a];
      ++alike;
    }
  }
}

double Thresholds::raw(const ThresholdRows::Row& row, abi::AdaptiveId a) const {
  const abi::ParamId param = pack_->adaptives[a].param;
  const bool real = param >= pack_->params.size() ||
                    abi::slot_form(pack_->params[param].type) == abi::SlotForm::kF64;
  return real ? row.values[a].f64() : static_cast<double>(row.values[a].i64());
}

void Thresholds::put(ThresholdRows::Row& row, abi::ClassId c, abi::AdaptiveId a, double x,
                     abi::TableOrigin origin) const {
  const abi::AdaptiveSettings& s = settings(c, a);
  if (s.floor <= s.ceiling && s.floor != s.ceiling) {
    const double inside = std::clamp(x, s.floor, s.ceiling);
    origin.clamped = inside != x;
    x = inside;
  }
  const abi::ParamId param = pack_->adaptives[a].param;
  const bool real = param >= pack_->params.size() ||
                    abi::slot_form(pack_->params[param].type) == abi::SlotForm::kF64;
  row.values[a] = real ? abi::Value::of(x) : abi::Value::of_i64(std::llround(x));
  row.origins[a] = origin;
}

void Thresholds::blend(ThresholdRows::Row& row, abi::ClassId c, abi::AdaptiveId a,
                       const QuantileSketch& sketch, abi::TableOrigin::From from) const {
  const double q = settings(c, a).quantile;
  const auto own = estimate_quantile(sketch, q);
  if (!own) return;
  const double w = sketch.samples() / (sketch.samples() + kBlendSamples);
  abi::TableOrigin origin = row.origins[a];
  if (w >= 0.5 || origin.from == abi::TableOrigin::From::kStatic) {
    origin.from = from;
    origin.quantile = q;
    origin.samples = static_cast<uint64_t>(sketch.samples());
    origin.from_tail = own->from_tail;
  }
  put(row, c, a, w * own->value + (1 - w) * raw(row, a), origin);
}

// Default, fleet, parents from the root down, the class: each blended over the one before.
ThresholdRows::Row Thresholds::class_row(abi::ClassId c) const {
  using From = abi::TableOrigin::From;
  ThresholdRows::Row row;
  row.values.resize(pack_->adaptives.size());
  row.origins.resize(pack_->adaptives.size());
  for (abi::AdaptiveId a = 0; a < pack_->adaptives.size(); ++a) {
    const auto& known = pack_->classes[c].params_known;
    const abi::ParamId param = pack_->adaptives[a].param;
    if (param < known.size() && known[param] == 0) {  // this class has no such parameter
      row.values[a] = abi::Value::unknown();
      continue;
    }
    put(row, c, a, settings(c, a).initial, {});
    if (!options_.dynamic) continue;
    const Level& own = classes_[options_.by_class ? c : 0][a];
    const double samples = own.slow.samples();
    if (samples < static_cast<double>(settings(c, a).min_samples)) continue;
    if (options_.by_class) {
      QuantileSketch fleet;
      QuantileSketch parent;
      const abi::ClassId up = pack_->classes[c].parent;
      for (size_t other = 0; other < classes_.size(); ++other) {
        fleet.merge(classes_[other][a].slow);
        const bool below = other == up || pack_->classes[other].parent == up;
        if (below) parent.merge(classes_[other][a].slow);
      }
      blend(row, c, a, fleet, From::kFleet);
      if (up != c) blend(row, c, a, parent, From::kModel);
    }
    blend(row, c, a, own.slow, options_.by_class ? From::kClass : From::kFleet);
    row.origins[a].shifted_ns = own.shifted_ns;
  }
  return row;
}

void Thresholds::rebuild() {
  using From = abi::TableOrigin::From;
  auto rows = std::make_shared<ThresholdRows>();
  for (abi::ClassId c = 0; c < classes_.size(); ++c) rows->classes.push_back(class_row(c));
  std::map<CohortKey, uint32_t> cohort_rows;
  for (const auto& [key, sketches] : cohorts_) {
    if (!options_.by_class) break;
    ThresholdRows::Row row = rows->classes[key.first];
    for (abi::AdaptiveId a = 0; a < sketches.size(); ++a) {
      if (row.origins[a].from != From::kStatic) blend(row, key.first, a, sketches[a], From::kClass);
    }
    cohort_rows[key] = static_cast<uint32_t>(rows->special.size());
    rows->special.push_back(std::move(row));
  }
  for (const auto& [name, state] : nodes_) {
    const SymbolId node = state.node;
    const auto cohort = state.cohort == kNoSymbol
                            ? cohort_rows.end()
                            : cohort_rows.find({state.hw_class,
                                                std::string(pack_->symbols->name(state.cohort))});
    if (cohort != cohort_rows.end()) rows->special_of[node] = cohort->second;
    if (!options_.by_class) continue;
    const bool any = std::any_of(state.own.begin(), state.own.end(),
                                 [](const Own& o) { return o.sketched; });
    if (!any) continue;
    ThresholdRows::Row row = rows->of(state.hw_class, node);
    for (abi::AdaptiveId a = 0; a < state.own.size(); ++a) {
      if (!state.own[a].sketched || row.origins[a].from == From::kStatic) continue;
      blend(row, state.hw_class, a, state.own[a].sketch, From::kNode);
    }
    rows->special_of[node] = static_cast<uint32_t>(rows->special.size());
    rows->special.push_back(std::move(row));
  }
  rows_ = std::move(rows);
}

}  // namespace reflex::adapt
