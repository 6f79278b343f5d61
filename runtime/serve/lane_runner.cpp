// The loop of a lane's thread; see lane_runner.h.
#include "runtime/serve/lane_runner.h"

#include <algorithm>
#include <utility>

namespace reflex::serve {
namespace {

// Why: some ms of work, so that what is asked between two steps does not wait.
constexpr uint64_t kStepBytes = 1u << 20;
constexpr int64_t kIdleMs = 1000;
constexpr auto kPublishEvery = std::chrono::milliseconds(250);

}  // namespace

LaneRunner::LaneRunner(Journal& journal, std::unique_ptr<Lane> lane)
    : journal_(journal),
      lane_(std::move(lane)),
      reader_(journal, lane_->position()),
      position_(lane_->position()) {
  publish(true);
}

LaneRunner::~LaneRunner() { stop(); }

void LaneRunner::start() {
  thread_ = std::thread([this] { work(); });
}

void LaneRunner::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  journal_.poke();
  if (thread_.joinable()) thread_.join();
}

void LaneRunner::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    do_tasks(lock);
    if (stopping_) break;
    const uint64_t at = position();
    const bool stay = hold_ == Hold::kHere || (hold_ == Hold::kAt && at >= hold_position_);
    if (stay) {
      held_ = true;
      changed_.notify_all();
      const uint64_t change = hold_changes_;
      changed_.wait(lock, [&] { return stopping_ || hold_changes_ != change || !tasks_.empty(); });
      continue;
    }
    held_ = false;
    const uint64_t limit = hold_ == Hold::kAt ? hold_position_ : UINT64_MAX;
    lock.unlock();
    const uint64_t pokes = journal_.pokes();
    if (!step(limit)) {
      publish(true);
      lock.lock();
      const bool wanted = stopping_ || !tasks_.empty() || hold_ == Hold::kHere;
      lock.unlock();
      if (!wanted) journal_.wait_beyond(at, pokes, kIdleMs);
    }
    lock.lock();
  }
  for (const auto& task : tasks_) task->taken = false;
  tasks_.clear();
  held_ = true;
  changed_.notify_all();
}

void LaneRunner::do_tasks(std::unique_lock<std::mutex>& lock) {
  while (!tasks_.empty() && !stopping_) {
    const std::shared_ptr<Task> task = tasks_.front();
    tasks_.pop_front();
    task->taken = true;
    lock.unlock();
    task->run(*lane_);
    lock.lock();
    task->done = true;
    changed_.notify_all();
  }
}

bool LaneRunner::step(uint64_t limit) {
  uint64_t bytes = 0;
  Entry entry;
  bool any = false;
  while (bytes < kStepBytes && reader_.position() < limit && reader_.next(entry)) {
    if (!any) step_wall_ns_ = entry.wall_ns;
    any = true;
    bytes += entry.payload.size() + 1;
    lane_->apply(entry);
  }
  if (!any) {
    if (!reader_.error().empty()) {
      const std::lock_guard lock(mutex_);
      error_ = reader_.error();
    }
    return false;
  }
  lane_->step();
  position_.store(lane_->position(), std::memory_order_release);
  publish(false);
  return true;
}

void LaneRunner::publish(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - published_ < kPublishEvery) return;
  published_ = time;
  auto view = std::make_shared<const LaneView>(LaneView{lane_->status(), lane_->sources()});
  const std::lock_guard lock(mutex_);
  view_ = std::move(view);
}

bool LaneRunner::ask(std::function<void(Lane&)> run, std::chrono::milliseconds timeout) {
  const auto task = std::make_shared<Task>();
  task->run = std::move(run);
  std::unique_lock lock(mutex_);
  if (stopping_) return false;
  tasks_.push_back(task);
  changed_.notify_all();
  lock.unlock();
  journal_.poke();
  lock.lock();
  const bool in_time =
      changed_.wait_for(lock, timeout, [&] { return task->done || (stopping_ && !task->taken); });
  if (task->done) return true;
  if (in_time) return false;
  if (!task->taken) {
    std::erase(tasks_, task);
    return false;
  }
  // It runs right now and uses what the caller owns.
  changed_.wait(lock, [&] { return task->done; });
  return true;
}

uint64_t LaneRunner::hold() {
  std::unique_lock lock(mutex_);
  hold_ = Hold::kHere;
  ++hold_changes_;
  held_ = false;
  changed_.notify_all();
  lock.unlock();
  journal_.poke();
  lock.lock();
  changed_.wait(lock, [&] { return held_ || stopping_; });
  return position();
}

bool LaneRunner::hold_at(uint64_t at) {
  std::unique_lock lock(mutex_);
  hold_ = Hold::kAt;
  ++hold_changes_;
  hold_position_ = at;
  held_ = false;
  changed_.notify_all();
  lock.unlock();
  journal_.poke();
  lock.lock();
  changed_.wait(lock, [&] { return held_ || stopping_; });
  return !stopping_ && position() == at;
}

void LaneRunner::release() {
  {
    const std::lock_guard lock(mutex_);
    hold_ = Hold::kNo;
    ++hold_changes_;
    held_ = false;
  }
  changed_.notify_all();
}

std::shared_ptr<const LaneView> LaneRunner::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

std::string LaneRunner::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace reflex::serve
