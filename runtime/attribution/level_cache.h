// LevelCache: level_weights(p) of all verdicts of one graph.
//
// Contract: for any number of threads; a reference stays valid as long as the cache lives. The weights
// of a strength take a thousand exponentials, and a pack has some dozens of strengths.
#pragma once

#include <map>
#include <mutex>

#include "runtime/attribution/latent.h"

namespace reflex::attribution {

class LevelCache {
 public:
  const Levels& at(double p) {
    const std::lock_guard lock(mutex_);
    const auto it = known_.find(p);
    if (it != known_.end()) return it->second;
    return known_.emplace(p, level_weights(p)).first->second;
  }
  /// Means over the nodes of a group are new numbers now and then: they are kept up to this many.
  [[nodiscard]] bool full() const {
    const std::lock_guard lock(mutex_);
    return known_.size() >= kStrengthsMax;
  }

 private:
  // Why: bounds the memory (about 200 bytes each); a pack has some dozens.
  static constexpr size_t kStrengthsMax = 4096;
  mutable std::mutex mutex_;
  std::map<double, Levels> known_;
};

}  // namespace reflex::attribution
