// Benign rates: against a count by hand, shrinkage, contamination, cohorts, shifts of a class.
#include "runtime/adapt/benign_rates.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "runtime/base/time.h"

namespace reflex::adapt {
namespace {

constexpr int64_t kHour = kNsPerHour;

struct Fleet {
  std::shared_ptr<abi::CompiledPack> pack = std::make_shared<abi::CompiledPack>();
  std::unique_ptr<BenignRates> rates;
  SymbolId nodes;
  explicit Fleet(SymbolId node_count, RateOptions options = {}) : nodes(node_count) {
    pack->set_sha256 = "one";
    pack->symbols = std::make_shared<SymbolTable>();
    pack->entity_kinds = {{{"node"}}};
    pack->classes.resize(3);
    pack->classes[1].name = "hw.a";
    pack->classes[2].name = "hw.b";
    for (const char* name : {"s0", "s1"}) {
      abi::SignalPlan plan;
      plan.name = name;
      plan.holds_ns = 10 * kNsPerMinute;
      pack->signals.push_back(plan);
    }
    for (SymbolId n = 1; n <= nodes; ++n) pack->symbols->intern("x" + std::to_string(n));
    options.delay_ns = 24 * kHour;
    rates = std::make_unique<BenignRates>(pack, options);
    for (SymbolId n = 1; n <= nodes; ++n) rates->see_node(n, 1, 0);
    rates->advance(0);
  }
  void fire(SymbolId node, int64_t at_ns, abi::SignalId signal = 0) {
    abi::Firing f;
    f.signal = signal;
    f.ts_ns = f.onset_ns = at_ns;
    f.entity.count = 1;
    f.entity.values[0] = node;
    rates->advance(at_ns);
    rates->add(f);
  }
  /// Every node in [from, to] fires about `per_day` times a day over [day0, day1).
  void habit(SymbolId from, SymbolId to, double per_day, int day0, int day1, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> chance(0, 1);
    for (int64_t hour = day0 * 24; hour < day1 * 24; ++hour) {
      rates->advance(hour * kHour);
      for (SymbolId n = from; n <= to; ++n) {
        if (chance(random) < per_day / 24) fire(n, hour * kHour + 1);
      }
    }
    rates->advance(day1 * 24 * kHour);
  }
};

void save_all(StateWriter& w, const Fleet& fleet) {
  abi::save_names(w, *fleet.pack);
  fleet.rates->save(w);
}

TEST(BenignRates, ASavedStateGoesOnAsIfNothingHadHappened) {
  Fleet straight(80);
  straight.habit(1, 80, 2, 0, 12, 6);
  StateWriter writer(*straight.pack->symbols);
  save_all(writer, straight);
  const std::string state = writer.take();
  Fleet after(0);
  for (SymbolId n = 1; n <= 80; ++n) after.pack->symbols->intern("x" + std::to_string(n));
  StateReader reader(state, *after.pack->symbols);
  abi::LoadNames names;
  ASSERT_TRUE(names.load(reader, *after.pack));
  after.rates->load(reader, names, [](SymbolId) { return abi::ClassId{1}; });
  ASSERT_FALSE(reader.failed());
  straight.habit(1, 80, 10, 12, 14, 7);  // five times as much: the class moves as a whole
  after.habit(1, 80, 10, 12, 14, 7);
  ASSERT_FALSE(straight.rates->shifts().empty());
  EXPECT_EQ(after.rates->shifts().size(), straight.rates->shifts().size());
  for (SymbolId n = 1; n <= 80; ++n) {
    const abi::BenignRate a = straight.rates->benign(0, n);
    const abi::BenignRate b = after.rates->benign(0, n);
    EXPECT_EQ(a.firings_per_hour, b.firings_per_hour);
    EXPECT_EQ(a.onsets_per_hour, b.onsets_per_hour);
    EXPECT_EQ(a.mean_hours, b.mean_hours);
    EXPECT_EQ(a.node_hours, b.node_hours);
  }
}

std::string bytes_of(const Fleet& fleet) {
  StateWriter writer(*fleet.pack->symbols);
  save_all(writer, fleet);
  return writer.take();
}

/// Firings of a counter with every sample, and incidents; at `restart` the state goes through bytes.
std::string noisy(std::unique_ptr<Fleet>& f, int64_t from_s, int64_t until_s, int64_t restart_s) {
  for (int64_t second = from_s; second < until_s; second += 7) {
    if (second >= restart_s && restart_s >= from_s) {
      restart_s = -1;
      const std::string state = bytes_of(*f);
      auto after = std::make_unique<Fleet>(SymbolId{0});
      for (SymbolId n = 1; n <= f->nodes; ++n) after->pack->symbols->intern("x" + std::to_string(n));
      after->nodes = f->nodes;
      StateReader reader(state, *after->pack->symbols);
      abi::LoadNames names;
      EXPECT_TRUE(names.load(reader, *after->pack));
      after->rates->load(reader, names, [](SymbolId) { return abi::ClassId{1}; });
      EXPECT_FALSE(reader.failed());
      const std::string again = bytes_of(*after);
      EXPECT_TRUE(again == state) << again.size() << " bytes, were " << state.size();
      f = std::move(after);
    }
    for (SymbolId n = 1; n <= 4; ++n) f->fire(n, second * kNsPerSecond);
    if (second % 49 == 0) f->fire(5, second * kNsPerSecond, 1);
    if (second % (7 * 400) == 0) f->rates->forget_waiting(2, (second - 900) * kNsPerSecond);
  }
  return bytes_of(*f);
}

TEST(BenignRates, ACounterThatFiresAllTheTimeCostsSumsNotFirings) {
  constexpr int64_t kDay = 24 * 3600;
  auto straight = std::make_unique<Fleet>(5);
  const std::string want = noisy(straight, 0, kDay / 2, -1);
  // 4 nodes, 12 hours: at most 8 + 60 sums in each of the last three, one in those before.
  EXPECT_LT(want.size(), 4 * (3 * 68 + 10) * 24u + 4'000);
  for (const int64_t restart : {int64_t{3'000}, int64_t{3'700}, kDay / 4 + 1'234, kDay / 4 + 2'801}) {
    auto broken = std::make_unique<Fleet>(5);
    EXPECT_TRUE(noisy(broken, 0, kDay / 2, restart) == want) << restart;
  }
  straight->rates->advance(40 * kHour);
  EXPECT_NEAR(straight->rates->benign(0, 1).firings_per_hour, 3600.0 / 7 * 12 / 14, 60);
  EXPECT_LT(straight->rates->benign(0, 2).firings_per_hour,
            straight->rates->benign(0, 1).firings_per_hour * 0.8);
}

TEST(BenignRates, AFiringOfAnHourThatIsSummedUpStillCounts) {
  Fleet f(5);
  for (int i = 0; i < 200; ++i) f.fire(1, i * 10 * kNsPerSecond);
  f.rates->advance(4 * kHour);
  const double before = [&] {
    Fleet same(5);
    for (int i = 0; i < 200; ++i) same.fire(1, i * 10 * kNsPerSecond);
    same.rates->advance(40 * kHour);
    return same.rates->benign(0, 1).firings_per_hour;
  }();
  for (int i = 0; i < 100; ++i) f.fire(1, kNsPerSecond);
  f.rates->forget_waiting(2, 0);
  f.rates->advance(40 * kHour);
  EXPECT_NEAR(f.rates->benign(0, 1).firings_per_hour, 1.5 * before, 0.2 * before);
}

TEST(BenignRates, AStateOfNodesThatNeverFiredIsRead) {
  for (SymbolId nodes = 0; nodes < 300; nodes += 1 + nodes / 4) {
    Fleet before(nodes);
    StateWriter writer(*before.pack->symbols);
    save_all(writer, before);
    const std::string state = writer.take();
    Fleet after(0);
    StateReader reader(state, *after.pack->symbols);
    abi::LoadNames names;
    ASSERT_TRUE(names.load(reader, *after.pack));
    after.rates->load(reader, names, [](SymbolId) { return abi::ClassId{1}; });
    EXPECT_FALSE(reader.failed()) << nodes << " nodes";
  }
}

TEST(BenignRates, NothingIsMeasuredBeforeTheDelay) {
  Fleet f(10);
  f.fire(1, kHour);
  f.rates->advance(20 * kHour);
  EXPECT_EQ(f.rates->benign(0, 1).node_hours, 0);
  f.rates->advance(30 * kHour);
  EXPECT_GT(f.rates->benign(0, 1).node_hours, 0);
}

RC_GTEST_PROP(BenignRates, the_rate_of_a_class_is_counts_over_node_hours, ()) {
  const auto per_day = *rc::gen::elementOf(std::vector<double>{0.5, 2, 6});
  RateOptions never;
  never.class_half_life_hours = never.node_half_life_hours = 1e9;
  never.by_node = false;
  Fleet f(60, never);
  std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
  double counted = 0;
  const int64_t hours = 20 * 24;
  for (int64_t h = 0; h < hours; ++h) {
    f.rates->advance(h * kHour);
    for (SymbolId n = 1; n <= f.nodes; ++n) {
      if (static_cast<double>(random() % 10'000) >= per_day / 24 * 10'000) continue;
      f.fire(n, h * kHour);
      if (h < hours - 24) counted += 1;
    }
  }
  f.rates->advance(hours * kHour);
  const auto rate = f.rates->benign(0, 5);
  const double node_hours = 60.0 * (hours - 24);
  RC_ASSERT(std::fabs(rate.firings_per_hour * node_hours / counted - 1) < 0.06);
  RC_ASSERT(std::fabs(rate.onsets_per_hour - rate.firings_per_hour) < 1e-9);
}

TEST(BenignRates, ANodesHabitIsShrunkTowardsItsClass) {
  Fleet f(100);
  f.habit(1, 99, 1, 0, 20, 1);
  const double usual = f.rates->benign(0, 50).firings_per_hour;
  EXPECT_NEAR(usual * 24, 1, 0.6);
  const double quiet = f.rates->benign(0, 100).firings_per_hour;  // never fired
  EXPECT_LT(quiet, usual * 0.7);
  EXPECT_GT(quiet, usual * 0.05);
  EXPECT_EQ(f.rates->benign(0, 4711).from, abi::TableOrigin::From::kFleet);
}

TEST(BenignRates, AChronicNodeKeepsItsOwnRateAndMovesNobodyElse) {
  Fleet f(100);
  std::mt19937_64 random(3);
  for (int64_t h = 0; h < 30 * 24; ++h) {
    for (SymbolId n = 1; n <= 99; ++n) {
      if (random() % 48 == 0) f.fire(n, h * kHour);
    }
    f.fire(100, h * kHour + 5);
  }
  EXPECT_NEAR(f.rates->benign(0, 100).firings_per_hour, 1, 0.25);
  EXPECT_LT(f.rates->benign(0, 1).firings_per_hour, 0.06);
  EXPECT_TRUE(f.rates->shifts().empty());
}

TEST(BenignRates, WhatWaitsOfAFaultyNodeDoesNotCount) {
  Fleet guarded(20);
  Fleet open(20);
  for (Fleet* f : {&guarded, &open}) {
    f->habit(1, 20, 0.5, 0, 10, 9);
    for (int i = 0; i < 40; ++i) f->fire(7, 10 * 24 * kHour + i * 20 * kNsPerMinute);
  }
  guarded.rates->forget_waiting(7);
  for (Fleet* f : {&guarded, &open}) f->rates->advance(13 * 24 * kHour);
  EXPECT_LT(guarded.rates->benign(0, 7).firings_per_hour * 3,
            open.rates->benign(0, 7).firings_per_hour);
}

TEST(BenignRates, WhatANodeDidInAnIncidentDoesNotCount) {
  Fleet guarded(20);
  Fleet quiet(20);  // its node 7 did nothing in the incidents
  const auto minutes = [](int64_t n) { return n * kNsPerMinute; };
  for (Fleet* f : {&guarded, &quiet}) {
    for (int64_t minute = 0; minute < 12 * 60; minute += 15) {
      for (const SymbolId n : {3u, 7u, 9u}) {
        const bool in_incident = (minute >= 230 && minute < 300) || (minute >= 480 && minute < 600);
        if (f == &quiet && n == 7 && in_incident) continue;
        f->fire(n, minutes(minute));
        f->fire(n, minutes(minute), 1);
      }
      if (f != &guarded) continue;
      if (minute == 285) f->rates->forget_waiting(7, minutes(230));  // over the end of an hour
      if (minute == 540) f->rates->forget_waiting(7, minutes(480));
      if (minute == 585) f->rates->forget_waiting(7, minutes(480));  // once more
      if (minute == 585) f->rates->forget_waiting(8, minutes(0));    // it never fired
    }
    f->rates->advance(40 * kHour);
  }
  for (const SymbolId n : {3u, 7u, 8u, 9u}) {
    for (const abi::SignalId signal : {0u, 1u}) {
      const auto a = guarded.rates->benign(signal, n);
      const auto b = quiet.rates->benign(signal, n);
      EXPECT_DOUBLE_EQ(a.firings_per_hour, b.firings_per_hour) << n;
      EXPECT_DOUBLE_EQ(a.onsets_per_hour, b.onsets_per_hour) << n;
    }
  }
  EXPECT_GT(guarded.rates->benign(0, 3).firings_per_hour,
            guarded.rates->benign(0, 7).firings_per_hour);
}

TEST(BenignRates, ACohortBeginsAnewWithItsClassAsPrior) {
  Fleet f(60);
  f.habit(1, 60, 1, 0, 20, 4);
  const double before = f.rates->benign(0, 1).firings_per_hour;
  const SymbolId driver = f.pack->symbols->intern("570.86");
  for (SymbolId n = 1; n <= 30; ++n) f.rates->set_cohort(n, driver, 20 * 24 * kHour);
  EXPECT_NEAR(f.rates->benign(0, 1).firings_per_hour, before, before * 0.6);
  f.habit(1, 30, 6, 20, 32, 5);
  EXPECT_GT(f.rates->benign(0, 1).firings_per_hour, 4 * before);
  EXPECT_LT(f.rates->benign(0, 60).firings_per_hour, 1.5 * before);
  EXPECT_EQ(f.rates->cohort_text(1), "class hw.a, 570.86");
}

TEST(BenignRates, AClassThatMovesAsAWholeMovesItsBaseline) {
  Fleet f(80);
  f.habit(1, 80, 2, 0, 12, 6);
  const double before = f.rates->benign(0, 9).firings_per_hour;
  ASSERT_TRUE(f.rates->shifts().empty());
  f.habit(1, 80, 10, 12, 14, 7);
  ASSERT_EQ(f.rates->shifts().size(), 1u);
  EXPECT_EQ(f.rates->shifts()[0].what, "s0");
  EXPECT_EQ(f.rates->shifts()[0].hw_class, 1);
  EXPECT_NEAR(f.rates->shifts()[0].factor, 5, 1.5);
  // At once, although the counts themselves still wait.
  EXPECT_NEAR(f.rates->benign(0, 9).firings_per_hour / before, 5, 2);
  f.habit(1, 80, 10, 14, 20, 8);
  EXPECT_EQ(f.rates->shifts().size(), 1u) << "the new level is the habit now";
  f.habit(1, 80, 1, 20, 23, 9);
  EXPECT_EQ(f.rates->shifts().size(), 2u) << "a fall is seen as well";
}

TEST(BenignRates, AStormOfAnHourIsNoShift) {
  Fleet f(80);
  f.habit(1, 80, 0.5, 0, 12, 6);
  for (SymbolId n = 1; n <= 80; ++n) {
    for (int i = 0; i < 3; ++i) f.fire(n, 12 * 24 * kHour + i * 15 * kNsPerMinute);
  }
  f.habit(1, 80, 0.5, 12, 16, 7);
  for (const Shift& shift : f.rates->shifts()) {
    ADD_FAILURE() << shift.what << " x" << shift.factor << " at hour " << shift.at_ns / kHour;
  }
}

TEST(BenignRates, OtherSplitsOfTimeGiveTheSameRates) {
  Fleet often(10);
  Fleet seldom(10);
  std::mt19937_64 random(2);
  for (int64_t h = 0; h < 200; ++h) {
    const auto node = static_cast<SymbolId>(1 + random() % 10);
    for (int64_t part = 0; part < 4; ++part) often.rates->advance(h * kHour + part);
    often.fire(node, h * kHour + 9);
    seldom.fire(node, h * kHour + 9);
  }
  for (SymbolId n = 1; n <= 10; ++n) {
    EXPECT_EQ(often.rates->benign(0, n).firings_per_hour,
              seldom.rates->benign(0, n).firings_per_hour);
  }
}

}  // namespace
}  // namespace reflex::adapt
