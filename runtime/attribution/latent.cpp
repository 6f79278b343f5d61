// The hidden level of a group on a fixed grid; see latent.h.
#include "runtime/attribution/latent.h"

#include <algorithm>
#include <cmath>

#include "runtime/attribution/numbers.h"

namespace reflex::attribution {
namespace {

constexpr Levels kGrid{0.001, 0.02, 0.07, 0.2, 0.4, 0.6, 0.8, 0.93, 0.98, 0.999};
// Why: an author's share of victims is a guess worth a handful of incidents.
constexpr double kConcentration = 8;
// Why: a signal on fewer members than this share is not common to the group.
constexpr double kStormShareMin = 0.2;
constexpr int kTiltSteps = 60;

double width(size_t q) {
  const double low = q == 0 ? 0 : (kGrid[q - 1] + kGrid[q]) / 2;
  const double high = q + 1 == kLevels ? 1 : (kGrid[q] + kGrid[q + 1]) / 2;
  return high - low;
}

double mean_of(const Levels& log_w, double tilt) {
  double top = -1e300;
  for (size_t q = 0; q < kLevels; ++q) top = std::max(top, log_w[q] + tilt * kGrid[q]);
  double sum = 0, mean = 0;
  for (size_t q = 0; q < kLevels; ++q) {
    const double w = std::exp(log_w[q] + tilt * kGrid[q] - top);
    sum += w;
    mean += w * kGrid[q];
  }
  return mean / sum;
}

Levels levels_of(double ratio) {
  Levels out;
  for (size_t q = 0; q < kLevels; ++q) {
    out[q] = round_nats(log_of_one_plus(kGrid[q] * (ratio - 1)));
  }
  return out;
}

void normalise(Levels& log_w) {
  const Levels none{};
  const double total = mix(log_w, none);
  for (double& x : log_w) x -= total;
}

}  // namespace

const Levels& level_grid() {
  static const Levels grid = kGrid;
  return grid;
}

Levels level_nats(double ratio) {
  // Silence in a window that has passed, which is nearly all that is asked for.
  static const Levels silent = levels_of(0);
  return ratio == 0 ? silent : levels_of(ratio);
}

Levels level_weights(double p) {
  const double mean = std::clamp(p, kGrid.front() * 1.01, kGrid.back() - 1e-6);
  Levels log_w;
  for (size_t q = 0; q < kLevels; ++q) {
    log_w[q] = (kConcentration * mean - 1) * std::log(kGrid[q]) +
               (kConcentration * (1 - mean) - 1) * log_of_one_plus(-kGrid[q]) + std::log(width(q));
  }
  // The grid moves the mean a little: tilt it back, so that one member is exactly noisy-OR.
  double low = -1e4, high = 1e4;
  for (int i = 0; i < kTiltSteps; ++i) {
    const double mid = (low + high) / 2;
    (mean_of(log_w, mid) < mean ? low : high) = mid;
  }
  for (size_t q = 0; q < kLevels; ++q) log_w[q] += (low + high) / 2 * kGrid[q];
  normalise(log_w);
  return log_w;
}

const Levels& storm_weights() {
  static const Levels weights = [] {
    Levels w;
    for (size_t q = 0; q < kLevels; ++q) {
      w[q] = kGrid[q] >= kStormShareMin ? std::log(width(q)) : -1e300;
    }
    normalise(w);
    return w;
  }();
  return weights;
}

double mix(const Levels& log_weights, const Levels& sums) {
  double top = -1e300;
  Levels x;
  for (size_t q = 0; q < kLevels; ++q) {
    x[q] = log_weights[q] + sums[q];
    top = std::max(top, x[q]);
  }
  double sum = 0;
  for (double v : x) sum += v < top - 45 ? 0 : std::exp(v - top);
  return top + std::log(sum);
}

}  // namespace reflex::attribution
