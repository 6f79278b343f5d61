// QuantileSketch: a mergeable histogram in logarithmic buckets (attribution.md section 5).
//
// Relative error of a quantile: at most kAccuracy, for both signs; |x| < kSmallest counts as zero.
// Counts are integers (2^kFraction to a sample): merging and adding commute exactly, so a sketch does
// not depend on the order of samples or on how shards were combined. forget() halves counts at a
// half-life; call it at the same event times on all parts, before or after a merge only when no
// other part was forgotten in between (it rounds down).
// NaN is ignored, infinities count at the border. Memory: one entry a bucket in use, at most ~4,200
// for a sign.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/state_stream.h"

namespace reflex::adapt {

class QuantileSketch {
 public:
  static constexpr double kAccuracy = 0.02;
  static constexpr double kSmallest = 1e-9;
  static constexpr double kLargest = 1e27;
  static constexpr unsigned kFraction = 20;

  void add(double x, uint64_t samples = 1);
  void merge(const QuantileSketch& other);
  /// Multiplies all counts with 2^(-elapsed / half_life).
  void forget(double half_lives);

  [[nodiscard]] double samples() const;
  /// The value at quantile `q` in [0, 1]; nothing when empty.
  [[nodiscard]] std::optional<double> quantile(double q) const;
  /// Share of samples at or below x (to the sketch's accuracy); 0 when empty.
  [[nodiscard]] double share_below(double x) const;
  /// (value of the bucket, samples) of the buckets above x, ascending.
  [[nodiscard]] std::vector<std::pair<double, double>> above(double x) const;
  /// The largest distance of two distribution functions (Kolmogorov-Smirnov).
  [[nodiscard]] static double distance(const QuantileSketch& a, const QuantileSketch& b);

  void save(StateWriter& writer) const;
  void load(StateReader& reader);

  friend bool operator==(const QuantileSketch&, const QuantileSketch&) = default;

 private:
  static int bucket_of(double x);
  static double value_of(int bucket);

  std::map<int, uint64_t> counts_;  // negative values first, then zero, then positive
  uint64_t total_ = 0;
};

}  // namespace reflex::adapt
