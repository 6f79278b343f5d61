// Shard: which state machine has the saved state of a signal; see shard.h.
#include "runtime/eval/shard.h"

namespace reflex::eval {

void Shard::forget(abi::EntityKindId kind, EntityIndex entity, uint64_t order) {
  arena_.reset(kind, entity);
  features_->reset_entity(kind, entity);
  counts_.reset_entity(kind, entity);
  sequences_.reset_entity(kind, entity, order);
  conditions_.reset_entity(kind, entity);
  peers_.reset_entity(kind, entity);
}

// A signal of another stage (Stage::kNodes, kGlobal) has no state here: its plan is saved empty and
// not loaded.
void Shard::save_plan(abi::SignalId signal, PlanWriter& plan) const {
  if (signal_in_[signal] == 0) return;
  const abi::SignalShape shape = program_.pack().signals[signal].shape;
  if (shape == abi::SignalShape::kSequence) sequences_.save_plan(signal, plan);
  if (shape == abi::SignalShape::kCount) plan.out.u64(counts_.kept_times(count_entries_[signal]));
}

bool Shard::load_plan(abi::SignalId signal, PlanReader& plan) {
  if (signal_in_[signal] == 0) return false;
  const abi::SignalShape shape = program_.pack().signals[signal].shape;
  if (shape == abi::SignalShape::kSequence) return sequences_.load_plan(signal, plan);
  if (shape != abi::SignalShape::kCount) return true;
  const uint64_t before = plan.in.u64();
  const uint64_t now = counts_.kept_times(count_entries_[signal]);
  plan.too_little = before != 0 && (now == 0 || now > before);
  return true;
}

bool Shard::has_state(abi::SignalId signal, EntityIndex entity) const {
  if (signal_in_[signal] == 0) return false;
  switch (program_.pack().signals[signal].shape) {
    case abi::SignalShape::kSequence:
      return sequences_.has_state(signal, entity) || guards_.has_state(signal, entity);
    case abi::SignalShape::kCount:
      return counts_.has_state(count_entries_[signal], entity) || guards_.has_state(signal, entity);
    case abi::SignalShape::kCondition:
      return conditions_.has_state(signal, entity);
  }
  return false;
}

void Shard::save(abi::SignalId signal, EntityIndex entity, const Saving& saving,
                 PlanWriter& plan) const {
  const abi::SignalShape shape = program_.pack().signals[signal].shape;
  if (shape == abi::SignalShape::kCondition) return conditions_.save(signal, entity, plan);
  guards_.save(signal, entity, plan.out);
  if (shape == abi::SignalShape::kSequence) return sequences_.save(signal, entity, saving, plan);
  const bool counted = counts_.has_state(count_entries_[signal], entity);
  plan.out.flag(counted);
  if (counted) counts_.save(count_entries_[signal], entity, plan);
}

void Shard::load(abi::SignalId signal, EntityIndex entity, PlanReader& plan) {
  const abi::SignalShape shape = program_.pack().signals[signal].shape;
  if (shape == abi::SignalShape::kCondition) return conditions_.load(signal, entity, plan);
  guards_.load(signal, entity, plan.in);
  if (shape == abi::SignalShape::kSequence) return sequences_.load(signal, entity, plan);
  if (plan.in.flag()) counts_.load(count_entries_[signal], entity, plan);
}

bool Shard::can_take_over(const Shard& old) const {
  return signal_in_ == old.signal_in_ && feature_in_ == old.feature_in_ && arena_.follows_all() &&
         !arena_.crowded();
}

Shard::Saving Shard::begin_save(const std::vector<uint8_t>& of) const {
  bool any = false;
  for (abi::SignalId s = 0; s < of.size(); ++s) any = any || (of[s] != 0 && sequences_.in_lanes(s));
  return any ? sequences_.pair_timers(of) : Saving();
}

void Shard::take_over(Shard& old, const Taken& taken) {
  const std::vector<uint8_t>& signals = taken.signals;
  core_.take_over(old.core_, signals);
  arena_.take_over(old.arena_);
  features_->take_over(*old.features_);
  for (abi::SignalId s = 0; s < signals.size(); ++s) {
    if (signals[s] == 0 || signal_in_[s] == 0) continue;
    switch (program_.pack().signals[s].shape) {
      case abi::SignalShape::kSequence:
        sequences_.take_over(old.sequences_, s);
        break;
      case abi::SignalShape::kCount:
        counts_.take_over(old.counts_, count_entries_[s], old.count_entries_[s]);
        break;
      case abi::SignalShape::kCondition:
        conditions_.take_over(old.conditions_, s,
                              taken.conditions[s] != 0 ? taken.at_ns : INT64_MAX);
        break;
    }
  }
  peers_.take_over(old.peers_, taken.peers);
}

}  // namespace reflex::eval
