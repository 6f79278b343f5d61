// SequenceStates: the saved form of partial matches, pairs and their timers; see sequence_state.h.
#include <algorithm>
#include <set>
#include <tuple>

#include "runtime/eval/sequence_state.h"

namespace reflex::eval {

SequenceStates::PairTimers SequenceStates::pair_timers() const {
  return pair_timers(std::vector<uint8_t>(plans_.size(), 1));
}

SequenceStates::PairTimers SequenceStates::pair_timers(const std::vector<uint8_t>& of) const {
  PairTimers timers;
  core_.timers.each_in_lanes([&](const Timer& t) {
    if (of[t.plan] == 0) return;
    const char* state = arena_.find(plans_[t.plan].place, t.entity);
    const uint64_t cancelled = *reinterpret_cast<const uint64_t*>(state) >> kLiveBits;
    if (cancelled < t.tag) timers.push_back(t);
  });
  std::sort(timers.begin(), timers.end(), [](const Timer& a, const Timer& b) {
    return std::tie(a.plan, a.entity, a.tag) < std::tie(b.plan, b.entity, b.tag);
  });
  return timers;
}

void SequenceStates::save_plan(abi::SignalId signal, PlanWriter& plan) const {
  const abi::SequencePlan& sequence = core_.pack.signals[signal].sequence;
  const Plan& own = plans_[signal];
  plan.out.u64(static_cast<uint64_t>(own.form));
  if (own.form != Form::kGeneral) return;
  size_t captures = 0;
  for (const abi::StepPlan& step : sequence.steps) captures += step.captures.size();
  plan.out.u64(captures);
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    for (const abi::Capture& c : sequence.steps[i].captures) {
      const abi::FieldSchema& field = core_.pack.kinds[sequence.steps[i].kind].fields[c.slot];
      plan.out.u64(i);
      plan.out.text(field.name);
      plan.out.u64(static_cast<uint64_t>(form_of(field.type)));
    }
  }
  deferred_.save_shared(signal, plan);
}

bool SequenceStates::load_plan(abi::SignalId signal, PlanReader& plan) {
  const abi::SequencePlan& sequence = core_.pack.signals[signal].sequence;
  StateReader& in = plan.in;
  // The form depends on what the shape says, and on whether near misses are wanted.
  if (in.u64() != static_cast<uint64_t>(plans_[signal].form)) return false;
  if (plans_[signal].form != Form::kGeneral) return true;
  plan.captures.resize(in.count());
  for (PlanReader::Capture& capture : plan.captures) {
    const uint64_t step = in.bounded(sequence.steps.size() - 1);
    const std::string_view name = in.text();
    capture.form = static_cast<ValueForm>(in.bounded(kValueFormLast));
    if (in.failed()) return false;
    for (const abi::Capture& c : sequence.steps[step].captures) {
      const auto& field = core_.pack.kinds[sequence.steps[step].kind].fields[c.slot];
      if (field.name != name || form_of(field.type) != capture.form) continue;
      capture.known = true;
      capture.index = c.index;
    }
  }
  deferred_.load_shared(signal, plan);
  return true;
}

bool SequenceStates::has_state(abi::SignalId signal, EntityIndex entity) const {
  const Plan& plan = plans_[signal];
  if (plan.form == Form::kLatestPair || plan.form == Form::kAbsentPair) {
    const char* state = arena_.find(plan.place, entity);
    if (state == nullptr) return false;
    const uint64_t word = *reinterpret_cast<const uint64_t*>(state);
    return plan.form == Form::kLatestPair ? word != 0 : (word & kLiveMask) != 0;
  }
  if (plan.form != Form::kGeneral) return false;
  const State* state = states_[plan.states].find(entity);
  return (state != nullptr && !(state->partials.empty() && state->early.empty())) ||
         (plan.deferred && deferred_.has_state(signal, entity));
}

void SequenceStates::save_pair(abi::SignalId signal, EntityIndex entity, const PairTimers& timers,
                               PlanWriter& plan) const {
  static const RefRing kNone;
  const Plan& own = plans_[signal];
  const RefRing* found = refs_[own.states].find(entity);
  const RefRing& ring = found == nullptr ? kNone : *found;
  if (own.form == Form::kLatestPair) {
    plan.out.i64(decode(*reinterpret_cast<const uint64_t*>(arena_.find(own.place, entity))));
    plan.refs(ring.refs);
    return;
  }
  struct Before {
    bool operator()(const Timer& t, const std::pair<uint32_t, EntityIndex>& at) const {
      return std::tie(t.plan, t.entity) < std::tie(at.first, at.second);
    }
    bool operator()(const std::pair<uint32_t, EntityIndex>& at, const Timer& t) const {
      return std::tie(at.first, at.second) < std::tie(t.plan, t.entity);
    }
  };
  const auto [begin, end] =
      std::equal_range(timers.begin(), timers.end(), std::pair{signal, entity}, Before{});
  plan.out.u64(static_cast<uint64_t>(end - begin));
  std::vector<abi::EventRef> refs;  // of what still runs
  for (auto t = begin; t != end; ++t) {
    plan.out.i64(armed_at(*t));
    plan.out.u64(t->tag);
  }
  for (const abi::EventRef& ref : ring.refs) {
    const bool runs =
        std::any_of(begin, end, [&](const Timer& t) { return armed_at(t) == ref.ts_ns; });
    if (runs) refs.push_back(ref);
  }
  plan.refs(refs);
}

void SequenceStates::load_pair(abi::SignalId signal, EntityIndex entity, PlanReader& plan) {
  const Plan& own = plans_[signal];
  auto* word = reinterpret_cast<uint64_t*>(arena_.at(own.place, entity));
  if (own.form == Form::kLatestPair) {
    *word = encode(plan.in.i64());
    plan.refs(refs_[own.states].at(entity).refs);
    return;
  }
  const uint64_t n = plan.in.bounded(kLiveMask);
  for (uint64_t i = 0; i < n && !plan.in.failed(); ++i) {
    const int64_t armed_ns = plan.in.i64();
    const uint64_t tag = plan.in.u64();
    // Another duration may be over already: nothing fires before the time of the state.
    const int64_t deadline_ns = std::max(
        armed_ns > INT64_MAX - own.absent_ns ? INT64_MAX : armed_ns + own.absent_ns, plan.at_ns);
    if (deadline_ns - own.absent_ns != armed_ns) overdue_[{signal, entity, tag}] = armed_ns;
    loaded_.push_back({deadline_ns, tag, signal, entity, TimerUse::kAbsentPair});
    ++*word;
  }
  plan.refs(refs_[own.states].at(entity).refs);
}

void SequenceStates::start_timers() {
  std::sort(loaded_.begin(), loaded_.end(), [](const Timer& a, const Timer& b) {
    return std::tie(a.deadline_ns, a.tag, a.plan, a.entity) <
           std::tie(b.deadline_ns, b.tag, b.plan, b.entity);
  });
  for (const Timer& t : loaded_) core_.timers.push_lane(plans_[t.plan].lane, t);
  // Beside timers of other signals that are there already (a take-over).
  std::set<uint32_t> lanes;
  for (const Timer& t : loaded_) lanes.insert(plans_[t.plan].lane);
  for (const uint32_t lane : lanes) core_.timers.sort_lane(lane);
  loaded_.clear();
  loaded_.shrink_to_fit();
}

void SequenceStates::take_over(SequenceStates& old, abi::SignalId signal) {
  const Plan& own = plans_[signal];
  const Plan& there = old.plans_[signal];
  partials_[signal] = old.partials_[signal];
  if (own.form == Form::kGeneral) {
    states_[own.states] = std::move(old.states_[there.states]);
    if (own.deferred) deferred_.take_over(old.deferred_, signal);
  } else if (own.form != Form::kSingle) {
    refs_[own.states] = std::move(old.refs_[there.states]);
    const auto from = old.overdue_.lower_bound({signal, 0, 0});
    auto to = from;
    while (to != old.overdue_.end() && std::get<0>(to->first) == signal) ++to;
    overdue_.insert(from, to);
  }
}

void SequenceStates::save_partial(const abi::SequencePlan& sequence, const Partial& partial,
                                  uint64_t rank, PlanWriter& plan) const {
  StateWriter& out = plan.out;
  out.u64(partial.matched);
  out.flag(partial.deadline_ns != 0);
  if (partial.deadline_ns != 0) out.u64(rank);
  out.i64(partial.first_ns);
  out.i64(partial.last_ns);
  out.u64(partial.start_order);
  out.u64(partial.judged);
  out.u64(partial.orders.size());
  for (const uint64_t order : partial.orders) out.u64(order);
  plan.refs(partial.refs);
  for (const abi::StepPlan& step : sequence.steps) {
    for (const abi::Capture& c : step.captures) {
      const bool known = c.index < partial.captures.size() && partial.captures[c.index].known != 0;
      out.flag(known);
      if (!known) continue;
      const abi::Type& type = core_.pack.kinds[step.kind].fields[c.slot].type;
      plan.value(form_of(type), partial.captures[c.index].bits);
    }
  }
}

SequenceStates::Partial SequenceStates::load_partial(const abi::SequencePlan& sequence,
                                                     uint64_t& rank, PlanReader& plan) {
  StateReader& in = plan.in;
  Partial partial;
  partial.matched = static_cast<uint32_t>(in.bounded(sequence.steps.size() - 1));
  const bool waits = in.flag();
  if (waits) rank = in.u64();
  partial.first_ns = in.i64();
  partial.last_ns = in.i64();
  partial.start_order = in.u64();
  partial.judged = in.u64();
  partial.orders.resize(in.bounded(sequence.steps.size()));
  for (uint64_t& order : partial.orders) order = in.u64();
  plan.refs(partial.refs);
  partial.captures.resize(sequence.capture_count);
  for (const PlanReader::Capture& capture : plan.captures) {
    if (!in.flag()) continue;
    const uint64_t bits = plan.value(capture.form);
    if (capture.known) partial.captures[capture.index] = {bits, 1};
  }
  if (partial.matched == 0 || partial.orders.size() < partial.matched) in.fail();
  if (!waits || in.failed()) return partial;
  const abi::StepPlan& next = sequence.steps[partial.matched];
  if (next.mode != abi::StepMode::kAbsent) in.fail();
  partial.deadline_ns = std::max(
      partial.last_ns > INT64_MAX - next.absent_ns ? INT64_MAX : partial.last_ns + next.absent_ns,
      plan.at_ns);
  return partial;
}

void SequenceStates::save(abi::SignalId signal, EntityIndex entity, const PairTimers& timers,
                          PlanWriter& plan) const {
  static const State kNone;
  const Plan& own = plans_[signal];
  if (own.form == Form::kSingle) return;
  if (own.form != Form::kGeneral) {
    const bool any = has_state(signal, entity);  // a guard may have some when the pair has none
    plan.out.flag(any);
    if (any) save_pair(signal, entity, timers, plan);
    return;
  }
  const abi::SequencePlan& sequence = core_.pack.signals[signal].sequence;
  const State* found = states_[own.states].find(entity);
  const State& state = found == nullptr ? kNone : *found;
  plan.out.u64(state.partials.size());
  for (const Partial& partial : state.partials) {
    // Timers of equal deadlines fire in the order in which they were started.
    const auto rank =
        std::count_if(state.partials.begin(), state.partials.end(),
                      [&](const Partial& p) { return p.deadline_ns != 0 && p.tag < partial.tag; });
    save_partial(sequence, partial, static_cast<uint64_t>(rank), plan);
  }
  plan.out.u64(state.early.size());
  for (const Early& early : state.early) {
    plan.out.u64(early.step);
    plan.record(early.record.record());
  }
  deferred_.save(signal, entity, plan);
}

void SequenceStates::load(abi::SignalId signal, EntityIndex entity, PlanReader& plan) {
  const Form form = plans_[signal].form;
  if (form == Form::kGeneral) {
    load_general(signal, entity, plan);
  } else if (form != Form::kSingle && plan.in.flag()) {
    load_pair(signal, entity, plan);
  }
}

void SequenceStates::load_general(abi::SignalId signal, EntityIndex entity, PlanReader& plan) {
  StateReader& in = plan.in;
  const abi::SequencePlan& sequence = core_.pack.signals[signal].sequence;
  State& state = state_of(signal, entity);
  const Counted counted(partials_[signal], state.partials);
  const size_t partials = in.count();
  std::vector<std::pair<uint64_t, size_t>> waiting;  // rank, partial
  for (size_t i = 0; i < partials && !in.failed(); ++i) {
    uint64_t rank = 0;
    state.partials.push_back(load_partial(sequence, rank, plan));
    const Partial& partial = state.partials.back();
    if (partial.deadline_ns != 0) waiting.emplace_back(rank, i);
    if (core_.options.near_misses && sequence.within_ns > 0) {
      core_.timers.push(
          {partial.first_ns + sequence.within_ns, 0, signal, entity, TimerUse::kSequence});
    }
  }
  const size_t early = in.count();
  for (size_t i = 0; i < early && !in.failed(); ++i) {
    const auto step = static_cast<uint16_t>(in.bounded(sequence.steps.size() - 1));
    RecordCopy copy = plan.record();
    if (copy.bytes() != 0) state.early.push_back({step, std::move(copy)});
  }
  deferred_.load(signal, entity, plan);
  if (in.failed()) return;
  std::sort(waiting.begin(), waiting.end());
  for (const auto& [rank, at] : waiting) {
    Partial& partial = state.partials[at];
    partial.tag = core_.next_tag++;
    core_.timers.push({partial.deadline_ns, partial.tag, signal, entity, TimerUse::kSequence});
  }
}

}  // namespace reflex::eval
