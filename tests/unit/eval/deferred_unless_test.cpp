// `unless` events that are judged later than they come: without a key, or compared with a later
// step. Against brute force on random small streams, the bound, and determinism.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <sstream>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {

constexpr unsigned kGpu = 1;
constexpr int kWithin = 10;

/// a then b on node, with an unless c between them.
struct Wanted {
  abi::StepMode mode = abi::StepMode::kThen;
  abi::KeepMode keep = abi::KeepMode::kEarliest;
  bool shared = true;  // c has no key
  int joins = 1;       // c.gpu == gpu of a (0) or of b (1)
  uint32_t partials = 1000;
};

abi::SignalId add(Stream& s, const Wanted& w) {
  const auto id = s.b.signal("unless" + std::to_string(s.b.pack->signals.size()), s.node,
                             abi::SignalShape::kSequence);
  const bool absent = w.mode == abi::StepMode::kAbsent;
  std::vector<abi::Capture> of_a, of_b;
  (w.joins == 0 ? of_a : of_b).push_back({kGpu, 0});
  s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node, 0, abi::kNone32, of_a);
  s.b.step(id, w.mode, s.any(1), s.by_node, absent ? kWithin * kSec : 4 * kSec, abi::kNone32, of_b);
  s.b.unless(id, s.any(2), w.shared ? abi::KeyPlan{} : s.by_node, 0, 1);
  abi::SequencePlan& plan = s.plan(id).sequence;
  plan.within_ns = absent ? 0 : kWithin * kSec;
  plan.keep = w.keep;
  plan.partials_max = w.partials;
  plan.capture_count = 1;
  abi::UnlessPlan& u = plan.unless[0];
  u.join =
      s.b.expr(test::bool_type(), [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
        if (c.captures[0].known == 0) return uint32_t{abi::kUnknown};
        return uint32_t{r.i64(kGpu) == c.captures[0].i64() ? abi::kTrue : abi::kFalse};
      });
  u.deferred = true;
  u.shared = w.shared;
  u.at_close = w.joins == 1 || w.mode == abi::StepMode::kThenEither;
  u.check_step = 1;
  u.window_ns = kWithin * kSec;
  return id;
}

/// What `a then b unless c` must give on one node: c is judged when b comes (against b's gpu).
Fired judged_at_b(const std::vector<Event>& events, const Stream& s, bool shared, int nodes) {
  Fired want;
  for (int n = 0; n < nodes; ++n) {
    std::vector<size_t> open;  // positions of a
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& e = events[i];
      if (e.node != n) continue;
      std::erase_if(open, [&](size_t a) { return e.t - events[a].t > kWithin; });
      if (e.kind == 0) open.push_back(i);
      if (e.kind != 1) continue;
      while (!open.empty()) {
        const auto from = events.begin() + static_cast<std::ptrdiff_t>(open.front()) + 1;
        const auto to = events.begin() + static_cast<std::ptrdiff_t>(i);
        const bool cancelled = std::any_of(from, to, [&](const Event& c) {
          return c.kind == 2 && c.gpu == e.gpu && (shared || c.node == n);
        });
        if (!cancelled) {
          want.emplace(e.t, s.names[static_cast<size_t>(n)]);
          open.clear();
          break;
        }
        open.erase(open.begin());
      }
    }
  }
  return want;
}

TEST(DeferredUnless, ComparedWithTheClosingStep) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    const auto shared = add(s, {});
    Wanted keyed;
    keyed.shared = false;
    const auto by_key = add(s, keyed);
    const auto events = arbitrary_events();
    s.load(events);
    const auto got = s.run();
    RC_ASSERT(fired(got, shared) == judged_at_b(events, s, true, 3));
    RC_ASSERT(fired(got, by_key) == judged_at_b(events, s, false, 3));
  }));
}

/// One that needs only `a` gives what cancelling at once would give, however few partial matches
/// are possible: the cancelled ones take no place.
TEST(DeferredUnless, ComparedWithTheFirstStepIsAsIfAtOnce) {
  EXPECT_TRUE(rc::check([] {
    Stream s;
    Wanted w;
    w.joins = 0;
    w.partials = 2;
    const auto pair = add(s, w);
    w.mode = abi::StepMode::kAbsent;
    w.keep = abi::KeepMode::kAll;
    w.partials = 1000;
    const auto absent = add(s, w);
    const auto events = arbitrary_events();
    s.load(events);
    Fired want, want_absent;
    for (int n = 0; n < 3; ++n) {
      const SymbolId name = s.names[static_cast<size_t>(n)];
      std::vector<Event> open;
      for (size_t i = 0; i < events.size(); ++i) {
        const Event& e = events[i];
        if (e.kind == 2) std::erase_if(open, [&](const Event& a) { return a.gpu == e.gpu; });
        if (e.node != n) continue;
        if (e.kind != 2) std::erase_if(open, [&](const Event& a) { return e.t - a.t > kWithin; });
        if (e.kind == 0 && open.size() < 2) open.push_back(e);
        if (e.kind == 1 && !open.empty()) {
          want.emplace(e.t, name);
          open.clear();
        }
        if (e.kind != 0) continue;
        const bool cancelled = std::any_of(
            events.begin() + static_cast<std::ptrdiff_t>(i) + 1, events.end(), [&](const Event& x) {
              if (x.t > e.t + kWithin) return false;
              return x.kind == 2 ? x.gpu == e.gpu : x.kind == 1 && x.node == n;
            });
        if (!cancelled) want_absent.emplace(e.t + kWithin, name);
      }
    }
    const auto got = s.run();
    RC_ASSERT(fired(got, pair) == want);
    RC_ASSERT(fired(got, absent) == want_absent);
  }));
}

TEST(DeferredUnless, EitherOrderIsBetweenBoth) {
  Stream s;
  Wanted w;
  w.mode = abi::StepMode::kThenEither;
  w.shared = false;
  w.joins = 0;
  const auto id = add(s, w);
  // n0: b a. n1: b c a. n2: a c b. n3: c a b. n4: b c a, c for another gpu.
  s.load({{0, 1, 0, 0, 0},
          {0, 0, 0, 0, 0},
          {0, 1, 1, 0, 0},
          {0, 2, 1, 0, 0},
          {0, 0, 1, 0, 0},
          {0, 0, 2, 0, 0},
          {0, 2, 2, 0, 0},
          {0, 1, 2, 0, 0},
          {0, 2, 3, 0, 0},
          {0, 0, 3, 0, 0},
          {0, 1, 3, 0, 0},
          {0, 1, 4, 0, 0},
          {0, 2, 4, 1, 0},
          {0, 0, 4, 0, 0}});
  EXPECT_EQ(fired(s.run(), id), (Fired{{0, s.names[0]}, {0, s.names[3]}, {0, s.names[4]}}));
}

/// a then b then a; c counts between a and b only, whether judged at the third step or before it.
TEST(DeferredUnless, AThirdStepDoesNotWidenTheSpan) {
  Stream s;
  const auto third = [&](int joins) {
    Wanted w;
    w.shared = false;
    w.joins = joins;
    const auto id = add(s, w);
    s.b.step(id, abi::StepMode::kThen, s.any(0), s.by_node);
    if (joins == 1) {  // against the third step in place of the second
      auto& steps = s.plan(id).sequence.steps;
      std::swap(steps[1].captures, steps[2].captures);
      s.plan(id).sequence.unless[0].check_step = 2;
    } else {
      s.plan(id).sequence.unless[0].shared = true;
      s.plan(id).sequence.unless[0].key = {};
    }
    return id;
  };
  const auto at_third = third(1);
  const auto before = third(0);
  // n0: a c b a; n1: a b c a; n2: a b a and c; the gpu is the node's number, so that no c is for
  // another node.
  s.load({{0, 0, 0, 0, 0},
          {1, 2, 0, 0, 0},
          {2, 1, 0, 0, 0},
          {3, 0, 0, 0, 0},
          {4, 0, 1, 1, 0},
          {5, 1, 1, 1, 0},
          {6, 2, 1, 1, 0},
          {7, 0, 1, 1, 0},
          {7, 0, 2, 2, 0},
          {8, 1, 2, 2, 0},
          {9, 0, 2, 2, 0},
          {9, 2, 2, 2, 0}});
  const auto got = s.run();
  const Fired want{{7, s.names[1]}, {9, s.names[2]}};
  EXPECT_EQ(fired(got, at_third), want);
  EXPECT_EQ(fired(got, before), want);
}

/// c at the very start of the window, forgotten neither by time nor by a younger one.
TEST(DeferredUnless, TheWindowIsClosed) {
  Stream s;
  const auto id = add(s, {});
  s.load({{0, 0, 0, 0, 0}, {0, 2, 1, 0, 0}, {10, 2, 1, 1, 0}, {10, 1, 0, 0, 0}});
  EXPECT_EQ(fired(s.run(), id), Fired{});
}

TEST(DeferredUnless, ACancelledMatchIsNoNearMiss) {
  Stream s;
  s.want_near_misses = true;
  const auto id = add(s, {});
  // n0: cancelled by n1's c (same gpu); n2 timed out.
  s.load({{0, 0, 0, 0, 0}, {1, 2, 1, 0, 0}, {2, 1, 0, 0, 0}, {30, 0, 2, 0, 0}, {90, 2, 1, 0, 0}});
  EXPECT_EQ(fired(s.run(), id), Fired{});
  ASSERT_EQ(s.near_misses.size(), 1u);
  EXPECT_EQ(s.near_misses[0].entity.values[0], s.names[2]);
}

/// Beyond the bound the oldest is forgotten, and that is counted once for any number of shards.
TEST(DeferredUnless, BoundIsCounted) {
  for (const unsigned threads : {1u, 2u, 4u}) {
    Stream s;
    const auto id = add(s, {});
    s.plan(id).sequence.unless[0].kept_max = 2;
    s.load({{0, 0, 0, 0, 0},
            {1, 2, 1, 0, 0},
            {1, 2, 1, 1, 0},
            {1, 2, 1, 1, 0},
            {2, 1, 0, 0, 0},
            {40, 2, 1, 0, 0},
            {40, 0, 0, 0, 0},
            {41, 2, 1, 0, 0},
            {42, 1, 0, 0, 0}});
    Counters counters;
    EXPECT_EQ(fired(s.run(threads, 3, &counters), id), (Fired{{2, s.names[0]}})) << threads;
    EXPECT_EQ(counters.unless_dropped, 1u) << threads;  // those of 1 s are too old at 40 s
    EXPECT_GT(counters.state_bytes, 0u);
  }
}

std::string print(const std::vector<abi::Firing>& firings) {
  std::ostringstream out;
  for (const auto& f : firings) {
    out << f.ts_ns << ' ' << f.order << ' ' << f.signal << ' ' << f.entity.values[0] << ' '
        << f.onset_ns << ' ' << f.events.size() << '\n';
  }
  return out.str();
}

/// c has no key here, so that it must reach the shards of all nodes.
TEST(DeferredUnless, ThreadsAndBatchesGiveTheSameFirings) {
  EXPECT_TRUE(rc::check([] {
    const auto events = arbitrary_events(12);
    const auto keys_max = *rc::gen::element<uint64_t>(3, 5, 1000);
    const auto threads = *rc::gen::element(1u, 2u, 4u);
    const auto batch = *rc::gen::element<size_t>(1, 7, 4096);
    Stream s;
    const auto at_b = add(s, {});
    Wanted first;
    first.joins = 0;
    add(s, first);
    first.mode = abi::StepMode::kAbsent;
    add(s, first);
    Wanted global;
    s.plan(add(s, global)).global_stage = true;
    s.b.pack->limits.keys_max = keys_max;
    s.load(events);
    const auto got = s.run(threads, batch);
    RC_ASSERT(print(got) == print(s.run(1, 4096)));
    if (keys_max == 1000) RC_ASSERT(fired(got, at_b) == judged_at_b(events, s, true, 12));
  }));
}

}  // namespace
}  // namespace reflex::eval
