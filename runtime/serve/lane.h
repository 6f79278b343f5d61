// Lane: one pack set at work on the journal: entries in, verdicts out.
//
// Contract: a deterministic function of the entries from position 0 on: what it gives does not
// depend on how many entries a step takes, and a lane that was loaded from the state of another one
// at position P goes on from P as that one would (same pack set), or as B6 rule 4 says (another).
// It reads no clock: wall time comes with the entries.
// Threads: one at a time.
// Bounds: memory is that of the engine and of `lateness` seconds of events; one step takes at most
// kStepBytes of text.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/load_report.h"
#include "runtime/base/result.h"
#include "runtime/base/state_stream.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory_names.h"
#include "runtime/engine/released_feed.h"
#include "runtime/policy/policy.h"
#include "runtime/serve/ingest_book.h"
#include "runtime/serve/journal.h"
#include "runtime/serve/pack_source.h"
#include "runtime/serve/port.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/reorder.h"

namespace reflex::serve {

struct LaneOptions {
  engine::EngineOptions engine;
  /// Texts; not read when engine.before is set. Null: none.
  std::shared_ptr<const std::vector<SourceText>> inventories;
  std::string set_key;  // LoadedSet::key
  /// Zone of log stamps without one, by source; others are UTC.
  std::map<std::string, int64_t> utc_offsets_ns;
};

struct LaneSinks {
  std::function<void(abi::Verdict&&)> verdict;  // required, as the others
  std::function<void(const policy::Alert&)> alert;
  std::function<void(const policy::ActionRequest&)> action;
  stream::RejectSink rejected;  // may be empty; a sample
};

class Lane {
 public:
  static Result<std::unique_ptr<Lane>> create(std::shared_ptr<const abi::CompiledPack> pack,
                                              const LaneOptions& options, LaneSinks sinks);

  /// Takes one entry; its events are evaluated by the next step().
  void apply(const Entry& entry);
  void step();
  /// Position behind the last entry taken.
  [[nodiscard]] uint64_t position() const { return position_; }
  /// Event time up to which everything was evaluated.
  [[nodiscard]] int64_t watermark_ns() const { return released_.watermark_ns; }
  void start_at(uint64_t position);

  /// After step(), before the next apply().
  void save(StateWriter& out) const;
  /// Into a new lane. Errors: bytes that are no state.
  reflex::Status load(StateReader& in, LoadReport& report);
  /// Whether the state of a lane at work can be taken over as it is: this one was made for it
  /// (LaneOptions::engine.before). "" when it can, else why not; then it is only to be dropped.
  [[nodiscard]] std::string cannot_take_over(const Lane& old) const;
  /// As load() of what `old` would save now, but that inventories are not read again, and with the
  /// counts of metrics. After step() of `old`, before its next apply(). `old` is hollow: only to be
  /// destroyed.
  void take_over(Lane& old, LoadReport& report);

  /// `said` was heard up to the same position, this lane was not: its incidents and alerts go on
  /// where those of `said` are. After step() of both.
  void follow(const Lane& said);

  [[nodiscard]] LaneStatus status() const;
  /// By name: what has been evaluated of each source (its queue is not known here).
  [[nodiscard]] std::vector<SourceStatus> sources() const;
  [[nodiscard]] const IngestBook& book() const { return book_; }
  engine::Engine& engine() { return *engine_; }
  [[nodiscard]] const engine::Engine& engine() const { return *engine_; }
  [[nodiscard]] const std::shared_ptr<const abi::CompiledPack>& pack() const { return pack_; }
  [[nodiscard]] const std::string& set_key() const { return options_.set_key; }
  /// Firings so far, by name of the signal, over reloads (the oracle of the reload test).
  [[nodiscard]] std::map<std::string, uint64_t> firings() const;

 private:
  struct Source {
    SymbolId symbol = kNoSymbol;
    uint64_t lines = 0;
    uint64_t rejected = 0;  // without what the log's decoder counts
    int64_t newest_ns = INT64_MIN;
    std::vector<uint64_t> kinds;                    // [KindId] events read by this lane
    std::map<std::string, uint64_t> earlier_kinds;  // by those whose state it loaded
    int64_t base_ns = 0;                            // of a log: wall time of its first body
    std::string node;                               // of a log
    std::unique_ptr<stream::LogDecoder> log;
  };
  Lane(std::shared_ptr<const abi::CompiledPack> pack, const LaneOptions& options, LaneSinks sinks);
  reflex::Status prepare();
  reflex::Status read_inventories();
  void make_policy();
  void load_alerts_of(const Lane& other, std::vector<std::string>& notes);
  void take_body(const Entry& entry, const BodyView& body);
  void take_feedback(const Entry& entry);
  void take_suppression(const SuppressionOrder& order);
  Source& source_of(std::string_view name);
  void open_log(Source& source, const std::string& name);
  void count(const stream::Released& released);
  [[nodiscard]] const std::shared_ptr<stream::Slab>& slab();
  [[nodiscard]] stream::IngestCounters counters() const;
  void fill_metrics(LaneStatus& status) const;
  [[nodiscard]] std::map<std::string, uint64_t> kinds_of(const Source& source) const;
  [[nodiscard]] static uint64_t rejected_of(const Source& source);
  [[nodiscard]] std::map<std::string, uint64_t> kinds() const;
  void save_sources(StateWriter& out) const;
  bool load_sources(StateReader& in);
  void save_counts(StateWriter& out) const;
  void load_counts(StateReader& in);

  std::shared_ptr<const abi::CompiledPack> pack_;
  LaneOptions options_;
  LaneSinks sinks_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<policy::Policy> policy_;
  std::unique_ptr<engine::InventoryNames> names_;
  std::unique_ptr<stream::Reorder> reorder_;
  std::unique_ptr<engine::ReleasedFeed> feed_;
  std::unique_ptr<stream::NdjsonDecoder> events_;
  std::shared_ptr<const stream::LineMatcher> line_patterns_;
  std::shared_ptr<stream::BlockPool> memory_ = std::make_shared<stream::BlockPool>();
  std::shared_ptr<stream::Slab> slab_;
  std::map<std::string, Source, std::less<>> sources_;
  IngestBook book_;
  stream::Released released_;
  uint64_t position_ = 0;
  int64_t wall_ns_ = INT64_MIN;  // of the newest entry

  // Counts since the journal began, kept over reloads and restarts.
  stream::IngestCounters earlier_;  // of the lanes before this one
  uint64_t late_ = 0;
  std::vector<uint64_t> kind_counts_;  // [KindId] of this lane
  std::map<std::string, uint64_t> earlier_kinds_;
  std::vector<uint64_t> signal_counts_;  // [SignalId] of this lane
  std::map<std::string, uint64_t> earlier_firings_;
  std::set<std::string> open_incidents_;
  std::map<std::string, SuppressionOrder> orders_;  // by id; those that are not lifted
};

}  // namespace reflex::serve
