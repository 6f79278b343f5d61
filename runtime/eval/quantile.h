// Order statistics and moments of a small sample, newest first.
//
// Median is the lower one for an even number (language.md A8); quantile q is the sample of rank
// ceil(q * n); stddev is that of the sample (n - 1), 0 for one sample, two-pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/abi/evaluator.h"
#include "runtime/abi/plan.h"

namespace reflex::eval {

inline double lower_quantile(std::vector<double>& values, double q) {
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const size_t at = rank < 1 ? 0 : std::min(static_cast<size_t>(rank), values.size()) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

inline abi::Value statistic_of(abi::FeatureOp op, double q, std::vector<double>& values) {
  if (values.empty()) return abi::Value::unknown();
  switch (op) {
    case abi::FeatureOp::kMin:
      return abi::Value::of(*std::min_element(values.begin(), values.end()));
    case abi::FeatureOp::kMax:
      return abi::Value::of(*std::max_element(values.begin(), values.end()));
    case abi::FeatureOp::kMedian:
      return abi::Value::of(lower_quantile(values, 0.5));
    case abi::FeatureOp::kQuantile:
      return abi::Value::of(lower_quantile(values, q));
    case abi::FeatureOp::kStdDev: {
      if (values.size() < 2) return abi::Value::of(0.0);
      double sum = 0;
      for (double v : values) sum += v;
      const double mean = sum / static_cast<double>(values.size());
      double squares = 0;
      for (double v : values) squares += (v - mean) * (v - mean);
      return abi::Value::of(std::sqrt(squares / static_cast<double>(values.size() - 1)));
    }
    default:
      return abi::Value::unknown();
  }
}

}  // namespace reflex::eval
