// LaneRunner: a thread that runs one lane over the journal.
//
// The thread reads what is on disk, a step at a time; between two steps it does what others ask of
// it. A step ends behind an entry that names a pack set (EntryType::kSet), when someone waits for it:
// there another lane takes the place of the one at work (exchange), or two runners over one journal
// come to stand at the same position (stop_behind_set), so that one can take the other's place.
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
  /// `write` puts an entry of EntryType::kSet into the journal. Behind it `next` takes the place of
  /// the lane, which is given back; the thread goes on with `next`. `take` makes one of the other, on
  /// the thread. Null when nothing was written, or it stops first: then `next` is gone and nothing
  /// has changed. Returns when view() is that of `next`. One call at a time.
  struct Exchanged {
    std::unique_ptr<Lane> old;
    double stopped_us = 0;  // from the end of one step to the beginning of the next one
  };
  Exchanged exchange(std::unique_ptr<Lane> next,
                     const std::function<void(Lane& old, Lane& next)>& take,
                     const std::function<bool()>& write);
  /// From now on: it stops behind the next entry of EntryType::kSet that is written, as by hold().
  void stop_behind_set();
  /// No such entry was written.
  void do_not_stop_behind_set();
  /// Stops between two steps and stays there until release(); the position.
  uint64_t hold();
  /// From now on, or from its start: it goes on to exactly `position`, as by hold().
  void stop_at(uint64_t position);
  /// Until it stands; false when it ends instead.
  bool wait_held();
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
  void reach_set();
  void await_set(std::function<void(Lane&)> task);
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
  std::function<void(Lane&)> at_set_;  // what is to be done behind an entry of kSet
  bool at_set_runs_ = false;
  std::atomic<uint64_t> set_from_ = UINT64_MAX;  // the first such entry at or behind it
  std::thread thread_;
};

}  // namespace reflex::serve
