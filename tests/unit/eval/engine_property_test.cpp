// The engine against brute-force definitions on random small streams, and its determinism.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "runtime/base/time.h"
#include "runtime/eval/signal_engine.h"
#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {

abi::SignalId add_pair(Stream& s, abi::StepMode mode, abi::KeepMode keep, int seconds,
                       uint32_t partials = 4) {
  const auto id = s.b.signal("pair" + std::to_string(s.b.pack->signals.size()), s.node,
                             abi::SignalShape::kSequence);
  s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node);
  s.b.step(id, mode, s.any(1), s.by_node, seconds * kSec);
  s.plan(id).sequence.within_ns = seconds * kSec;
  s.plan(id).sequence.keep = keep;
  s.plan(id).sequence.partials_max = partials;
  return id;
}

abi::SignalId add_count(Stream& s, abi::CountMode mode, double k, int seconds, bool each) {
  const auto id = s.b.signal("count" + std::to_string(s.b.pack->signals.size()), s.node,
                             abi::SignalShape::kCount);
  auto& plan = s.plan(id).count;
  plan.mode = mode;
  plan.threshold_constant = k;
  plan.window_ns = seconds * kSec;
  plan.gap_ns = 3 * kSec;
  plan.each = each;
  s.b.count_input(id, s.any(0), s.by_node, 1);
  return id;
}

TEST(Sequences, LatestAndEarliestPairsMatchTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto latest = add_pair(s, abi::StepMode::kThen, abi::KeepMode::kLatest, 10);
    const auto strict = add_pair(s, abi::StepMode::kThenStrictly, abi::KeepMode::kLatest, 10);
    const auto earliest = add_pair(s, abi::StepMode::kThen, abi::KeepMode::kEarliest, 10, 1000);
    const auto all = add_pair(s, abi::StepMode::kThen, abi::KeepMode::kAll, 10, 1000);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want_latest, want_strict, want_earliest, want_all;
    for (int n = 0; n < 3; ++n) {
      const SymbolId name = s.names[static_cast<size_t>(n)];
      std::vector<int> open, open_strict;  // times of a since the last completed match
      for (const Event& e : events) {
        if (e.node != n) continue;
        if (e.kind == 0) {
          open.push_back(e.t);
          open_strict.push_back(e.t);
        } else if (e.kind == 1) {
          const auto alive =
              std::count_if(open.begin(), open.end(), [&](int a) { return e.t - a <= 10; });
          if (alive > 0) {
            want_earliest.emplace(e.t, name);
            for (int i = 0; i < alive; ++i) want_all.emplace(e.t, name);
          }
          if (!open.empty() && e.t - open.back() <= 10) want_latest.emplace(e.t, name);
          open.clear();
          if (!open_strict.empty() && open_strict.back() < e.t) {
            if (e.t - open_strict.back() <= 10) want_strict.emplace(e.t, name);
            open_strict.clear();
          }
        }
      }
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, latest) == want_latest);
    RC_ASSERT(fired(got, strict) == want_strict);
    RC_ASSERT(fired(got, earliest) == want_earliest);
    RC_ASSERT(fired(got, all) == want_all);
  }));
}

TEST(Sequences, AbsenceMatchesTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto all = add_pair(s, abi::StepMode::kAbsent, abi::KeepMode::kAll, 8, 1000);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want;
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != 0) continue;
      bool cancelled = false;
      for (size_t j = i + 1; j < events.size(); ++j) {
        cancelled = cancelled || (events[j].kind == 1 && events[j].node == events[i].node &&
                                  events[j].t <= events[i].t + 8);
      }
      if (!cancelled) want.emplace(events[i].t + 8, s.names[static_cast<size_t>(events[i].node)]);
    }
    RC_ASSERT(fired(s.run(), all) == want);
  }));
}

TEST(Counts, EventsDistinctAndBurstsMatchTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto each = add_count(s, abi::CountMode::kEvents, 3, 12, true);
    const auto once = add_count(s, abi::CountMode::kEvents, 3, 12, false);
    const auto general = add_count(s, abi::CountMode::kEvents, 3, 12, false);
    s.plan(general).count.rearm = 0;  // never re-arms: forces the general form
    const auto distinct = add_count(s, abi::CountMode::kDistinct, 2, 12, true);
    const auto bursts = add_count(s, abi::CountMode::kBursts, 2, 12, true);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want_each, want_once, want_general, want_distinct, want_bursts;
    for (int n = 0; n < 3; ++n) {
      const SymbolId name = s.names[static_cast<size_t>(n)];
      std::vector<Event> seen;
      std::vector<int> starts;
      bool armed = true, fresh = true;
      for (const Event& e : events) {
        if (e.node != n || e.kind != 0) continue;
        const auto inside = [&](int t) { return t > e.t - 12; };
        const auto count = [&] {
          return std::count_if(seen.begin(), seen.end(), [&](auto& x) { return inside(x.t); });
        };
        if (count() < 3) armed = true;
        if (seen.empty() || e.t - seen.back().t > 3) starts.push_back(e.t);
        seen.push_back(e);
        if (count() >= 3) {
          want_each.emplace(e.t, name);
          if (armed) want_once.emplace(e.t, name);
          if (fresh) want_general.emplace(e.t, name);
          armed = fresh = false;
        }
        std::set<int> gpus;
        for (auto& x : seen) {
          if (inside(x.t)) gpus.insert(x.gpu);
        }
        if (gpus.size() >= 2) want_distinct.emplace(e.t, name);
        if (std::count_if(starts.begin(), starts.end(), inside) >= 2) {
          want_bursts.emplace(e.t, name);
        }
      }
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, each) == want_each);
    RC_ASSERT(fired(got, once) == want_once);
    RC_ASSERT(fired(got, general) == want_general);
    RC_ASSERT(fired(got, distinct) == want_distinct);
    RC_ASSERT(fired(got, bursts) == want_bursts);
  }));
}

/// A condition `feature > limit` on the node, triggered by kind a.
abi::SignalId add_condition(Stream& s, abi::FeaturePlan feature, double limit, int for_s,
                            bool time_driven) {
  feature.entity_kind = s.node;
  const auto f = s.b.feature(feature);
  const auto input = s.any(0);
  s.b.feature_input(f, input, s.b.field_f64(2), s.by_node);
  const auto id = s.b.signal("when" + std::to_string(f), s.node, abi::SignalShape::kCondition);
  auto& plan = s.plan(id).condition;
  plan.features = {f};
  plan.when = s.b.expr(test::bool_type(),
                       [f, limit](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                         if (c.features[f].known == 0) return uint32_t{abi::kUnknown};
                         return uint32_t{c.features[f].f64() > limit ? abi::kTrue : abi::kFalse};
                       },
                       {f});
  plan.for_ns = for_s * kSec;
  plan.time_driven = time_driven;
  s.b.trigger(id, input, s.by_node);
  return id;
}

TEST(Conditions, ForNeedsTheWholeSpan) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto id = add_condition(s, {}, 10, 5, false);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want, want_end;
    for (int n = 0; n < 3; ++n) {
      const SymbolId name = s.names[static_cast<size_t>(n)];
      int since = -1;
      bool active = false;
      const auto reach = [&](int before) {
        if (since >= 0 && !active && since + 5 < before) {
          active = true;
          want.emplace(since + 5, name);
        }
      };
      for (const Event& e : events) {
        if (e.node != n || e.kind != 0) continue;
        reach(e.t);
        if (e.value > 10) {
          if (since < 0) since = e.t;
          if (!active && e.t - since >= 5) {
            active = true;
            want.emplace(e.t, name);
          }
        } else {
          if (active) want_end.emplace(e.t, name);
          since = -1;
          active = false;
        }
      }
      reach(1 << 30);
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, id) == want);
    RC_ASSERT(fired(got, id, abi::FiringChange::kEnd) == want_end);
  }));
}

TEST(Conditions, SinceFiresExactlyWhenItCrosses) {
  Stream s;
  abi::FeaturePlan since;
  since.op = abi::FeatureOp::kSince;
  const auto id = add_condition(s, since, 70.0 * kSec, 0, true);
  s.load({{0, 0, 0, 0, 1}, {50, 0, 0, 0, 1}});
  const auto got = s.run();
  ASSERT_EQ(fired(got, id).size(), 1u);
  for (const auto& f : got) EXPECT_EQ(f.ts_ns, 120 * kSec + 1);  // > 70 s after the last one
}

TEST(Features, DecayedSumFollowsItsLaw) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    abi::FeaturePlan decayed;
    decayed.op = abi::FeatureOp::kDecayed;
    decayed.half_life_ns = 10 * kSec;
    const auto id = add_condition(s, decayed, 15.5, 0, false);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want;
    for (int n = 0; n < 3; ++n) {
      bool active = false;
      for (size_t i = 0; i < events.size(); ++i) {
        if (events[i].node != n || events[i].kind != 0) continue;
        double sum = 0;
        for (size_t j = 0; j <= i; ++j) {
          if (events[j].node != n || events[j].kind != 0) continue;
          sum += events[j].value * std::exp2((events[j].t - events[i].t) / 10.0);
        }
        RC_PRE(std::fabs(sum - 15.5) > 1e-9);
        if (sum > 15.5 && !active) want.emplace(events[i].t, s.names[static_cast<size_t>(n)]);
        active = sum > 15.5;
      }
    }
    RC_ASSERT(fired(s.run(), id) == want);
  }));
}

std::string print(const std::vector<abi::Firing>& firings) {
  std::ostringstream out;
  for (const auto& f : firings) {
    out << f.ts_ns << ' ' << int(f.phase) << ' ' << f.order << ' ' << f.signal << ' '
        << int(f.change) << ' ' << f.entity.values[0] << '/' << f.entity.values[1] << ' '
        << f.onset_ns << ' ' << f.value.f64() << ' ' << f.events.size() << '\n';
  }
  return out.str();
}

void add_everything(Stream& s) {
  add_pair(s, abi::StepMode::kThen, abi::KeepMode::kLatest, 10);
  add_pair(s, abi::StepMode::kThen, abi::KeepMode::kEarliest, 10);
  add_pair(s, abi::StepMode::kThenEither, abi::KeepMode::kEarliest, 4);
  add_pair(s, abi::StepMode::kAbsent, abi::KeepMode::kAll, 8, 16);
  add_pair(s, abi::StepMode::kAbsent, abi::KeepMode::kLatest, 8);
  add_count(s, abi::CountMode::kEvents, 2, 12, false);
  add_count(s, abi::CountMode::kDistinct, 2, 12, true);
  add_condition(s, {}, 10, 3, false);
  abi::FeaturePlan decayed;
  decayed.op = abi::FeatureOp::kDecayed;
  decayed.half_life_ns = 10 * kSec;
  s.plan(add_condition(s, decayed, 12, 0, true)).global_stage = true;
  const auto id = s.b.signal("gpu", s.node_gpu, abi::SignalShape::kCount);
  s.plan(id).count.window_ns = 20 * kSec;
  s.plan(id).count.threshold_constant = 2;
  s.plan(id).count.each = true;
  s.b.count_input(id, s.any(0), s.by_gpu);
  // Kind c says nothing about the node: it reaches every shard.
  const auto cancelled = add_pair(s, abi::StepMode::kThen, abi::KeepMode::kEarliest, 10);
  s.b.unless(cancelled, s.any(2), {}, 0, 1);
  abi::UnlessPlan& unless = s.plan(cancelled).sequence.unless[0];
  unless.deferred = unless.shared = true;
  unless.check_step = 1;
  unless.window_ns = 10 * kSec;
}

TEST(Determinism, ThreadsAndBatchesGiveTheSameFirings) {
  EXPECT_TRUE(rc::check([] {
    const auto events = arbitrary_events(12);
    const auto keys_max = *rc::gen::element<uint64_t>(3, 5, 1000);
    const auto threads = *rc::gen::element(1u, 2u, 4u);
    const auto batch = *rc::gen::element<size_t>(1, 7, 4096);
    Stream s;
    add_everything(s);
    s.b.pack->limits.keys_max = keys_max;
    s.load(events);
    RC_ASSERT(print(s.run(threads, batch)) == print(s.run(1, 4096)));
  }));
}

TEST(Eviction, LeastRecentlyTouchedGoesAndIsCounted) {
  Stream s;
  add_count(s, abi::CountMode::kEvents, 2, 1000, true);
  s.b.pack->limits.keys_max = 2;
  // n0, n1, n0 again, n2 pushes out n1, which starts from nothing when it comes back.
  s.load({{0, 0, 0, 0, 1}, {1, 0, 1, 0, 1}, {2, 0, 0, 0, 1}, {3, 0, 2, 0, 1}, {4, 0, 1, 0, 1}});
  Counters counters;
  const auto got = s.run(1, 4096, &counters);
  EXPECT_EQ(got.size(), 1u);
  EXPECT_EQ(counters.evictions, 2u);
  EXPECT_EQ(counters.keys, 2u);
}

TEST(Boundaries, EqualTimesWithinAndDeadline) {
  Stream s;
  const auto then = add_pair(s, abi::StepMode::kThen, abi::KeepMode::kEarliest, 10);
  const auto absent = add_pair(s, abi::StepMode::kAbsent, abi::KeepMode::kEarliest, 10);
  // node 0: equal times match; node 1: exactly at `within` / at the deadline; node 2: beyond both.
  s.load({{0, 0, 0, 0, 0},
          {0, 1, 0, 0, 0},
          {0, 0, 1, 0, 0},
          {0, 0, 2, 0, 0},
          {10, 1, 1, 0, 0},
          {11, 1, 2, 0, 0}});
  const auto got = s.run();
  EXPECT_EQ(fired(got, then), (Fired{{0, s.names[0]}, {10, s.names[1]}}));
  EXPECT_EQ(fired(got, absent), (Fired{{10, s.names[2]}}));
}

TEST(Boundaries, OneEventIsNeverTwoSteps) {
  Stream s;
  const auto id = s.b.signal("twice", s.node, abi::SignalShape::kSequence);
  s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node);
  s.b.step(id, abi::StepMode::kThen, s.any(0), s.by_node);
  s.plan(id).sequence.within_ns = 100 * kSec;
  s.load({{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {2, 0, 0, 0, 0}, {3, 0, 0, 0, 0}});
  const auto got = s.run();
  const SymbolId n = s.names[0];
  EXPECT_EQ(fired(got, id), (Fired{{1, n}, {3, n}}));
}

TEST(Boundaries, UnlessCancelsOnlyStrictlyBetween) {
  Stream s;
  const auto id = s.b.signal("unless", s.node, abi::SignalShape::kSequence);
  s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node);
  s.b.step(id, abi::StepMode::kThen, s.any(1), s.by_node);
  s.b.unless(id, s.any(2), s.by_node, 0, 1);
  s.plan(id).sequence.within_ns = 100 * kSec;
  // node 0: c before a, and after b at the same time: fires. node 1: c at b's time, before b.
  s.load({{0, 2, 0, 0, 0},
          {0, 0, 0, 0, 0},
          {0, 0, 1, 0, 0},
          {5, 1, 0, 0, 0},
          {5, 2, 0, 0, 0},
          {5, 2, 1, 0, 0},
          {5, 1, 1, 0, 0}});
  EXPECT_EQ(fired(s.run(), id), (Fired{{5, s.names[0]}}));
}

}  // namespace
}  // namespace reflex::eval
