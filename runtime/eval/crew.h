// Crew: threads that run the shards of a SignalEngine.
//
// Contract: run() calls task(0) .. task(count - 1) once each, on any threads and in any order, and
// returns when all are done; what they wrote is then seen by the caller. One run() at a time.
// The engine has a ThreadCrew of its own; a pipeline lends it the threads that also decode, so that
// no more threads than asked for are ever busy.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace reflex::eval {

class Crew {
 public:
  virtual ~Crew() = default;
  virtual void run(size_t count, const std::function<void(size_t)>& task) = 0;
};

/// `threads` of them in all, the caller of run() being one.
class ThreadCrew final : public Crew {
 public:
  explicit ThreadCrew(size_t threads);
  ~ThreadCrew() override;
  ThreadCrew(const ThreadCrew&) = delete;
  ThreadCrew& operator=(const ThreadCrew&) = delete;
  void run(size_t count, const std::function<void(size_t)>& task) override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void work();
  bool take_one(Lock& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(size_t)>* task_ = nullptr;
  size_t count_ = 0;
  size_t next_ = 0;
  size_t done_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace reflex::eval
