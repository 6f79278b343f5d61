// Muting and keeping; see lane_output.h.
#include "runtime/serve/lane_output.h"

#include <utility>

namespace reflex::serve {

void LaneOutput::say(Outgoing&& line) {
  std::unique_lock lock(mutex_);
  if (mode_ == Mode::kLive) {
    lock.unlock();
    return publisher_.push(std::move(line));
  }
  if (mode_ == Mode::kCandidate || !line.verdict) return;  // alerts of a shadow are not shown
  kept_.push_back(std::move(line.verdict));
  if (kept_.size() > kShadowVerdictsMax) kept_.pop_front();
}

void LaneOutput::go_live() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  mode_ = Mode::kLive;
}

std::vector<std::shared_ptr<const abi::Verdict>> LaneOutput::shown() const {
  const std::lock_guard lock(mutex_);
  return {kept_.begin(), kept_.end()};
}

}  // namespace reflex::serve
