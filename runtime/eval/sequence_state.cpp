// SequenceStates: see sequence_state.h.
#include "runtime/eval/sequence_state.h"

#include <algorithm>

namespace reflex::eval {
namespace {
using abi::KeepMode;
using abi::StepMode;

bool plain(const abi::StepPlan& step) { return step.captures.empty() && step.join == abi::kNone32; }
}  // namespace

SequenceStates::SequenceStates(ShardCore& core, StateArena& arena, GuardStates& guards)
    : core_(core), arena_(arena), guards_(guards), deferred_(core) {
  plans_.resize(core.pack.signals.size());
  included_.resize(core.pack.signals.size());
  partials_.resize(core.pack.signals.size());
}

SequenceStates::Form SequenceStates::choose(const abi::SignalPlan& signal) const {
  const abi::SequencePlan& s = signal.sequence;
  if (s.steps.size() == 1 && s.steps[0].join == abi::kNone32) return Form::kSingle;
  if (s.steps.size() != 2 || !s.unless.empty() || !s.guards.empty() || !plain(s.steps[0]) ||
      !plain(s.steps[1]) || s.steps[0].kind == s.steps[1].kind || core_.options.near_misses) {
    return Form::kGeneral;
  }
  const StepMode mode = s.steps[1].mode;
  if (mode == StepMode::kAbsent && s.keep != KeepMode::kLatest) return Form::kAbsentPair;
  const bool in_order = mode == StepMode::kThen || mode == StepMode::kThenStrictly;
  return in_order && s.keep == KeepMode::kLatest ? Form::kLatestPair : Form::kGeneral;
}

SequenceStates::Form SequenceStates::add(abi::SignalId signal, bool stays) {
  const abi::SignalPlan& s = core_.pack.signals[signal];
  const abi::SequencePlan& seq = s.sequence;
  Plan& plan = plans_[signal];
  included_[signal] = 1;
  plan.form = choose(s);
  if (plan.form == Form::kLatestPair || plan.form == Form::kAbsentPair) {
    plan.strict = seq.steps[1].mode == StepMode::kThenStrictly;
    plan.within_ns = seq.within_ns > 0 ? seq.within_ns : INT64_MAX;
    plan.absent_ns = seq.steps[1].absent_ns;
    plan.place = arena_.reserve({StateUse::kPair, signal}, s.entity_kind, seq.steps[1].kind,
                                sizeof(uint64_t), stays);
    plan.states = static_cast<uint32_t>(refs_.size());
    refs_.emplace_back();
    if (plan.form == Form::kAbsentPair) {
      plan.lane = core_.timers.lane(plan.absent_ns);
      plan.live_max = seq.keep == KeepMode::kAll ? std::clamp(seq.partials_max, 1u, 65'535u) : 1;
    }
  } else if (plan.form == Form::kGeneral) {
    plan.states = static_cast<uint32_t>(states_.size());
    states_.emplace_back();
    plan.deferred = deferred_.add(signal);
  }
  return plan.form;
}

void SequenceStates::on_single(abi::SignalId signal, const EventView& event, EntityIndex entity) {
  const abi::SignalPlan& plan = core_.pack.signals[signal];
  if (!plan.sequence.guards.empty() && guards_.blocks(signal, entity, event.record->ts_ns)) {
    return;
  }
  if (core_.count_only) {
    core_.count_firing(signal, entity);
    return;
  }
  abi::Firing f = core_.start_firing(signal, entity, *event.record);
  f.events.push_back(event_ref(*event.record));
  core_.emit(std::move(f));
}

void SequenceStates::keep_ref(abi::SignalId signal, EntityIndex entity, const abi::Record& record) {
  RefRing& ring = refs_[plans_[signal].states].at(entity);
  if (plans_[signal].form == Form::kLatestPair) {
    ring.refs.clear();
  } else if (!ring.refs.empty() && ring.refs.back().ts_ns == record.ts_ns) {
    ring.refs.pop_back();  // a firing names the last event of its time
  }
  ring.push(record);
}

void SequenceStates::fire_pair(abi::SignalId signal, int64_t onset, const EventView& event,
                               EntityIndex entity) {
  if (core_.count_only) {
    core_.count_firing(signal, entity);
    return;
  }
  abi::Firing f = core_.start_firing(signal, entity, *event.record);
  f.onset_ns = onset;
  f.events = refs_[plans_[signal].states].at(entity).refs;
  f.events.push_back(event_ref(*event.record));
  core_.emit(std::move(f));
}

void SequenceStates::miss(abi::SignalId signal, const Partial& partial, EntityIndex entity) {
  if (!core_.options.near_misses) return;
  const auto& plan = core_.pack.signals[signal];
  core_.near_misses.push_back({partial.first_ns + plan.sequence.within_ns, signal,
                               core_.program.tables()[plan.entity_kind].entity(entity),
                               partial.matched});
}

void SequenceStates::drop_expired(abi::SignalId signal, State& state, EntityIndex entity,
                                  int64_t now_ns) {
  const int64_t within = core_.pack.signals[signal].sequence.within_ns;
  if (within <= 0) return;
  std::erase_if(state.partials, [&](const Partial& p) {
    if (p.deadline_ns != 0 || now_ns - p.first_ns <= within) return false;
    miss(signal, p, entity);
    return true;
  });
}

void SequenceStates::drop_overtaken(abi::SignalId signal, State& state, EntityIndex entity) {
  for (auto p = state.partials.begin(); p != state.partials.end();) {
    const bool gone =
        deferred_.overtaken(signal, {p->matched, p->orders, p->captures}, entity, p->judged);
    p = gone ? state.partials.erase(p) : p + 1;
  }
}

bool SequenceStates::closed_by(abi::SignalId signal, const Partial& partial, uint16_t step,
                               const abi::Record& record, EntityIndex entity) {
  Partial trial = partial;
  take(core_.pack.signals[signal].sequence.steps[step], step, record, trial);
  return deferred_.closes(signal, step, {trial.matched, trial.orders, trial.captures}, entity);
}

void SequenceStates::take(const abi::StepPlan& step, uint16_t number, const abi::Record& record,
                          Partial& partial) {
  if (partial.orders.size() <= number) partial.orders.resize(number + size_t{1});
  partial.orders[number] = record.order;
  partial.matched = number + 1u;
  partial.first_ns = number == 0 ? record.ts_ns : std::min(partial.first_ns, record.ts_ns);
  partial.last_ns = number == 0 ? record.ts_ns : std::max(partial.last_ns, record.ts_ns);
  if (partial.refs.size() < 8) partial.refs.push_back(event_ref(record));
  for (const abi::Capture& c : step.captures) {
    if (partial.captures.size() <= c.index) partial.captures.resize(c.index + size_t{1});
    partial.captures[c.index] =
        record.has(c.slot) ? abi::Value{record.slots()[c.slot], 1} : abi::Value::unknown();
  }
}

bool SequenceStates::settle(abi::SignalId signal, Partial& partial, State& state,
                            EntityIndex entity, uint64_t exclude_order) {
  const abi::SequencePlan& plan = core_.pack.signals[signal].sequence;
  while (partial.matched < plan.steps.size()) {
    const abi::StepPlan& next = plan.steps[partial.matched];
    if (next.mode == StepMode::kAbsent) {
      partial.tag = core_.next_tag++;
      partial.deadline_ns = partial.last_ns + next.absent_ns;
      core_.timers.push({partial.deadline_ns, partial.tag, signal, entity, TimerUse::kSequence});
      return false;
    }
    if (next.mode != StepMode::kThenEither) return false;
    const auto number = static_cast<uint16_t>(partial.matched);
    const auto found = std::find_if(state.early.begin(), state.early.end(), [&](const Early& e) {
      const abi::Record& r = e.record.record();
      return e.step == number && r.order != exclude_order &&
             can_advance(core_.pack.signals[signal], partial, number, r, entity) &&
             !(plans_[signal].deferred && closed_by(signal, partial, number, r, entity));
    });
    if (found == state.early.end()) return false;
    take(next, number, found->record.record(), partial);
    state.early.erase(found);
  }
  return true;
}

void SequenceStates::start(abi::SignalId signal, const EventView& event, EntityIndex entity,
                           State& state) {
  const abi::SequencePlan& plan = core_.pack.signals[signal].sequence;
  const abi::Record& record = *event.record;
  if (plan.keep == KeepMode::kLatest) {
    std::erase_if(state.partials, [](const Partial& p) { return p.matched == 1; });
  } else if (plan.keep == KeepMode::kEarliest && plan.steps.size() == 2 &&
             plan.steps[1].mode == StepMode::kAbsent && plain(plan.steps[0]) &&
             plain(plan.steps[1]) && !state.partials.empty()) {
    return;  // all would be cancelled together and consumed together: the earliest stands for them
  }
  if (state.partials.size() >= std::max(plan.partials_max, 1u)) {
    ++core_.counters.partials_dropped;
    return;
  }
  Partial partial;
  partial.start_order = record.order;
  partial.captures.resize(plan.capture_count);
  take(plan.steps[0], 0, record, partial);
  if (core_.options.near_misses && plan.within_ns > 0) {
    core_.timers.push({partial.first_ns + plan.within_ns, 0, signal, entity, TimerUse::kSequence});
  }
  if (settle(signal, partial, state, entity, record.order)) {
    complete(signal, partial, entity, record.ts_ns, record.order, abi::FiringPhase::kEvent);
    if (plan.keep != KeepMode::kAll) state.partials.clear();
    return;
  }
  state.partials.push_back(std::move(partial));
}

bool SequenceStates::can_advance(const abi::SignalPlan& signal, const Partial& partial,
                                 uint16_t step, const abi::Record& record, EntityIndex entity) {
  const abi::SequencePlan& plan = signal.sequence;
  const abi::StepPlan& s = plan.steps[step];
  if (partial.matched != step || partial.deadline_ns != 0) return false;
  if (std::find(partial.orders.begin(), partial.orders.end(), record.order) !=
      partial.orders.end()) {
    return false;  // two steps never share one event
  }
  const int64_t ts = record.ts_ns;
  if (s.mode == StepMode::kThenStrictly && ts <= partial.last_ns) return false;
  if (s.mode == StepMode::kThen && ts < partial.last_ns) return false;
  if (s.mode == StepMode::kThenEither && ts < partial.last_ns - s.tolerance_ns) return false;
  const int64_t first = std::min(partial.first_ns, ts);
  const int64_t last = std::max(partial.last_ns, ts);
  if (plan.within_ns > 0 && last - first > plan.within_ns) return false;
  if (plan.within_ns == 0 && plan.steps.size() > 1 && s.mode == StepMode::kThenEither &&
      last - first > s.tolerance_ns) {
    return false;
  }
  if (s.join == abi::kNone32) return true;
  uint64_t out = 0;
  const Site site{signal.entity_kind, entity, ts, record.order};
  return core_.eval(s.join, &record, site, partial.captures.data(), &out) == abi::kTrue;
}

void SequenceStates::on_absent_event(abi::SignalId signal, uint16_t step, const abi::Record& record,
                                     EntityIndex entity, State& state) {
  const abi::SignalPlan& plan = core_.pack.signals[signal];
  const abi::StepPlan& s = plan.sequence.steps[step];
  std::erase_if(state.partials, [&](const Partial& p) {
    if (p.matched != step || p.deadline_ns == 0 || record.ts_ns > p.deadline_ns) return false;
    if (p.orders.back() >= record.order) return false;  // not after what it must follow
    if (s.join == abi::kNone32) return true;
    uint64_t out = 0;
    const Site site{plan.entity_kind, entity, record.ts_ns, record.order};
    return core_.eval(s.join, &record, site, p.captures.data(), &out) == abi::kTrue;
  });
}

void SequenceStates::on_step(abi::SignalId signal, uint16_t step, const EventView& event,
                             EntityIndex entity, bool& completed) {
  const abi::SignalPlan& plan = core_.pack.signals[signal];
  const abi::SequencePlan& seq = plan.sequence;
  const abi::Record& record = *event.record;
  State& state = state_of(signal, entity);
  const Counted counted(partials_[signal], state.partials);
  const bool deferred = plans_[signal].deferred;
  if (deferred) drop_overtaken(signal, state, entity);
  if (seq.steps[step].mode == StepMode::kAbsent) {
    on_absent_event(signal, step, record, entity, state);
    return;
  }
  drop_expired(signal, state, entity, record.ts_ns);
  if (step == 0) {
    if (!completed) start(signal, event, entity, state);
    return;
  }
  bool advanced = false;
  for (size_t i = 0; i < state.partials.size();) {
    if (!can_advance(plan, state.partials[i], step, record, entity)) {
      ++i;
      continue;
    }
    if (deferred && closed_by(signal, state.partials[i], step, record, entity)) {
      // Cancelled: no near miss, and the event may complete another one.
      state.partials.erase(state.partials.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    advanced = true;
    take(seq.steps[step], step, record, state.partials[i]);
    if (settle(signal, state.partials[i], state, entity, record.order)) {
      complete(signal, state.partials[i], entity, record.ts_ns, record.order,
               abi::FiringPhase::kEvent);
      completed = true;
      if (seq.keep != KeepMode::kAll) {
        state.partials.clear();
        break;
      }
      state.partials.erase(state.partials.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (seq.keep == KeepMode::kLatest) {
      const uint32_t matched = state.partials[i].matched;
      const uint64_t mine = state.partials[i].start_order;
      std::erase_if(state.partials, [&](const Partial& p) {
        return p.matched == matched && p.start_order != mine;
      });
    }
    if (seq.keep != KeepMode::kAll) break;
    ++i;
  }
  if (!advanced && seq.steps[step].mode == StepMode::kThenEither) {
    const int64_t oldest = record.ts_ns - seq.steps[step].tolerance_ns;
    std::erase_if(state.early, [&](const Early& e) {
      return e.step == step && e.record.record().ts_ns < oldest;
    });
    if (state.early.size() >= std::max(seq.partials_max, 1u))
      state.early.erase(state.early.begin());
    state.early.push_back({step, RecordCopy(record, core_.pack.kinds[record.kind])});
  }
}

void SequenceStates::on_unless(abi::SignalId signal, uint16_t unless, const EventView& event,
                               EntityIndex entity) {
  const abi::SignalPlan& plan = core_.pack.signals[signal];
  const abi::UnlessPlan& u = plan.sequence.unless[unless];
  const abi::Record& record = *event.record;
  if (u.deferred) {
    deferred_.keep(signal, unless, record, entity);
    return;
  }
  State& state = state_of(signal, entity);
  const Counted counted(partials_[signal], state.partials);
  std::erase_if(state.partials, [&](const Partial& p) {
    if (p.matched <= u.after_step || p.matched > u.before_step) return false;
    if (u.after_step >= p.orders.size() || p.orders[u.after_step] >= record.order) return false;
    if (u.join == abi::kNone32) return true;
    uint64_t out = 0;
    const Site site{plan.entity_kind, entity, record.ts_ns, record.order};
    return core_.eval(u.join, &record, site, p.captures.data(), &out) == abi::kTrue;
  });
}

void SequenceStates::complete(abi::SignalId signal, const Partial& partial, EntityIndex entity,
                              int64_t ts_ns, uint64_t order, abi::FiringPhase phase) {
  if (guards_.blocks(signal, entity, ts_ns)) return;
  if (core_.count_only) {
    core_.count_firing(signal, entity);
    return;
  }
  abi::Firing f;
  f.ts_ns = ts_ns;
  f.onset_ns = partial.first_ns;
  f.phase = phase;
  // A timer completes on no event; where its pattern began must not order it among others.
  f.order = phase == abi::FiringPhase::kTimer ? 0 : order;
  f.signal = signal;
  f.entity = core_.program.tables()[core_.pack.signals[signal].entity_kind].entity(entity);
  f.events = partial.refs;
  core_.emit(std::move(f));
}

void SequenceStates::on_timer(const Timer& timer) {
  const abi::SignalId signal = timer.plan;
  Plan& plan = plans_[signal];
  const Form wanted = timer.use == TimerUse::kAbsentPair ? Form::kAbsentPair : Form::kGeneral;
  if (included_[signal] == 0 || plan.form != wanted) return;
  if (timer.use == TimerUse::kAbsentPair) {
    auto* word = reinterpret_cast<uint64_t*>(arena_.at(plan.place, timer.entity));
    if ((*word >> kLiveBits) >= timer.tag) return;  // cancelled after it was armed
    --*word;
    if (core_.count_only) {
      core_.count_firing(signal, timer.entity);
      return;
    }
    Partial partial;
    partial.first_ns = armed_at(timer);
    for (const abi::EventRef& ref : refs_[plan.states].at(timer.entity).refs) {
      if (ref.ts_ns == partial.first_ns) partial.refs = {ref};
    }
    complete(signal, partial, timer.entity, timer.deadline_ns, timer.tag - 1,
             abi::FiringPhase::kTimer);
    return;
  }
  State& state = state_of(signal, timer.entity);
  const Counted counted(partials_[signal], state.partials);
  if (plan.deferred) drop_overtaken(signal, state, timer.entity);
  if (timer.tag == 0) {  // only to record near misses in time
    drop_expired(signal, state, timer.entity, timer.deadline_ns + 1);
    return;
  }
  const auto at = std::find_if(state.partials.begin(), state.partials.end(), [&](const Partial& p) {
    return p.tag == timer.tag && p.deadline_ns != 0;
  });
  if (at == state.partials.end()) return;
  if (plan.deferred && deferred_.closes(signal, static_cast<uint16_t>(at->matched),
                                        {at->matched, at->orders, at->captures}, timer.entity)) {
    state.partials.erase(at);
    return;
  }
  at->deadline_ns = 0;
  ++at->matched;
  const uint64_t order = at->orders.back();
  at->orders.push_back(order);
  at->last_ns = timer.deadline_ns;
  if (!settle(signal, *at, state, timer.entity, ~uint64_t{0})) return;
  const Partial done = *at;
  if (core_.pack.signals[signal].sequence.keep == KeepMode::kAll) {
    state.partials.erase(at);
  } else {
    state.partials.clear();
  }
  complete(signal, done, timer.entity, timer.deadline_ns, done.start_order,
           abi::FiringPhase::kTimer);
}

void SequenceStates::reset_entity(abi::EntityKindId kind, EntityIndex entity, uint64_t order) {
  for (abi::SignalId s = 0; s < plans_.size(); ++s) {
    if (included_[s] == 0 || core_.pack.signals[s].entity_kind != kind) continue;
    const Plan& plan = plans_[s];
    if (plan.form == Form::kGeneral) {
      if (const State* state = states_[plan.states].find(entity)) {
        partials_[s] -= state->partials.size();
      }
      states_[plan.states].reset(entity);
    }
    if (plan.deferred) deferred_.reset_entity(s, entity);
    if (plan.form == Form::kLatestPair || plan.form == Form::kAbsentPair) {
      refs_[plan.states].reset(entity);
    }
    // Timers of the evicted key are still queued: an order that no timer exceeds cancels them.
    if (plan.form == Form::kAbsentPair) {
      if (char* state = arena_.find(plan.place, entity)) {
        *reinterpret_cast<uint64_t*>(state) = order << kLiveBits;
      }
    }
  }
}

uint64_t SequenceStates::bytes_per_key(abi::EntityKindId kind) const {
  uint64_t total = 0;
  for (abi::SignalId s = 0; s < plans_.size(); ++s) {
    if (included_[s] == 0 || core_.pack.signals[s].entity_kind != kind) continue;
    const Form form = plans_[s].form;
    if (form == Form::kGeneral) total += sizeof(State);
    if (form == Form::kLatestPair || form == Form::kAbsentPair) total += sizeof(RefRing);
  }
  return total;
}

uint64_t SequenceStates::bytes() const {
  uint64_t total = 0;
  for (const auto& s : states_) total += s.bytes();
  for (const auto& r : refs_) total += r.bytes();
  return total + deferred_.bytes();
}

}  // namespace reflex::eval
