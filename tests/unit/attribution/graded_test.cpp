// Graded counts against a brute-force sum over the hidden episode and Poisson counts.
#include "runtime/attribution/graded.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reflex::attribution {
namespace {

GradedLaw law_72h() {
  GradedLaw law;
  law.profile = abi::GradedPlan{}.profile;
  law.window_hours = 72;
  law.seen_hours = 72;
  return law;
}

double poisson(double mean, unsigned k) {
  return std::exp(-mean + k * std::log(mean) - std::lgamma(k + 1.0));
}

/// P(counts | extra events with mean mu in all) with benign rate `rate`, bin by bin.
double chance(const GradedLaw& law, const LeadCounts& counts, double rate, double mu) {
  double product = 1;
  for (size_t b = 0; b < abi::kLeadBins; ++b) {
    const double hours = law.window_hours * (abi::kLeadBounds[b] - abi::kLeadBounds[b + 1]);
    product *= poisson(rate * hours + mu * law.profile[b], counts[b]);
  }
  return product;
}

TEST(Graded, IsTheRatioOfTwoPoissonMixtures) {
  const GradedLaw law = law_72h();
  const double share[] = {0.25, 0.6, 1.25, 2.25, 4.0};
  const double weight[] = {0.2, 0.25, 0.25, 0.2, 0.1};
  for (const LeadCounts counts : {LeadCounts{0, 0, 0, 0, 0, 0}, LeadCounts{1, 0, 0, 0, 0, 0},
                                  LeadCounts{0, 1, 2, 3, 1, 0}, LeadCounts{9, 4, 3, 0, 0, 0}}) {
    for (const double rate : {0.02, 0.1, 0.5}) {
      double with = 0;
      for (int m = 0; m < 5; ++m) {
        with += weight[m] * chance(law, counts, rate, law.extra_mean * share[m]);
      }
      EXPECT_NEAR(graded_log_ratio(law, counts, rate),
                  std::log(with / chance(law, counts, rate, 0)), 1e-9);
    }
  }
}

TEST(Graded, HabitSaysLittleAndARiseSaysMuch) {
  const LeadCounts usual{10, 3, 2, 1, 0, 0};  // about what 0.22 an hour brings
  const LeadCounts rise{10, 6, 9, 8, 4, 2};
  EXPECT_LT(graded_log_ratio(law_72h(), usual, 0.22), 0.5);
  EXPECT_GT(graded_log_ratio(law_72h(), rise, 0.22), 5);
  EXPECT_GT(graded_log_ratio(law_72h(), usual, 0.002), 10);
}

TEST(Graded, WhatWasBeforeARepairIsNotHeldAgainstTheNode) {
  GradedLaw law = law_72h();
  law.seen_hours = 1;  // repaired an hour ago: silence before says nothing
  const LeadCounts none{};
  EXPECT_GT(graded_log_ratio(law, none, 0.05), graded_log_ratio(law_72h(), none, 0.05));
  EXPECT_LE(graded_log_ratio(law, none, 0.05), 0);
}

TEST(Graded, SoftWeightIsNoisyOrOnTheHiddenEpisode) {
  for (const double p : {0.1, 0.5, 0.95}) {
    for (const double e : {0.001, 0.01, 0.3}) {
      for (const double log_a : {-20.0, -1.0, 0.0, 2.0, 12.0, 25.0}) {
        const double a = std::exp(log_a);
        const double on = 1 - (1 - p) * (1 - e);
        EXPECT_NEAR(soft_weight(p, e, log_a), std::log(((1 - on) + on * a) / ((1 - e) + e * a)),
                    1e-9);
      }
      // Certain episode and none at all are the binary signal, fired and silent.
      EXPECT_NEAR(soft_weight(p, e, 25), std::log((1 - (1 - p) * (1 - e)) / e), 1e-6);
      EXPECT_NEAR(soft_weight(p, e, -20), std::log(1 - p), 1e-6);
    }
  }
}

}  // namespace
}  // namespace reflex::attribution
