// RunningSet: one pack set with its lane, its thread and where it speaks to.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/serve/lane_output.h"
#include "runtime/serve/lane_runner.h"
#include "runtime/serve/set_loader.h"
#include "runtime/serve/state_capture.h"

namespace reflex::serve {

struct RunningSet {
  LoadedSet set;
  LoadReport report;             // of the state that it began with
  int64_t began_ns = INT64_MIN;  // event time: the watermark of that state
  std::unique_ptr<LaneOutput> output;
  /// Ends before the others. A set that takes the place of another in place has the same one: then
  /// it runs the lane of the newer set.
  std::shared_ptr<LaneRunner> runner;

  RunningSet() = default;
  ~RunningSet() { runner.reset(); }
  RunningSet(const RunningSet&) = delete;
  RunningSet& operator=(const RunningSet&) = delete;
};

struct RunningParts {
  Journal& journal;
  Publisher& publisher;
  /// Input before it was there when the daemon started: no latency is counted.
  const std::atomic<uint64_t>& replay_end;
};

/// A set with a lane that has no state and no thread yet.
struct PreparedSet {
  std::shared_ptr<RunningSet> running;  // without a runner
  std::unique_ptr<Lane> lane;
};
/// `before`: whose state the lane may take over.
Result<PreparedSet> prepare(const RunningParts& parts, LoadedSet set, LaneOutput::Mode mode,
                            const engine::Engine* before);
/// Gives it a runner, not started. `state` empty: from `position` on, else from where the state was
/// taken.
Result<std::shared_ptr<RunningSet>> with_state(const RunningParts& parts, PreparedSet prepared,
                                               std::string_view state, uint64_t position);
Result<std::shared_ptr<RunningSet>> make_running(const RunningParts& parts, LoadedSet set,
                                                 LaneOutput::Mode mode, std::string_view state,
                                                 uint64_t position);

}  // namespace reflex::serve
