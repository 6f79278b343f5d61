// The loop of a lane's thread; see lane_runner.h.
#include "runtime/serve/lane_runner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace reflex::serve {
namespace {

// Why: some ms of work, so that what is asked between two steps does not wait.
constexpr uint64_t kStepBytes = 1u << 20;
constexpr int64_t kIdleMs = 1000;
constexpr auto kPublishEvery = std::chrono::milliseconds(250);
// Why: from a few events to a step of kStepBytes on a busy machine.
constexpr std::array<double, 8> kStepSeconds{
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, std::numeric_limits<double>::infinity()};

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
      if (!held_) held_since_ = std::chrono::steady_clock::now();
      held_ = true;
      changed_.notify_all();
      const uint64_t change = hold_changes_;
      changed_.wait(lock, [&] { return stopping_ || hold_changes_ != change || !tasks_.empty(); });
      continue;
    }
    held_ = false;
    if (exchange_began_) {
      exchange_us_ = std::chrono::duration<double, std::micro>(
                         std::chrono::steady_clock::now() - *exchange_began_)
                         .count();
      exchange_began_.reset();
    }
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
  bool at_set = false;
  while (!at_set && bytes < kStepBytes && reader_.position() < limit && reader_.next(entry)) {
    if (!any) step_wall_ns_ = entry.wall_ns;
    any = true;
    bytes += entry.payload.size() + 1;
    lane_->apply(entry);
    // Set before the entry was written, and read after it: it is never missed.
    at_set = entry.type == EntryType::kSet && entry.position >= set_from_;
  }
  if (!any) {
    if (!reader_.error().empty()) {
      const std::lock_guard lock(mutex_);
      error_ = reader_.error();
    }
    return false;
  }
  const auto began = std::chrono::steady_clock::now();
  lane_->step();
  count_step(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  position_.store(lane_->position(), std::memory_order_release);
  if (at_set) {
    reach_set();  // what is shown comes with the next step: a reload waits for it
  } else {
    publish(false);
  }
  return true;
}

void LaneRunner::reach_set() {
  set_from_ = UINT64_MAX;
  std::unique_lock lock(mutex_);
  const auto task = std::exchange(at_set_, nullptr);
  if (!task) return;
  at_set_runs_ = true;
  lock.unlock();
  task(*lane_);
  lock.lock();
  at_set_runs_ = false;
  changed_.notify_all();
}

void LaneRunner::await_set(std::function<void(Lane&)> task) {
  const std::lock_guard lock(mutex_);
  at_set_ = std::move(task);
  set_from_ = journal_.end();
}

void LaneRunner::do_not_stop_behind_set() {
  const std::lock_guard lock(mutex_);
  set_from_ = UINT64_MAX;
  at_set_ = nullptr;
}

void LaneRunner::stop_behind_set() {
  await_set([this](Lane&) {
    const std::lock_guard lock(mutex_);
    hold_ = Hold::kHere;
    ++hold_changes_;
    held_ = false;
  });
}

void LaneRunner::count_step(double seconds) {
  step_seconds_ += seconds;
  for (size_t i = 0; i < kStepSeconds.size(); ++i)
    steps_by_seconds_[i] += seconds <= kStepSeconds[i];
}

void LaneRunner::publish(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - published_ < kPublishEvery) return;
  published_ = time;
  auto view = std::make_shared<LaneView>(LaneView{lane_->status(), lane_->sources()});
  for (size_t i = 0; i < kStepSeconds.size(); ++i) {
    view->status.evaluation_seconds.emplace_back(kStepSeconds[i], steps_by_seconds_[i]);
  }
  view->status.evaluation_seconds_sum = step_seconds_;
  const std::lock_guard lock(mutex_);
  view_ = std::move(view);
  ++published_count_;
  changed_.notify_all();
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

LaneRunner::Exchanged LaneRunner::exchange(std::unique_ptr<Lane> next,
                                           const std::function<void(Lane& old, Lane& next)>& take,
                                           const std::function<bool()>& write) {
  uint64_t published = 0;
  bool done = false;
  await_set([&](Lane& old) {
    const auto began = std::chrono::steady_clock::now();
    take(old, *next);
    lane_.swap(next);
    published_ = {};  // the next step shows it
    const std::lock_guard lock(mutex_);
    exchange_began_ = began;
    published = published_count_;
    done = true;
  });
  const bool written = write();
  std::unique_lock lock(mutex_);
  if (written) changed_.wait(lock, [&] { return done || (stopping_ && !at_set_runs_); });
  if (!done) {
    set_from_ = UINT64_MAX;
    at_set_ = nullptr;
    return {};
  }
  // Why 1 s: a view that is late does no harm; a step takes some ms.
  changed_.wait_for(lock, std::chrono::seconds(1),
                    [&] { return stopping_ || published_count_ != published; });
  return {std::move(next), exchange_us_};
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

void LaneRunner::stop_at(uint64_t at) {
  {
    const std::lock_guard lock(mutex_);
    hold_ = Hold::kAt;
    ++hold_changes_;
    hold_position_ = at;
    held_ = false;
  }
  changed_.notify_all();
  journal_.poke();
}

bool LaneRunner::wait_held() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return held_ || stopping_; });
  return !stopping_;
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

std::chrono::steady_clock::time_point LaneRunner::held_since() const {
  const std::lock_guard lock(mutex_);
  return held_since_;
}

bool LaneRunner::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
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
