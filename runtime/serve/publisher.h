// Publisher: what lanes say -> the store -> subscribers and sinks, each thing once.
//
// Contract: lines leave in the order in which they were pushed. What the store already has (a
// replay after a crash, the catch-up of a reload) is not told again. A store that cannot be written
// (full disk) is tried again each second; meanwhile the queue fills, push() blocks, the lane stands
// still, the journal fills, and input is refused: nothing is lost. Bound: kQueueMax lines. Threads:
// push from lanes, the rest from any.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/policy/policy.h"
#include "runtime/serve/port.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

/// A verdict, or (verdict == null) a line of the policy.
struct Outgoing {
  std::shared_ptr<const abi::Verdict> verdict;
  NewAlert line;
  int64_t accepted_wall_ns = 0;  // of the input that made it; 0: replayed, no latency is counted
};

Outgoing outgoing_of(const policy::Alert& alert);
Outgoing outgoing_of(const policy::ActionRequest& action);

class Publisher {
 public:
  explicit Publisher(Store& store);
  ~Publisher();  // stop()
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  void start();
  /// Ends when the queue is empty, or at once when `drain` is false or the store fails.
  void stop(bool drain);

  void push(Outgoing&& line);
  /// Lines pushed so far, and waiting until as many are in the store.
  [[nodiscard]] uint64_t pushed() const;
  bool wait_stored(uint64_t count, std::chrono::milliseconds timeout);

  uint64_t subscribe(std::function<void(const LiveVerdict&)> told);
  void unsubscribe(uint64_t subscription);
  /// Waits until there is more in the store than at `version`, or time is up; the version then.
  uint64_t wait_news(uint64_t version, std::chrono::milliseconds timeout);

  /// Cumulative, by upper bound in seconds.
  [[nodiscard]] std::vector<std::pair<double, uint64_t>> latency() const;
  [[nodiscard]] std::string error() const;  // "" when the store takes what it gets
  [[nodiscard]] size_t depth() const;
  [[nodiscard]] uint64_t repeated() const;  // that the store had already

 private:
  // Source: powers of about 2.5 around the aim of 100 ms.
  static constexpr std::array<double, 12> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,   0.25,   0.5,   1,    5,     30};
  static constexpr size_t kQueueMax = 10'000;  // Why: some 100 MB of explanations
  static constexpr size_t kBatchMax = 256;     // Why: one transaction, some ms

  void work();
  bool store_batch(std::vector<Outgoing>& batch);
  void tell(const std::vector<Outgoing>& batch, const Written& written,
            const std::vector<std::shared_ptr<const std::string>>& json);
  void count_latency(const std::vector<Outgoing>& batch, const Written& written);

  Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> queue_;
  uint64_t pushed_ = 0;
  uint64_t stored_ = 0;
  uint64_t version_ = 0;
  uint64_t repeated_ = 0;
  bool stopping_ = false;
  bool drain_ = true;
  std::string error_;
  std::array<uint64_t, kBounds.size() + 1> latency_{};
  std::thread thread_;

  std::mutex subscribers_mutex_;  // held while they are told
  std::map<uint64_t, std::function<void(const LiveVerdict&)>> subscribers_;
  uint64_t next_subscription_ = 1;
};

}  // namespace reflex::serve
