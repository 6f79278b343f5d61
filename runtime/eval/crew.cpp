// ThreadCrew: see crew.h.
#include "runtime/eval/crew.h"

namespace reflex::eval {

ThreadCrew::ThreadCrew(size_t threads) {
  for (size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadCrew::~ThreadCrew() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadCrew::take_one(Lock& lock) {
  if (next_ >= count_) return false;
  const auto& task = *task_;
  const size_t i = next_++;
  lock.unlock();
  task(i);
  lock.lock();
  if (++done_ == count_) changed_.notify_all();
  return true;
}

void ThreadCrew::run(size_t count, const std::function<void(size_t)>& task) {
  Lock lock(mutex_);
  task_ = &task;
  count_ = count;
  next_ = done_ = 0;
  changed_.notify_all();
  while (take_one(lock)) {
  }
  changed_.wait(lock, [this] { return done_ == count_; });
}

void ThreadCrew::work() {
  Lock lock(mutex_);
  while (!stopping_) {
    if (!take_one(lock)) changed_.wait(lock);
  }
}

}  // namespace reflex::eval
