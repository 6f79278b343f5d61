// TimeWindow: samples of the last D in at most kCapacity buckets.
//
// Exact (one sample a bucket) until the capacity is reached; then the two adjacent buckets with the
// smallest joint span are merged. With 132 buckets there are 66 disjoint adjacent pairs, so the
// smallest joint span is at most D/66: a sample leaves the window at most D/64 too late, which is
// the documented error. A bucket leaves when its newest sample does.
// Bound: kCapacity buckets a key, allocated as samples come.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace reflex::eval {

struct CountBucket {
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  uint64_t count = 0;
  void merge(const CountBucket& o) {
    last_ns = o.last_ns;
    count += o.count;
  }
};

struct StatBucket {
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  uint64_t count = 0;
  double sum = 0;
  double sum_squares = 0;
  double min = 0;
  double max = 0;
  uint64_t order = 0;  // of the newest sample
  static StatBucket of(int64_t ts, double v, uint64_t order) {
    return {ts, ts, 1, v, v * v, v, v, order};
  }
  void merge(const StatBucket& o) {
    last_ns = o.last_ns;
    count += o.count;
    sum += o.sum;
    sum_squares += o.sum_squares;
    min = std::fmin(min, o.min);
    max = std::fmax(max, o.max);
    order = o.order;
  }
};

template <typename Bucket>
class TimeWindow {
 public:
  static constexpr size_t kCapacity = 132;

  void expire(int64_t now_ns, int64_t window_ns) {
    while (head_ < buckets_.size() && buckets_[head_].last_ns <= now_ns - window_ns) ++head_;
    if (head_ == buckets_.size()) {
      clear();
    } else if (head_ > buckets_.size() / 2) {
      buckets_.erase(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }
  /// `capacity`: more exact storage than the default (`exact max n`).
  void add(const Bucket& sample, size_t capacity = kCapacity) {
    if (buckets_.size() - head_ >= capacity) merge_closest();
    buckets_.push_back(sample);
  }
  [[nodiscard]] uint64_t count() const {
    uint64_t n = 0;
    for (size_t i = head_; i < buckets_.size(); ++i) n += buckets_[i].count;
    return n;
  }
  [[nodiscard]] bool approximate() const {
    for (size_t i = head_; i < buckets_.size(); ++i) {
      if (buckets_[i].first_ns != buckets_[i].last_ns) return true;
    }
    return false;
  }
  [[nodiscard]] const Bucket* begin() const { return buckets_.data() + head_; }
  [[nodiscard]] const Bucket* end() const { return buckets_.data() + buckets_.size(); }
  [[nodiscard]] bool empty() const { return head_ == buckets_.size(); }
  void clear() {
    buckets_.clear();
    head_ = 0;
  }

 private:
  void merge_closest() {
    size_t best = head_;
    int64_t best_span = INT64_MAX;
    for (size_t i = head_; i + 1 < buckets_.size(); ++i) {
      const int64_t span = buckets_[i + 1].last_ns - buckets_[i].first_ns;
      if (span < best_span) {
        best_span = span;
        best = i;
      }
    }
    buckets_[best].merge(buckets_[best + 1]);
    buckets_.erase(buckets_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<Bucket> buckets_;
  size_t head_ = 0;
};

}  // namespace reflex::eval
