// Adaptive thresholds: defaults, quantiles, bounds, back-off, cohorts, one node, a whole class.
#include "runtime/adapt/thresholds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/base/time.h"

namespace reflex::adapt {
namespace {

using From = abi::TableOrigin::From;

struct Site {
  std::shared_ptr<abi::CompiledPack> pack = std::make_shared<abi::CompiledPack>();
  std::unique_ptr<Thresholds> thresholds;
  int64_t hour = 0;
  std::mt19937_64 random{11};

  explicit Site(ThresholdOptions options = {}, abi::Scalar scalar = abi::Scalar::kReal) {
    pack->symbols = std::make_shared<SymbolTable>();
    pack->entity_kinds = {{{"node"}}};
    pack->features.resize(1);
    pack->features[0].op = abi::FeatureOp::kMean;
    pack->params.push_back({"temp_hot", {}, 0});
    pack->params[0].type.scalar = scalar;
    pack->adaptives.push_back({"temp_hot", 0, 0, {}});
    abi::AdaptiveSettings s;
    s.quantile = 0.99;
    s.initial = 80;
    s.floor = 40;
    s.ceiling = 95;
    s.min_samples = 200;
    pack->classes.resize(3);  // fallback, hw.a and hw.b below it
    for (auto& c : pack->classes) c.adaptive = {s};
    thresholds = std::make_unique<Thresholds>(pack, options);
  }
  SymbolId node(int i) { return pack->symbols->intern("n" + std::to_string(i)); }
  double noise() { return static_cast<double>(random() % 1000) / 1000.0; }
  /// One epoch: nodes [from, to) of a class with values in [base, base + 1).
  void sample(int from, int to, abi::ClassId c, double base, SymbolId cohort = kNoSymbol) {
    for (int i = from; i < to; ++i) thresholds->sample(0, node(i), c, cohort, base + noise());
  }
  void close() { thresholds->close(++hour * kNsPerHour); }
  double value(abi::ClassId c, SymbolId n = kNoSymbol) {
    return thresholds->rows()->of(c, n).values[0].f64();
  }
  abi::TableOrigin origin(abi::ClassId c, SymbolId n = kNoSymbol) {
    return thresholds->rows()->of(c, n).origins[0];
  }
};

TEST(Thresholds, TheDefaultStandsUntilEnoughSamplesAreIn) {
  Site s;
  EXPECT_EQ(s.value(1), 80);
  for (int i = 0; i < 9; ++i) {
    s.sample(0, 20, 1, 60);
    s.close();
  }
  EXPECT_EQ(s.value(1), 80);
  EXPECT_EQ(s.origin(1).from, From::kStatic);
  for (int i = 0; i < 40; ++i) {
    s.sample(0, 20, 1, 60);
    s.close();
  }
  EXPECT_LT(s.value(1), 80);
  EXPECT_EQ(s.origin(1).from, From::kClass);
  EXPECT_EQ(s.value(2), 80) << "a class without samples keeps its own default";
}

TEST(Thresholds, TheQuantileOfTheClassWithinFloorAndCeiling) {
  Site s;
  for (int i = 0; i < 24 * 20; ++i) {
    s.sample(0, 50, 1, 60);
    s.sample(50, 100, 2, 20);
    s.close();
  }
  EXPECT_NEAR(s.value(1), 61, 2.5);
  EXPECT_EQ(s.value(2), 40);
  EXPECT_TRUE(s.origin(2).clamped);
  EXPECT_FALSE(s.origin(1).clamped);
  EXPECT_GT(s.origin(1).samples, 1000u);
}

TEST(Thresholds, OneThresholdForAllClassesWhenSwitchedOff) {
  Site one({true, false});
  Site off({false, true});
  for (Site* s : {&one, &off}) {
    for (int i = 0; i < 100; ++i) {
      s->sample(0, 20, 1, 60);
      s->sample(20, 40, 2, 70);
      s->close();
    }
  }
  EXPECT_EQ(one.value(1), one.value(2));
  EXPECT_NE(one.value(1), 80);
  EXPECT_EQ(off.value(1), 80);
  EXPECT_FALSE(off.thresholds->wanted());
}

TEST(Thresholds, AnIntegerParameterGetsAnInteger) {
  Site s({}, abi::Scalar::kInt);
  EXPECT_EQ(s.thresholds->rows()->classes[1].values[0].i64(), 80);
}

TEST(Thresholds, AClassThatMovesAsAWholeIsAdopted) {
  Site s;
  for (int i = 0; i < 24 * 14; ++i) {
    s.sample(0, 40, 1, 50);
    s.close();
  }
  ASSERT_TRUE(s.thresholds->shifts().empty());
  for (int i = 0; i < 24 * 4; ++i) {
    s.sample(0, 40, 1, 70);
    s.close();
  }
  ASSERT_EQ(s.thresholds->shifts().size(), 1u);
  EXPECT_EQ(s.thresholds->shifts()[0].hw_class, 1);
  EXPECT_EQ(s.thresholds->shifts()[0].what, "temp_hot");
  EXPECT_NE(s.origin(1).shifted_ns, kNoTimeNs);
  EXPECT_NEAR(s.value(1), 71, 3);
}

TEST(Thresholds, OneNodeThatMovesAloneMovesOnlyItself) {
  Site s;
  for (int i = 0; i < 24 * 14; ++i) {
    s.sample(0, 40, 1, 50);
    s.close();
  }
  const double before = s.value(1);
  for (int i = 0; i < 24 * 20; ++i) {
    s.sample(1, 40, 1, 50);
    s.sample(0, 1, 1, 85);
    s.close();
  }
  EXPECT_TRUE(s.thresholds->shifts().empty());
  EXPECT_EQ(s.value(1, s.node(7)), s.value(1));
  EXPECT_GT(s.value(1, s.node(0)), s.value(1) + 1);
  EXPECT_EQ(s.origin(1, s.node(7)).from, From::kClass);
  EXPECT_NEAR(s.value(1), before, 2);
}

TEST(Thresholds, ACohortFollowsItself) {
  Site s;
  const SymbolId driver = s.pack->symbols->intern("570");
  for (int i = 0; i < 24 * 10; ++i) {
    s.sample(0, 30, 1, 50);
    s.sample(30, 40, 1, 42, driver);
    s.close();
  }
  EXPECT_NEAR(s.value(1, s.node(5)), 51, 2);
  EXPECT_NEAR(s.value(1, s.node(35)), 44.3, 1.5);
}

TEST(Thresholds, OrderOfSamplesDoesNotMatter) {
  Site a;
  Site b;
  for (int i = 0; i < 60; ++i) {
    std::vector<std::pair<int, double>> xs;
    for (int n = 0; n < 30; ++n) xs.emplace_back(n, 50 + a.noise() * (n == 3 ? 40 : 1));
    for (const auto& [n, x] : xs) a.thresholds->sample(0, a.node(n), 1, kNoSymbol, x);
    std::reverse(xs.begin(), xs.end());
    for (const auto& [n, x] : xs) b.thresholds->sample(0, b.node(n), 1, kNoSymbol, x);
    a.close();
    b.close();
    ASSERT_EQ(a.value(1), b.value(1));
    ASSERT_EQ(a.value(1, a.node(3)), b.value(1, b.node(3)));
  }
}

TEST(Thresholds, OnlyWholeNodesHaveZeros) {
  Site s;
  EXPECT_FALSE(s.thresholds->counts(0));
  s.pack->features[0].op = abi::FeatureOp::kCount;
  EXPECT_TRUE(s.thresholds->counts(0));
  s.pack->entity_kinds[0].keys.push_back("gpu");
  EXPECT_FALSE(s.thresholds->counts(0));
}

}  // namespace
}  // namespace reflex::adapt
