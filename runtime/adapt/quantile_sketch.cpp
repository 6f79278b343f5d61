// Buckets and counts: see quantile_sketch.h.
#include "runtime/adapt/quantile_sketch.h"

#include <algorithm>
#include <cmath>

namespace reflex::adapt {
namespace {

// Bucket i > 0 holds (kSmallest * g^(i-1), kSmallest * g^i], g = (1 + a) / (1 - a): the value in
// its middle is then at most a (relative) away from all of them (DDSketch, VLDB 2019).
const double kLogGamma = std::log((1 + QuantileSketch::kAccuracy) / (1 - QuantileSketch::kAccuracy));

}  // namespace

int QuantileSketch::bucket_of(double x) {
  const double size = std::fabs(x);
  if (size < kSmallest) return 0;
  const double i = std::ceil(std::log(std::min(size, kLargest) / kSmallest) / kLogGamma);
  const int bucket = std::max(1, static_cast<int>(i));
  return x < 0 ? -bucket : bucket;
}

double QuantileSketch::value_of(int bucket) {
  if (bucket == 0) return 0;
  const double high = kSmallest * std::exp(kLogGamma * std::abs(bucket));
  const double middle = high * (1 - kAccuracy);
  return bucket < 0 ? -middle : middle;
}

void QuantileSketch::add(double x, uint64_t samples) {
  if (x != x || samples == 0) return;
  counts_[bucket_of(x)] += samples << kFraction;
  total_ += samples << kFraction;
}

void QuantileSketch::merge(const QuantileSketch& other) {
  for (const auto& [bucket, count] : other.counts_) counts_[bucket] += count;
  total_ += other.total_;
}

void QuantileSketch::forget(double half_lives) {
  const double keep = std::exp2(-half_lives);
  total_ = 0;
  for (auto it = counts_.begin(); it != counts_.end();) {
    it->second = static_cast<uint64_t>(static_cast<double>(it->second) * keep);
    total_ += it->second;
    it = it->second == 0 ? counts_.erase(it) : std::next(it);
  }
}

double QuantileSketch::samples() const {
  return static_cast<double>(total_) / static_cast<double>(uint64_t{1} << kFraction);
}

std::optional<double> QuantileSketch::quantile(double q) const {
  if (total_ == 0) return std::nullopt;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(total_);
  uint64_t seen = 0;
  for (const auto& [bucket, count] : counts_) {
    seen += count;
    if (static_cast<double>(seen) >= rank) return value_of(bucket);
  }
  return value_of(counts_.rbegin()->first);
}

double QuantileSketch::share_below(double x) const {
  if (total_ == 0) return 0;
  uint64_t seen = 0;
  for (const auto& [bucket, count] : counts_) {
    if (bucket > bucket_of(x)) break;
    seen += count;
  }
  return static_cast<double>(seen) / static_cast<double>(total_);
}

std::vector<std::pair<double, double>> QuantileSketch::above(double x) const {
  std::vector<std::pair<double, double>> out;
  for (auto it = counts_.upper_bound(bucket_of(x)); it != counts_.end(); ++it) {
    out.emplace_back(value_of(it->first), static_cast<double>(it->second) /
                                              static_cast<double>(uint64_t{1} << kFraction));
  }
  return out;
}

double QuantileSketch::distance(const QuantileSketch& a, const QuantileSketch& b) {
  if (a.total_ == 0 || b.total_ == 0) return 0;
  double largest = 0;
  double below_a = 0;
  double below_b = 0;
  auto i = a.counts_.begin();
  auto j = b.counts_.begin();
  while (i != a.counts_.end() || j != b.counts_.end()) {
    const bool from_a = j == b.counts_.end() || (i != a.counts_.end() && i->first <= j->first);
    const bool from_b = i == a.counts_.end() || (j != b.counts_.end() && j->first <= i->first);
    if (from_a) below_a += static_cast<double>((i++)->second) / static_cast<double>(a.total_);
    if (from_b) below_b += static_cast<double>((j++)->second) / static_cast<double>(b.total_);
    largest = std::max(largest, std::fabs(below_a - below_b));
  }
  return largest;
}

void QuantileSketch::save(StateWriter& writer) const {
  writer.u64(counts_.size());
  int before = 0;
  for (const auto& [bucket, count] : counts_) {
    writer.i64(bucket - before);
    writer.u64(count);
    before = bucket;
  }
}

void QuantileSketch::load(StateReader& reader) {
  counts_.clear();
  total_ = 0;
  const int64_t bucket_max = bucket_of(kLargest);
  int64_t bucket = 0;
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const int64_t step = reader.i64();
    bucket = step < -2 * bucket_max || step > 2 * bucket_max ? bucket_max + 1 : bucket + step;
    if (bucket < -bucket_max || bucket > bucket_max) return reader.fail();
    const uint64_t count = reader.u64();
    counts_[static_cast<int>(bucket)] = count;
    total_ += count;
  }
}

}  // namespace reflex::adapt
