// TimerQueue: lanes and heap; see timer_queue.h.
#include "runtime/eval/timer_queue.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace reflex::eval {

uint32_t TimerQueue::lane(int64_t duration_ns) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].duration_ns == duration_ns) return static_cast<uint32_t>(i);
  }
  lanes_.emplace_back();
  lanes_.back().duration_ns = duration_ns;
  return static_cast<uint32_t>(lanes_.size() - 1);
}

void TimerQueue::push_lane(uint32_t lane, const Timer& timer) {
  Lane& l = lanes_[lane];
  if (l.tail - l.head == l.ring.size()) {
    std::vector<Timer> larger(l.ring.size() * 2);
    for (size_t i = l.head; i < l.tail; ++i) {
      larger[i & (larger.size() - 1)] = l.ring[i & (l.ring.size() - 1)];
    }
    l.ring.swap(larger);
  }
  l.ring[l.tail++ & (l.ring.size() - 1)] = timer;
  next_due_ = std::min(next_due_, timer.deadline_ns);
}

namespace {
struct Later {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    if (a.timer.deadline_ns != b.timer.deadline_ns) {
      return a.timer.deadline_ns > b.timer.deadline_ns;
    }
    return a.sequence > b.sequence;
  }
};
}  // namespace

void TimerQueue::push(const Timer& timer) {
  heap_.push_back({timer, pushed_++});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
  next_due_ = std::min(next_due_, timer.deadline_ns);
}

void TimerQueue::push_all(const std::vector<Timer>& timers) {
  if (timers.size() * 16 < heap_.size()) {  // Why 16: a push costs the logarithm of the others
    for (const Timer& timer : timers) push(timer);
    return;
  }
  for (const Timer& timer : timers) {
    heap_.push_back({timer, pushed_++});
    next_due_ = std::min(next_due_, timer.deadline_ns);
  }
  std::make_heap(heap_.begin(), heap_.end(), Later{});
}

Timer TimerQueue::pop() {
  Lane* best = nullptr;
  for (Lane& l : lanes_) {
    if (!l.empty() && (best == nullptr || l.front().deadline_ns < best->front().deadline_ns)) {
      best = &l;
    }
  }
  Timer result;
  if (best != nullptr &&
      (heap_.empty() || best->front().deadline_ns <= heap_.front().timer.deadline_ns)) {
    result = best->front();
    ++best->head;
  } else {
    result = heap_.front().timer;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
  }
  refresh();
  return result;
}

void TimerQueue::refresh() {
  next_due_ = heap_.empty() ? INT64_MAX : heap_.front().timer.deadline_ns;
  for (const Lane& l : lanes_) {
    if (!l.empty()) next_due_ = std::min(next_due_, l.front().deadline_ns);
  }
}

void TimerQueue::take_over(TimerQueue& old, const std::vector<uint8_t>& wanted) {
  const bool all = std::find(wanted.begin(), wanted.end(), 0) == wanted.end();
  for (Lane& l : old.lanes_) {
    const auto here = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& own) {
      return own.duration_ns == l.duration_ns;
    });
    if (!all) {
      size_t kept = l.head;
      for (size_t i = l.head; i < l.tail; ++i) {
        const Timer& t = l.ring[i & (l.ring.size() - 1)];
        if (wanted[t.plan] != 0) l.ring[kept++ & (l.ring.size() - 1)] = t;
      }
      l.tail = kept;
    }
    if (here != lanes_.end()) {
      *here = std::move(l);
    } else {
      RFX_CHECK(l.empty());
    }
  }
  heap_ = std::move(old.heap_);
  pushed_ = old.pushed_;
  refresh();
}

void TimerQueue::sort_lane(uint32_t lane) {
  Lane& l = lanes_[lane];
  std::vector<Timer> timers;
  for (size_t i = l.head; i < l.tail; ++i) timers.push_back(l.ring[i & (l.ring.size() - 1)]);
  std::stable_sort(timers.begin(), timers.end(), [](const Timer& a, const Timer& b) {
    return a.deadline_ns < b.deadline_ns;
  });
  for (size_t i = 0; i < timers.size(); ++i) l.ring[(l.head + i) & (l.ring.size() - 1)] = timers[i];
  refresh();
}

uint64_t TimerQueue::bytes() const {
  uint64_t total = heap_.capacity() * sizeof(HeapTimer);
  for (const Lane& l : lanes_) total += l.ring.capacity() * sizeof(Timer);
  return total;
}

}  // namespace reflex::eval
