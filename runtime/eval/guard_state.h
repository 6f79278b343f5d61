// GuardStates: `and none KIND where P in the last D` (language.md A6) of one shard.
//
// State: the time of the newest guard event, per guard and entity. A guard blocks when that time is
// inside (t - D, t]. The event under evaluation itself never blocks: guards are updated last.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/state_stream.h"
#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_arena.h"

namespace reflex::eval {

class GuardStates {
 public:
  GuardStates(ShardCore& core, StateArena& arena) : core_(core), arena_(arena) {
    first_.resize(core.pack.signals.size());
  }
  static const std::vector<abi::NoneGuard>& guards_of(const abi::SignalPlan& plan) {
    return plan.shape == abi::SignalShape::kCount ? plan.count.guards : plan.sequence.guards;
  }
  /// `stays`: see StateArena::reserve.
  void add(abi::SignalId signal, bool stays) {
    const auto& plan = core_.pack.signals[signal];
    for (const auto& guard : guards_of(plan)) {
      const auto number = static_cast<uint32_t>(first_[signal].size());
      first_[signal].push_back(arena_.reserve({StateUse::kGuard, signal, number}, plan.entity_kind,
                                              guard.kind, sizeof(int64_t) * 2, stays));
    }
  }
  void on_event(abi::SignalId signal, uint16_t guard, EntityIndex entity, int64_t ts_ns) {
    auto* state = reinterpret_cast<int64_t*>(arena_.at(first_[signal][guard], entity));
    state[0] = 1;
    state[1] = ts_ns;
  }
  [[nodiscard]] bool blocks(abi::SignalId signal, EntityIndex entity, int64_t now_ns) {
    const auto& guards = guards_of(core_.pack.signals[signal]);
    for (size_t i = 0; i < guards.size(); ++i) {
      const char* found = arena_.find(first_[signal][i], entity);
      if (found == nullptr) continue;
      const auto* state = reinterpret_cast<const int64_t*>(found);
      if (state[0] != 0 && state[1] > now_ns - guards[i].window_ns) return true;
    }
    return false;
  }

  /// Whether one of the signal's guards has seen an event of the entity.
  [[nodiscard]] bool has_state(abi::SignalId signal, EntityIndex entity) const {
    for (const Place place : first_[signal]) {
      const char* found = arena_.find(place, entity);
      if (found != nullptr && reinterpret_cast<const int64_t*>(found)[0] != 0) return true;
    }
    return false;
  }
  void save(abi::SignalId signal, EntityIndex entity, StateWriter& out) const {
    for (const Place place : first_[signal]) {
      const char* found = arena_.find(place, entity);
      const auto* state = reinterpret_cast<const int64_t*>(found);
      const bool seen = found != nullptr && state[0] != 0;
      out.flag(seen);
      if (seen) out.i64(state[1]);
    }
  }
  void load(abi::SignalId signal, EntityIndex entity, StateReader& in) {
    for (size_t i = 0; i < first_[signal].size(); ++i) {
      if (in.flag()) on_event(signal, static_cast<uint16_t>(i), entity, in.i64());
    }
  }

 private:
  ShardCore& core_;
  StateArena& arena_;
  std::vector<std::vector<Place>> first_;  // [SignalId][guard]
};

}  // namespace reflex::eval
