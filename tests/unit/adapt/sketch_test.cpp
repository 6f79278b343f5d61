// QuantileSketch and tail: accuracy, merging in any order, forgetting.
#include "runtime/adapt/quantile_sketch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/adapt/tail.h"

namespace reflex::adapt {
namespace {

std::vector<double> samples(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> out;
  for (size_t i = 0; i < n; ++i) {
    const double size = std::exp(static_cast<double>(random() % 2000) / 100.0 - 10);
    const auto kind = random() % 10;
    out.push_back(kind == 0 ? 0.0 : kind < 4 ? -size : size);
  }
  return out;
}

RC_GTEST_PROP(QuantileSketch, quantiles_are_within_the_stated_error, ()) {
  auto xs = samples(*rc::gen::inRange<size_t>(1, 400), *rc::gen::arbitrary<uint64_t>());
  QuantileSketch sketch;
  for (const double x : xs) sketch.add(x);
  std::sort(xs.begin(), xs.end());
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.999}) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(xs.size())));
    const double truth = xs[std::max<size_t>(rank, 1) - 1];
    RC_ASSERT(std::fabs(*sketch.quantile(q) - truth) <= 0.0201 * std::fabs(truth) + 1e-12);
  }
}

RC_GTEST_PROP(QuantileSketch, parts_merge_to_the_whole_in_any_order, ()) {
  const auto xs = samples(300, *rc::gen::arbitrary<uint64_t>());
  const auto cut = *rc::gen::inRange<size_t>(0, xs.size());
  QuantileSketch whole, a, b;
  for (size_t i = 0; i < xs.size(); ++i) {
    whole.add(xs[xs.size() - 1 - i]);
    (i < cut ? a : b).add(xs[i]);
  }
  QuantileSketch ab = a, ba = b;
  ab.merge(b);
  ba.merge(a);
  RC_ASSERT(ab == whole);
  RC_ASSERT(ba == whole);
}

TEST(QuantileSketch, EmptyAndOddValues) {
  QuantileSketch s;
  EXPECT_FALSE(s.quantile(0.5));
  EXPECT_EQ(s.share_below(1), 0);
  s.add(std::nan(""));
  EXPECT_EQ(s.samples(), 0);
  s.add(std::numeric_limits<double>::infinity());
  s.add(-std::numeric_limits<double>::infinity());
  s.add(0);
  EXPECT_EQ(s.samples(), 3);
  EXPECT_EQ(*s.quantile(0.5), 0);
}

TEST(QuantileSketch, ForgettingHalvesAndTheNewWins) {
  QuantileSketch s;
  for (int i = 0; i < 1000; ++i) s.add(10);
  s.forget(1);
  EXPECT_NEAR(s.samples(), 500, 0.01);
  s.forget(9);
  for (int i = 0; i < 10; ++i) s.add(20);
  EXPECT_NEAR(*s.quantile(0.5), 20, 0.4);
  s.forget(60);
  EXPECT_EQ(s.samples(), 0);
  EXPECT_FALSE(s.quantile(0.5));
}

TEST(QuantileSketch, DistanceIsThatOfTheDistributions) {
  QuantileSketch a, b;
  for (int i = 0; i < 100; ++i) a.add(i < 50 ? 1 : 10);
  for (int i = 0; i < 100; ++i) b.add(i < 20 ? 1 : 10);
  EXPECT_NEAR(QuantileSketch::distance(a, b), 0.3, 1e-9);
  EXPECT_EQ(QuantileSketch::distance(a, a), 0);
}

// Exponential: the 1 - 1e-5 quantile is known although no sample lies there.
TEST(Tail, ExtrapolatesAnExponentialTail) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> law(1.0);
  QuantileSketch s;
  for (int i = 0; i < 20'000; ++i) s.add(5 + law(random));
  const auto far = estimate_quantile(s, 1 - 1e-5);
  ASSERT_TRUE(far);
  EXPECT_TRUE(far->from_tail);
  EXPECT_NEAR(far->value, 5 + std::log(1e5), 2.0);
  const auto near = estimate_quantile(s, 0.9);
  EXPECT_FALSE(near->from_tail);
  EXPECT_NEAR(near->value, 5 + std::log(10.0), 0.2);
}

TEST(Tail, FewSamplesGiveTheSketchsOwnQuantile) {
  QuantileSketch s;
  for (int i = 1; i <= 20; ++i) s.add(i);
  const auto q = estimate_quantile(s, 0.9999);
  ASSERT_TRUE(q);
  EXPECT_FALSE(q->from_tail);
  EXPECT_NEAR(q->value, 20, 0.5);
}

}  // namespace
}  // namespace reflex::adapt
