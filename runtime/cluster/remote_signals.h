// RemoteSignals: firings that came from signal workers, beside the signals that need all nodes.
//
// The engine asks for firings as if it evaluated itself; what the workers sent is kept here until
// its place in the order has come. Records with kRecordMarker only tell the place.
#pragma once

#include <deque>
#include <vector>

#include "runtime/cluster/record_codec.h"
#include "runtime/engine/signal_stage.h"

namespace reflex::cluster {

class RemoteSignals : public engine::SignalStage {
 public:
  RemoteSignals(std::shared_ptr<const abi::CompiledPack> pack,
                std::shared_ptr<const topology::Topology> topology, eval::Options options);

  /// Firings of events: Firing::order is the place of the completing record; in that order.
  void add_event_firing(abi::Firing&& firing) { of_events_.push_back(std::move(firing)); }
  void add_timer_firing(abi::Firing&& firing) { of_timers_.push_back(std::move(firing)); }
  void add_samples(const std::vector<engine::FeatureSample>& samples);
  void forget_samples() { samples_.clear(); }
  /// What waits for its time; between two calls of process() no firing of an event does.
  void save(StateWriter& out, const RecordCodec& codec) const;
  void load(StateReader& in, const RecordCodec& codec);

  void process(std::span<const abi::Record* const> records, int64_t watermark_ns,
               std::vector<abi::Firing>& firings) override;
  void finish(int64_t end_ns, std::vector<abi::Firing>& firings) override;
  void sample(std::span<const abi::FeatureId> features, int64_t at_ns,
              std::vector<engine::FeatureSample>& out) override;
  void set_tables(std::shared_ptr<const abi::TableSnapshot> tables) override {
    global_.local().set_tables(std::move(tables));
  }
  eval::SignalEngine& local() override { return global_.local(); }

 private:
  void take_timers(int64_t before_ns, std::vector<abi::Firing>& firings);
  engine::LocalSignals global_;
  std::deque<abi::Firing> of_events_;
  std::vector<abi::Firing> of_timers_;  // any order
  std::vector<engine::FeatureSample> samples_;
  std::vector<const abi::Record*> whole_;  // reused
};

}  // namespace reflex::cluster
