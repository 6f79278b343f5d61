// SourceClocks: the largest time of each source and the watermark over all of them.
//
// The watermark is the minimum of (largest ts - lateness) over the active sources; it never goes
// back. A declared source without any event holds it at "nothing is complete"; declared sources
// count until they are finished. Any other source more than idle_after behind the furthest one is
// idle: it does not count until it speaks again.
// Ticks (live streams): a source, declared or not, that said nothing for idle_after of the time over
// which ticks came is idle, too; when all are, the watermark follows the wall clock, lateness and
// idle_after behind it. Without ticks nothing of this happens.
// Cost: O(log sources) when a source's clock advances, O(1) for the watermark.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"
#include "runtime/abi/record_state.h"
#include "runtime/base/state_stream.h"
#include "runtime/base/symbols.h"
#include "runtime/base/time.h"
#include "runtime/stream/slab.h"

namespace reflex::stream {

class SourceClocks {
 public:
  static constexpr int64_t kNothing = INT64_MIN;

  struct Source {
    SymbolId id = kNoSymbol;
    int64_t max_ns = kNothing;
    int64_t heard_ns = 0;  // listened_ns_ at the last tick at which it had spoken
    bool spoke = false;    // since the last tick
    uint64_t late = 0;     // events
    bool finished = false;
    bool declared = false;            // never idle: its end will be told
    size_t heap_position = SIZE_MAX;  // SIZE_MAX: idle or finished
    abi::Record* held = nullptr;      // waits for a second event to confirm a clock jump
    std::shared_ptr<Slab> held_slab;  // where it lives
    SymbolId held_input = kNoSymbol;  // what it was read from
    /// True when an event of this time would change nothing.
    [[nodiscard]] bool covers(int64_t ts_ns) const {
      return ts_ns <= max_ns && heap_position != SIZE_MAX;
    }
  };

  SourceClocks(int64_t lateness_ns, int64_t idle_after_ns)
      : lateness_ns_(lateness_ns), idle_after_ns_(idle_after_ns) {}

  /// Index of a source; it becomes active at first sight.
  uint32_t source(SymbolId id) {
    if (id == last_id_ && !sources_.empty()) return last_index_;
    return find(id);
  }
  Source& at(uint32_t index) { return sources_[index]; }
  [[nodiscard]] const Source& at(uint32_t index) const { return sources_[index]; }
  [[nodiscard]] size_t count() const { return sources_.size(); }
  [[nodiscard]] int64_t furthest_ns() const { return furthest_ns_; }

  void advance(uint32_t index, int64_t ts_ns);
  void finish(uint32_t index);
  /// The wall clock says so. Told once a second or so; a longer pause counts as kTickGapMaxNs.
  void tick(int64_t wall_ns);
  [[nodiscard]] int64_t last_tick_ns() const { return last_tick_ns_; }
  [[nodiscard]] bool is_idle(uint32_t index) const {
    return sources_[index].heap_position == SIZE_MAX && !sources_[index].finished;
  }
  /// Everything strictly before it is complete; kNothing when nothing is, INT64_MAX at the end.
  int64_t watermark_ns();

  /// Held records are written through `records`, and read back to live in `slab`.
  void save(StateWriter& writer, abi::RecordWriter& records, const abi::CompiledPack& pack) const;
  void load(StateReader& reader, abi::RecordReader& records, const std::shared_ptr<Slab>& slab);

 private:
  uint32_t find(SymbolId id);
  void remove(size_t position);
  void sift_down(size_t position);
  void sift_up(size_t position);
  void place(size_t position, uint32_t index) {
    heap_[position] = index;
    sources_[index].heap_position = position;
  }
  [[nodiscard]] int64_t time(size_t position) const { return sources_[heap_[position]].max_ns; }

  int64_t lateness_ns_;
  int64_t idle_after_ns_;
  std::vector<Source> sources_;
  std::unordered_map<SymbolId, uint32_t> index_;
  std::vector<uint32_t> heap_;  // min-heap of active sources by max_ns
  SymbolId last_id_ = 0;
  uint32_t last_index_ = 0;
  int64_t furthest_ns_ = kNothing;
  int64_t watermark_ns_ = kNothing;
  // Why 5 s: a longer pause is a daemon that stood still, and says nothing of its sources: else all
  // of them would be idle after a restart, and what they have to tell of the pause late.
  static constexpr int64_t kTickGapMaxNs = 5 * kNsPerSecond;
  int64_t last_tick_ns_ = kNothing;
  int64_t listened_ns_ = 0;  // wall time over which ticks came
};

}  // namespace reflex::stream
