// Hazards: own faults, repairs, blame, bounds.
#include "runtime/adapt/node_history.h"

#include <gtest/gtest.h>

#include "runtime/base/time.h"

namespace reflex::adapt {
namespace {

struct Past {
  std::shared_ptr<abi::CompiledPack> pack = std::make_shared<abi::CompiledPack>();
  std::unique_ptr<NodeHistory> history;
  static constexpr SymbolId kNodes = 100;
  Past() {
    pack->symbols = std::make_shared<SymbolTable>();
    pack->classes.resize(2);
    pack->causes.resize(10);
    history = std::make_unique<NodeHistory>(pack, HazardOptions{});
    for (SymbolId n = 1; n <= kNodes; ++n) history->see_node(n, 1);
  }
  Hazard at(SymbolId node, double day, double repaired_day = -1) const {
    return history->hazard(node, repaired_day < 0 ? kNoTimeNs : ns(repaired_day), ns(day));
  }
  static int64_t ns(double day) { return static_cast<int64_t>(day * static_cast<double>(kNsPerDay)); }
  static double of_cause(const Hazard& h, abi::CauseId cause) {
    for (const auto& [c, factor] : h.causes) {
      if (c == cause) return factor;
    }
    return h.factor;
  }
};

TEST(NodeHistory, ANewFleetHasHazardOne) {
  Past p;
  EXPECT_EQ(p.at(1, 10).factor, 1);
  EXPECT_EQ(p.at(1, 10).origin, "");
  EXPECT_EQ(p.at(4711, 10).factor, 1);
}

TEST(NodeHistory, AFaultRaisesTheSameCauseMostAndFades) {
  Past p;
  for (SymbolId n = 50; n < 60; ++n) p.history->confirm(n, n - 50, Past::ns(1));
  p.history->confirm(1, 3, Past::ns(2));
  const Hazard soon = p.at(1, 3);
  EXPECT_GT(Past::of_cause(soon, 3), 10);
  EXPECT_GT(Past::of_cause(soon, 3), 3 * Past::of_cause(soon, 4));
  EXPECT_GT(Past::of_cause(soon, 4), p.at(2, 3).factor);
  EXPECT_GT(Past::of_cause(soon, 3), Past::of_cause(p.at(1, 20), 3));
  EXPECT_GT(Past::of_cause(p.at(1, 20), 3), Past::of_cause(p.at(1, 300), 3));
  EXPECT_NE(soon.origin.find("1 confirmed fault in 1 day"), std::string::npos) << soon.origin;
}

TEST(NodeHistory, OnlyThePastCounts) {
  Past p;
  p.history->confirm(1, 3, Past::ns(5));
  EXPECT_LE(p.at(1, 4).factor, 1);
  EXPECT_TRUE(p.at(1, 4).causes.empty());
  EXPECT_TRUE(p.at(1, 5).causes.empty());  // the verdict itself is no evidence
  EXPECT_FALSE(p.at(1, 5.01).causes.empty());
}

TEST(NodeHistory, AfterARepairTheHazardIsHighAndThenForgotten) {
  Past p;
  for (SymbolId n = 50; n < 80; ++n) p.history->confirm(n, n % 10, Past::ns(1));
  p.history->confirm(1, 3, Past::ns(2));
  const double first_week = Past::of_cause(p.at(1, 5, 3), 3);
  const double month = Past::of_cause(p.at(1, 20, 3), 3);
  const double later = Past::of_cause(p.at(1, 40, 3), 3);
  EXPECT_GT(first_week, month);
  EXPECT_GT(month, later);
  // A repair without a known fault counts too: 4.8 and 2.1 times, in steps of a quarter octave.
  EXPECT_NEAR(p.at(2, 5, 3).factor / p.at(2, 5).factor, 4.8, 0.9);
  EXPECT_NEAR(p.at(2, 20, 3).factor / p.at(2, 20).factor, 2.1, 0.4);
  EXPECT_LT(Past::of_cause(p.at(1, 40, 3), 3), Past::of_cause(p.at(1, 40), 3) + 1e-9);
}

TEST(NodeHistory, BlameIsASmallShareAndOnlyTheExcess) {
  Past p;
  const std::vector<SymbolId> pair{1, 2};
  const std::vector<SymbolId> others{3, 4};
  for (int i = 0; i < 20; ++i) p.history->blame(others, i % 2 == 0, Past::ns(1 + i * 0.1));
  for (int i = 0; i < 6; ++i) p.history->blame(pair, true, Past::ns(4 + i * 0.1));
  EXPECT_GT(p.at(1, 6).factor, p.at(50, 6).factor);
  EXPECT_LT(p.at(1, 6).factor, 5);
  EXPECT_NEAR(p.at(3, 6).factor, p.at(50, 6).factor, 0.3);
}

TEST(NodeHistory, FactorsStayInTheirBounds) {
  Past p;
  for (int i = 0; i < 500; ++i) p.history->confirm(1, 3, Past::ns(i * 0.01));
  EXPECT_LE(Past::of_cause(p.at(1, 5.1), 3), 50);
  EXPECT_GE(p.at(2, 5.1).factor, 0.2);
}

TEST(NodeHistory, AReplacedPartTakesPartOfTheHistory) {
  Past with;
  Past without;
  for (Past* p : {&with, &without}) {
    for (SymbolId n = 50; n < 80; ++n) p->history->confirm(n, n % 10, Past::ns(1));
    for (int i = 0; i < 3; ++i) p->history->confirm(1, 3, Past::ns(2 + i));
  }
  with.history->part_replaced(1, Past::ns(6));
  EXPECT_EQ(with.at(1, 5.5).factor, without.at(1, 5.5).factor);
  EXPECT_LT(with.at(1, 7).factor, without.at(1, 7).factor);
}

}  // namespace
}  // namespace reflex::adapt
