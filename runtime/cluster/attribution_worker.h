// AttributionWorker: the firings of all partitions -> verdicts of the jobs that it owns.
//
// Contract: SignalBatches of a partition come in the order of their numbers (repeated ones are
// ignored), those of several partitions in any order; what is decided depends on neither: records
// merge in the total order of stream::RecordOrder, up to the least watermark of all partitions.
// Same verdicts, byte for byte, as one process that reads the same events (within lateness, and as
// long as no `limits` of the packs are reached: they hold for each worker). Every attribution
// worker follows all firings (benign rates, thresholds, node history); only weighing is spread. At
// whole hours `limits` gets the thresholds in force; worker 0 publishes them. Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cluster/messages.h"
#include "runtime/cluster/remote_signals.h"
#include "runtime/engine/engine.h"
#include "runtime/stream/record_order.h"

namespace reflex::cluster {

class AttributionWorker {
 public:
  using Limits = std::function<void(const LimitTable&)>;
  /// `options.elsewhere` says which jobs are not this worker's; null: all are.
  static Result<std::unique_ptr<AttributionWorker>> create(
      std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions,
      engine::EngineOptions options, engine::EngineSinks sinks, Limits limits);

  /// For the inventory, before the first event.
  engine::Engine& engine() { return *engine_; }
  /// False: batches of its partition before it are missing.
  bool push(SignalBatch&& batch);
  /// Evaluates all that is complete.
  void advance();
  /// All partitions have ended, and so has this worker.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int64_t watermark_ns() const { return watermark_ns_; }

  /// Between two calls of advance().
  void save(StateWriter& out) const;
  /// Before the first batch; replaces the inventory. After an Error this is to be dropped.
  Status load(StateReader& in);

 private:
  struct Pending {
    abi::Record* record = nullptr;
    std::shared_ptr<stream::Slab> slab;
    std::vector<abi::Firing> firings;
  };
  struct Partition {
    uint64_t number = 0;
    int64_t watermark_ns = INT64_MIN;
    int64_t first_hour_ns = INT64_MAX;
    int64_t waits_ns = kNoTimeNs;
    int64_t end_ns = kNoTimeNs;
    std::deque<Pending> pending;  // in total order
    std::vector<engine::FeatureSample> samples;
  };
  struct Late {
    abi::Record* record = nullptr;
    std::shared_ptr<stream::Slab> slab;
    int64_t after_ns = 0;
  };
  AttributionWorker(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions,
                    Limits limits)
      : pack_(pack), limits_(std::move(limits)), order_(std::move(pack)), partitions_(partitions) {}

  [[nodiscard]] int64_t least_watermark() const;
  void merge(int64_t up_to_ns);
  void evaluate(int64_t watermark_ns);
  void count_late(int64_t before_ns);
  /// The next whole hour that all partitions have reached; kNoTimeNs when there is none.
  [[nodiscard]] int64_t hour_reached() const;
  void pass_hour(int64_t hour_ns);

  std::shared_ptr<const abi::CompiledPack> pack_;
  Limits limits_;
  stream::RecordOrder order_;
  std::vector<Partition> partitions_;
  std::unique_ptr<engine::Engine> engine_;
  RemoteSignals* signals_ = nullptr;                  // of the engine
  std::vector<const abi::Record*> ready_;             // of this call, in total order
  std::vector<std::shared_ptr<stream::Slab>> alive_;  // of ready_
  std::vector<Late> late_;
  uint64_t order_count_ = 0;
  int64_t watermark_ns_ = INT64_MIN;
  bool ended_ = false;
};

}  // namespace reflex::cluster
