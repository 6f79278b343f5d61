// Reorder: arrival order -> one total order, with per-source watermarks, lateness and dedup.
//
// Total order: (ts, source name, seq when the source is a log, id, content). It does not depend on
// arrival order, batching or threads. Watermark(source) = its largest ts - lateness; the global one
// is the minimum over sources that are neither finished nor idle. A declared source is never idle:
// it holds the watermark until it is finished. One that only appears in events is idle while it is
// more than idle_after behind the furthest source (batch runs have no wall clock). Events of an
// input that name another source advance the clock of both (RecordBatch::input).
// When a kind has dedup, all events are released min(longest dedup, 2 s) after the watermark, so
// that `repeats` does not depend on batching; later repeats are dropped and only counted.
// An event older than the watermark is late: counted, dropped from rules, returned in `late`.
// A clock that jumps far ahead (over jump_limit) is held until a second event confirms it, else
// it is rejected (kClockJump), so that one bad stamp cannot make a whole trace late.
// Dedup (KindSchema::dedup) runs here, in total order: the first is kept, `repeats` counts.
// The same (source, id) twice is one event.
// Live streams: tick() tells the wall clock, about once a second; nothing here reads one. A source that
// said nothing for idle_after of ticks is idle, also a declared one; when all sources are, the watermark
// follows at wall - lateness - idle_after, so that absences fire. What comes after that is late by the
// normal rule. The result is a function of the sequence of pushes and ticks. A pause between ticks
// (a daemon that stood still) counts 5 s, so that sources have time to tell what they have.
// State: save() between calls; load() into a new Reorder of the same or another pack set, before its
// first event. Into the same set it is exact. Records that wait keep what the new set has fields for.
// counters() are no state: they begin at zero.
// Cost: amortised O(1) an event for streams that are nearly in order (bucketed by 1 ms slots).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"
#include "runtime/base/state_stream.h"
#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/slab.h"

namespace reflex::stream {

struct ReorderOptions {
  int64_t lateness_ns = 5'000'000'000;
  int64_t idle_after_ns = 60'000'000'000;
  int64_t jump_limit_ns = 30LL * 24 * 3600 * 1'000'000'000;  // Why: traces have gaps of days
  int64_t now_limit_ns = INT64_MAX;  // as-of + future_skew: beyond it is kFutureTs
  /// Live streams: beyond the last tick + future_skew is kFutureTs, too. Off before the first tick.
  int64_t future_skew_ns = INT64_MAX;
};

/// What one step releases. Valid until the next call of release() or finish().
struct Released {
  std::vector<const abi::Record*> records;  // in total order, Record::order set
  std::vector<const abi::Record*> late;     // dropped from rules
  /// When `late[i]` came, exactly what is older than this had been released. So late
  /// events have a place among the records that does not depend on batching.
  std::vector<int64_t> late_after_ns;
  int64_t watermark_ns = INT64_MIN;         // time is complete up to here (inclusive)
};

/// A source as metrics show it.
struct SourceState {
  SymbolId source = kNoSymbol;
  int64_t newest_ns = INT64_MIN;  // largest event time; INT64_MIN before the first event
  bool idle = false;
  bool finished = false;
  uint64_t late = 0;  // events
};

class Reorder {
 public:
  /// `sink` gets a sample of the records with an impossible time, with their line.
  Reorder(std::shared_ptr<const abi::CompiledPack> pack, const ReorderOptions& options,
          RejectSink sink = {});
  ~Reorder();
  /// Declares a source before its first event, so that the watermark waits for it. Logs
  /// (`is_log`) order ties by line number.
  void add_source(SymbolId source, bool is_log);
  void push(RecordBatch&& batch);
  void finish_source(SymbolId source);
  void release(Released& out);
  void finish(Released& out);  // everything that is left
  void tick(int64_t wall_ns);
  /// Another reader of the source is this far, by events that did not come here (runtime/cluster).
  /// It is trusted: one that waits for its time to be confirmed is confirmed by it.
  void progress(SymbolId source, int64_t newest_ns);

  /// By name.
  [[nodiscard]] std::vector<SourceState> sources() const;
  /// Up to where the last release() went; INT64_MIN before the first.
  [[nodiscard]] int64_t watermark_ns() const;
  /// Records that are held back.
  [[nodiscard]] uint64_t pending() const;

  void save(StateWriter& writer) const;
  /// Adds to `notes` what the new set has no use for. After an Error this object is to be dropped.
  Status load(StateReader& reader, std::vector<std::string>& notes);
  /// As load() of what `old` would save now, of a set whose ids mean the same (abi/same_ids.h), with
  /// equal options: nothing is copied. Its counters come along. `old` is only to be destroyed.
  void take_over(Reorder& old);
  [[nodiscard]] const IngestCounters& counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reflex::stream
