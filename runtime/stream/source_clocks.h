// SourceClocks: the largest time of each source and the watermark over all of them.
//
// The watermark is the minimum of (clock - lateness) over the sources; it never goes back. The clock
// of a source is its largest ts. Clocks of different sources may be wrong by hours: no source is late
// because another one is ahead. So a silent source is not held against the others' times, but against
// their progress: each input (a file, a body's source) has a pace, by which the sources on it have gone
// on since; a source that fell silent for more than idle_after of it is *quiet* and its clock goes on
// with the pace, idle_after and twice the lateness behind. One that is more than kBehindMaxNs behind
// (live: idle_after behind the wall clock) is *idle*: it does not count until it speaks again.
// A declared source without any event on it holds the watermark at "nothing is complete"; what comes
// on a declared source is only held against the others that come on it. One that is no log may bring
// several sources: it holds the watermark until its pace is idle_after, so that all were heard.
// Ticks (live streams): a source, declared or not, that said nothing for idle_after of the time over
// which ticks came is idle, too; when all are, the watermark follows the wall clock, lateness and
// idle_after behind it. It never passes the wall clock. Without ticks nothing of this happens.
// Cost: O(log sources) when a source's clock advances; the watermark O(inputs with quiet sources).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
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
    bool declared = false;            // its end will be told
    size_t heap_position = SIZE_MAX;  // SIZE_MAX: quiet, idle or finished
    uint32_t input = 0;               // on which its events come
    int64_t progress_ns = 0;          // its own part of the input's pace
    int64_t heard_pace_ns = 0;        // of the input, when its clock last went on
    uint64_t quiet_entry = 0;         // that counts of those in Input::quiet; 0: not quiet
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

  /// Index of a source on an input; it becomes active at first sight. The same name on two inputs
  /// (days of one log) has two clocks: each is read at its own pace.
  uint32_t source(SymbolId id, uint32_t input) {
    if (id == last_id_ && input == last_input_ && !sources_.empty()) return last_index_;
    return find(id, input);
  }
  /// Of a record of a batch that names no input: its own input, when it is declared.
  uint32_t source_alone(SymbolId id);
  /// All clocks of a name; there is one at least.
  std::vector<uint32_t> all_of(SymbolId id);
  Source& at(uint32_t index) { return sources_[index]; }
  [[nodiscard]] const Source& at(uint32_t index) const { return sources_[index]; }
  [[nodiscard]] size_t count() const { return sources_.size(); }
  [[nodiscard]] int64_t furthest_ns() const { return furthest_ns_; }

  /// Index of an input; kNoSymbol: the one of records that name none.
  uint32_t input(SymbolId id);
  /// From now on its end will be told.
  void declare(SymbolId id, bool is_log);
  /// Something came on a declared source, be it of others.
  void bring(SymbolId input) {
    if (const auto own = own_of(input)) sources_[*own].spoke = true;
  }
  /// An event of the source came on the input.
  void advance(uint32_t index, int64_t ts_ns);
  void finish(SymbolId id);
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
  /// The other part of it, which stands at the end: older states have none.
  void save_paces(StateWriter& writer) const;
  void load_paces(StateReader& reader);

 private:
  /// A quiet source's clock less the pace at which it was last heard: constant while it is quiet.
  struct Quiet {
    int64_t key_ns = 0;
    uint32_t source = 0;
    uint64_t entry = 0;
    friend bool operator>(const Quiet& a, const Quiet& b) {
      return a.key_ns != b.key_ns ? a.key_ns > b.key_ns : a.source > b.source;
    }
  };
  struct Input {
    SymbolId id = kNoSymbol;
    bool declared = false;
    bool opening = false;  // what its sources are is not known yet
    int64_t pace_ns = 0;
    int64_t furthest_ns = kNothing;
    std::vector<uint32_t> sources;  // that came on it
    std::priority_queue<Quiet, std::vector<Quiet>, std::greater<>> quiet;  // also of old entries
  };

  static uint64_t key_of(SymbolId id, uint32_t input) { return uint64_t{id} << 32 | input; }
  uint32_t find(SymbolId id, uint32_t input);
  uint32_t add(SymbolId id);
  void enter(uint32_t index, uint32_t input);
  void join(uint32_t index);
  /// The clock of a name on the input of that name.
  [[nodiscard]] std::optional<uint32_t> own_of(SymbolId id) const;
  void hold_no_more(SymbolId input);
  [[nodiscard]] int64_t quiet_after_ns() const { return idle_after_ns_ + 2 * lateness_ns_; }
  void open(Input& input);
  [[nodiscard]] bool is_behind(const Input& input, int64_t clock_ns) const;
  void make_quiet(uint32_t index);
  bool settle_active();
  [[nodiscard]] int64_t quiet_clock_ns(Input& input);
  void make_idle(uint32_t index);
  void assume_paces();
  void remove(size_t position);
  void sift_down(size_t position);
  void sift_up(size_t position);
  void place(size_t position, uint32_t index) {
    heap_[position] = index;
    sources_[index].heap_position = position;
  }
  [[nodiscard]] int64_t time(size_t position) const { return sources_[heap_[position]].max_ns; }
  /// Ties by index: which one is on top must not depend on how the heap came about.
  [[nodiscard]] bool before(size_t a, size_t b) const {
    return time(a) != time(b) ? time(a) < time(b) : heap_[a] < heap_[b];
  }

  int64_t lateness_ns_;
  int64_t idle_after_ns_;
  std::vector<Source> sources_;
  std::unordered_map<uint64_t, uint32_t> index_;  // by key_of()
  std::unordered_map<SymbolId, std::vector<uint32_t>> by_name_;
  std::vector<uint32_t> heap_;  // min-heap of active sources by max_ns
  std::vector<Input> inputs_;
  std::unordered_map<SymbolId, uint32_t> input_index_;
  std::vector<uint32_t> inputs_with_quiet_;
  size_t opening_ = 0;  // inputs
  uint64_t quiet_entries_ = 0;
  SymbolId last_id_ = 0;
  uint32_t last_input_ = 0;
  uint32_t last_index_ = 0;
  int64_t furthest_ns_ = kNothing;
  int64_t watermark_ns_ = kNothing;
  // Why 5 s: a longer pause is a daemon that stood still, and says nothing of its sources: else all
  // of them would be idle after a restart, and what they have to tell of the pause late.
  static constexpr int64_t kTickGapMaxNs = 5 * kNsPerSecond;
  // Why 2 s: two ticks; clocks that are kept by NTP agree to less.
  static constexpr int64_t kAheadOfWallMaxNs = 2 * kNsPerSecond;
  // Of one step beyond what the others went on meanwhile. Why 10 min: one wrong stamp must not make
  // the others silent for hours; in thin traces events are minutes apart.
  static constexpr int64_t kStepMaxNs = 10 * 60 * kNsPerSecond;
  // Why 6 h: more than a clock that is set to another zone's hour in most cases, and still what can
  // wait in memory.
  static constexpr int64_t kBehindMaxNs = 6 * 3600 * kNsPerSecond;
  int64_t last_tick_ns_ = kNothing;
  int64_t listened_ns_ = 0;  // wall time over which ticks came
};

}  // namespace reflex::stream
