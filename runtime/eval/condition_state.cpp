// ConditionStates: see condition_state.h.
#include "runtime/eval/condition_state.h"

#include <algorithm>

#include "runtime/base/time.h"

namespace reflex::eval {
namespace {
// Why 30 s: two evaluations per entity and half minute keep 10,000 nodes below 0.1 ms of work per
// second of event time; crossings inside a tick are found exactly.
constexpr int64_t kTickNs = 30 * kNsPerSecond;

int64_t plus(int64_t t, int64_t d) { return t > INT64_MAX - d ? INT64_MAX : t + d; }
}  // namespace

ConditionStates::ConditionStates(ShardCore& core) : core_(core) {
  number_.assign(core.pack.signals.size(), abi::kNone32);
}

void ConditionStates::add(abi::SignalId signal) {
  number_[signal] = static_cast<uint32_t>(states_.size());
  signals_.push_back(signal);
  states_.emplace_back();
}

void ConditionStates::on_event(abi::SignalId signal, const EventView& event, EntityIndex entity) {
  State& state = states_[number_[signal]].at(entity);
  const abi::Record& record = *event.record;
  state.order = record.order;
  state.last_event_ns = record.ts_ns;
  evaluate(signal, entity, state, {record.ts_ns, record.order, abi::FiringPhase::kEvent, &record});
}

ConditionStates::Truths ConditionStates::truths(abi::SignalId signal, EntityIndex entity,
                                                const State& state, int64_t now_ns,
                                                const abi::Record* record) {
  const abi::SignalPlan& plan = core_.pack.signals[signal];
  const Site site{plan.entity_kind, entity, now_ns, state.order};
  Truths t{abi::kUnknown, abi::kUnknown};
  uint64_t out = 0;
  if (plan.condition.when != abi::kNone32) {
    t.when = core_.eval(plan.condition.when, record, site, nullptr, &out);
  }
  if (plan.condition.clear != abi::kNone32) {
    t.clear = core_.eval(plan.condition.clear, record, site, nullptr, &out);
  }
  return t;
}

void ConditionStates::evaluate(abi::SignalId signal, EntityIndex entity, State& state,
                               const Moment& moment) {
  const abi::ConditionPlan& plan = core_.pack.signals[signal].condition;
  const Truths t = truths(signal, entity, state, moment.ts_ns, moment.record);
  state.wake_ns = INT64_MAX;
  bool held = false;
  if (t.when != abi::kUnknown) {
    state.unknown = false;
  } else if (plan.nodata == abi::NoData::kHold) {
    if (!state.unknown) state.unknown_since_ns = moment.ts_ns;
    state.unknown = true;
    const int64_t until = plus(state.unknown_since_ns, plan.nodata_hold_ns);
    held = plan.nodata_hold_ns <= 0 || moment.ts_ns <= until;
    if (held && state.phase != Phase::kIdle && plan.nodata_hold_ns > 0) {
      state.wake_ns = plus(until, 1);
    }
  }
  bool on = t.when == abi::kTrue;
  if (state.phase == Phase::kActive && plan.clear != abi::kNone32) {
    on = on || t.clear != abi::kTrue;  // hysteresis: only `clear` ends it
    if (t.when == abi::kUnknown && t.clear == abi::kUnknown && !held) on = false;
  }
  if (held) on = state.phase != Phase::kIdle && !state.off;
  advance(signal, entity, state, moment, on);
  if (plan.time_driven && moment.ts_ns - state.last_event_ns <= core_.pack.limits.horizon_ns) {
    state.wake_ns = std::min(state.wake_ns, look_ahead(signal, entity, state, moment.ts_ns, t));
  }
  schedule(signal, entity, state);
}

void ConditionStates::advance(abi::SignalId signal, EntityIndex entity, State& state,
                              const Moment& moment, bool on) {
  const abi::ConditionPlan& plan = core_.pack.signals[signal].condition;
  if (state.phase == Phase::kActive) {
    if (on) {
      state.off = false;
      return;
    }
    if (!state.off) {
      state.off = true;
      state.off_since_ns = moment.ts_ns;
    }
    const int64_t end_ns = plus(state.off_since_ns, plan.keep_ns);
    if (moment.ts_ns < end_ns) {
      state.wake_ns = std::min(state.wake_ns, end_ns);
      return;
    }
    fire(signal, entity, state, moment, abi::FiringChange::kEnd);
    state.phase = Phase::kIdle;
    state.off = false;
    state.refs.clear();
    return;
  }
  if (!on) {
    state.phase = Phase::kIdle;
    state.refs.clear();
    return;
  }
  if (state.phase == Phase::kIdle) {
    state.phase = Phase::kPending;
    state.since_ns = moment.ts_ns;
  }
  if (moment.record != nullptr && !core_.count_only) {
    if (state.refs.size() == 8) state.refs.erase(state.refs.begin() + 1);  // keep the onset
    state.refs.push_back(event_ref(*moment.record));
  }
  const int64_t due_ns = plus(state.since_ns, plan.for_ns);
  if (moment.ts_ns < due_ns) {
    state.wake_ns = std::min(state.wake_ns, due_ns);
    return;
  }
  state.phase = Phase::kActive;
  state.off = false;
  fire(signal, entity, state, moment, abi::FiringChange::kStart);
}

void ConditionStates::fire(abi::SignalId signal, EntityIndex entity, const State& state,
                           const Moment& moment, abi::FiringChange change) {
  if (core_.count_only) {
    if (change == abi::FiringChange::kStart) core_.count_firing(signal, entity);
    return;
  }
  const abi::SignalPlan& plan = core_.pack.signals[signal];
  const Site site{plan.entity_kind, entity, moment.ts_ns, state.order};
  abi::Firing f;
  f.ts_ns = moment.ts_ns;
  f.onset_ns = state.since_ns;
  f.phase = moment.phase;
  f.order = moment.order;
  f.signal = signal;
  f.change = change;
  f.entity = core_.program.tables()[plan.entity_kind].entity(entity);
  f.value = core_.eval_f64(plan.condition.shown_value, moment.record, site);
  f.limit = core_.eval_f64(plan.condition.shown_limit, moment.record, site);
  f.events = state.refs;
  core_.emit(std::move(f));
}

int64_t ConditionStates::look_ahead(abi::SignalId signal, EntityIndex entity, const State& state,
                                    int64_t now_ns, const Truths& now) {
  int64_t high = plus(now_ns, kTickNs);
  if (truths(signal, entity, state, high, nullptr) == now) return high;
  int64_t low = now_ns;  // same truths as now; `high` differs
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (truths(signal, entity, state, middle, nullptr) == now) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

void ConditionStates::schedule(abi::SignalId signal, EntityIndex entity, State& state) {
  // A timer that is already queued for an earlier time looks at wake_ns when it pops.
  if (state.wake_ns >= state.scheduled_ns) return;
  state.scheduled_ns = state.wake_ns;
  state.tag = core_.next_tag++;
  core_.timers.push({state.wake_ns, state.tag, signal, entity, TimerUse::kCondition});
}

void ConditionStates::on_timer(const Timer& timer) {
  if (number_[timer.plan] == abi::kNone32) return;
  State& state = states_[number_[timer.plan]].at(timer.entity);
  if (state.tag != timer.tag || state.tag == 0) return;
  state.scheduled_ns = INT64_MAX;
  if (state.wake_ns == INT64_MAX) return;
  if (state.wake_ns > timer.deadline_ns) {
    schedule(timer.plan, timer.entity, state);
    return;
  }
  const Moment moment{timer.deadline_ns, 0, abi::FiringPhase::kTimer, nullptr};
  if (state.changed) reconsider(timer.plan, timer.entity, state, moment);
  evaluate(timer.plan, timer.entity, state, moment);
}

void ConditionStates::reconsider(abi::SignalId signal, EntityIndex entity, State& state,
                                 const Moment& moment) {
  state.changed = false;
  const int64_t due_ns = plus(state.since_ns, core_.pack.signals[signal].condition.for_ns);
  if (state.phase != Phase::kActive || due_ns <= moment.ts_ns) return;
  fire(signal, entity, state, moment, abi::FiringChange::kEnd);
  state.phase = Phase::kPending;
  state.off = false;
}

bool ConditionStates::has_state(abi::SignalId signal, EntityIndex entity) const {
  const State* state = states_[number_[signal]].find(entity);
  return state != nullptr && state->order != ~uint64_t{0};
}

void ConditionStates::save(abi::SignalId signal, EntityIndex entity, PlanWriter& plan) const {
  const State& s = *states_[number_[signal]].find(entity);
  StateWriter& out = plan.out;
  out.u64(static_cast<uint64_t>(s.phase) | uint64_t{s.off} << 2 | uint64_t{s.unknown} << 3 |
          uint64_t{s.changed} << 4 | uint64_t{s.wake_ns != INT64_MAX} << 5 |
          uint64_t{s.scheduled_ns != INT64_MAX} << 6);
  out.u64(s.order);
  out.i64(s.last_event_ns);
  if (s.phase != Phase::kIdle) {
    out.i64(s.since_ns);
    plan.refs(s.refs);
  }
  if (s.off) out.i64(s.off_since_ns);
  if (s.unknown) out.i64(s.unknown_since_ns);
  if (s.wake_ns != INT64_MAX) out.i64(s.wake_ns);
  if (s.scheduled_ns != INT64_MAX) out.i64(s.scheduled_ns);
}

void ConditionStates::load(abi::SignalId signal, EntityIndex entity, PlanReader& plan) {
  StateReader& in = plan.in;
  State& s = states_[number_[signal]].at(entity);
  const uint64_t bits = in.bounded(127);
  const uint64_t phase = bits & 3;
  if (phase > static_cast<uint64_t>(Phase::kActive)) return in.fail();
  s.phase = static_cast<Phase>(phase);
  s.off = (bits >> 2 & 1) != 0;
  s.unknown = (bits >> 3 & 1) != 0;
  s.changed = (bits >> 4 & 1) != 0;
  s.order = in.u64();
  s.last_event_ns = in.i64();
  if (s.phase != Phase::kIdle) {
    s.since_ns = in.i64();
    plan.refs(s.refs);
  }
  if (s.off) s.off_since_ns = in.i64();
  if (s.unknown) s.unknown_since_ns = in.i64();
  if ((bits >> 5 & 1) != 0) s.wake_ns = in.i64();
  if ((bits >> 6 & 1) != 0) s.scheduled_ns = in.i64();
  if (in.failed()) return;
  if (s.scheduled_ns != INT64_MAX) {
    s.tag = core_.next_tag++;
    core_.timers.push({s.scheduled_ns, s.tag, signal, entity, TimerUse::kCondition});
  }
  if (!plan.changed) return;
  s.changed = true;
  s.wake_ns = plan.at_ns;
  schedule(signal, entity, s);
}

void ConditionStates::take_over(ConditionStates& old, abi::SignalId signal,
                                int64_t changed_at_ns) {
  PagedObjects<State>& states = states_[number_[signal]];
  states = std::move(old.states_[old.number_[signal]]);
  if (changed_at_ns == INT64_MAX) return;
  std::vector<Timer> timers;
  states.each([&](EntityIndex entity, State& s) {
    if (s.order == ~uint64_t{0}) return;  // see has_state()
    s.changed = true;
    s.wake_ns = changed_at_ns;
    if (s.wake_ns >= s.scheduled_ns) return;  // as schedule()
    s.scheduled_ns = s.wake_ns;
    s.tag = core_.next_tag++;
    timers.push_back({s.wake_ns, s.tag, signal, entity, TimerUse::kCondition});
  });
  core_.timers.push_all(timers);
}

void ConditionStates::reset_entity(abi::EntityKindId kind, EntityIndex entity) {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (core_.pack.signals[signals_[i]].entity_kind == kind) states_[i].reset(entity);
  }
}

uint64_t ConditionStates::bytes_per_key(abi::EntityKindId kind) const {
  uint64_t total = 0;
  for (const abi::SignalId signal : signals_) {
    if (core_.pack.signals[signal].entity_kind == kind) total += states_[0].bytes_per_key();
  }
  return total;
}

uint64_t ConditionStates::bytes() const {
  uint64_t total = 0;
  for (const auto& s : states_) total += s.bytes();
  return total;
}

}  // namespace reflex::eval
