// Poisson counts with and without extra events, votes, and the soft weight; see graded.h.
#include "runtime/attribution/graded.h"

#include <algorithm>
#include <cmath>

namespace reflex::attribution {
namespace {

// How many extra events: a discrete mixture around the mean, since failures differ in how loudly
// they announce themselves. Why: five points from a quarter to four times the mean cover two
// orders of magnitude; a finer grid changes no weight by more than 0.1 nats.
constexpr std::array<double, 5> kExtraShare{0.25, 0.6, 1.25, 2.25, 4.0};
constexpr std::array<double, 5> kExtraWeight{0.2, 0.25, 0.25, 0.2, 0.1};
constexpr double kLogRatioMin = -20;
constexpr double kLogRatioMax = 25;
// Why: an hourly rate below one event in 14 months says "never seen", not "impossible".
constexpr double kRateMin = 1e-4;

/// Hours of bin `b` that lie within the last `seen_hours` of the window.
double seen_in_bin(const GradedLaw& law, size_t b) {
  const double far = law.window_hours * abi::kLeadBounds[b];
  const double near = law.window_hours * abi::kLeadBounds[b + 1];
  return std::clamp(law.seen_hours - near, 0.0, far - near);
}

/// log(exp(a) + exp(b)).
double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high + log_of_one_plus(std::exp(std::min(a, b) - high));
}

}  // namespace

double graded_log_ratio(const GradedLaw& law, const LeadCounts& counts, double events_per_hour) {
  const double rate = std::max(events_per_hour, kRateMin);
  // Extra events per bin for a mean of one, as far as the bin was seen.
  std::array<double, abi::kLeadBins> share{}, over{};
  double seen_share = 0;
  for (size_t b = 0; b < abi::kLeadBins; ++b) {
    const double width = law.window_hours * (abi::kLeadBounds[b] - abi::kLeadBounds[b + 1]);
    const double seen = seen_in_bin(law, b);
    if (width <= 0 || seen <= 0) continue;
    share[b] = law.profile[b] * seen / width;
    over[b] = share[b] / (rate * seen);
    seen_share += share[b];
  }
  std::array<double, kExtraShare.size()> terms{};
  double top = -1e300;
  for (size_t m = 0; m < kExtraShare.size(); ++m) {
    const double mu = law.extra_mean * kExtraShare[m];
    double log_ratio = -mu * seen_share;
    for (size_t b = 0; b < abi::kLeadBins; ++b) {
      if (counts[b] > 0 && share[b] > 0) log_ratio += counts[b] * log_of_one_plus(mu * over[b]);
    }
    terms[m] = log_ratio;
    top = std::max(top, log_ratio);
  }
  double sum = 0;
  for (size_t m = 0; m < kExtraShare.size(); ++m) {
    sum += kExtraWeight[m] * std::exp(terms[m] - top);
  }
  return std::clamp(top + std::log(sum), kLogRatioMin, kLogRatioMax);
}

double vote_log_ratio(unsigned own, unsigned total, size_t nodes) {
  if (total == 0 || nodes < 2) return 0;
  constexpr double kShare = 0.5;
  const double n = static_cast<double>(nodes);
  const double named = kShare + (1 - kShare) / n;
  const double others = (1 - named) / (1 - 1 / n);
  const double log_ratio =
      own * std::log(named * n) + (total - std::min(own, total)) * std::log(others);
  return std::clamp(log_ratio, kLogRatioMin, kLogRatioMax);
}

double soft_weight(double p, double episode_leak, double log_a) {
  const double e = std::clamp(episode_leak, 1e-9, 1 - 1e-9);
  const double active = p + e - p * e;
  const double with = log_add(log_of_one_plus(-active), std::log(active) + log_a);
  const double without = log_add(log_of_one_plus(-e), std::log(e) + log_a);
  return with - without;
}

}  // namespace reflex::attribution
