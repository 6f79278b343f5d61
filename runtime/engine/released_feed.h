// ReleasedFeed: what the reorder buffer released -> the engine, in steps of some records.
//
// Contract: the same calls of the engine in event time whatever the steps are: a stamp is never
// split (topology of one stamp holds for all of its events), and late events are counted at their
// place among the records, so that the batch does not matter.
// Used by the lanes of the daemon and by pipeline.cpp.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/stream/reorder.h"

namespace reflex::engine {

struct FeedOptions {
  size_t step_events = 4096;
  int64_t until_ns = INT64_MAX;  // later events are not evaluated
  /// Nothing is known of what comes after the last event of a finished input, unless it is known to
  /// be complete.
  bool complete_input = false;
  std::function<void(int64_t first_ns, int64_t step_ns)> pace;  // before each step; may be empty
};

class ReleasedFeed {
 public:
  ReleasedFeed(Engine& engine, FeedOptions options)
      : engine_(engine), options_(std::move(options)) {}

  void evaluate(const stream::Released& released);

  [[nodiscard]] uint64_t events() const { return events_; }
  [[nodiscard]] int64_t first_ts_ns() const { return first_ts_ns_; }
  [[nodiscard]] int64_t last_ts_ns() const { return last_ts_ns_; }
  /// Goes on where another feed of the same stream has stopped.
  void resume(uint64_t events, int64_t first_ts_ns, int64_t last_ts_ns) {
    events_ = events;
    first_ts_ns_ = first_ts_ns;
    last_ts_ns_ = last_ts_ns;
  }

 private:
  void count_late(const stream::Released& released, size_t at);

  Engine& engine_;
  FeedOptions options_;
  uint64_t events_ = 0;
  int64_t first_ts_ns_ = kNoTimeNs;
  int64_t last_ts_ns_ = kNoTimeNs;
  int64_t advanced_to_ns_ = kNoTimeNs;  // the watermark of the last step without records
};

}  // namespace reflex::engine
