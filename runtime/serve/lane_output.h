// LaneOutput: where the verdicts of one lane go: out, or nowhere while it is a candidate.
//
// A candidate catches up muted: the set that is live then speaks for the same events
// (Lane::follow()). A shadow's verdicts are only looked at: the newest kShadowVerdictsMax (port.h)
// are kept. Threads: the lane's thread says, others change and look.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/serve/port.h"
#include "runtime/serve/publisher.h"

namespace reflex::serve {

class LaneOutput {
 public:
  enum class Mode : uint8_t { kLive, kCandidate, kShadow };
  LaneOutput(Publisher& publisher, Mode mode) : publisher_(publisher), mode_(mode) {}

  void say(Outgoing&& line);
  /// From now on everything goes out; what a shadow said before is no verdict of ours.
  void go_live();
  /// Of a shadow: its newest verdicts, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const abi::Verdict>> shown() const;

 private:
  Publisher& publisher_;
  mutable std::mutex mutex_;
  Mode mode_;
  std::deque<std::shared_ptr<const abi::Verdict>> kept_;  // of a shadow
};

}  // namespace reflex::serve
