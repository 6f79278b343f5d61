// What a part is worth: paired differences and the strata of the parts.
#include "runtime/backtest/ablation.h"

#include <gtest/gtest.h>

namespace reflex::backtest {
namespace {

Case make(const std::string& id, std::vector<std::string> truth, std::vector<std::string> said) {
  Case c;
  c.label.incident = id;
  c.label.ts_ns = 40 * kNsPerDay;
  c.label.type = truth.empty() ? "none" : "implicit";
  c.label.culprits = std::move(truth);
  c.answered = true;
  c.culprits = std::move(said);
  for (const auto& node : c.culprits) {
    abi::NodeProbability n;
    n.node = node;
    n.p = 0.8;
    c.ranked.push_back(n);
  }
  return c;
}

TEST(Ablation, TheDifferenceIsWithoutMinusWithOnTheSameIncidents) {
  const std::vector<Case> with = {make("a", {"n1"}, {"n1"}), make("b", {"n2"}, {"n2"}),
                                  make("c", {}, {})};
  const std::vector<Case> without = {make("a", {"n1"}, {"n1"}), make("b", {"n2"}, {"n3"}),
                                     make("c", {}, {"n3"})};
  const Worth w = worth_of("learned", with, without, {});
  EXPECT_DOUBLE_EQ(w.all.with, 1);
  EXPECT_DOUBLE_EQ(w.all.without, 2.0 / 5);
  EXPECT_LE(w.all.low, w.all.without - w.all.with);
  EXPECT_GE(w.all.high, w.all.without - w.all.with);
  EXPECT_LE(w.all.high, 0);
  EXPECT_GT(w.more.mean_nats, 0);
  EXPECT_LE(w.more.low_nats, w.more.mean_nats);
  EXPECT_GE(w.more.high_nats, w.more.mean_nats);
  EXPECT_EQ(w.there.incidents, 3u);
}

TEST(Ablation, WhereNobodyIsAtFaultTheShareOfSilenceCounts) {
  const std::vector<Case> with = {make("a", {"n1"}, {"n1"}), make("c", {}, {}),
                                  make("d", {}, {})};
  const std::vector<Case> without = {make("a", {"n1"}, {}), make("c", {}, {"n1"}),
                                     make("d", {}, {})};
  const Worth w = worth_of("common-mode", with, without, {});
  EXPECT_EQ(w.there.incidents, 2u);
  EXPECT_TRUE(w.there.of_none);
  EXPECT_DOUBLE_EQ(w.there.with, 1);
  EXPECT_DOUBLE_EQ(w.there.without, 0.5);
}

TEST(Ablation, HistoryCountsWhereANodeFailedBefore) {
  FaultTimes faults;
  learn::Label old;
  old.culprits = {"n1", "n9"};
  old.ts_ns = 20 * kNsPerDay;
  faults.add(old);
  const std::vector<Case> with = {make("a", {"n1"}, {"n1"}), make("b", {"n2"}, {}),
                                  make("c", {"n3"}, {})};
  const std::vector<Case> without = {make("a", {"n1"}, {}), make("b", {"n2"}, {"n9"}),
                                     make("c", {"n3"}, {})};
  EXPECT_EQ(worth_of("history", with, without, faults).there.incidents, 2u);
  EXPECT_FALSE(faults.any("n1", 60 * kNsPerDay, 30 * kNsPerDay));  // too long ago
  EXPECT_FALSE(faults.any("n1", 10 * kNsPerDay, 30 * kNsPerDay));  // not yet
}

TEST(Ablation, ClassesCountWherePoolingChangesTheRateOfWhatIsShown) {
  std::vector<Case> with = {make("a", {"n1"}, {"n1"}), make("b", {"n2"}, {"n2"})};
  std::vector<Case> without = with;
  with[0].benign_per_hour = {{{"n1", 4}, 0.01}};
  without[0].benign_per_hour = {{{"n1", 4}, 0.03}};
  with[1].benign_per_hour = {{{"n2", 4}, 0.01}};
  without[1].benign_per_hour = {{{"n2", 4}, 0.015}, {{"n3", 4}, 1.0}};
  EXPECT_EQ(worth_of("class-thresholds", with, without, {}).there.incidents, 1u);
}

TEST(Ablation, SeveralSuspectsAreThoseOfTheRunWithoutExplainingAway) {
  const std::vector<Case> with = {make("a", {"n1"}, {"n1"}), make("b", {"n2"}, {"n2"})};
  std::vector<Case> without = {make("a", {"n1"}, {"n1", "n2"}), make("b", {"n2"}, {"n2"})};
  EXPECT_EQ(worth_of("explain-away", with, without, {}).there.incidents, 1u);
  without[1].external = "storage_outage on j";
  EXPECT_EQ(worth_of("explain-away", with, without, {}).there.incidents, 2u);
}

}  // namespace
}  // namespace reflex::backtest
