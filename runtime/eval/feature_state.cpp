// FeatureStore: construction, sharing, updates and reads; see feature_state.h.
//
// Meaning of Cell::a..e: decayed, ewma, last: a = value at last_ns. cusum: a = S. streak: a = run.
// sum/mean/..: a = mean, b = M2 (Welford), c = min, d = max, e = sum. burstiness: a = mean gap,
// b = M2 of gaps (seconds). trend: decayed sums at last_ns with x-axis t - last_ns in seconds:
// a = W, b = sum w t, c = sum w t^2, d = sum w x, e = sum w t x.
#include "runtime/eval/feature_state.h"

#include <algorithm>
#include <cmath>

#include "runtime/eval/quantile.h"

namespace reflex::eval {
namespace {

using abi::FeatureOp;

bool is_statistic(FeatureOp op) {
  return op == FeatureOp::kMean || op == FeatureOp::kMin || op == FeatureOp::kMax ||
         op == FeatureOp::kSum || op == FeatureOp::kStdDev || op == FeatureOp::kMedian ||
         op == FeatureOp::kQuantile || op == FeatureOp::kCount;
}

bool same_inputs(const std::vector<abi::FeaturePlan::Input>& a,
                 const std::vector<abi::FeaturePlan::Input>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.leaf == y.leaf && x.value == y.value;
  });
}

double decay(int64_t from_ns, int64_t to_ns, int64_t half_life_ns) {
  if (half_life_ns <= 0) return 1.0;
  return std::exp2(-static_cast<double>(to_ns - from_ns) / static_cast<double>(half_life_ns));
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

abi::Value result(const abi::FeaturePlan& plan, double v) {
  return plan.integer_result ? abi::Value::of_i64(std::llround(v)) : abi::Value::of(v);
}
abi::Value result_ns(const abi::FeaturePlan& plan, int64_t ns) {
  return plan.integer_result ? abi::Value::of_i64(ns) : abi::Value::of(static_cast<double>(ns));
}

}  // namespace

bool FeatureStore::needs_window(const abi::FeaturePlan& plan) {
  if (plan.op == FeatureOp::kDistinct) return false;
  if (plan.op == FeatureOp::kRate || plan.op == FeatureOp::kIncrease ||
      plan.op == FeatureOp::kRecurrences || plan.op == FeatureOp::kResetCount) {
    return plan.window_ns > 0;
  }
  return is_statistic(plan.op) && plan.window_ns > 0;
}

FeatureStore::FeatureStore(const abi::CompiledPack& pack, const std::vector<uint8_t>& include,
                           StateArena& arena, const Before& before)
    : pack_(&pack), arena_(&arena) {
  info_.resize(pack.features.size());
  follows_.resize(pack.features.size());
  scratch_.resize(pack.features.size());
  for (size_t f = 0; f < info_.size(); ++f) {
    info_[f].plan = &pack.features[f];
    info_[f].of_symbol = is_symbol(pack, pack.features[f]);
    if (include[f] != 0) share(static_cast<abi::FeatureId>(f), include);
  }
  find_leaders(include);
  if (before.store != nullptr) find_followed(before);
  reserve_places(arena);
}

void FeatureStore::find_leaders(const std::vector<uint8_t>& include) {
  for (size_t f = 0; f < info_.size(); ++f) {
    Info& info = info_[f];
    if (include[f] == 0) continue;
    if (info.leads) {
      info.leader = static_cast<abi::FeatureId>(f);
      continue;
    }
    if (info.window == abi::kNone32 && info.ring == abi::kNone32) continue;
    for (size_t g = 0; g < f; ++g) {
      if (include[g] == 0 || !info_[g].leads || info_[g].window != info.window ||
          info_[g].ring != info.ring || info_[g].distinct != info.distinct) {
        continue;
      }
      info.leader = static_cast<abi::FeatureId>(g);
    }
  }
}

/// A state follows when the same features share it there, and all of them stay.
void FeatureStore::find_followed(const Before& before) {
  for (size_t f = 0; f < info_.size(); ++f) follows_[f] = info_[f].leads ? 1 : 0;
  for (size_t f = 0; f < info_.size(); ++f) {
    const abi::FeatureId here = info_[f].leader;
    const abi::FeatureId there = before.store->info_[f].leader;
    const bool same = here == there && (*before.stays)[f] != 0;
    if (here != abi::kNone32 && !same) follows_[here] = 0;
    if (there != abi::kNone32 && !same) follows_[there] = 0;
  }
}

void FeatureStore::reserve_places(StateArena& arena) {
  const auto home_of = [this](abi::FeatureId f) {
    const auto& inputs = pack_->features[f].inputs;
    return inputs.empty() ? abi::KindId{0} : pack_->leaves[inputs[0].leaf].kind;
  };
  for (abi::FeatureId f = 0; f < info_.size(); ++f) {
    Info& info = info_[f];
    if (info.leader != f) continue;
    const bool stays = follows_[f] != 0;
    if (info.plan->counter_input) {
      info.counter = arena.reserve({StateUse::kCounter, f}, info.plan->entity_kind, home_of(f),
                                   sizeof(Counter), stays);
    }
    if (info.ring != abi::kNone32) continue;
    info.cell = arena.reserve({StateUse::kCell, f}, info.plan->entity_kind, home_of(f),
                              sizeof(Cell), stays);
  }
  for (Info& info : info_) {  // followers use the leader's places
    if (info.leader != abi::kNone32 && !info.leads) info.cell = info_[info.leader].cell;
  }
  for (WindowRing& ring : rings_) {
    const abi::FeatureId first = ring.members()[0].feature;
    ring.reserve(arena, pack_->features[first].entity_kind, home_of(first), follows(first));
  }
}

void FeatureStore::take_over(FeatureStore& old) {
  for (abi::FeatureId f = 0; f < info_.size(); ++f) {
    if (info_[f].leader != f || follows_[f] == 0) continue;
    const Info& there = old.info_[f];
    if (info_[f].window != abi::kNone32) {
      windows_[info_[f].window].states = std::move(old.windows_[there.window].states);
    }
    if (info_[f].distinct != abi::kNone32) {
      distincts_[info_[f].distinct].states = std::move(old.distincts_[there.distinct].states);
    }
  }
}

void FeatureStore::share(abi::FeatureId feature, const std::vector<uint8_t>& include) {
  Info& info = info_[feature];
  const abi::FeaturePlan& plan = *info.plan;
  const bool ring = is_statistic(plan.op) && plan.last_n > 0 && plan.window_ns == 0;
  const bool window = needs_window(plan);
  if (plan.op == FeatureOp::kDistinct) {
    info.distinct = static_cast<uint32_t>(distincts_.size());
    distincts_.emplace_back().entity_kind = plan.entity_kind;
    return;
  }
  if (!ring && !window) return;
  for (abi::FeatureId g = 0; g < feature; ++g) {
    const abi::FeaturePlan& other = *info_[g].plan;
    if (include[g] == 0 || other.entity_kind != plan.entity_kind ||
        !same_inputs(other.inputs, plan.inputs) || !same_inputs(other.resets, plan.resets)) {
      continue;
    }
    if (other.counter_input != plan.counter_input || other.stale_after_ns != plan.stale_after_ns) {
      continue;
    }
    if (ring && info_[g].ring != abi::kNone32) {
      info.ring = info_[g].ring;
    } else if (window && info_[g].window != abi::kNone32 && other.window_ns == plan.window_ns &&
               (other.op == FeatureOp::kResetCount) == (plan.op == FeatureOp::kResetCount)) {
      info.window = info_[g].window;
    } else {
      continue;
    }
    info.leads = false;
    break;
  }
  if (ring && info.leads) {
    info.ring = static_cast<uint32_t>(rings_.size());
    rings_.emplace_back();
  } else if (window && info.leads) {
    info.window = static_cast<uint32_t>(windows_.size());
    windows_.emplace_back().entity_kind = plan.entity_kind;
  }
  if (ring) rings_[info.ring].add({feature, &plan});
}

bool FeatureStore::increment(const abi::FeaturePlan& plan, Counter& counter, int64_t ts_ns,
                             double& value, bool& was_reset) {
  const double raw = value;
  const double before = counter.last;
  const int64_t gap_ns = ts_ns - counter.last_ns;
  const uint8_t known = counter.known;
  int64_t stale_ns = plan.stale_after_ns;
  if (stale_ns <= 0 && known >= 4) {  // at least three intervals: 3 x their median
    int64_t sorted[5] = {};
    const int n = std::min(known - 1, 5);
    for (int i = 0; i < n; ++i) {
      int at = i;
      for (; at > 0 && sorted[at - 1] > counter.intervals_ns[i]; --at) sorted[at] = sorted[at - 1];
      sorted[at] = counter.intervals_ns[i];
    }
    stale_ns = 3 * sorted[(n - 1) / 2];
  }
  counter.last = raw;
  counter.last_ns = ts_ns;
  if (known == 0) {
    counter.known = 1;
    return false;
  }
  if (stale_ns > 0 && gap_ns > stale_ns) {
    counter.known = 1;
    counter.next = 0;
    return false;
  }
  counter.intervals_ns[counter.next] = gap_ns;
  counter.next = static_cast<uint8_t>((counter.next + 1) % 5);
  if (counter.known < 6) ++counter.known;
  was_reset = raw < before;
  value = was_reset ? raw : raw - before;
  return true;
}

void FeatureStore::update(abi::FeatureId feature, EntityIndex entity, const FeatureSample& sample) {
  const Info& info = info_[feature];
  const abi::FeaturePlan& plan = *info.plan;
  FeatureSample s = sample;
  if (info.ring != abi::kNone32) {
    const WindowRing& ring = rings_[info.ring];
    if (plan.counter_input) {
      auto& counter = *reinterpret_cast<Counter*>(arena_->at(info.counter, entity));
      bool was_reset = false;
      if (!increment(plan, counter, s.ts_ns, s.value, was_reset)) return;
    }
    ring.push(arena_->at(ring.place(), entity), s.value, s.order);
    return;
  }
  auto& cell = *reinterpret_cast<Cell*>(arena_->at(info.cell, entity));
  if (plan.counter_input) {
    auto& counter = *reinterpret_cast<Counter*>(arena_->at(info.counter, entity));
    bool was_reset = false;
    const bool have = increment(plan, counter, s.ts_ns, s.value, was_reset);
    if (plan.op == FeatureOp::kResetCount) {
      if (cell.n == 0) cell.n = 1;  // the source reports: the count is known from now on
      if (!was_reset) return;
      s.value = 1.0;
    } else if (!have) {
      return;
    }
  }
  if (info.distinct != abi::kNone32) {
    distincts_[info.distinct].states.at(entity).add(s.member, s.ts_ns, plan.window_ns);
  }
  if (info.window != abi::kNone32) {
    auto& window = windows_[info.window].states.at(entity);
    window.expire(s.ts_ns, plan.window_ns);
    window.add(StatBucket::of(s.ts_ns, s.value, s.order));
  }
  update_cell(plan, cell, s);
}

void FeatureStore::update_cell(const abi::FeaturePlan& plan, Cell& cell, const FeatureSample& s) {
  const double x = s.value;
  const double age = decay(cell.last_ns, s.ts_ns, plan.half_life_ns);
  const bool first = cell.n == 0;
  switch (plan.op) {
    case FeatureOp::kLast:
      cell.a = x;
      break;
    case FeatureOp::kDecayed:
      cell.a = first ? x : cell.a * age + x;
      break;
    case FeatureOp::kEwma:
      cell.a = first ? x : cell.a + (1 - age) * (x - cell.a);
      break;
    case FeatureOp::kStreak:
      cell.a = s.streak_break ? 0 : cell.a + 1;
      break;
    case FeatureOp::kCusum: {
      if (!s.target_known) return;
      const double slack = plan.slack_relative ? plan.slack * std::fabs(s.target) : plan.slack;
      cell.a = std::fmax(0.0, cell.a + (x - s.target) - slack);
      break;
    }
    case FeatureOp::kTrend: {
      const int64_t half_life = plan.half_life_ns > 0 ? plan.half_life_ns : plan.window_ns;
      const double w = decay(cell.last_ns, s.ts_ns, half_life);
      const double dt = first ? 0 : seconds(s.ts_ns - cell.last_ns);
      // Shift the time axis to the new sample, fade, then add it at t = 0.
      const double shifted_e = cell.e - dt * cell.d;
      const double shifted_c = cell.c - 2 * dt * cell.b + dt * dt * cell.a;
      const double shifted_b = cell.b - dt * cell.a;
      cell.e = first ? 0 : w * shifted_e;
      cell.c = first ? 0 : w * shifted_c;
      cell.b = first ? 0 : w * shifted_b;
      cell.a = first ? 1 : w * cell.a + 1;
      cell.d = first ? x : w * cell.d + x;
      break;
    }
    case FeatureOp::kBurstiness:
      if (!first) {
        const double gap = seconds(s.ts_ns - cell.last_ns);
        const double delta = gap - cell.a;
        cell.a += delta / static_cast<double>(cell.n);
        cell.b += delta * (gap - cell.a);
      }
      break;
    default: {
      const double delta = x - cell.a;
      cell.a += delta / static_cast<double>(cell.n + 1);
      cell.b += delta * (x - cell.a);
      cell.c = first ? x : std::fmin(cell.c, x);
      cell.d = first ? x : std::fmax(cell.d, x);
      cell.e += x;
      break;
    }
  }
  if (first) cell.first_ns = s.ts_ns;
  cell.last_ns = s.ts_ns;
  cell.order = s.order;
  ++cell.n;
}

void FeatureStore::reset(abi::FeatureId feature, EntityIndex entity) {
  const Info& info = info_[feature];
  if (info.plan->counter_input && info.leads) {
    if (char* s = arena_->find(info.counter, entity)) std::memset(s, 0, sizeof(Counter));
  }
  if (info.ring != abi::kNone32) {
    // A ring restarts empty: its header is all zero.
    if (char* s = arena_->find(rings_[info.ring].place(), entity)) std::memset(s, 0, 16);
    return;
  }
  if (char* s = arena_->find(info.cell, entity)) std::memset(s, 0, sizeof(Cell));
  if (info.window != abi::kNone32) windows_[info.window].states.reset(entity);
  if (info.distinct != abi::kNone32) distincts_[info.distinct].states.reset(entity);
}

void FeatureStore::read_ring(uint32_t ring, EntityIndex entity, uint64_t exclude_order,
                             abi::Value* out) {
  const WindowRing& r = rings_[ring];
  r.read(entity == kNoEntity ? nullptr : arena_->find(r.place(), entity), exclude_order, out);
}

bool FeatureStore::has_state(abi::FeatureId feature, EntityIndex entity) {
  const Info& info = info_[feature];
  if (info.ring != abi::kNone32) {
    const char* state = arena_->find(rings_[info.ring].place(), entity);
    return state != nullptr && WindowRing::has_samples(state);
  }
  const char* state = arena_->find(info.cell, entity);
  return state != nullptr && reinterpret_cast<const Cell*>(state)->n != 0;
}

abi::Value FeatureStore::read(abi::FeatureId feature, EntityIndex entity, int64_t now_ns,
                              uint64_t exclude_order) {
  const Info& info = info_[feature];
  const abi::FeaturePlan& plan = *info.plan;
  if (info.ring != abi::kNone32) {
    read_ring(info.ring, entity, exclude_order, scratch_.data());
    return scratch_[feature];
  }
  static constexpr Cell kEmpty{};
  const char* state = entity == kNoEntity ? nullptr : arena_->find(info.cell, entity);
  const Cell& cell = state == nullptr ? kEmpty : *reinterpret_cast<const Cell*>(state);
  if (info.distinct != abi::kNone32) {
    if (cell.n == 0) return result(plan, 0);
    return result(plan, distincts_[info.distinct].states.at(entity).count(now_ns, plan.window_ns));
  }
  if (info.window != abi::kNone32) {
    TimeWindow<StatBucket> none;
    auto* window = entity == kNoEntity ? nullptr : windows_[info.window].states.find(entity);
    return read_window(plan, window == nullptr ? none : *window, cell, now_ns,
                       plan.exclude_current ? exclude_order : kNoOrder);
  }
  return read_cell(plan, cell, now_ns);
}

abi::Value FeatureStore::read_window(const abi::FeaturePlan& plan, TimeWindow<StatBucket>& window,
                                     const Cell& cell, int64_t now_ns, uint64_t exclude_order) {
  StatBucket all;
  bool first = true;
  std::vector<double> samples;
  const bool ordered = plan.op == FeatureOp::kMedian || plan.op == FeatureOp::kQuantile;
  for (const StatBucket& b : window) {
    if (b.last_ns <= now_ns - plan.window_ns) continue;
    if (b.order == exclude_order && b.count == 1) continue;
    if (first)
      all = b;
    else
      all.merge(b);
    first = false;
    if (ordered) samples.insert(samples.end(), b.count, b.sum / static_cast<double>(b.count));
  }
  const double n = static_cast<double>(all.count);
  switch (plan.op) {
    case FeatureOp::kCount:
    case FeatureOp::kRecurrences:
      if (plan.min_samples > 1 && all.count < plan.min_samples) return abi::Value::unknown();
      return result(plan, n);
    case FeatureOp::kRate:
    case FeatureOp::kIncrease:
    case FeatureOp::kResetCount:
      if (cell.n == 0) return abi::Value::unknown();  // nothing ever came: missing, not 0
      return result(plan,
                    plan.op == FeatureOp::kRate ? all.sum / seconds(plan.window_ns) : all.sum);
    default:
      break;
  }
  if (all.count == 0 || all.count < plan.min_samples) return abi::Value::unknown();
  switch (plan.op) {
    case FeatureOp::kSum:
      return result(plan, all.sum);
    case FeatureOp::kMean:
      return result(plan, all.sum / n);
    case FeatureOp::kMin:
      return result(plan, all.min);
    case FeatureOp::kMax:
      return result(plan, all.max);
    case FeatureOp::kStdDev: {
      const double m2 = std::fmax(0.0, all.sum_squares - all.sum * all.sum / n);
      return result(plan, all.count < 2 ? 0.0 : std::sqrt(m2 / (n - 1)));
    }
    default:
      return statistic_of(plan.op, plan.quantile, samples);
  }
}

abi::Value FeatureStore::read_cell(const abi::FeaturePlan& plan, const Cell& cell, int64_t now_ns) {
  const double n = static_cast<double>(cell.n);
  if (plan.op == FeatureOp::kCount || plan.op == FeatureOp::kRecurrences) {
    if (plan.min_samples > 1 && cell.n < plan.min_samples) return abi::Value::unknown();
    return result(plan, n);
  }
  if (cell.n == 0 || cell.n < plan.min_samples) return abi::Value::unknown();
  switch (plan.op) {
    case FeatureOp::kLast:
    case FeatureOp::kEwma:
    case FeatureOp::kCusum:
    case FeatureOp::kStreak:
    case FeatureOp::kMean:
      return result(plan, cell.a);
    case FeatureOp::kDecayed:
      return result(plan, cell.a * decay(cell.last_ns, now_ns, plan.half_life_ns));
    case FeatureOp::kSince:
      return result_ns(plan, now_ns - cell.last_ns);
    case FeatureOp::kAge:
      return result_ns(plan, now_ns - cell.first_ns);
    case FeatureOp::kTrend: {
      const double spread = cell.a * cell.c - cell.b * cell.b;
      if (cell.n < 2 || !(spread > 0)) return abi::Value::unknown();
      return result(plan, (cell.a * cell.e - cell.b * cell.d) / spread);
    }
    case FeatureOp::kBurstiness:
      if (cell.n < 3 || !(cell.a > 0)) return abi::Value::unknown();
      return result(plan, cell.b / (n - 2) / cell.a);
    case FeatureOp::kMin:
      return result(plan, cell.c);
    case FeatureOp::kMax:
      return result(plan, cell.d);
    case FeatureOp::kStdDev:
      return result(plan, cell.n < 2 ? 0.0 : std::sqrt(cell.b / (n - 1)));
    case FeatureOp::kResetCount:
      return result(plan, cell.e);
    default:
      return result(plan, cell.e);  // sums: increase, rate and sum without a window
  }
}

void FeatureStore::reset_entity(abi::EntityKindId kind, EntityIndex entity) {
  // Plain states are zeroed by the arena.
  for (auto& w : windows_) {
    if (w.entity_kind == kind) w.states.reset(entity);
  }
  for (auto& d : distincts_) {
    if (d.entity_kind == kind) d.states.reset(entity);
  }
}

uint64_t FeatureStore::bytes_per_key(abi::EntityKindId kind) const {
  uint64_t total = 0;
  for (const auto& w : windows_) {
    if (w.entity_kind == kind) total += w.states.bytes_per_key();
  }
  for (const auto& d : distincts_) {
    if (d.entity_kind == kind) total += d.states.bytes_per_key();
  }
  return total;
}

uint64_t FeatureStore::bytes() const {
  uint64_t total = 0;
  for (const auto& w : windows_) total += w.states.bytes();
  for (const auto& d : distincts_) total += d.states.bytes();
  return total;
}

}  // namespace reflex::eval
