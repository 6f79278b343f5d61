// CountStates: see count_state.h.
#include "runtime/eval/count_state.h"

#include <cmath>

namespace reflex::eval {
namespace {

bool holds(abi::CompareOp op, double count, double limit) {
  switch (op) {
    case abi::CompareOp::kGe:
      return count >= limit;
    case abi::CompareOp::kGt:
      return count > limit;
    case abi::CompareOp::kLe:
      return count <= limit;
    case abi::CompareOp::kLt:
      return count < limit;
    case abi::CompareOp::kEq:
      return count == limit;
    case abi::CompareOp::kNe:
      return count != limit;
  }
  return false;
}

/// The smallest count that satisfies a constant threshold, or 0 when the ring form cannot do it.
uint32_t ring_size(const abi::CountPlan& plan) {
  if (plan.mode != abi::CountMode::kEvents || plan.threshold != abi::kNone32) return 0;
  double k = 0;
  if (plan.op == abi::CompareOp::kGe) {
    k = std::ceil(plan.threshold_constant);
  } else if (plan.op == abi::CompareOp::kGt) {
    k = std::floor(plan.threshold_constant) + 1;
  } else {
    return 0;
  }
  // Why 64: counts are exact up to 64 (language.md A6); `exact max n` raises it.
  const double most = std::fmin(std::fmax(64, plan.exact_max), 4096);
  if (!(k >= 1) || k > most) return 0;
  if (!plan.each && plan.rearm >= 0 && (std::ceil(plan.rearm) > k || std::ceil(plan.rearm) < 1)) {
    return 0;
  }
  return static_cast<uint32_t>(k);
}

/// 1 + the value of the field that names the part, 0 when there is none.
uint64_t part_of(const abi::CountPlan& plan, const abi::Record& record) {
  if (plan.part_key.empty()) return 0;
  for (const auto& in : plan.inputs) {
    if (in.kind != record.kind || in.part_slot == abi::CountPlan::kNoPart) continue;
    return record.has(in.part_slot) ? static_cast<uint64_t>(record.i64(in.part_slot)) + 1 : 0;
  }
  return 0;
}

uint64_t member_hash(const ShardCore& core, const abi::CountPlan::Input& input,
                     const abi::Record& record) {
  const abi::Type& type = core.pack.kinds[input.kind].fields[input.distinct_slot].type;
  const int64_t value = record.i64(input.distinct_slot);
  const bool symbol =
      type.scalar == abi::Scalar::kEnum || (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
  if (symbol) return hash_member(core.pack.symbols->name(static_cast<SymbolId>(value)));
  if (abi::slot_form(type) == abi::SlotForm::kText) {
    return hash_member(record.text(input.distinct_slot)->view());
  }
  return hash_member(value);
}

}  // namespace

CountStates::CountStates(ShardCore& core, StateArena& arena, GuardStates& guards)
    : core_(core), arena_(arena), guards_(guards) {}

CountStates::Entry CountStates::add(abi::SignalId signal) {
  const auto& plan = core_.pack.signals[signal];
  const auto refs = static_cast<uint32_t>(refs_.size());
  refs_.emplace_back();
  refs_kind_.push_back(plan.entity_kind);
  const uint32_t k = ring_size(plan.count);
  if (k == 0) {
    generals_.push_back({signal, refs});
    states_.emplace_back();
    return {static_cast<uint32_t>(generals_.size() - 1), false};
  }
  RingPlan ring;
  ring.signal = signal;
  ring.k = k;
  ring.rearm_k = plan.count.rearm < 0 ? k : static_cast<uint32_t>(std::ceil(plan.count.rearm));
  ring.each = plan.count.each;
  ring.guarded = !plan.count.guards.empty();
  ring.window_ns = plan.count.window_ns;
  ring.refs = refs;
  const abi::KindId home = plan.count.inputs.empty() ? abi::KindId{0} : plan.count.inputs[0].kind;
  ring.place = arena_.reserve(plan.entity_kind, home, sizeof(RingHeader) + size_t{k} * 8);
  rings_.push_back(ring);
  return {static_cast<uint32_t>(rings_.size() - 1), true};
}

bool CountStates::rearm(const RingPlan& plan, RingHeader& header, const int64_t* times,
                        int64_t now) {
  if (header.disarmed == 0) return true;
  bool reached = false;  // whether the count before this event is still >= rearm_k
  if (header.count >= plan.rearm_k) {
    const uint32_t at = (header.next + plan.k - plan.rearm_k) % plan.k;
    reached = times[at] > now - plan.window_ns;
  }
  if (!reached) header.disarmed = 0;
  return !reached;
}

void CountStates::fire_ring(const RingPlan& plan, char* state, const EventView& event,
                            EntityIndex entity, bool more) {
  if (plan.guarded && guards_.blocks(plan.signal, entity, event.record->ts_ns)) return;
  if (!plan.each) reinterpret_cast<RingHeader*>(state)->disarmed = 1;
  fire(plan.signal, plan.refs, event, entity, plan.k,
       core_.pack.signals[plan.signal].count.threshold_constant, more);
}

void CountStates::fire(abi::SignalId signal, uint32_t refs, const EventView& event,
                       EntityIndex entity, double value, double limit, bool approximate) {
  if (core_.count_only) {
    core_.count_firing(signal, entity);
    return;
  }
  abi::Firing f = core_.start_firing(signal, entity, *event.record);
  f.value = abi::Value::of(value);
  f.limit = abi::Value::of(limit);
  f.approximate = approximate;
  const int64_t start = f.ts_ns - core_.pack.signals[signal].count.window_ns;
  for (const abi::EventRef& ref : refs_[refs].at(entity).refs) {
    if (ref.ts_ns > start) f.events.push_back(ref);
  }
  if (!f.events.empty()) f.onset_ns = f.events.front().ts_ns;
  f.part = part_of(core_.pack.signals[signal].count, *event.record);
  core_.emit(std::move(f));
}

void CountStates::add_sample(const abi::CountPlan& plan, uint16_t input, const abi::Record& record,
                             General& state) const {
  const int64_t now = record.ts_ns;
  const auto& in = plan.inputs[input];
  if (plan.mode == abi::CountMode::kDistinct) {
    if (record.has(in.distinct_slot)) {
      state.distinct.add(member_hash(core_, in, record), now, plan.window_ns);
    }
    return;
  }
  const bool joins = plan.mode == abi::CountMode::kBursts && state.last_ns != INT64_MIN &&
                     now - state.last_ns <= plan.gap_ns;
  state.last_ns = now;
  if (joins) return;  // still the same burst, which counts at its first event
  const size_t capacity = plan.exact_max > 0 ? plan.exact_max : TimeWindow<CountBucket>::kCapacity;
  state.window.add({now, now, 1}, capacity);
}

void CountStates::on_general(uint32_t number, uint16_t input, const EventView& event,
                             EntityIndex entity) {
  const GeneralPlan& general = generals_[number];
  const abi::SignalPlan& signal = core_.pack.signals[general.signal];
  const abi::CountPlan& plan = signal.count;
  General& state = states_[number].at(entity);
  const int64_t now = event.record->ts_ns;
  const auto count_now = [&] {
    return plan.mode == abi::CountMode::kDistinct ? state.distinct.count(now, plan.window_ns)
                                                  : static_cast<double>(state.window.count());
  };
  abi::Value limit = abi::Value::of(plan.threshold_constant);
  if (plan.threshold != abi::kNone32) {
    limit = core_.eval_f64(plan.threshold, event.record,
                           Site{signal.entity_kind, entity, now, event.record->order});
  }
  state.window.expire(now, plan.window_ns);
  const bool upward = plan.op == abi::CompareOp::kGe || plan.op == abi::CompareOp::kGt;
  if (state.disarmed && upward && limit.known != 0) {
    const double before = count_now();
    const bool fallen =
        plan.rearm >= 0 ? before < plan.rearm : !holds(plan.op, before, limit.f64());
    if (fallen) state.disarmed = false;
  }
  add_sample(plan, input, *event.record, state);
  if (refs_on_) refs_[general.refs].at(entity).push(*event.record);
  if (limit.known == 0) return;  // nobody knows the limit: unobserved, not false
  const double count = count_now();
  if (!holds(plan.op, count, limit.f64())) {
    if (!upward) state.disarmed = false;
    return;
  }
  if (state.disarmed || guards_.blocks(general.signal, entity, now)) return;
  state.disarmed = !plan.each;
  const bool approximate = state.window.approximate() || state.distinct.approximate();
  fire(general.signal, general.refs, event, entity, count, limit.f64(), approximate);
}

void CountStates::reset_entity(abi::EntityKindId kind, EntityIndex entity) {
  for (size_t i = 0; i < generals_.size(); ++i) {
    if (core_.pack.signals[generals_[i].signal].entity_kind == kind) states_[i].reset(entity);
  }
  for (size_t i = 0; i < refs_.size(); ++i) {
    if (refs_kind_[i] == kind) refs_[i].reset(entity);
  }
}

uint64_t CountStates::bytes_per_key(abi::EntityKindId kind) const {
  uint64_t total = 0;
  for (const GeneralPlan& g : generals_) {
    if (core_.pack.signals[g.signal].entity_kind == kind) total += states_[0].bytes_per_key();
  }
  for (const abi::EntityKindId own : refs_kind_) {
    if (own == kind) total += refs_[0].bytes_per_key();
  }
  return total;
}

uint64_t CountStates::bytes() const {
  uint64_t total = 0;
  for (const auto& s : states_) total += s.bytes();
  for (const auto& r : refs_) total += r.bytes();
  return total;
}

}  // namespace reflex::eval
