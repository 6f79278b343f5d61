// Hazards from facts: the law, its bounds, and the mean of a job.
#include "runtime/attribution/past.h"

#include <gtest/gtest.h>

#include "tests/unit/attribution/world.h"

namespace reflex::attribution {
namespace {

abi::Past after(abi::AfterFault state, double share) {
  abi::Past past;
  past.last[static_cast<size_t>(state)] = share;
  past.causes = {{3, 1.0, 0.1}};
  past.origin = "1 confirmed fault in 2 days";
  return past;
}

TEST(History, WithoutOneTheHazardIsOne) {
  EXPECT_EQ(hazard(abi::Past{}, abi::HistoryLaw{}), 1);
  EXPECT_EQ(raw_hazard(abi::Past{}, abi::HistoryLaw{}), 1);
}

TEST(History, ARecentFaultGivesTheLawsFactorWhateverIsOlder) {
  abi::HistoryLaw law;
  law.again = {8, 4, 2, 1};
  abi::Past past = after(abi::AfterFault::kUnrepairedWeek, 1);
  past.usual = 5;
  EXPECT_DOUBLE_EQ(raw_hazard(past, law), 8);
  past.last[0] = 0.25;
  EXPECT_DOUBLE_EQ(raw_hazard(past, law), 0.25 * 8 + 0.75 * 5);
  law.usual = 0;
  EXPECT_DOUBLE_EQ(raw_hazard(past, law), 0.25 * 8 + 0.75);
}

TEST(History, WhatRecursIsTheSameCauseForTheMostPart) {
  abi::HistoryLaw law;
  law.again = {9, 1, 1, 0.5};
  law.same_cause = 0.5;
  const abi::Past past = after(abi::AfterFault::kUnrepairedWeek, 1);
  EXPECT_NEAR(hazard(past, law, past.causes[0]), 1 + 8 * (0.5 * 10 + 0.5), 4);
  EXPECT_NEAR(hazard(past, law), 1 + 8 * 0.5, 0.5);
  // Rarer than else: for all causes alike.
  const abi::Past later = after(abi::AfterFault::kRepairedMonth, 1);
  EXPECT_EQ(hazard(later, law), 0.5);
  EXPECT_EQ(hazard(later, law, later.causes[0]), 0.5);
}

TEST(History, FactorsStayInTheirBounds) {
  abi::HistoryLaw law;
  law.again = {1e6, 1, 1, 1e-6};
  EXPECT_EQ(hazard(after(abi::AfterFault::kUnrepairedWeek, 1), law), 50);
  EXPECT_EQ(hazard(after(abi::AfterFault::kRepairedMonth, 1), law), 0.2);
}

TEST(History, AJobsHazardsHaveAMeanOfOneAndCanBeAppliedAgain) {
  World w;
  for (const char* name : {"n1", "n2", "n3"}) w.node(name);
  w.input.pasts = {{w.sym("n2"), after(abi::AfterFault::kUnrepairedWeek, 1)}};
  apply_history(w.input, abi::HistoryLaw{});
  EXPECT_LT(w.input.nodes[0].hazard, 1);
  EXPECT_GT(w.input.nodes[1].hazard, 2);
  EXPECT_EQ(w.input.nodes[1].hazard_origin, "1 confirmed fault in 2 days");
  ASSERT_EQ(w.input.cause_hazards.size(), 1u);
  EXPECT_GT(w.input.cause_hazards[0].factor, w.input.nodes[1].hazard);
  const double before = w.input.nodes[1].hazard;
  apply_history(w.input, abi::HistoryLaw{});
  EXPECT_EQ(w.input.nodes[1].hazard, before);
  EXPECT_EQ(w.input.cause_hazards.size(), 1u);
}

// What "off" means for the ablations (attribution.h, Switches).
TEST(Switches, WithoutExplainingAwayTwoNodesWithTheSameEvidenceAreBothNamed) {
  World w;
  const auto signal = w.signal("loud", {"node"}, 3);
  const auto fault = w.fault("broken", {"node"}, 4e-3);
  w.plan.unexplained_prior = 1e-2;
  w.edge(fault, signal, 0.9, -60, 60, abi::Scope::kSelf);
  for (const char* name : {"n1", "n2", "n3", "n4"}) w.node(name);
  w.fire(signal, {"n1"}, -1);
  w.fire(signal, {"n2"}, -1);
  const auto rivals = w.run();
  EXPECT_LT(node_p(rivals, "n1"), 0.5);
  w.input.switches.explain_away = false;
  w.input.switches.shared_fate = false;
  const auto alone = w.run();
  EXPECT_GT(node_p(alone, "n1"), 0.7);
  EXPECT_GT(node_p(alone, "n2"), 0.7);
  EXPECT_LT(node_p(alone, "n3"), 0.1);
  EXPECT_EQ(alone.culprits.size(), 2u);
}

TEST(Switches, WithoutCommonModeNoSwitchIsBlamed) {
  World w;
  const auto signal = w.signal("link", {"node"}, 1e-3);
  const auto cause = w.external("tor_switch", {"tor"}, 1e-3);
  w.edge(cause, signal, 0.9, -60, 60, abi::Scope::kTor);
  for (int i = 1; i <= 8; ++i) w.node("n" + std::to_string(i), "", "t1");
  for (int i = 1; i <= 8; ++i) w.fire(signal, {"n" + std::to_string(i)}, -1);
  EXPECT_EQ(w.run().external, "tor_switch on tor t1");
  w.input.switches.common_mode = false;
  EXPECT_EQ(w.run().external, "");
}

TEST(Switches, WithoutClassesAllHaveTheSamePriorAndLevel) {
  World w;
  const auto signal = w.signal("loud", {"node"}, 1e-4);
  const auto fault = w.fault("broken", {"node"}, 1e-3);
  w.edge(fault, signal, 0.9, -60, 60, abi::Scope::kSelf);
  w.pack->classes.resize(2);
  w.pack->causes[fault].class_prior_scale = {1, 20};
  w.node("n1").hw_class = 0;
  w.node("n2").hw_class = 1;
  w.fire(signal, {"n1"}, -1);
  w.fire(signal, {"n2"}, -1);
  const auto prior_of = [&w](const char* node) {
    const auto v = w.run();
    const auto* h = find_hypothesis(v, "broken", node);
    return h ? h->prior_nats : 0;
  };
  EXPECT_GT(prior_of("n2"), prior_of("n1") + 2);
  w.input.switches.by_class = false;
  EXPECT_EQ(prior_of("n2"), prior_of("n1"));
}

}  // namespace
}  // namespace reflex::attribution
