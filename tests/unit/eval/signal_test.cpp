// Sequences with captures, guards, tolerance and near misses, conditions over time, hardware classes
// and dispatch, each against its definition.
#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {
constexpr uint16_t kGpu = 1;
constexpr uint16_t kValue = 2;

/// Signal `a then b` by node; the caller adds what it tests.
abi::SignalId sequence(Stream& s, abi::StepMode mode, int within_s, abi::ExprId join = abi::kNone32,
                       std::vector<abi::Capture> captures = {}) {
  const auto id = s.b.signal("seq" + std::to_string(s.b.pack->signals.size()), s.node,
                             abi::SignalShape::kSequence);
  s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node, 0, abi::kNone32, std::move(captures));
  s.b.step(id, mode, s.any(1), s.by_node, within_s * kSec, join);
  s.plan(id).sequence.within_ns = within_s * kSec;
  s.plan(id).sequence.partials_max = 1000;
  s.plan(id).sequence.capture_count = 1;
  return id;
}

/// it.gpu == captured gpu
abi::ExprId same_gpu(Stream& s) {
  return s.b.expr(test::bool_type(),
                  [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
                    return uint32_t{r.i64(kGpu) == c.captures[0].i64() ? abi::kTrue : abi::kFalse};
                  });
}

struct Open {
  int t;
  int gpu;
};

TEST(Captures, JoinsAndUnlessSeeTheFirstEvent) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto id = sequence(s, abi::StepMode::kThen, 10, same_gpu(s), {{kGpu, 0}});
    const auto cancelled = sequence(s, abi::StepMode::kThen, 10, same_gpu(s), {{kGpu, 0}});
    s.b.unless(cancelled, s.any(2), s.by_node, 0, 1);
    s.plan(cancelled).sequence.unless[0].join = same_gpu(s);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want, want_cancelled;
    for (int n = 0; n < 3; ++n) {
      std::vector<Open> open[2];
      for (const Event& e : events) {
        if (e.node != n) continue;
        for (int k = 0; k < 2; ++k) {
          if (e.kind == 0) open[k].push_back({e.t, e.gpu});
          if (e.kind == 1 && std::any_of(open[k].begin(), open[k].end(), [&](const Open& o) {
                return o.gpu == e.gpu && e.t - o.t <= 10;
              })) {
            (k == 0 ? want : want_cancelled).emplace(e.t, s.names[static_cast<size_t>(n)]);
            open[k].clear();
          }
        }
        if (e.kind == 2) std::erase_if(open[1], [&](const Open& o) { return o.gpu == e.gpu; });
      }
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, id) == want);
    RC_ASSERT(fired(got, cancelled) == want_cancelled);
  }));
}

TEST(Sequences, UnlessEndsWithItsLastStep) {
  Stream s;
  const auto id = sequence(s, abi::StepMode::kThen, 100);
  s.b.step(id, abi::StepMode::kThen, s.any(0), s.by_node);
  s.b.unless(id, s.any(2), s.by_node, 0, 1);
  // a b c a: c comes after the second step; a c b a: between the first two.
  s.load({{0, 0, 0, 0, 0},
          {1, 1, 0, 0, 0},
          {2, 2, 0, 0, 0},
          {3, 0, 0, 0, 0},
          {10, 0, 1, 0, 0},
          {11, 2, 1, 0, 0},
          {12, 1, 1, 0, 0},
          {13, 0, 1, 0, 0}});
  EXPECT_EQ(fired(s.run(), id), (Fired{{3, s.names[0]}}));
}

TEST(Sequences, ThenWithToleranceTakesEitherOrder) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto id = sequence(s, abi::StepMode::kThenEither, 4);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want;
    for (int n = 0; n < 3; ++n) {
      std::vector<int> first, early;  // a without its b, b without its a
      for (const Event& e : events) {
        if (e.node != n || e.kind == 2) continue;
        auto& others = e.kind == 0 ? early : first;
        const auto at =
            std::find_if(others.begin(), others.end(), [&](int t) { return e.t - t <= 4; });
        if (at == others.end()) {
          (e.kind == 0 ? first : early).push_back(e.t);
          continue;
        }
        want.emplace(e.t, s.names[static_cast<size_t>(n)]);
        if (e.kind == 0) early.erase(at);
        first.clear();
      }
    }
    RC_ASSERT(fired(s.run(), id) == want);
  }));
}

TEST(Guards, NoneInTheLastTenSeconds) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto single = s.b.signal("single", s.node, abi::SignalShape::kSequence);
    s.b.step(single, abi::StepMode::kFirst, s.any(1), s.by_node);
    const auto pair = sequence(s, abi::StepMode::kThen, 20);
    const auto count = s.b.signal("count", s.node, abi::SignalShape::kCount);
    s.plan(count).count.window_ns = 20 * kSec;
    s.plan(count).count.threshold_constant = 2;
    s.plan(count).count.each = true;
    s.b.count_input(count, s.any(1), s.by_node);
    for (auto id : {single, pair, count}) {
      const auto leaf = s.any(2);
      s.b.own(leaf, abi::OwnerKind::kSignalGuard, id);
      auto& list = id == count ? s.plan(id).count.guards : s.plan(id).sequence.guards;
      list.push_back({leaf, s.kinds[2], s.by_node, 10 * kSec});
    }
    const auto events = arbitrary_events();
    s.load(events);
    Fired want[3];
    for (int n = 0; n < 3; ++n) {
      int guard = -1000;
      std::vector<int> bs, as;
      for (const Event& e : events) {
        if (e.node != n) continue;
        if (e.kind == 2) guard = e.t;
        if (e.kind == 0) as.push_back(e.t);
        if (e.kind != 1) continue;
        bs.push_back(e.t);
        const bool match = std::any_of(as.begin(), as.end(), [&](int t) { return e.t - t <= 20; });
        if (match) as.clear();  // a match that a guard blocks is consumed like any other
        if (guard > e.t - 10) continue;
        const auto at = std::pair{int64_t{e.t}, s.names[static_cast<size_t>(n)]};
        want[0].insert(at);
        if (match) want[1].insert(at);
        if (std::count_if(bs.begin(), bs.end(), [&](int t) { return t > e.t - 20; }) >= 2) {
          want[2].insert(at);
        }
      }
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, single) == want[0]);
    RC_ASSERT(fired(got, pair) == want[1]);
    RC_ASSERT(fired(got, count) == want[2]);
  }));
}

TEST(NearMisses, EveryFirstStepWithoutItsSecondIsReported) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    s.want_near_misses = true;
    const auto id = sequence(s, abi::StepMode::kThen, 10);
    s.plan(id).sequence.keep = abi::KeepMode::kAll;
    const auto events = arbitrary_events();
    s.load(events);
    Fired want;
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != 0) continue;
      bool matched = false;
      for (size_t j = i + 1; j < events.size(); ++j) {
        matched = matched || (events[j].kind == 1 && events[j].node == events[i].node &&
                              events[j].t <= events[i].t + 10);
      }
      if (!matched) want.emplace(events[i].t + 10, s.names[static_cast<size_t>(events[i].node)]);
    }
    for (size_t batch : {size_t{1}, size_t{4096}}) {
      s.run(1, batch);
      Fired got;
      for (const NearMiss& m : s.near_misses) {
        RC_ASSERT(m.signal == id);
        RC_ASSERT(m.steps_matched == 1u);
        got.emplace(m.ts_ns / kSec, static_cast<SymbolId>(m.entity.values[0]));
      }
      RC_ASSERT(got == want);
    }
  }));
}

// ---------------------------------------------------------------- conditions

/// value of f > limit (or < limit), unknown without a value
abi::ExprId compare(Stream& s, abi::FeatureId f, double limit, bool above) {
  return s.b.expr(test::bool_type(),
                  [=](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                    if (c.features[f].known == 0) return uint32_t{abi::kUnknown};
                    const double v = c.features[f].f64();
                    return uint32_t{(above ? v > limit : v < limit) ? abi::kTrue : abi::kFalse};
                  },
                  {f});
}

struct Condition {
  abi::SignalId id;
  abi::FeatureId feature;
};
Condition condition(Stream& s, abi::FeaturePlan feature) {
  feature.entity_kind = s.node;
  const auto f = s.b.feature(feature);
  s.b.feature_input(f, s.any(0), s.b.field_f64(kValue), s.by_node);
  const auto id = s.b.signal("when" + std::to_string(f), s.node, abi::SignalShape::kCondition);
  s.plan(id).condition.features = {f};
  s.plan(id).condition.when = compare(s, f, 10, true);
  s.b.trigger(id, s.any(0), s.by_node);
  return {id, f};
}

TEST(Conditions, KeepAndClearDecideTheEnd) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto keep = condition(s, {});
    s.plan(keep.id).condition.keep_ns = 5 * kSec;
    const auto clear = condition(s, {});
    s.plan(clear.id).condition.clear = compare(s, clear.feature, 5, false);
    const auto events = arbitrary_events();
    s.load(events);
    Fired start[2], end[2];
    for (int n = 0; n < 3; ++n) {
      const SymbolId name = s.names[static_cast<size_t>(n)];
      bool active[2] = {};
      int off = -1;  // when the condition stopped to be true
      const auto expire = [&](int before) {
        if (off >= 0 && off + 5 < before) {
          end[0].emplace(off + 5, name);
          active[0] = false;
          off = -1;
        }
      };
      for (const Event& e : events) {
        if (e.node != n || e.kind != 0) continue;
        expire(e.t);
        if (e.value > 10) {
          off = -1;
          for (int k = 0; k < 2; ++k) {
            if (!active[k]) start[k].emplace(e.t, name);
            active[k] = true;
          }
          continue;
        }
        if (active[0] && off < 0) off = e.t;
        if (off >= 0 && e.t >= off + 5) {
          end[0].emplace(e.t, name);
          active[0] = false;
          off = -1;
        }
        if (active[1] && e.value < 5) {
          end[1].emplace(e.t, name);
          active[1] = false;
        }
      }
      expire(1 << 29);
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, keep.id) == start[0]);
    RC_ASSERT(fired(got, clear.id) == start[1]);
    RC_ASSERT(fired(got, keep.id, abi::FiringChange::kEnd) == end[0]);
    RC_ASSERT(fired(got, clear.id, abi::FiringChange::kEnd) == end[1]);
  }));
}

std::vector<int64_t> times(const std::vector<abi::Firing>& firings, abi::SignalId id,
                           abi::FiringChange change) {
  std::vector<int64_t> out;
  for (const auto& f : firings) {
    if (f.signal == id && f.change == change) out.push_back(f.ts_ns);
  }
  return out;
}

TEST(Conditions, NoDataInterruptsOrHolds) {
  Stream s;
  abi::FeaturePlan mean;
  mean.op = abi::FeatureOp::kMean;
  mean.window_ns = 6 * kSec;  // without an event for 6 s the mean is unknown
  const auto interrupt = condition(s, mean);
  const auto hold = condition(s, mean);
  const auto hold_long = condition(s, mean);
  for (const auto& c : {interrupt, hold, hold_long}) s.plan(c.id).condition.time_driven = true;
  for (const auto& c : {hold, hold_long}) {
    s.plan(c.id).condition.nodata = abi::NoData::kHold;
    s.plan(c.id).condition.nodata_hold_ns = 10 * kSec;
  }
  s.plan(hold_long.id).condition.nodata_hold_ns = 100 * kSec;
  s.load({{100, 0, 0, 0, 20}, {130, 0, 0, 0, 20}, {140, 0, 0, 0, 1}});
  const auto got = s.run();
  using Times = std::vector<int64_t>;
  const auto kStart = abi::FiringChange::kStart;
  const auto kEnd = abi::FiringChange::kEnd;
  EXPECT_EQ(times(got, interrupt.id, kStart), (Times{100 * kSec, 130 * kSec}));
  EXPECT_EQ(times(got, interrupt.id, kEnd), (Times{106 * kSec, 136 * kSec}));
  // Unknown since 106: held until 116 inclusive. Unknown again since 136, decided at 140.
  EXPECT_EQ(times(got, hold.id, kStart), (Times{100 * kSec, 130 * kSec}));
  EXPECT_EQ(times(got, hold.id, kEnd), (Times{116 * kSec + 1, 140 * kSec}));
  EXPECT_EQ(times(got, hold_long.id, kStart), (Times{100 * kSec}));
  EXPECT_EQ(times(got, hold_long.id, kEnd), (Times{140 * kSec}));
}

// ---------------------------------------------------------------- classes, dispatch

TEST(Classes, APredicateSeesTheParametersOfItsNodesClass) {
  Stream s;
  auto& pack = *s.b.pack;
  const SymbolId special = s.names[1];
  pack.params.push_back({"hot", test::real_type()});
  pack.classes[0].params = {abi::Value::of(15.0).bits};
  pack.classes[0].params_known = {1};
  abi::ClassPlan other;
  other.name = "hw.cool";
  other.depth = 1;
  other.params = {abi::Value::of(5.0).bits};
  other.params_known = {1};
  other.matches = s.b.expr(test::bool_type(),
                           [special](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                             return uint32_t{c.entity[0] == special ? abi::kTrue : abi::kFalse};
                           });
  pack.classes.push_back(other);
  const auto hot =
      s.b.expr(test::bool_type(), [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
        const double limit = c.class_params[0].f64();
        return uint32_t{r.f64(kValue) > limit ? abi::kTrue : abi::kFalse};
      });
  pack.exprs[hot].reads_class = true;
  const auto id = s.b.signal("hot", s.node, abi::SignalShape::kSequence);
  s.b.step(id, abi::StepMode::kFirst, s.b.leaf(s.kinds[0], hot), s.by_node);
  // The same with a constraint in the index, so that only a residual is left.
  const auto indexed = s.b.signal("indexed", s.node, abi::SignalShape::kSequence);
  s.b.step(indexed, abi::StepMode::kFirst, s.b.leaf(s.kinds[0], hot, {{kGpu, {{1, 1}}}}, hot),
           s.by_node);
  s.topology = std::make_shared<topology::Topology>(s.b.pack);
  for (SymbolId node : s.names) s.topology->set_labels(node, 0, {});
  s.load({{1, 0, 0, 0, 10}, {2, 0, 1, 0, 10}, {3, 0, 0, 1, 20}, {4, 0, 1, 1, 10}});
  const auto got = s.run();
  EXPECT_EQ(fired(got, id), (Fired{{2, special}, {3, s.names[0]}, {4, special}}));
  EXPECT_EQ(fired(got, indexed), (Fired{{3, s.names[0]}, {4, special}}));
}

TEST(Dispatch, ManyLeavesOfManyIntervals) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    struct Range {
      int lo, hi;
      bool two;
    };
    std::vector<Range> ranges;
    const int leaves = *rc::gen::element(1, 63, 64, 65, 200);
    const int64_t stretch = *rc::gen::element<int64_t>(1, 1000);  // 1000: beyond a dense table
    for (int i = 0; i < leaves; ++i) {
      const int lo = *rc::gen::inRange(0, 20);
      ranges.push_back({lo, lo + *rc::gen::inRange(0, 10), *rc::gen::arbitrary<bool>()});
      const Range& r = ranges.back();
      std::vector<abi::IndexConstraint::Interval> list = {{r.lo * stretch, r.hi * stretch}};
      if (r.two) list.push_back({50 * stretch, INT64_MAX});
      const auto id = s.b.signal("r" + std::to_string(i), s.node, abi::SignalShape::kSequence);
      s.b.step(id, abi::StepMode::kFirst, s.b.leaf(s.kinds[0], abi::kNone32, {{kGpu, list}}),
               s.by_node);
    }
    std::vector<Event> events;
    for (int t = 0; t < 40; ++t) {
      events.push_back({t, 0, 0, *rc::gen::inRange(-5, 60) * static_cast<int>(stretch), 0});
    }
    s.load(events);
    const auto got = s.run();
    for (int i = 0; i < leaves; ++i) {
      Fired want;
      for (const Event& e : events) {
        const auto& r = ranges[static_cast<size_t>(i)];
        const bool in = (e.gpu >= r.lo * stretch && e.gpu <= r.hi * stretch) ||
                        (r.two && e.gpu >= 50 * stretch);
        if (in) want.emplace(e.t, s.names[0]);
      }
      RC_ASSERT(fired(got, static_cast<abi::SignalId>(i)) == want);
    }
  }));
}

// ---------------------------------------------------------------- features of other entities

TEST(LeafFeatures, EveryOwnerReadsAtItsOwnKey) {
  Stream s;
  abi::FeaturePlan last;
  last.entity_kind = s.node;
  const auto f = s.b.feature(last);
  s.b.feature_input(f, s.any(0), s.b.field_f64(kValue), s.by_node);
  // Kind c is a link: slot 1 names the other end. One leaf, owned by a signal at either end.
  s.b.pack->kinds[s.kinds[2]].fields[kGpu].type = test::entity_type();
  const auto leaf = s.b.leaf(s.kinds[2], compare(s, f, 10, true));
  s.b.pack->leaves[leaf].features = {f};
  const auto near = s.b.signal("near", s.node, abi::SignalShape::kSequence);
  s.b.step(near, abi::StepMode::kFirst, leaf, s.by_node);
  const auto far = s.b.signal("far", s.node, abi::SignalShape::kSequence);
  s.b.step(far, abi::StepMode::kFirst, leaf, PackBuilder::key({kGpu}));
  s.load({{0, 0, 0, 0, 20}, {1, 0, 1, 0, 1}, {2, 2, 0, 1, 0}, {3, 2, 1, 0, 0}});
  for (const auto* r : s.records) {
    if (r->kind == s.kinds[2]) {
      const_cast<abi::Record*>(r)->set_i64(kGpu, s.names[static_cast<size_t>(r->i64(kGpu))]);
    }
  }
  const auto got = s.run();
  EXPECT_EQ(fired(got, near), (Fired{{2, s.names[0]}}));
  EXPECT_EQ(fired(got, far), (Fired{{3, s.names[0]}}));
}

TEST(LeafFeatures, ProjectionDoesNotDependOnBatchesOrThreads) {
  EXPECT_TRUE(rc::check([] {
    const auto events = arbitrary_events(6);
    Stream s;
    s.b.pack->limits.keys_max = *rc::gen::element<uint64_t>(2, 3, 1000);
    abi::FeaturePlan last;
    last.entity_kind = s.node;
    const auto f = s.b.feature(last);
    s.b.feature_input(f, s.any(0), s.b.field_f64(kValue), s.by_node);
    const auto leaf = s.b.leaf(s.kinds[2], compare(s, f, 10, true));
    s.b.pack->leaves[leaf].features = {f};
    const auto id = s.b.signal("gpu", s.node_gpu, abi::SignalShape::kSequence);
    s.b.step(id, abi::StepMode::kFirst, leaf, s.by_gpu);
    s.load(events);
    const auto want = fired(s.run(1, 1), id);
    for (unsigned threads : {1u, 2u, 4u}) {
      for (size_t batch : {size_t{7}, size_t{4096}}) {
        RC_ASSERT(fired(s.run(threads, batch), id) == want);
      }
    }
  }));
}

}  // namespace
}  // namespace reflex::eval
