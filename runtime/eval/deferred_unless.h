// DeferredUnless: `unless` events that cannot be judged when they come (UnlessPlan::deferred), of
// one shard.
//
// Two reasons: the event says nothing about the signal's key (`job.ended` for a signal on node), or
// the predicate reads steps that come after it. Such events are copied and kept, those of the last
// window_ns and at most kept_max, per key or in one store for all keys (shared). A partial match
// asks later: overtaken() before anything happens to it, closes() when check_step matches.
// Events come in total order, so a store is sorted by order.
// Not here: what becomes of the partial match; see SequenceStates.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/eval/paged_state.h"
#include "runtime/eval/record_copy.h"
#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_value.h"

namespace reflex::eval {

class DeferredUnless {
 public:
  /// What a partial match knows: the orders of its matched steps' events, and their fields.
  struct Match {
    uint32_t matched = 0;
    const std::vector<uint64_t>& orders;
    const std::vector<abi::Value>& captures;
  };
  explicit DeferredUnless(ShardCore& core)
      : core_(core),
        stores_of_(core.pack.signals.size()),
        bytes_(core.pack.signals.size()) {}

  /// True when the signal has one; then the calls below are needed.
  bool add(abi::SignalId signal);
  /// `entity` does not count for a shared one.
  void keep(abi::SignalId signal, uint16_t unless, const abi::Record& record, EntityIndex entity);
  /// Whether one of the events kept so far cancels the match in its present state, whatever comes.
  /// `judged`: of the match, 0 at first; events up to it are not looked at again.
  bool overtaken(abi::SignalId signal, const Match& match, EntityIndex entity, uint64_t& judged);
  /// Whether one cancels the match now that `step` has matched (it is in orders and captures) or,
  /// for an absence, has elapsed (it is not in orders).
  bool closes(abi::SignalId signal, uint16_t step, const Match& match, EntityIndex entity);
  void reset_entity(abi::SignalId signal, EntityIndex entity);
  /// A signal that stays, from the states of another shard.
  void take_over(DeferredUnless& old, abi::SignalId signal);
  [[nodiscard]] bool has_state(abi::SignalId signal, EntityIndex entity) const;
  /// The events kept for all keys; the same in every shard.
  void save_shared(abi::SignalId signal, PlanWriter& plan) const;
  void load_shared(abi::SignalId signal, PlanReader& plan);
  void save(abi::SignalId signal, EntityIndex entity, PlanWriter& plan) const;
  void load(abi::SignalId signal, EntityIndex entity, PlanReader& plan);
  [[nodiscard]] uint64_t bytes() const;

 private:
  using Kept = std::vector<RecordCopy>;  // oldest first
  struct Store {
    uint16_t unless = 0;
    Kept shared;
    PagedObjects<Kept> by_key;
  };
  [[nodiscard]] const Kept* find(Store& store, const abi::UnlessPlan& plan, EntityIndex entity);
  bool holds(abi::SignalId signal, const abi::UnlessPlan& plan, const abi::Record& record,
             const Match& match, EntityIndex entity);
  void drop_oldest(abi::SignalId signal, Kept& kept, size_t count);
  static void save_kept(const Kept& kept, PlanWriter& plan);
  void load_kept(abi::SignalId signal, Kept& kept, PlanReader& plan);

  ShardCore& core_;
  std::vector<std::vector<Store>> stores_of_;  // [SignalId]
  std::vector<uint64_t> bytes_;  // [SignalId]
};

}  // namespace reflex::eval
