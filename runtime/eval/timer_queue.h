// TimerQueue: deadlines of one shard in event time.
//
// Timers of constant duration are pushed in time order, so each distinct duration is a FIFO lane
// (a ring); irregular ones go to a heap. Equal deadlines pop in the order of pushing.
// Cost: next_due() is one load; a lane push or pop is a ring store or load.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/eval/paged_state.h"

namespace reflex::eval {

enum class TimerUse : uint8_t { kAbsentPair, kSequence, kCondition };

struct Timer {
  int64_t deadline_ns = 0;
  uint64_t tag = 0;   // record order (kAbsentPair) or the state's own tag: stale if different
  uint32_t plan = 0;  // SignalId
  EntityIndex entity = 0;
  TimerUse use = TimerUse::kAbsentPair;
};

class TimerQueue {
 public:
  /// The lane for timers of one duration; lanes are made at load time.
  uint32_t lane(int64_t duration_ns);
  void push_lane(uint32_t lane, const Timer& timer);
  void push(const Timer& timer);
  /// The same for many: linear in all timers there are.
  void push_all(const std::vector<Timer>& timers);
  [[nodiscard]] int64_t next_due() const { return next_due_; }
  /// Removes and returns the earliest timer; the queue must not be empty.
  Timer pop();
  /// The timers of all lanes, each lane's in its order.
  template <typename Visit>
  void each_in_lanes(Visit&& visit) const {
    for (const Lane& l : lanes_) {
      for (size_t i = l.head; i < l.tail; ++i) visit(l.ring[i & (l.ring.size() - 1)]);
    }
  }
  [[nodiscard]] uint64_t bytes() const;
  /// All timers of another queue, but for those in lanes whose plan is not `wanted` ([SignalId]).
  /// Each lane that is left has one of its duration here. Before any push.
  void take_over(TimerQueue& old, const std::vector<uint8_t>& wanted);
  /// Puts a lane that got timers out of order back into the order of time.
  void sort_lane(uint32_t lane);

 private:
  struct Lane {
    int64_t duration_ns = 0;
    std::vector<Timer> ring = std::vector<Timer>(64);
    size_t head = 0;
    size_t tail = 0;
    [[nodiscard]] bool empty() const { return head == tail; }
    [[nodiscard]] const Timer& front() const { return ring[head & (ring.size() - 1)]; }
  };
  struct HeapTimer {
    Timer timer;
    uint64_t sequence;
  };
  void refresh();

  std::vector<Lane> lanes_;
  std::vector<HeapTimer> heap_;
  uint64_t pushed_ = 0;
  int64_t next_due_ = INT64_MAX;
};

}  // namespace reflex::eval
