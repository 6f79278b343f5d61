// CountStates: see count_state.h.
#include "runtime/eval/count_state.h"

#include <algorithm>
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

size_t sample_capacity(const abi::CountPlan& plan) {
  return plan.exact_max > 0 ? plan.exact_max : TimeWindow<CountBucket>::kCapacity;
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

bool CountStates::same_states(const abi::CountPlan& a, const abi::CountPlan& b) {
  // Sketches of distinct members are cut by their window.
  return a.mode == b.mode && ring_size(a) == ring_size(b) &&
         sample_capacity(a) == sample_capacity(b) &&
         (a.mode != abi::CountMode::kDistinct || a.window_ns == b.window_ns);
}

CountStates::Entry CountStates::add(abi::SignalId signal, bool stays) {
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
  ring.place = arena_.reserve({StateUse::kCount, signal}, plan.entity_kind, home,
                              sizeof(RingHeader) + size_t{k} * 8, stays);
  rings_.push_back(ring);
  return {static_cast<uint32_t>(rings_.size() - 1), true};
}

void CountStates::take_over(CountStates& old, const Entry& entry, const Entry& entry_there) {
  const auto refs_of = [](const CountStates& states, const Entry& e) {
    return e.ring ? states.rings_[e.number].refs : states.generals_[e.number].refs;
  };
  refs_[refs_of(*this, entry)] = std::move(old.refs_[refs_of(old, entry_there)]);
  if (!entry.ring) states_[entry.number] = std::move(old.states_[entry_there.number]);
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
  const NewestEvents& newest = refs_[refs].at(entity);
  f.events.reserve(newest.size());
  for (size_t i = 0; i < newest.size(); ++i) {
    if (newest.at(i).ts_ns > start) f.events.push_back(newest.at(i));
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
  state.window.add({now, now, 1}, sample_capacity(plan));
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

bool CountStates::has_state(const Entry& entry, EntityIndex entity) const {
  if (entry.ring) {
    const char* state = arena_.find(rings_[entry.number].place, entity);
    return state != nullptr && reinterpret_cast<const RingHeader*>(state)->count != 0;
  }
  const General* state = states_[entry.number].find(entity);
  return state != nullptr && (state->disarmed || state->last_ns != INT64_MIN ||
                              !state->window.empty() || !state->distinct.empty());
}

CountStates::Saved CountStates::saved_ring(const RingPlan& plan, const char* state) const {
  const auto* header = reinterpret_cast<const RingHeader*>(state);
  const auto* times = reinterpret_cast<const int64_t*>(header + 1);
  Saved saved;
  saved.disarmed = header->disarmed != 0;
  for (uint32_t i = 0; i < header->count; ++i) {
    const int64_t ts = times[(header->next + plan.k - header->count + i) % plan.k];
    saved.buckets.push_back({ts, ts, 1});
  }
  if (header->count != 0) saved.last_ns = saved.buckets.back().last_ns;
  return saved;
}

void CountStates::save(const Entry& entry, EntityIndex entity, PlanWriter& plan) const {
  StateWriter& out = plan.out;
  Saved saved;
  const General* general = entry.ring ? nullptr : states_[entry.number].find(entity);
  if (general == nullptr) {
    const RingPlan& ring = rings_[entry.number];
    saved = saved_ring(ring, arena_.find(ring.place, entity));
  } else {
    saved.disarmed = general->disarmed;
    saved.last_ns = general->last_ns;
    saved.buckets.assign(general->window.begin(), general->window.end());
  }
  const uint32_t refs_number =
      entry.ring ? rings_[entry.number].refs : generals_[entry.number].refs;
  const NewestEvents* refs = refs_[refs_number].find(entity);
  const bool has_refs = refs != nullptr && refs->size() != 0;
  const bool has_members = general != nullptr && !general->distinct.empty();
  const bool merged = std::any_of(saved.buckets.begin(), saved.buckets.end(),
                                  [](const CountBucket& b) { return b.count != 1; });
  const bool has_last = saved.last_ns != INT64_MIN;
  out.u64(uint64_t{saved.disarmed} | uint64_t{has_refs} << 1 | uint64_t{has_members} << 2 |
          uint64_t{merged} << 3 | uint64_t{has_last} << 4);
  if (has_last) out.i64(saved.last_ns);
  out.u64(saved.buckets.size());
  int64_t before_ns = has_last ? saved.last_ns : 0;
  for (const CountBucket& b : saved.buckets) {
    out.i64(b.last_ns - before_ns);
    before_ns = b.last_ns;
    if (!merged) continue;  // each is one event
    out.i64(b.last_ns - b.first_ns);
    out.u64(b.count);
  }
  if (has_refs) {
    std::vector<abi::EventRef> oldest_first;
    for (size_t i = 0; i < refs->size(); ++i) oldest_first.push_back(refs->at(i));
    plan.refs(oldest_first);
  }
  const abi::SignalId signal =
      entry.ring ? rings_[entry.number].signal : generals_[entry.number].signal;
  if (has_members) general->distinct.save(out, core_.pack.signals[signal].count.window_ns);
}

void CountStates::load_ring(const RingPlan& plan, char* state, const Saved& saved) {
  auto* header = reinterpret_cast<RingHeader*>(state);
  auto* times = reinterpret_cast<int64_t*>(header + 1);
  header->disarmed = saved.disarmed ? 1 : 0;
  std::vector<int64_t> newest;  // newest first, at most k
  for (auto b = saved.buckets.rbegin(); b != saved.buckets.rend() && newest.size() < plan.k; ++b) {
    for (uint64_t i = 0; i < b->count && newest.size() < plan.k; ++i) {
      newest.push_back(b->last_ns);
    }
  }
  std::copy(newest.rbegin(), newest.rend(), times);
  header->count = static_cast<uint16_t>(newest.size());
  header->next = static_cast<uint16_t>(newest.size() == plan.k ? 0 : newest.size());
}

void CountStates::load(const Entry& entry, EntityIndex entity, PlanReader& plan) {
  StateReader& in = plan.in;
  const uint64_t bits = in.bounded(31);
  Saved saved;
  saved.disarmed = (bits & 1) != 0;
  if ((bits >> 4 & 1) != 0) saved.last_ns = in.i64();
  saved.buckets.resize(in.count());
  uint64_t before_ns = saved.last_ns == INT64_MIN ? 0 : static_cast<uint64_t>(saved.last_ns);
  for (CountBucket& b : saved.buckets) {
    before_ns += static_cast<uint64_t>(in.i64());  // wraps for damaged bytes
    b.first_ns = b.last_ns = static_cast<int64_t>(before_ns);
    b.count = 1;
    if ((bits >> 3 & 1) == 0) continue;
    b.first_ns = static_cast<int64_t>(before_ns - static_cast<uint64_t>(in.i64()));
    b.count = in.u64();
  }
  const uint32_t refs_number =
      entry.ring ? rings_[entry.number].refs : generals_[entry.number].refs;
  if ((bits >> 1 & 1) != 0) {
    std::vector<abi::EventRef> oldest_first;
    plan.refs(oldest_first);
    refs_[refs_number].at(entity).assign(std::move(oldest_first));
  }
  DistinctWindow distinct;
  const abi::SignalId signal =
      entry.ring ? rings_[entry.number].signal : generals_[entry.number].signal;
  const abi::CountPlan& count = core_.pack.signals[signal].count;
  if ((bits >> 2 & 1) != 0) distinct.load(in, count.window_ns);
  if (in.failed()) return;
  if (entry.ring) {
    const RingPlan& ring = rings_[entry.number];
    load_ring(ring, arena_.at(ring.place, entity), saved);
    return;
  }
  General& general = states_[entry.number].at(entity);
  general.disarmed = saved.disarmed;
  general.last_ns = saved.last_ns;
  general.distinct = std::move(distinct);
  for (const CountBucket& b : saved.buckets) general.window.add(b, sample_capacity(count));
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
