// Engine: one pack set at work. Released events in, verdicts out.
//
// Composition only: topology -> signals -> incidents -> attribution. Stages meet here and nowhere
// else. Threads: call from one thread; shards inside are the SignalEngine's. Deterministic for any
// thread count and batching (see eval/signal_engine.h, engine/incident_tracker.h).
//
// State (language.md B6): save() between two process() calls, also in a forked child: it takes no
// lock but the SymbolTable's shared one (at the fork no other thread may be interning) and changes
// nothing. load() into a new engine before its first event and before process(); it replaces
// the topology, coverage and log sources that were set. Into the same set it is exact: what follows
// is byte for byte what it would have been, for any thread counts before and after. Into another set
// what has the same name (or `was`) and shape comes along: incidents that are open keep their id,
// revision and evidence and are looked at again; evidence of removed signals, faults and incident
// types is dropped; nodes whose profile matches otherwise are bound anew.
// Verdict::id holds the pack set, so it changes with a reload: (incident, revision) is the key that
// tells a verdict that was given out before. It is never given twice for different moments, unless a
// state was loaded and the input after it is read again: then both are the same verdict.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/same_ids.h"
#include "runtime/abi/verdict.h"
#include "runtime/base/load_report.h"
#include "runtime/base/result.h"
#include "runtime/base/state_stream.h"
#include "runtime/engine/adaptation.h"
#include "runtime/engine/coverage.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/incident_tracker.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/stream/reorder.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

/// [KindId] whether incidents and adaptation want the records of a kind.
std::vector<uint8_t> told_kinds(const abi::CompiledPack& pack, const Adaptation& adaptation);
/// What a record says of the topology: placements, labels, repairs of any kind.
void apply_topology(const abi::Record& record, const abi::CompiledPack& pack,
                    topology::Topology& topology);

class Engine {
 public:
  /// Fails when the pack's cause graph cannot be built.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const abi::CompiledPack> pack,
                                                const EngineOptions& options, EngineSinks sinks);

  topology::Topology& topology() { return *topology_; }
  [[nodiscard]] std::shared_ptr<const topology::Topology> shared_topology() const {
    return topology_;
  }
  Coverage& coverage() { return coverage_; }
  /// Sources whose records come from logs (for coverage).
  void mark_log_source(SymbolId source) {
    if (source >= is_log_source_.size()) is_log_source_.resize(source + 1, 0);
    is_log_source_[source] = 1;
  }

  /// `records` in total order, complete up to `watermark_ns`.
  void process(std::span<const abi::Record* const> records, int64_t watermark_ns);
  void count_late(std::span<const abi::Record* const> records);
  /// End of input: due timers fire up to the last event, open incidents become final.
  void finish();

  void save(StateWriter& writer) const;
  /// After an Error the engine is to be dropped.
  Result<LoadReport> load(StateReader& reader);
  /// Whether the state of `old` (EngineOptions::before) can be taken over as it is; `old` may run.
  /// "" when it can; else why not: then another engine is made, without `before`, and loads it.
  [[nodiscard]] std::string cannot_take_over(const Engine& old);
  /// As load() of what `old` would save now. The cost is that of what has changed, not that of the
  /// state. Between two calls of either; after cannot_take_over() said "". `old` is only to be
  /// destroyed. The report is of rows without bytes.
  void take_over(Engine& old, LoadReport& report);
  /// `said` was heard up to the same event while this one, which has another set, was not: what it
  /// said of open incidents counts as said. Revisions go on behind its last ones.
  void follow(const Engine& said) { incidents_->follow(*said.incidents_, last_ts_ns_); }
  /// Nodes that came into the topology after load() (an inventory that was read again) are seen.
  void see_inventory();
  /// An operator says what was at fault. An incident that is open learns it with its final verdict,
  /// in place of the engine's own opinion; one that is over learns it now.
  void learn(const KnownIncident& known);

  /// An operator's order, from now on, by the time at which evidence began. Not part of the saved
  /// state: whoever restores an engine gives all orders again.
  void suppress(SuppressionOrder order) { adaptation_->suppress(std::move(order)); }

  /// For those who look at a running engine (API, console); on the thread of process().
  [[nodiscard]] const EvidenceLog& evidence() const { return incidents_->evidence(); }

  /// Threads to share work with, lent by whoever calls; null: none. They must outlive the calls.
  void set_crew(eval::Crew* crew) {
    signals_->local().set_crew(crew);
    incidents_->set_crew(crew);
  }
  /// For benchmarks and metrics (count-only mode, firings by signal).
  eval::SignalEngine& signals() { return signals_->local(); }
  [[nodiscard]] eval::Counters counters() const { return signals_->local().counters(); }
  [[nodiscard]] const std::vector<eval::NearMiss>& near_misses() const {
    return signals_->local().near_misses();
  }
  [[nodiscard]] size_t incidents_opened() const { return incidents_->opened_count(); }
  [[nodiscard]] size_t triggers_unplaced() const { return incidents_->unplaced_count(); }
  /// Event time of the last event; kNoTimeNs before the first.
  [[nodiscard]] int64_t last_event_ns() const { return last_ts_ns_; }
  /// Metrics; cheap, between two process() calls. Events by KindId since the engine was made.
  [[nodiscard]] const std::vector<uint64_t>& events_by_kind() const { return events_by_kind_; }
  [[nodiscard]] size_t incidents_open() const { return incidents_->open_count(); }
  [[nodiscard]] uint64_t late_events() const { return late_events_; }
  [[nodiscard]] const Adaptation& adaptation() const { return *adaptation_; }
  /// Firings that overlays left out: disabled signals, exceptions.
  [[nodiscard]] uint64_t firings_left_out() const { return left_out_; }

 private:
  Engine(std::shared_ptr<const abi::CompiledPack> pack,
         std::shared_ptr<const attribution::Graph> graph, const EngineOptions& options,
         EngineSinks sinks);
  /// Nothing seen from a source that is silent is no absence (A5): such firings are dropped.
  void drop_unobserved_absences();
  void drop_left_out();
  /// One piece between two epochs: the tables are the same for all of it.
  void process_piece(std::span<const abi::Record* const> records, int64_t watermark_ns);
  /// Whether the next epoch begins at or before `ts_ns`. A long silence has no epochs.
  [[nodiscard]] bool epoch_due(int64_t ts_ns) const;
  void begin_epoch();
  void deliver(const std::vector<const abi::Record*>& told, int64_t watermark_ns);
  bool load_clock(StateReader& reader);
  bool load_signals(StateReader& reader, abi::LoadNames& names, LoadReport& report);

  std::shared_ptr<const abi::CompiledPack> pack_;
  EngineSinks sinks_;
  std::shared_ptr<topology::Topology> topology_;
  Coverage coverage_;
  std::unique_ptr<SignalStage> signals_;
  std::unique_ptr<Adaptation> adaptation_;
  std::unique_ptr<IncidentTracker> incidents_;
  std::vector<uint8_t> is_log_source_;   // [SymbolId]: asked for every event
  std::vector<uint8_t> told_;            // [KindId] the incident tracker wants its records
  std::vector<uint8_t> tells_absence_;   // [SignalId]: has a `then absent` step
  std::vector<abi::Firing> firings_;     // reused
  std::vector<uint64_t> events_by_kind_;
  abi::SetChange change_;  // against the engine that is to be taken over
  LoadReport take_over_report_;
  uint64_t late_events_ = 0;
  uint64_t left_out_ = 0;
  int64_t last_ts_ns_ = kNoTimeNs;
  int64_t next_epoch_ns_ = kNoTimeNs;
  bool started_ = false;
};

}  // namespace reflex::engine
