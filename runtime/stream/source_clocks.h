// SourceClocks: the largest time of each source and the watermark over all of them.
//
// The watermark is the minimum of (largest ts - lateness) over the active sources; it never goes
// back. A declared source without any event holds it at "nothing is complete"; declared sources
// count until they are finished. Any other source more than idle_after behind the furthest one is
// idle: it does not count until it speaks again.
// Cost: O(log sources) when a source's clock advances, O(1) for the watermark.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/abi/record.h"
#include "runtime/base/symbols.h"
#include "runtime/stream/slab.h"

namespace reflex::stream {

class SourceClocks {
 public:
  static constexpr int64_t kNothing = INT64_MIN;

  struct Source {
    int64_t max_ns = kNothing;
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
  [[nodiscard]] size_t count() const { return sources_.size(); }
  [[nodiscard]] int64_t furthest_ns() const { return furthest_ns_; }

  void advance(uint32_t index, int64_t ts_ns);
  void finish(uint32_t index);
  /// Everything strictly before it is complete; kNothing when nothing is, INT64_MAX at the end.
  int64_t watermark_ns();

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
};

}  // namespace reflex::stream
