// What is remembered of a node: own faults, repairs, blame, bounds.
#include "runtime/adapt/node_history.h"

#include <gtest/gtest.h>

#include "runtime/base/time.h"

namespace reflex::adapt {
namespace {

using abi::AfterFault;

struct History {
  std::shared_ptr<abi::CompiledPack> pack = std::make_shared<abi::CompiledPack>();
  std::unique_ptr<NodeHistory> history;
  History() {
    pack->symbols = std::make_shared<SymbolTable>();
    pack->classes.resize(2);
    pack->causes.resize(10);
    history = std::make_unique<NodeHistory>(pack, HistoryOptions{});
  }
  abi::Past at(SymbolId node, double day, double repaired_day = -1) const {
    const auto past =
        history->past(node, repaired_day < 0 ? kNoTimeNs : ns(repaired_day), ns(day));
    return past ? *past : abi::Past{};
  }
  static int64_t ns(double day) { return static_cast<int64_t>(day * static_cast<double>(kNsPerDay)); }
  static double last(const abi::Past& past, AfterFault state) {
    return past.last[static_cast<size_t>(state)];
  }
};

TEST(NodeHistory, ANewNodeHasNone) {
  History h;
  EXPECT_FALSE(h.history->past(1, kNoTimeNs, History::ns(10)));
  // Maintenance of a node that never failed is no history.
  EXPECT_FALSE(h.history->past(1, History::ns(9), History::ns(10)));
}

TEST(NodeHistory, AFaultIsRememberedByAgeAndRepair) {
  History h;
  h.history->confirm(1, 3, History::ns(2));
  EXPECT_EQ(History::last(h.at(1, 3), AfterFault::kUnrepairedWeek), 1);
  EXPECT_EQ(History::last(h.at(1, 5, 4), AfterFault::kRepairedWeek), 1);
  EXPECT_EQ(History::last(h.at(1, 5, 1), AfterFault::kUnrepairedWeek), 1);  // an older repair
  EXPECT_EQ(History::last(h.at(1, 20), AfterFault::kUnrepairedMonth), 1);
  EXPECT_EQ(History::last(h.at(1, 20, 4), AfterFault::kRepairedMonth), 1);
  for (const double share : h.at(1, 40).last) EXPECT_EQ(share, 0);
  EXPECT_GT(h.at(1, 3).usual, h.at(1, 40).usual);
  EXPECT_GT(h.at(1, 40).usual, h.at(1, 300).usual);
  EXPECT_GT(h.at(1, 5).usual, h.at(1, 5, 4).usual);
  EXPECT_GT(h.at(1, 300).usual, 1);
  EXPECT_NE(h.at(1, 3).origin.find("1 confirmed fault in 1 day"), std::string::npos);
}

TEST(NodeHistory, CausesComeWithTheirShares) {
  History h;
  for (SymbolId n = 50; n < 60; ++n) h.history->confirm(n, n - 50, History::ns(1));
  h.history->confirm(1, 3, History::ns(2));
  h.history->confirm(1, 4, History::ns(2));
  const auto past = h.at(1, 3);
  ASSERT_EQ(past.causes.size(), 2u);
  EXPECT_EQ(past.causes[0].cause, 3u);
  EXPECT_DOUBLE_EQ(past.causes[0].own, 0.5);
  EXPECT_GT(past.causes[0].fleet, 0.05);
  EXPECT_LT(past.causes[0].fleet, 0.3);
}

TEST(NodeHistory, OnlyThePastCounts) {
  History h;
  h.history->confirm(1, 3, History::ns(5));
  EXPECT_FALSE(h.history->past(1, kNoTimeNs, History::ns(4)));
  EXPECT_FALSE(h.history->past(1, kNoTimeNs, History::ns(5)));  // the verdict itself is no evidence
  EXPECT_TRUE(h.history->past(1, kNoTimeNs, History::ns(5.01)));
}

TEST(NodeHistory, ASuspicionCountsAsFarAsItIsBelieved) {
  History h;
  h.history->confirm(1, 3, History::ns(2), 0.5);
  EXPECT_DOUBLE_EQ(History::last(h.at(1, 3), AfterFault::kUnrepairedWeek), 0.5);
  h.history->confirm(1, 3, History::ns(20), 0.8);
  // The newer one is the last fault with 0.8; what that leaves is the older one's.
  EXPECT_DOUBLE_EQ(History::last(h.at(1, 21), AfterFault::kUnrepairedWeek), 0.8);
  EXPECT_NEAR(History::last(h.at(1, 21), AfterFault::kUnrepairedMonth), 0.1, 1e-12);
}

TEST(NodeHistory, BlameIsASmallShareAndOnlyTheExcess) {
  History h;
  const std::vector<SymbolId> pair{1, 2};
  const std::vector<SymbolId> others{3, 4};
  for (int i = 0; i < 20; ++i) h.history->blame(others, i % 2 == 0, History::ns(1 + i * 0.1));
  for (int i = 0; i < 6; ++i) h.history->blame(pair, true, History::ns(4 + i * 0.1));
  EXPECT_GT(h.at(1, 6).usual, 1.2);
  EXPECT_LT(h.at(1, 6).usual, 5);
  EXPECT_LT(h.at(3, 6).usual, 1.1);  // as often unexplained as is usual
  for (const double share : h.at(1, 6).last) EXPECT_EQ(share, 0);
}

TEST(NodeHistory, ManyFaultsStayBounded) {
  History h;
  for (int i = 0; i < 500; ++i) h.history->confirm(1, 3, History::ns(i * 0.01));
  EXPECT_LE(h.at(1, 5.1).usual, 1 + 32 / 0.93);
  double sum = 0;
  for (const double share : h.at(1, 5.1).last) sum += share;
  EXPECT_LE(sum, 1);
}

TEST(NodeHistory, AReplacedPartTakesPartOfTheHistory) {
  History with;
  History without;
  for (History* h : {&with, &without}) {
    for (int i = 0; i < 3; ++i) h->history->confirm(1, 3, History::ns(2 + i));
  }
  with.history->part_replaced(1, History::ns(6));
  EXPECT_EQ(with.at(1, 5.5).usual, without.at(1, 5.5).usual);
  EXPECT_LT(with.at(1, 7).usual, without.at(1, 7).usual);
}

}  // namespace
}  // namespace reflex::adapt
