// Graded counts: how much more likely the observed counts are under an active cause than in the
// node's habit (attribution.md 2 with soft evidence).
//
// A graded signal is noisy-OR on a hidden episode Z: P(Z | h) = 1 - (1 - e)(1 - p), where e is the
// benign chance of such an episode. The counts by lead bin speak for Z with the likelihood ratio A:
//   A = sum_m w_m exp(-mu_m + sum_b c_b log(1 + mu_m G_b / (lambda W_b))),
// Poisson counts with and without mu_m extra events that fall as the profile G says. The weight
//   log((1 - p') + p' A) - log((1 - e) + e A),   p' = p + e - p e
// is exact and additive. A binary signal is the same with A = infinity (fired) or 0 (silent).
// A chronic node (large lambda) gets little weight for its habit; silence costs log(1 - p) or so.
// Pure functions; no errors: every input gives a finite number.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "runtime/abi/plan.h"

namespace reflex::attribution {

/// log(1 + x) to 2^-52 absolutely, which weights that are rounded to 2^-32 nats need; log1p() takes
/// three times as long to be right relatively.
inline double log_of_one_plus(double x) { return std::log(1 + x); }

struct GradedLaw {
  double extra_mean = 4;
  std::array<double, abi::kLeadBins> profile{};
  double window_hours = 0;
  double seen_hours = 0;  // of the window: less after a repair, which ends what was before
};

using LeadCounts = std::array<uint16_t, abi::kLeadBins>;

/// log A, within [-20, 25]. `events_per_hour`: the node's benign rate, > 0.
double graded_log_ratio(const GradedLaw& law, const LeadCounts& counts, double events_per_hour);

/// log A of votes: of `total` votes in a job of `nodes` nodes, `own` name this one. Half of the
/// votes name an active cause and the others fall on anybody; without a cause all fall on anybody.
double vote_log_ratio(unsigned own, unsigned total, size_t nodes);

/// The weight in nats of evidence with log ratio `log_a` on an edge of strength `p`, when the
/// benign chance of an episode is `episode_leak`.
double soft_weight(double p, double episode_leak, double log_a);

}  // namespace reflex::attribution
