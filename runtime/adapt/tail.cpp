// Generalised Pareto by moments: see tail.h.
#include "runtime/adapt/tail.h"

#include <algorithm>
#include <cmath>

namespace reflex::adapt {
namespace {

// Source: methods.md 6.3(4): threshold at the 98 % level.
constexpr double kLevel = 0.98;
// Why: the moments of fewer excesses are noise.
constexpr double kExcessesMin = 10;
// Why: with ten samples beyond it the sketch's own quantile is good to a third of the tail's scale.
constexpr double kBeyondMin = 10;
// Why: moments know no tail heavier than one whose variance exists; the bound keeps z finite.
constexpr double kGammaMax = 0.49;

}  // namespace

std::optional<double> tail_quantile(const QuantileSketch& sketch, double above) {
  const auto level = sketch.quantile(kLevel);
  if (!level || above <= 0) return std::nullopt;
  double n = 0;
  double sum = 0;
  double squares = 0;
  for (const auto& [value, samples] : sketch.above(*level)) {
    const double excess = value - *level;
    n += samples;
    sum += samples * excess;
    squares += samples * excess * excess;
  }
  if (n < kExcessesMin) return std::nullopt;
  const double mean = sum / n;
  const double variance = squares / n - mean * mean;
  const double odds = above * sketch.samples() / n;
  if (odds >= 1) return std::nullopt;
  if (variance <= 0) return *level + mean;  // one bucket: the tail ends there
  const double shape = mean * mean / variance;
  const double gamma = std::min(0.5 * (1 - shape), kGammaMax);
  const double sigma = 0.5 * mean * (shape + 1);
  if (std::fabs(gamma) < 1e-6) return *level - sigma * std::log(odds);
  return *level + sigma / gamma * (std::pow(odds, -gamma) - 1);
}

std::optional<QuantileEstimate> estimate_quantile(const QuantileSketch& sketch, double q) {
  const auto own = sketch.quantile(q);
  if (!own) return std::nullopt;
  const double beyond = sketch.samples() * std::min(q, 1 - q);
  if (beyond >= kBeyondMin || q < kLevel) return QuantileEstimate{*own, false};
  const auto tail = tail_quantile(sketch, 1 - q);
  if (!tail) return QuantileEstimate{*own, false};
  return QuantileEstimate{std::max(*tail, *own), true};
}

}  // namespace reflex::adapt
