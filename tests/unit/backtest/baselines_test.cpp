// Baselines on incidents where it is plain what each of them must say.
#include "runtime/backtest/baselines.h"

#include <gtest/gtest.h>

namespace reflex::backtest {
namespace {

abi::CompiledPack two_signals() {
  abi::CompiledPack pack;
  abi::CausePlan fault;
  fault.name = "gpu";
  fault.severity = "critical";
  pack.causes.push_back(fault);
  for (const double leak : {1e-4, 0.3}) {
    abi::SignalPlan s;
    s.name = "s" + std::to_string(pack.signals.size());
    s.leak_probability = leak;
    abi::EdgePlan e;
    e.cause = 0;
    e.to = static_cast<abi::SignalId>(pack.signals.size());
    e.p = leak < 0.1 ? 0.9 : 0.2;
    pack.signals.push_back(s);
    pack.edges.push_back(e);
  }
  return pack;
}

/// n0 shows the strong signal once, n1 chatters and was first, n2 shows nothing.
IncidentFeatures incident(int id, bool fault) {
  IncidentFeatures i;
  i.label.incident = "i" + std::to_string(id);
  i.label.ts_ns = id;
  if (fault) i.label.culprits = {"n0"};
  i.nodes = {{"n0", "hw.a", {}}, {"n1", "hw.a", {{1, 9, 10}}}, {"n2", "hw.a", {}}};
  if (fault) i.nodes[0].signals = {{0, 1, 50}};
  return i;
}

const Baseline& named(const std::vector<Baseline>& all, const std::string& name) {
  for (const auto& b : all) {
    if (b.name == name) return b;
  }
  ADD_FAILURE() << name << " is missing";
  return all.front();
}

TEST(Baselines, EachFollowsItsOwnRule) {
  const abi::CompiledPack pack = two_signals();
  std::vector<IncidentFeatures> train, test;
  for (int i = 0; i < 40; ++i) train.push_back(incident(i, i % 2 == 0));
  test = {incident(100, true), incident(101, false)};
  const auto all = run_baselines(pack, train, test);
  using Names = std::vector<std::string>;
  EXPECT_EQ(named(all, "most severe first").cases[0].culprits, Names{"n0"});
  EXPECT_EQ(named(all, "most events").cases[0].culprits, Names{"n1"});
  EXPECT_EQ(named(all, "first event").cases[0].culprits, Names{"n1"});
  EXPECT_EQ(named(all, "static-threshold rules").cases[0].culprits, Names{"n0"});
  EXPECT_EQ(named(all, "static-threshold rules").cases[1].culprits, Names{});
  EXPECT_EQ(named(all, "naive Bayes sum").cases[0].culprits, Names{"n0"});
  EXPECT_EQ(named(all, "naive Bayes sum").cases[1].culprits, Names{});
  EXPECT_EQ(named(all, "peer z-score").cases.size(), 2u);
  if (has_boosting()) {
    EXPECT_EQ(named(all, "gradient boosting").cases[0].culprits, Names{"n0"});
    EXPECT_EQ(named(all, "gradient boosting").cases[1].culprits, Names{});
  }
}

TEST(Baselines, WithoutTrainingOnlyTheUntrained) {
  const auto all = run_baselines(two_signals(), {}, {incident(1, true)});
  EXPECT_EQ(all.size(), 4u);
}

}  // namespace
}  // namespace reflex::backtest
