// Pipeline: input files -> engine, in event time (the batch job behind `reflex run`).
//
// All sources are known beforehand: the one that is least advanced in event time is read next, so
// memory stays bounded and the watermark waits for every source. With threads > 1 the others read
// and decode ahead (read_ahead.h); the result does not depend on threads, batch size or chunk
// borders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/ndjson_decoder.h"

namespace reflex::engine {

struct LogInput {
  std::string node;
  std::string path;
};

struct PipelineOptions {
  std::vector<std::string> events;  // NDJSON paths; "-" is standard input
  std::vector<LogInput> logs;
  unsigned threads = 1;
  size_t batch_events = 4096;        // records per step of the engine
  size_t chunk_bytes = 256u << 10;   // Why: a piece and its records stay in the second cache
  int64_t until_ns = INT64_MAX;      // --until: later events are not evaluated
  int64_t now_limit_ns = INT64_MAX;  // --as-of + future_skew
  /// The input is known to be complete: absences still waited for at its end did happen. Else
  /// nothing is known of the time after the last event, and timers that are running never fire.
  bool complete_input = false;
  double speed = 0;  // events per wall second factor; 0 = as fast as possible
  stream::LogOptions log_options;
  bool year_given = false;  // false: the year of each log file's time
  /// Not 0: after so many pieces, again and again, the run goes on in a new engine that has loaded the
  /// state of the last one. The outcome is the same: tests run so. Needs PipelineHooks::fresh_engine.
  size_t restore_every = 0;
};

struct PipelineSummary {
  stream::IngestCounters counters;
  std::vector<std::string> notices;
  uint64_t events_evaluated = 0;
  int64_t first_ts_ns = kNoTimeNs;
  int64_t last_ts_ns = kNoTimeNs;
};

struct Progress {
  uint64_t bytes_read = 0;
  uint64_t bytes_total = 0;
  uint64_t events = 0;
};

struct PipelineHooks {
  stream::RejectSink rejected;                    // may be empty
  std::function<void(const Progress&)> progress;  // may be empty; called once a chunk
  /// A new engine with the sinks of the first; it outlives the run. For restore_every.
  std::function<Engine*()> fresh_engine;
};

Result<PipelineSummary> run_pipeline(std::shared_ptr<const abi::CompiledPack> pack, Engine& engine,
                                     const PipelineOptions& options, const PipelineHooks& hooks);

}  // namespace reflex::engine
