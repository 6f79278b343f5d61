// VerdictStreams: followers of verdicts by server-sent events.
//
// A follower is a position in the store, nothing more: it is woken when a verdict is told and reads
// what is new. So memory is bounded however slow a client is, Last-Event-ID resumes exactly, and a
// verdict reaches everyone once and in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/serve/http/exchange.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

class VerdictStreams {
 public:
  VerdictStreams(Store& store, unsigned max, std::chrono::milliseconds heartbeat);
  /// A verdict with this sequence stands in the store. From any thread; never waits for a client.
  void tell(uint64_t sequence);
  /// Verdicts that fit `filter` after `filter.after`, for ever; null when there are too many
  /// followers.
  std::shared_ptr<BodyStream> follow(const VerdictFilter& filter);
  /// The sequence told last.
  [[nodiscard]] uint64_t newest() const;
  [[nodiscard]] unsigned followers() const;
  void stop();

 private:
  class Follower;
  Store& store_;
  const unsigned max_;
  const std::chrono::milliseconds heartbeat_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t newest_ = 0;
  unsigned followers_ = 0;
  bool stopped_ = false;
};

}  // namespace reflex::serve
