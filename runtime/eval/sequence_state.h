// SequenceStates: sequence, absence and single-step signals (language.md A5) of one shard.
//
// Four forms, chosen at load time:
//  - single: one step, nothing kept;
//  - latest pair: `a then b`, keep latest, no captures or joins: one time per key;
//  - absent pair: `d then absent u for D`, no captures or joins: the order of the last u and the
//    number of running timers per key in 8 bytes, timers in a FIFO lane;
//  - general: an automaton with at most partials_max partial matches per key.
// "After match skip past last": a completed match consumes the key's partial matches (`keep all`:
// only the completed ones), and its last event starts nothing. Two steps never share one event.
// `keep latest`: at most one partial per number of matched steps; a newer one replaces it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/eval/deferred_unless.h"
#include "runtime/eval/guard_state.h"
#include "runtime/eval/record_copy.h"
#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_arena.h"
#include "runtime/eval/state_value.h"

namespace reflex::eval {

class SequenceStates {
 public:
  enum class Form : uint8_t { kSingle, kLatestPair, kAbsentPair, kGeneral };
  SequenceStates(ShardCore& core, StateArena& arena, GuardStates& guards);
  /// `stays`: see StateArena::reserve.
  Form add(abi::SignalId signal, bool stays);
  [[nodiscard]] Form form(abi::SignalId signal) const { return plans_[signal].form; }
  [[nodiscard]] Place place(abi::SignalId signal) const { return plans_[signal].place; }
  void set_count_only(bool on) { refs_on_ = !on; }

  void on_single(abi::SignalId signal, const EventView& event, EntityIndex entity);

  void on_pair_first(abi::SignalId signal, char* state, const EventView& event,
                     EntityIndex entity) {
    *reinterpret_cast<uint64_t*>(state) = encode(event.record->ts_ns);
    if (refs_on_) [[unlikely]]
      keep_ref(signal, entity, *event.record);
  }
  void on_pair_second(abi::SignalId signal, char* state, const EventView& event,
                      EntityIndex entity) {
    auto* first = reinterpret_cast<uint64_t*>(state);
    if (*first == 0) return;
    const int64_t onset = decode(*first);
    const Plan& plan = plans_[signal];
    if (plan.strict && event.record->ts_ns == onset) return;
    *first = 0;
    if (event.record->ts_ns - onset <= plan.within_ns) fire_pair(signal, onset, event, entity);
  }
  void on_absent_arm(abi::SignalId signal, char* state, const EventView& event,
                     EntityIndex entity) {
    auto* word = reinterpret_cast<uint64_t*>(state);
    const Plan& plan = plans_[signal];
    if ((*word & kLiveMask) >= plan.live_max) {
      core_.counters.partials_dropped += plan.live_max > 1 ? 1 : 0;
      return;
    }
    ++*word;
    core_.timers.push_lane(
        plan.lane, {event.record->ts_ns + plan.absent_ns, event.record->order + 1, signal, entity,
                    TimerUse::kAbsentPair});
    if (refs_on_) [[unlikely]]
      keep_ref(signal, entity, *event.record);
  }
  void on_absent_cancel(char* state, const EventView& event) {
    *reinterpret_cast<uint64_t*>(state) = (event.record->order + 1) << kLiveBits;
  }

  /// One owner hit of a general sequence; steps of one event come in descending order, then
  /// unlesses. `completed` carries over the hits of one event and key.
  void on_step(abi::SignalId signal, uint16_t step, const EventView& event, EntityIndex entity,
               bool& completed);
  void on_unless(abi::SignalId signal, uint16_t unless, const EventView& event, EntityIndex entity);
  /// Timers of a signal that has another form now are still queued after a take-over.
  void on_timer(const Timer& timer);
  void reset_entity(abi::EntityKindId kind, EntityIndex entity, uint64_t order);

  /// What the arena does not have of a signal that stays, from the states of another shard.
  void take_over(SequenceStates& old, abi::SignalId signal);
  /// Whether the signal's timers are in lanes: such a timer has no tag that its state could disown.
  [[nodiscard]] bool in_lanes(abi::SignalId signal) const {
    return included_[signal] != 0 && plans_[signal].form == Form::kAbsentPair;
  }

  /// The running timers of absent pairs by (signal, entity, order): found once for a save.
  using PairTimers = std::vector<Timer>;
  [[nodiscard]] PairTimers pair_timers() const;
  /// The same of some signals: [SignalId] 1.
  [[nodiscard]] PairTimers pair_timers(const std::vector<uint8_t>& of) const;
  /// What is not of one key: which fields are captured, shared `unless` events.
  void save_plan(abi::SignalId signal, PlanWriter& plan) const;
  /// False when the state is of another form than this engine keeps (near misses on or off).
  [[nodiscard]] bool load_plan(abi::SignalId signal, PlanReader& plan);
  [[nodiscard]] bool has_state(abi::SignalId signal, EntityIndex entity) const;
  void save(abi::SignalId signal, EntityIndex entity, const PairTimers& timers,
            PlanWriter& plan) const;
  void load(abi::SignalId signal, EntityIndex entity, PlanReader& plan);
  /// Once after all load(): lanes take their timers in the order of time.
  void start_timers();
  [[nodiscard]] uint64_t bytes() const;
  /// Partial matches that wait now; of the general form, the others keep one word a key.
  [[nodiscard]] uint64_t partials(abi::SignalId signal) const { return partials_[signal]; }
  /// Of the states outside of the arena that a key of this kind can have.
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId kind) const;

 private:
  static constexpr unsigned kLiveBits = 16;  // order + 1 < 2^48 (0: none), timers per key < 2^16
  static constexpr uint64_t kLiveMask = (uint64_t{1} << kLiveBits) - 1;
  static uint64_t encode(int64_t ts) { return static_cast<uint64_t>(ts) ^ (uint64_t{1} << 63); }
  static int64_t decode(uint64_t v) { return static_cast<int64_t>(v ^ (uint64_t{1} << 63)); }

  struct Plan {
    Form form = Form::kGeneral;
    bool strict = false;
    bool deferred = false;  // has a deferred unless
    uint32_t live_max = 1;
    uint32_t lane = 0;
    int64_t within_ns = 0;
    int64_t absent_ns = 0;
    Place place;
    uint32_t states = 0;  // states_ (general) or refs_ (pairs)
  };
  struct Partial {
    uint32_t matched = 0;  // steps, an elapsed absence counts as one
    uint64_t tag = 0;      // of its running timer
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    int64_t deadline_ns = 0;  // of the absence it waits for
    uint64_t start_order = 0;
    uint64_t judged = 0;           // see DeferredUnless::overtaken
    std::vector<uint64_t> orders;  // [step]
    std::vector<abi::EventRef> refs;
    std::vector<abi::Value> captures;
  };
  /// Keeps the count of a signal's partial matches over a scope in which they change.
  class Counted {
   public:
    Counted(uint64_t& total, const std::vector<Partial>& partials)
        : total_(total), partials_(partials), before_(partials.size()) {}
    ~Counted() { total_ += partials_.size() - before_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    uint64_t& total_;
    const std::vector<Partial>& partials_;
    size_t before_;
  };
  struct Early {  // an event of a `then ~tol` step that came before its partner
    uint16_t step = 0;
    RecordCopy record;
  };
  struct State {
    std::vector<Partial> partials;  // oldest first
    std::vector<Early> early;
  };
  void save_pair(abi::SignalId signal, EntityIndex entity, const PairTimers& timers,
                 PlanWriter& plan) const;
  void load_pair(abi::SignalId signal, EntityIndex entity, PlanReader& plan);
  void save_partial(const abi::SequencePlan& sequence, const Partial& partial, uint64_t rank,
                    PlanWriter& plan) const;
  /// When the event of an absent pair's timer came.
  [[nodiscard]] int64_t armed_at(const Timer& timer) const {
    if (!overdue_.empty()) [[unlikely]] {
      const auto overdue = overdue_.find({timer.plan, timer.entity, timer.tag});
      if (overdue != overdue_.end()) return overdue->second;
    }
    return timer.deadline_ns - plans_[timer.plan].absent_ns;
  }
  Partial load_partial(const abi::SequencePlan& sequence, uint64_t& rank, PlanReader& plan);
  void load_general(abi::SignalId signal, EntityIndex entity, PlanReader& plan);
  [[nodiscard]] Form choose(const abi::SignalPlan& signal) const;
  void fire_pair(abi::SignalId signal, int64_t onset, const EventView& event, EntityIndex entity);
  void keep_ref(abi::SignalId signal, EntityIndex entity, const abi::Record& record);
  void start(abi::SignalId signal, const EventView& event, EntityIndex entity, State& state);
  bool can_advance(const abi::SignalPlan& signal, const Partial& partial, uint16_t step,
                   const abi::Record& record, EntityIndex entity);
  void take(const abi::StepPlan& step, uint16_t number, const abi::Record& record,
            Partial& partial);
  /// After a step matched: the next step's timer or early events. True when the match is complete.
  bool settle(abi::SignalId signal, Partial& partial, State& state, EntityIndex entity,
              uint64_t exclude_order);
  void complete(abi::SignalId signal, const Partial& partial, EntityIndex entity, int64_t ts_ns,
                uint64_t order, abi::FiringPhase phase);
  void drop_expired(abi::SignalId signal, State& state, EntityIndex entity, int64_t now_ns);
  void miss(abi::SignalId signal, const Partial& partial, EntityIndex entity);
  /// Cancels what deferred unlesses decided meanwhile; the first thing at an event or timer.
  void drop_overtaken(abi::SignalId signal, State& state, EntityIndex entity);
  /// With `record` as its step `step`, would a deferred unless cancel the match?
  bool closed_by(abi::SignalId signal, const Partial& partial, uint16_t step,
                 const abi::Record& record, EntityIndex entity);
  void on_absent_event(abi::SignalId signal, uint16_t step, const abi::Record& record,
                       EntityIndex entity, State& state);
  [[nodiscard]] State& state_of(abi::SignalId signal, EntityIndex entity) {
    return states_[plans_[signal].states].at(entity);
  }

  ShardCore& core_;
  StateArena& arena_;
  GuardStates& guards_;
  DeferredUnless deferred_;
  bool refs_on_ = true;
  std::vector<Plan> plans_;         // [SignalId]
  std::vector<uint8_t> included_;   // [SignalId]
  std::vector<uint64_t> partials_;  // [SignalId]
  std::vector<PagedObjects<State>> states_;
  std::vector<PagedObjects<RefRing>> refs_;
  std::vector<Timer> loaded_;  // of absent pairs, until start_timers()
  /// Onsets of absent pairs that a shorter duration made overdue: (signal, entity, tag).
  std::map<std::tuple<abi::SignalId, EntityIndex, uint64_t>, int64_t> overdue_;
};

}  // namespace reflex::eval
