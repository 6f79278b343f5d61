// Sequences: of each form of pattern one, with absences, guards and unlesses. Part of Everything.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {

struct Sequences {
  Stream s;

  Sequences() {
    pairs();
    absences();
    unlesses();
  }

  abi::SignalId sequence(const char* name, abi::StepMode mode, abi::KeepMode keep, int seconds,
                         uint32_t partials = 4) {
    const auto id = s.b.signal(name, s.node, abi::SignalShape::kSequence);
    s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node);
    s.b.step(id, mode, s.any(1), s.by_node, seconds * kSec);
    auto& plan = s.plan(id).sequence;
    plan.within_ns = mode == abi::StepMode::kAbsent ? 0 : seconds * kSec;
    plan.keep = keep;
    plan.partials_max = partials;
    return id;
  }

  void guard(abi::SignalId signal, std::vector<abi::NoneGuard>& guards) {
    const auto leaf = s.any(2);
    s.b.own(leaf, abi::OwnerKind::kSignalGuard, signal, static_cast<uint16_t>(guards.size()));
    guards.push_back({leaf, s.kinds[2], s.by_node, 4 * kSec});
  }

  void pairs() {
    sequence("latest", abi::StepMode::kThen, abi::KeepMode::kLatest, 10);
    sequence("strict", abi::StepMode::kThenStrictly, abi::KeepMode::kLatest, 10);
    sequence("earliest", abi::StepMode::kThen, abi::KeepMode::kEarliest, 10);
    sequence("all", abi::StepMode::kThen, abi::KeepMode::kAll, 10, 3);
    sequence("either", abi::StepMode::kThenEither, abi::KeepMode::kEarliest, 4);
    const auto guarded = sequence("guarded", abi::StepMode::kThen, abi::KeepMode::kLatest, 10);
    guard(guarded, s.plan(guarded).sequence.guards);
    const auto joined = s.b.signal("joined", s.node, abi::SignalShape::kSequence);
    s.b.step(joined, abi::StepMode::kFirst, s.any(0), s.by_node, 0, abi::kNone32,
             {{1, 0}, {0, 1}, {2, 2}});
    const auto same =
        s.b.expr(test::bool_type(), [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
          const bool holds = r.i64(1) == c.captures[0].i64() && r.i64(0) == c.captures[1].i64() &&
                             r.f64(2) >= c.captures[2].f64();
          return uint32_t{holds ? abi::kTrue : abi::kFalse};
        });
    s.b.step(joined, abi::StepMode::kThen, s.any(1), s.by_node, 0, same);
    s.b.step(joined, abi::StepMode::kThen, s.any(2), s.by_node);
    s.plan(joined).sequence.within_ns = 30 * kSec;
    s.plan(joined).sequence.capture_count = 3;
  }

  void absences() {
    sequence("absent_all", abi::StepMode::kAbsent, abi::KeepMode::kAll, 8, 16);
    sequence("absent_first", abi::StepMode::kAbsent, abi::KeepMode::kEarliest, 8);
    sequence("absent_latest", abi::StepMode::kAbsent, abi::KeepMode::kLatest, 8);
    const auto guarded =
        sequence("absent_guarded", abi::StepMode::kAbsent, abi::KeepMode::kAll, 8, 5);
    guard(guarded, s.plan(guarded).sequence.guards);
  }

  void unlesses() {
    for (const bool shared : {true, false}) {
      const auto id = sequence(shared ? "unless_shared" : "unless_keyed", abi::StepMode::kThen,
                               shared ? abi::KeepMode::kEarliest : abi::KeepMode::kAll, 10);
      s.b.unless(id, s.any(2), shared ? abi::KeyPlan{} : s.by_node, 0, 1);
      auto& plan = s.plan(id).sequence;
      plan.steps[1].captures = {{1, 0}};
      plan.capture_count = 1;
      abi::UnlessPlan& u = plan.unless[0];
      u.join = s.b.expr(
          test::bool_type(), [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
            if (c.captures[0].known == 0) return uint32_t{abi::kUnknown};
            return uint32_t{r.i64(1) == c.captures[0].i64() ? abi::kTrue : abi::kFalse};
          });
      u.deferred = true;
      u.shared = shared;
      u.at_close = true;
      u.check_step = 1;
      u.window_ns = 10 * kSec;
      u.kept_max = 3;
    }
    const auto plain = sequence("unless_now", abi::StepMode::kThen, abi::KeepMode::kAll, 10);
    s.b.unless(plain, s.any(2), s.by_node, 0, 1);
  }
};

}  // namespace reflex::eval
