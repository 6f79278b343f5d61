// Engine: one pack set at work. Released events in, verdicts out.
//
// Composition only: topology -> signals -> incidents -> attribution. Stages meet here and nowhere
// else. Threads: call from one thread; shards inside are the SignalEngine's. Deterministic for any
// thread count and batching (see eval/signal_engine.h, engine/incident_tracker.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"
#include "runtime/engine/adaptation.h"
#include "runtime/engine/coverage.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/incident_tracker.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/stream/reorder.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

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

  /// For benchmarks and metrics (count-only mode, firings by signal).
  eval::SignalEngine& signals() { return *signals_; }
  [[nodiscard]] eval::Counters counters() const { return signals_->counters(); }
  [[nodiscard]] const std::vector<eval::NearMiss>& near_misses() const {
    return signals_->near_misses();
  }
  [[nodiscard]] size_t incidents_opened() const { return incidents_->opened_count(); }
  [[nodiscard]] size_t triggers_unplaced() const { return incidents_->unplaced_count(); }
  /// Event time of the last event; kNoTimeNs before the first.
  [[nodiscard]] int64_t last_event_ns() const { return last_ts_ns_; }
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
  void note_site_kinds(const abi::Record& record);

  std::shared_ptr<const abi::CompiledPack> pack_;
  EngineSinks sinks_;
  std::shared_ptr<topology::Topology> topology_;
  Coverage coverage_;
  std::unique_ptr<eval::SignalEngine> signals_;
  std::unique_ptr<Adaptation> adaptation_;
  std::unique_ptr<IncidentTracker> incidents_;
  std::vector<uint8_t> is_log_source_;   // [SymbolId]: asked for every event
  std::vector<uint8_t> told_;            // [KindId] the incident tracker wants its records
  std::vector<uint8_t> tells_absence_;   // [SignalId]: has a `then absent` step
  std::vector<abi::Firing> firings_;     // reused
  uint64_t left_out_ = 0;
  int64_t last_ts_ns_ = kNoTimeNs;
  int64_t next_epoch_ns_ = kNoTimeNs;
  bool started_ = false;
};

}  // namespace reflex::engine
