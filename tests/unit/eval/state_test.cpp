// Saved state: an engine that was saved and loaded goes on as if it had never stopped, whatever the
// number of threads; damaged bytes are refused or harmless.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/eval/everything.h"

namespace reflex::eval {
namespace {

TEST(State, GoesOnAsIfItHadNeverStopped) {
  EXPECT_TRUE(rc::check([] {
    Everything e;
    e.s.b.pack->limits.keys_max = *rc::gen::element<uint64_t>(3, 5, 1000);
    e.s.want_near_misses = *rc::gen::arbitrary<bool>();
    auto events = arbitrary_events(*rc::gen::element(2, 6, 12));
    const auto more = arbitrary_events(4);
    const int end = events.empty() ? 0 : events.back().t;
    for (Event event : more) {
      event.t += end;
      events.push_back(event);
    }
    e.load(events);
    const size_t n = events.size();
    const int64_t ahead_ns = *rc::gen::element<int64_t>(0, kSec, 100 * kSec);
    std::vector<size_t> cuts =
        *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, n + 1));
    cuts.push_back(n);
    std::sort(cuts.begin(), cuts.end());

    std::vector<abi::Firing> want;
    auto straight = e.engine(1);
    std::vector<abi::Firing> got;
    auto stopped = e.engine(*rc::gen::element(1u, 2u, 4u));
    size_t from = 0;
    for (const size_t to : cuts) {
      e.process(*straight, from, to, ahead_ns, want);
      e.process(*stopped, from, to, ahead_ns, got);
      from = to;
      const std::string bytes = e.saved(*stopped);
      RC_ASSERT(difference(bytes, e.saved(*straight)) == "");
      stopped = e.loaded(bytes, *rc::gen::element(1u, 2u, 3u));
      RC_ASSERT(stopped != nullptr);
      RC_ASSERT(difference(e.saved(*stopped), bytes) == "");
    }
    straight->finish(1'000'000 * kSec, want);
    stopped->finish(1'000'000 * kSec, got);
    const bool same = print(got) == print(want);
    RC_ASSERT(same);
    RC_ASSERT(counted(stopped->counters()) == counted(straight->counters()));
    RC_ASSERT(stopped->near_misses().size() == straight->near_misses().size());
  }));
}

// More events of one time than a firing names, before and after a save: the one before stays named.
TEST(State, ManyEventsOfOneTimeDoNotPushOutTheOneBefore) {
  Everything e;
  std::vector<Event> events{{0, 0, 0, 0, 0}};
  for (int i = 0; i < 12; ++i) events.push_back({2, 0, 0, 0, i});
  events.push_back({9, 2, 1, 0, 0});
  e.load(events);
  std::vector<abi::Firing> want;
  std::vector<abi::Firing> got;
  auto straight = e.engine(1);
  auto stopped = e.engine(1);
  size_t from = 0;
  for (const size_t to : {size_t{4}, events.size()}) {
    e.process(*straight, from, to, 0, want);
    e.process(*stopped, from, to, 0, got);
    from = to;
    const std::string bytes = e.saved(*stopped);
    EXPECT_EQ(difference(bytes, e.saved(*straight)), "");
    stopped = e.loaded(bytes, 2);
    ASSERT_NE(stopped, nullptr);
  }
  EXPECT_EQ(print(got), print(want));
  const auto absent = std::find_if(want.begin(), want.end(), [&](const abi::Firing& f) {
    return e.s.b.pack->signals[f.signal].name == "absent_all" && f.ts_ns == 8 * kSec;
  });
  ASSERT_NE(absent, want.end());
  ASSERT_EQ(absent->events.size(), 1u);
  EXPECT_EQ(absent->events[0].ts_ns, 0);
}

TEST(State, FiresAndKeepsEnoughToMeanSomething) {
  Everything e;
  e.load(many_events(3000));
  std::vector<abi::Firing> out;
  auto engine = e.engine(1);
  e.process(*engine, 0, 3000, 0, out);
  engine->finish(1'000'000 * kSec, out);
  const auto by_signal = engine->firings_by_signal();
  for (size_t i = 0; i < by_signal.size(); ++i) {
    EXPECT_GT(by_signal[i], 0u) << e.s.b.pack->signals[i].name;
  }
}

TEST(State, DamagedBytesAreRefusedOrHarmless) {
  Everything e;
  e.load(many_events(400));
  std::vector<abi::Firing> out;
  auto engine = e.engine(1);
  e.process(*engine, 0, 300, 0, out);
  const std::string bytes = e.saved(*engine);
  uint32_t random = 1;
  size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = bytes;
    random = random * 1664525u + 1013904223u;
    const size_t at = (random >> 4) % damaged.size();
    if (i % 3 == 0) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random >> 29)));
      if (i % 3 == 2) damaged[(at * 7) % damaged.size()] = static_cast<char>(random);
    }
    auto next = e.engine(1 + i % 2 * 2);
    StateReader in(damaged, *e.s.b.pack->symbols);
    const bool loaded = next->load(in, nullptr);
    refused += loaded ? 0 : 1;
    EXPECT_FALSE(loaded && i % 3 == 0) << at;  // cut short
  }
  EXPECT_GT(refused, 1000u);
}

TEST(State, OfAnotherFormIsLeftOut) {
  Everything e;
  e.load(many_events(300));
  std::vector<abi::Firing> out;
  auto engine = e.engine(1);
  e.process(*engine, 0, 200, 0, out);
  const std::string bytes = e.saved(*engine);
  e.s.want_near_misses = true;  // pairs are kept as partial matches then
  auto next = e.loaded(bytes, 2);
  ASSERT_NE(next, nullptr);
  e.process(*next, 200, 300, 0, out);
  EXPECT_EQ(next->counters().keys, 36u);  // 12 nodes with 2 GPUs each
}

}  // namespace
}  // namespace reflex::eval
