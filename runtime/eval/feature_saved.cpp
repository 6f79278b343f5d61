// FeatureStore: the saved form of a feature's state; see feature_state.h.
#include <algorithm>

#include "runtime/eval/feature_state.h"

namespace reflex::eval {
namespace {

// Parts that an entity has.
constexpr uint64_t kCounter = 1;
constexpr uint64_t kRing = 2;
constexpr uint64_t kCell = 4;
constexpr uint64_t kWindow = 8;
constexpr uint64_t kMembers = 16;

void save_bucket(StateWriter& out, const StatBucket& b, int64_t& before_ns) {
  out.u64(b.count);
  out.i64(b.last_ns - before_ns);
  before_ns = b.last_ns;
  out.f64(b.sum);
  out.u64(b.order);
  if (b.count == 1) return;  // see StatBucket::of
  out.i64(b.last_ns - b.first_ns);
  for (const double v : {b.sum_squares, b.min, b.max}) out.f64(v);
}

StatBucket load_bucket(StateReader& in, uint64_t& before_ns) {
  const uint64_t count = in.u64();
  before_ns += static_cast<uint64_t>(in.i64());  // wraps for damaged bytes
  const auto last_ns = static_cast<int64_t>(before_ns);
  const double sum = in.f64();
  const uint64_t order = in.u64();
  StatBucket b = StatBucket::of(last_ns, sum, order);
  b.count = count;
  if (count == 1) return b;
  b.first_ns = static_cast<int64_t>(before_ns - static_cast<uint64_t>(in.i64()));
  b.sum_squares = in.f64();
  b.min = in.f64();
  b.max = in.f64();
  return b;
}

}  // namespace

std::vector<abi::FeatureId> FeatureStore::carriers() const {
  std::vector<abi::FeatureId> carriers(info_.size(), abi::kNone32);
  std::vector<abi::FeatureId> of_ring(rings_.size(), abi::kNone32);
  for (abi::FeatureId f = 0; f < info_.size(); ++f) {
    if (info_[f].leader == abi::kNone32 || info_[f].ring == abi::kNone32) continue;
    abi::FeatureId& most = of_ring[info_[f].ring];
    if (most == abi::kNone32 ||
        WindowRing::samples_of(*info_[f].plan) > WindowRing::samples_of(*info_[most].plan)) {
      most = f;
    }
  }
  for (abi::FeatureId f = 0; f < info_.size(); ++f) {
    if (info_[f].leader == abi::kNone32) continue;
    carriers[f] = info_[f].ring != abi::kNone32 ? of_ring[info_[f].ring] : info_[f].leader;
  }
  return carriers;
}

bool FeatureStore::has_any(abi::FeatureId carrier, EntityIndex entity) const {
  const Info& info = info_[carrier];
  if (info.plan->counter_input) {
    const char* counter = arena_->find(info_[info.leader].counter, entity);
    if (counter != nullptr && reinterpret_cast<const Counter*>(counter)->known != 0) return true;
  }
  if (info.ring != abi::kNone32) {
    const char* ring = arena_->find(rings_[info.ring].place(), entity);
    return ring != nullptr && WindowRing::has_samples(ring);
  }
  const char* cell = arena_->find(info.cell, entity);
  return cell != nullptr && reinterpret_cast<const Cell*>(cell)->n != 0;
}

void FeatureStore::save(abi::FeatureId carrier, EntityIndex entity, PlanWriter& plan) const {
  const Info& info = info_[carrier];
  StateWriter& out = plan.out;
  const Counter* counter = nullptr;
  if (info.plan->counter_input) {
    const char* found = arena_->find(info_[info.leader].counter, entity);
    counter = reinterpret_cast<const Counter*>(found);
    if (counter != nullptr && counter->known == 0) counter = nullptr;
  }
  const char* ring = nullptr;
  const Cell* cell = nullptr;
  const TimeWindow<StatBucket>* window = nullptr;
  const DistinctWindow* members = nullptr;
  if (info.ring != abi::kNone32) {
    ring = arena_->find(rings_[info.ring].place(), entity);
    if (ring != nullptr && !WindowRing::has_samples(ring)) ring = nullptr;
  } else {
    cell = reinterpret_cast<const Cell*>(arena_->find(info.cell, entity));
    if (cell != nullptr && cell->n == 0) cell = nullptr;
    if (info.window != abi::kNone32) window = windows_[info.window].states.find(entity);
    if (info.distinct != abi::kNone32) members = distincts_[info.distinct].states.find(entity);
    if (window != nullptr && window->empty()) window = nullptr;
    if (members != nullptr && members->empty()) members = nullptr;
  }
  out.u64((counter != nullptr ? kCounter : 0) | (ring != nullptr ? kRing : 0) |
          (cell != nullptr ? kCell : 0) | (window != nullptr ? kWindow : 0) |
          (members != nullptr ? kMembers : 0));
  if (counter != nullptr) {
    out.f64(counter->last);
    out.i64(counter->last_ns);
    out.u64(counter->known);
    out.u64(counter->next);
    for (const int64_t interval : counter->intervals_ns) out.i64(interval);
  }
  if (ring != nullptr) rings_[info.ring].save(ring, WindowRing::samples_of(*info.plan), out);
  if (cell != nullptr) {
    out.u64(cell->n);
    out.i64(cell->last_ns);
    out.i64(cell->last_ns - cell->first_ns);
    out.u64(cell->order);
    out.raw({reinterpret_cast<const char*>(&cell->a), 5 * sizeof(double)});
  }
  if (window != nullptr) {
    out.u64(static_cast<uint64_t>(window->end() - window->begin()));
    int64_t before_ns = 0;
    for (const StatBucket& b : *window) save_bucket(out, b, before_ns);
  }
  if (members != nullptr) members->save(out, info.plan->window_ns);
}

void FeatureStore::read(PlanReader& plan, const abi::FeaturePlan& into, Saved& saved) {
  StateReader& in = plan.in;
  saved.window.clear();
  saved.distinct = DistinctWindow();
  const uint64_t parts = in.bounded(31);
  saved.has_counter = (parts & kCounter) != 0;
  saved.has_ring = (parts & kRing) != 0;
  saved.has_cell = (parts & kCell) != 0;
  if (saved.has_counter) {
    saved.counter.last = in.f64();
    saved.counter.last_ns = in.i64();
    saved.counter.known = static_cast<uint8_t>(in.bounded(6));
    saved.counter.next = static_cast<uint8_t>(in.bounded(4));
    for (int64_t& interval : saved.counter.intervals_ns) interval = in.i64();
  }
  if (saved.has_ring) WindowRing::read_saved(in, saved.ring_order, saved.ring);
  if (saved.has_cell) {
    saved.cell.n = in.u64();
    saved.cell.last_ns = in.i64();
    saved.cell.first_ns = static_cast<int64_t>(static_cast<uint64_t>(saved.cell.last_ns) -
                                               static_cast<uint64_t>(in.i64()));
    saved.cell.order = in.u64();
    for (double* v : {&saved.cell.a, &saved.cell.b, &saved.cell.c, &saved.cell.d, &saved.cell.e}) {
      *v = in.f64();
    }
  }
  if ((parts & kWindow) != 0) {
    const size_t n = in.count();
    uint64_t before_ns = 0;
    for (size_t i = 0; i < n && !in.failed(); ++i) {
      saved.window.push_back(load_bucket(in, before_ns));
    }
  }
  if ((parts & kMembers) != 0) saved.distinct.load(in, into.window_ns);
}

void FeatureStore::load(abi::FeatureId feature, EntityIndex entity, const Saved& saved) {
  const Info& info = info_[feature];
  if (info.plan->counter_input && saved.has_counter) {
    *reinterpret_cast<Counter*>(arena_->at(info_[info.leader].counter, entity)) = saved.counter;
  }
  if (info.ring != abi::kNone32) {
    if (!saved.has_ring) return;
    char* state = arena_->at(rings_[info.ring].place(), entity);
    for (const double v : saved.ring) rings_[info.ring].push(state, v, saved.ring_order);
    return;
  }
  if (saved.has_cell) *reinterpret_cast<Cell*>(arena_->at(info.cell, entity)) = saved.cell;
  if (info.window != abi::kNone32) {
    auto& window = windows_[info.window].states.at(entity);
    for (const StatBucket& b : saved.window) window.add(b);
  }
  if (info.distinct != abi::kNone32) {
    distincts_[info.distinct].states.at(entity) = saved.distinct.clone();
  }
}

}  // namespace reflex::eval
