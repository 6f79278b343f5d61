// CountStates: `count`, `count distinct`, `count bursts` signals (language.md A6) of one shard.
//
// Two forms: a ring of the k newest times when the threshold is a constant k (whether the count
// reaches k is whether the k-th newest is still inside the window; a firing at a higher count shows
// k and is marked approximate: at least k), and a general one (exact up to
// 132 samples, then merged buckets; distinct exact to 64, then HyperLogLog).
// Windows are half-open (t - D, t]. Without `each` a signal fires when the condition becomes true
// and re-arms when, before an event is added, the count has fallen below `rearm`.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/eval/distinct_window.h"
#include "runtime/eval/guard_state.h"
#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_arena.h"
#include "runtime/eval/state_value.h"
#include "runtime/eval/time_window.h"

namespace reflex::eval {

/// The newest 8 events behind a count. Turning, not a list: a counter that fires with each sample
/// would move seven of them each time.
class NewestEvents {
 public:
  void push(const abi::Record& record) {
    if (refs_.size() < kMax) return refs_.push_back(event_ref(record));
    refs_[oldest_] = event_ref(record);
    oldest_ = (oldest_ + 1) % kMax;
  }
  [[nodiscard]] size_t size() const { return refs_.size(); }
  /// Oldest first.
  [[nodiscard]] const abi::EventRef& at(size_t i) const {
    return refs_[(oldest_ + i) % refs_.size()];
  }
  void assign(std::vector<abi::EventRef> oldest_first) {
    refs_ = std::move(oldest_first);
    oldest_ = 0;
  }

 private:
  static constexpr size_t kMax = 8;  // as Firing::events
  std::vector<abi::EventRef> refs_;
  size_t oldest_ = 0;
};

class CountStates {
 public:
  CountStates(ShardCore& core, StateArena& arena, GuardStates& guards);
  /// Registers a signal; returns its number and whether it is of the ring form.
  struct Entry {
    uint32_t number = 0;
    bool ring = false;
  };
  /// `stays`: see StateArena::reserve.
  Entry add(abi::SignalId signal, bool stays);
  /// What the arena does not have of a signal that stays, from the states of another shard.
  void take_over(CountStates& old, const Entry& entry, const Entry& entry_there);

  /// Whether the states of two plans of one shape (StateShape) have the same memory, with the same
  /// meaning under either.
  static bool same_states(const abi::CountPlan& a, const abi::CountPlan& b);

  void on_ring(uint32_t number, char* state, const EventView& event, EntityIndex entity) {
    const RingPlan& plan = rings_[number];
    auto* header = reinterpret_cast<RingHeader*>(state);
    auto* times = reinterpret_cast<int64_t*>(header + 1);
    const int64_t now = event.record->ts_ns;
    const bool armed = plan.each || rearm(plan, *header, times, now);
    const uint32_t at = header->next;
    const int64_t leaving = times[at];
    times[at] = now;
    const uint32_t oldest = at + 1 == plan.k ? 0 : at + 1;
    header->next = static_cast<uint16_t>(oldest);
    bool full = header->count == plan.k;
    const bool more = full && leaving > now - plan.window_ns;
    if (!full) full = ++header->count == plan.k;
    if (refs_on_) [[unlikely]]
      refs_[plan.refs].at(entity).push(*event.record);
    if (full && times[oldest] > now - plan.window_ns && armed)
      fire_ring(plan, state, event, entity, more);
  }
  void on_general(uint32_t number, uint16_t input, const EventView& event, EntityIndex entity);
  [[nodiscard]] Place ring_place(uint32_t number) const { return rings_[number].place; }
  void set_count_only(bool on) { refs_on_ = !on; }
  void reset_entity(abi::EntityKindId kind, EntityIndex entity);
  /// How many times the form keeps; 0: all that the window holds.
  [[nodiscard]] uint32_t kept_times(const Entry& entry) const {
    return entry.ring ? rings_[entry.number].k : 0;
  }
  [[nodiscard]] bool has_state(const Entry& entry, EntityIndex entity) const;
  /// Both forms write the same: a threshold may turn one into the other.
  void save(const Entry& entry, EntityIndex entity, PlanWriter& plan) const;
  void load(const Entry& entry, EntityIndex entity, PlanReader& plan);
  [[nodiscard]] uint64_t bytes() const;
  /// Of the states outside of the arena that a key of this kind can have.
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId kind) const;

 private:
  struct RingHeader {
    uint16_t count = 0;
    uint16_t next = 0;  // the oldest slot when full
    uint32_t disarmed = 0;
  };
  struct RingPlan {
    abi::SignalId signal = 0;
    uint32_t k = 1;
    uint32_t rearm_k = 1;
    bool each = false;
    bool guarded = false;
    int64_t window_ns = 0;
    Place place;
    uint32_t refs = 0;
  };
  struct General {
    TimeWindow<CountBucket> window;
    DistinctWindow distinct;
    int64_t last_ns = INT64_MIN;
    bool disarmed = false;
  };
  struct GeneralPlan {
    abi::SignalId signal = 0;
    uint32_t refs = 0;
  };
  struct Saved {  // the common form
    bool disarmed = false;
    int64_t last_ns = INT64_MIN;
    std::vector<CountBucket> buckets;  // oldest first
  };
  [[nodiscard]] Saved saved_ring(const RingPlan& plan, const char* state) const;
  static void load_ring(const RingPlan& plan, char* state, const Saved& saved);
  static bool rearm(const RingPlan& plan, RingHeader& header, const int64_t* times, int64_t now);
  void fire_ring(const RingPlan& plan, char* state, const EventView& event, EntityIndex entity,
                 bool more);
  void fire(abi::SignalId signal, uint32_t refs, const EventView& event, EntityIndex entity,
            double value, double limit, bool approximate);
  void add_sample(const abi::CountPlan& plan, uint16_t input, const abi::Record& record,
                  General& state) const;

  ShardCore& core_;
  StateArena& arena_;
  GuardStates& guards_;
  bool refs_on_ = true;
  std::vector<RingPlan> rings_;
  std::vector<GeneralPlan> generals_;
  std::vector<PagedObjects<General>> states_;
  std::vector<PagedObjects<NewestEvents>> refs_;
  std::vector<abi::EntityKindId> refs_kind_;
};

}  // namespace reflex::eval
