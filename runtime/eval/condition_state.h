// ConditionStates: `when ... for ... keep ... clear ... nodata` signals (language.md A8).
//
// Per entity: idle -> pending (true since) -> active. Evaluated at each trigger event of the key,
// at the deadlines of for/keep/nodata, and, when the condition changes with time alone, at the
// instants where it changes: after each evaluation the truth one tick ahead is compared with the
// present one and, if it differs, the crossing is found by bisection (time-driven features are
// monotone between events), so that firings are exact in event time, not rounded to ticks.
// `keep` counts from the moment at which the condition stopped to be true.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_value.h"

namespace reflex::eval {

class ConditionStates {
 public:
  explicit ConditionStates(ShardCore& core);
  void add(abi::SignalId signal);
  /// The states of a signal in another shard, with its timers. `changed_at_ns`: not what it was, so
  /// that it is looked at again at that time, as by load(); INT64_MAX: it is.
  void take_over(ConditionStates& old, abi::SignalId signal, int64_t changed_at_ns);
  void on_event(abi::SignalId signal, const EventView& event, EntityIndex entity);
  /// Timers of a signal that is no condition any more are still queued after a take-over.
  void on_timer(const Timer& timer);
  void reset_entity(abi::EntityKindId kind, EntityIndex entity);
  [[nodiscard]] bool has_state(abi::SignalId signal, EntityIndex entity) const;
  void save(abi::SignalId signal, EntityIndex entity, PlanWriter& plan) const;
  void load(abi::SignalId signal, EntityIndex entity, PlanReader& plan);
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId kind) const;

 private:
  enum class Phase : uint8_t { kIdle, kPending, kActive };
  struct State {
    Phase phase = Phase::kIdle;
    bool off = false;  // active, but `when` no longer holds
    bool unknown = false;
    bool changed = false;  // the pack has: see reconsider()
    int64_t since_ns = 0;  // true since
    int64_t off_since_ns = 0;
    int64_t unknown_since_ns = 0;
    int64_t last_event_ns = 0;
    int64_t wake_ns = INT64_MAX;       // when it must be looked at again
    int64_t scheduled_ns = INT64_MAX;  // the timer in the queue
    uint64_t tag = 0;
    uint64_t order = ~uint64_t{0};  // of the last event
    std::vector<abi::EventRef> refs;
  };
  struct Moment {
    int64_t ts_ns;
    uint64_t order;
    abi::FiringPhase phase;
    const abi::Record* record;
  };
  struct Truths {
    uint32_t when;
    uint32_t clear;
    friend bool operator==(const Truths&, const Truths&) = default;
  };
  Truths truths(abi::SignalId signal, EntityIndex entity, const State& state, int64_t now_ns,
                const abi::Record* record);
  void evaluate(abi::SignalId signal, EntityIndex entity, State& state, const Moment& moment);
  void advance(abi::SignalId signal, EntityIndex entity, State& state, const Moment& moment,
               bool on);
  void fire(abi::SignalId signal, EntityIndex entity, const State& state, const Moment& moment,
            abi::FiringChange change);
  /// The first look after a reload: an active one whose `for` is longer now is not active yet.
  void reconsider(abi::SignalId signal, EntityIndex entity, State& state, const Moment& moment);
  int64_t look_ahead(abi::SignalId signal, EntityIndex entity, const State& state, int64_t now_ns,
                     const Truths& now);
  void schedule(abi::SignalId signal, EntityIndex entity, State& state);

  ShardCore& core_;
  std::vector<uint32_t> number_;             // [SignalId]
  std::vector<abi::SignalId> signals_;       // [number]
  std::vector<PagedObjects<State>> states_;  // [number]
};

}  // namespace reflex::eval
