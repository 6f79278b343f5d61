// TimeRing against a sorted list: nothing is lost, nothing comes early, runs only need neighbours.
#include "runtime/stream/time_ring.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

namespace reflex::stream {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(TimeRing, Gives_what_is_before_the_limit_and_keeps_the_rest) {
  EXPECT_TRUE(rc::check([] {
    TimeRing ring;
    std::multimap<int64_t, uint32_t> waiting;  // ts -> number
    int64_t limit_ns = 0;
    int64_t start_ns = *rc::gen::inRange<int64_t>(0, 1000) * 1000 * kMs;
    uint32_t number = 0;
    const int rounds = *rc::gen::inRange(1, 12);
    for (int round = 0; round < rounds; ++round) {
      // Now and then far ahead of the ring, many of one stamp, or before the first ones.
      const int64_t jump_ms = *rc::gen::element<int64_t>(0, 0, 300, 5'000, 200'000, 900'000);
      const int64_t spread_ms = *rc::gen::element<int64_t>(1, 3, 400, 5'000, 100'000);
      const int count = *rc::gen::inRange(0, 120);
      start_ns += jump_ms * kMs;
      for (int i = 0; i < count; ++i) {
        const int64_t ts_ns =
            std::max(limit_ns, start_ns + *rc::gen::inRange<int64_t>(-spread_ms, spread_ms) * kMs +
                                   *rc::gen::inRange<int64_t>(0, 3));
        TimeRing::Entry entry;
        entry.source = number;
        ring.add(ts_ns, entry);
        waiting.emplace(ts_ns, number++);
      }
      limit_ns = std::max(limit_ns,
                          start_ns + *rc::gen::inRange<int64_t>(-spread_ms, 2 * spread_ms) * kMs);
      if (round + 1 == rounds) limit_ns = INT64_MAX;
      std::vector<uint32_t> got;
      for (;;) {
        const TimeRing::Run run = ring.take(limit_ns);
        if (run.entries.empty()) break;
        for (const auto& entry : run.entries) got.push_back(entry.source);
      }
      std::vector<uint32_t> want;
      while (!waiting.empty() && waiting.begin()->first < limit_ns) {
        want.push_back(waiting.begin()->second);
        waiting.erase(waiting.begin());
      }
      std::sort(got.begin(), got.end());
      std::sort(want.begin(), want.end());
      RC_ASSERT(got == want);
    }
    RC_ASSERT(waiting.empty());
  }));
}

TEST(TimeRing, Runs_come_in_the_order_of_time) {
  EXPECT_TRUE(rc::check([] {
    TimeRing ring;
    std::vector<int64_t> times;
    const int count = *rc::gen::inRange(0, 2000);
    for (int i = 0; i < count; ++i) {
      times.push_back(*rc::gen::inRange<int64_t>(0, 300'000) * kMs);
      TimeRing::Entry entry;
      entry.source = static_cast<SymbolId>(i);
      ring.add(times.back(), entry);
    }
    int64_t done_ns = -1;  // the largest of the runs so far
    for (;;) {
      const TimeRing::Run run = ring.take(INT64_MAX);
      if (run.entries.empty()) break;
      int64_t largest_ns = 0;
      for (const auto& entry : run.entries) {
        RC_ASSERT(times[entry.source] > done_ns);
        largest_ns = std::max(largest_ns, times[entry.source]);
      }
      done_ns = largest_ns;
    }
  }));
}

}  // namespace
}  // namespace reflex::stream
