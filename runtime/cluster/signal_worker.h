// SignalWorker: the events of one partition -> the firings of the nodes that it owns.
//
// Contract: EventBatches come in the order of their numbers; a number that was seen is ignored.
// advance() gives SignalBatches, numbered from 1, that depend on the events alone. At each whole
// hour of event time the worker hands over samples of features and waits for the limits in force
// from there on (only for packs with adaptive parameters): what is evaluated depends on all
// partitions. The evaluation of signals that need more than a node's own events happens in
// AttributionWorker. Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/cluster/messages.h"
#include "runtime/cluster/route.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/stream/reorder.h"
#include "runtime/topology/topology.h"

namespace reflex::cluster {

class SignalWorker {
 public:
  SignalWorker(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partition,
               uint32_t partitions);

  /// For the inventory, before the first event.
  topology::Topology& topology() { return *topology_; }
  /// False: batches before it are missing.
  bool push(EventBatch&& batch);
  void set_limits(const LimitTable& table);
  using Give = std::function<void(SignalBatch&&)>;
  void advance(const Give& give);
  /// The hour whose limits it waits for; kNoTimeNs: it does not wait.
  [[nodiscard]] int64_t waits_for_ns() const { return waits_for_ns_; }
  [[nodiscard]] bool ended() const { return ended_; }
  /// Whether it can be saved: all that was pushed is evaluated and given out.
  [[nodiscard]] bool is_settled() const;
  void save(StateWriter& out) const;
  /// Before the first batch; instead of the inventory. After an Error this is to be dropped.
  Status load(StateReader& in);

 private:
  void declare(const EventBatch::Declared& declared);
  void start_batch();
  void evaluate(size_t end, int64_t watermark_ns);
  /// True when the next hour comes at or before a time, and all before it has been evaluated.
  bool stop_at_hour(int64_t ts_ns, const Give& give);
  void finish_released(const Give& give);
  void give_out(int64_t watermark_ns, const Give& give);
  uint32_t hand_on(const abi::Record& record, bool marker);
  [[nodiscard]] bool is_handed_on(const abi::Record& record);

  std::shared_ptr<const abi::CompiledPack> pack_;
  uint32_t partition_;
  Route route_;
  std::shared_ptr<topology::Topology> topology_;
  stream::Reorder reorder_;
  std::unique_ptr<eval::SignalEngine> signals_;
  LimitTable limits_;            // in force; no rows: those of the start
  std::vector<uint8_t> wanted_;  // [KindId] attribution needs its records
  std::vector<abi::FeatureId> sampled_;
  std::vector<std::vector<abi::SlotForm>> forms_;  // [KindId]
  std::vector<bool> is_log_;                       // [SymbolId]
  std::vector<int64_t> seen_ns_;                   // [KindId] first structured one
  std::vector<SymbolId> logged_nodes_;             // not told yet
  std::vector<SymbolId> log_sources_;              // not told yet
  uint64_t events_number_ = 0;                     // of the last EventBatch
  uint64_t number_ = 0;

  stream::Released released_;
  size_t at_ = 0;       // of released_.records: evaluated before it
  bool busy_ = false;   // released_ is being evaluated
  bool fresh_ = false;  // something was pushed since the last release
  SignalBatch batch_;   // being filled
  int64_t first_hour_ns_ = INT64_MAX;
  int64_t next_hour_ns_ = kNoTimeNs;
  int64_t waits_for_ns_ = kNoTimeNs;
  int64_t watermark_ns_ = INT64_MIN;
  int64_t end_ns_ = kNoTimeNs;
  bool ended_ = false;
  std::vector<abi::Firing> firings_;
};

}  // namespace reflex::cluster
