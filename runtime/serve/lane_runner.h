// LaneRunner: a thread that runs one lane over the journal.
//
// The thread reads what is on disk, a step at a time; between two steps it does what others ask of
// it. Two runners over one journal can be made to stand at the same position (hold_at), which is
// how one takes the other's place.
// Threads: every function from any, but not from inside of a task.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/serve/journal.h"
#include "runtime/serve/lane.h"

namespace reflex::serve {

/// What a lane looks like from outside, a moment ago.
struct LaneView {
  LaneStatus status;
  std::vector<SourceStatus> sources;  // evaluated so far
};

class LaneRunner {
 public:
  /// Starts at the lane's position. Both must outlive the runner's thread.
  LaneRunner(Journal& journal, std::unique_ptr<Lane> lane);
  ~LaneRunner();  // stop()
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  void start();
  /// Ends the thread after the step at hand.
  void stop();

  /// Runs `task` on the thread between two steps; false when it stops first or time is up (then
  /// the task will not run).
  bool ask(std::function<void(Lane&)> task, std::chrono::milliseconds timeout);
  /// Between two steps `next` takes the place of the lane, which is given back; the thread goes on
  /// with `next` at the same position. `take` makes one of the other, on the thread. Null when it
  /// stops first or time is up: then `next` is gone and nothing has changed. Returns when view() is
  /// that of `next`. One call at a time.
  struct Exchanged {
    std::unique_ptr<Lane> old;
    double stopped_us = 0;  // from the end of one step to the beginning of the next one
  };
  Exchanged exchange(std::unique_ptr<Lane> next,
                     const std::function<void(Lane& old, Lane& next)>& take,
                     std::chrono::milliseconds timeout);
  /// Stops between two steps and stays there until release(); the position.
  uint64_t hold();
  /// Goes on to exactly `position` and stays there. False when it cannot get there (stopping).
  bool hold_at(uint64_t position);
  void release();
  /// Since when it is held; only while it is.
  [[nodiscard]] std::chrono::steady_clock::time_point held_since() const;

  [[nodiscard]] bool is_stopping() const;

  [[nodiscard]] uint64_t position() const { return position_.load(std::memory_order_acquire); }
  /// Only while held or before start().
  Lane& lane() { return *lane_; }
  /// For what never changes of a lane; by whoever alone exchanges it.
  [[nodiscard]] const Lane& lane_at_work() const { return *lane_; }
  [[nodiscard]] std::shared_ptr<const LaneView> view() const;
  /// Wall time of the oldest entry of the step at hand; only on the runner's thread.
  [[nodiscard]] int64_t step_wall_ns() const { return step_wall_ns_; }
  [[nodiscard]] std::string error() const;

 private:
  static constexpr size_t kStepSecondsCount = 8;  // buckets of the time that a step takes
  struct Task {
    std::function<void(Lane&)> run;
    bool taken = false;
    bool done = false;
  };
  enum class Hold : uint8_t { kNo, kHere, kAt };

  void work();
  void do_tasks(std::unique_lock<std::mutex>& lock);
  bool step(uint64_t limit);
  void publish(bool now);
  void count_step(double seconds);

  Journal& journal_;
  std::unique_ptr<Lane> lane_;
  Journal::Reader reader_;
  std::atomic<uint64_t> position_;
  int64_t step_wall_ns_ = 0;
  std::chrono::steady_clock::time_point published_{};
  std::vector<uint64_t> steps_by_seconds_ = std::vector<uint64_t>(kStepSecondsCount);
  double step_seconds_ = 0;  // in sum

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  Hold hold_ = Hold::kNo;
  uint64_t hold_changes_ = 0;
  uint64_t hold_position_ = 0;
  bool held_ = false;
  std::chrono::steady_clock::time_point held_since_{};
  bool stopping_ = false;
  std::shared_ptr<const LaneView> view_;
  uint64_t published_count_ = 0;
  std::optional<std::chrono::steady_clock::time_point> exchange_began_;  // until the next step
  double exchange_us_ = 0;
  std::string error_;
  std::thread thread_;
};

}  // namespace reflex::serve
