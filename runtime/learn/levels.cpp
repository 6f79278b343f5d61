// F1-optimal levels with shrinkage; see levels.h.
#include "runtime/learn/levels.h"

#include <algorithm>
#include <cmath>

namespace reflex::learn {
namespace {

// Why: levels outside of this name nodes on a whim, or never.
constexpr double kLevelMin = 0.10;
constexpr double kLevelMax = 0.90;
constexpr int kSteps = 80;
// Why: a class needs about so many culprits before its own optimum says more than the fleet's.
constexpr double kShrinkCases = 100;

double level_at(int step) { return kLevelMin + (kLevelMax - kLevelMin) * step / kSteps; }

struct Curve {
  std::vector<double> tp = std::vector<double>(kSteps + 1, 0);
  std::vector<double> named = std::vector<double>(kSteps + 1, 0);
  double positives = 0;
};

double f1(double tp, double named, double positives) {
  return named + positives > 0 ? 2 * tp / (named + positives) : 0;
}

Curve curve_of(const std::vector<Prediction>& all, const abi::ClassId* only) {
  Curve curve;
  for (const Prediction& x : all) {
    if (only && x.hw_class != *only) continue;
    curve.positives += x.culprit ? 1 : 0;
    for (int step = 0; step <= kSteps && level_at(step) <= x.p; ++step) {
      curve.named[step] += 1;
      curve.tp[step] += x.culprit ? 1 : 0;
    }
  }
  return curve;
}

/// The one-standard-error rule: the highest step that hangs together with the best one and whose F1
/// is within its standard error (of `cases` culprits: for a class the fleet's, so that few cases do
/// not mean a high level). Where F1 does not decide, the level that evicts fewer healthy
/// nodes is the better one.
/// Source: Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 7.10.
double best_level(const Curve& curve, double cases) {
  std::vector<double> value;
  for (int step = 0; step <= kSteps; ++step) {
    value.push_back(f1(curve.tp[step], curve.named[step], curve.positives));
  }
  const auto best = static_cast<int>(std::max_element(value.begin(), value.end()) - value.begin());
  const double f = value[best];
  const double error = std::sqrt(f * (1 - f) / std::max(cases, 1.0));
  int high = best;
  while (high < kSteps && value[high + 1] >= f - error) ++high;
  return level_at(high);
}

struct AtLevels {
  double f1 = 0;
  size_t wrong = 0;
};

AtLevels at_levels(const std::vector<Prediction>& all, size_t missed, const auto& level_of) {
  double tp = 0;
  double named = 0;
  double positives = static_cast<double>(missed);
  for (const Prediction& x : all) {
    positives += x.culprit ? 1 : 0;
    if (x.p < level_of(x.hw_class)) continue;
    named += 1;
    tp += x.culprit ? 1 : 0;
  }
  return {f1(tp, named, positives), static_cast<size_t>(named - tp)};
}

double rounded(double level) { return std::round(level * 1000) / 1000; }

}  // namespace

Levels fit_levels(const std::vector<Prediction>& predictions, size_t missed, size_t classes,
                  double before) {
  Levels levels;
  levels.by_class.assign(classes, 0);
  Curve fleet = curve_of(predictions, nullptr);
  fleet.positives += static_cast<double>(missed);
  levels.fleet = rounded(best_level(fleet, fleet.positives));
  for (size_t c = 0; c < classes; ++c) {
    const auto id = static_cast<abi::ClassId>(c);
    const Curve own = curve_of(predictions, &id);
    if (own.positives < 1) continue;
    const double w = own.positives / (own.positives + kShrinkCases);
    levels.by_class[c] = rounded(w * best_level(own, fleet.positives) + (1 - w) * levels.fleet);
  }
  const AtLevels then = at_levels(predictions, missed, [&](abi::ClassId) { return before; });
  const AtLevels now = at_levels(predictions, missed, [&](abi::ClassId c) {
    return levels.by_class[c] > 0 ? levels.by_class[c] : levels.fleet;
  });
  levels.f1_before = then.f1;
  levels.f1_after = now.f1;
  levels.wrong_before = then.wrong;
  levels.wrong_after = now.wrong;
  return levels;
}

}  // namespace reflex::learn
