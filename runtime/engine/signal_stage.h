// SignalStage: where an engine's firings come from: evaluation in this process, or in others.
//
// Contract: process() gets events in total order and complete up to the watermark, and appends all
// firings that are due in merged order, as eval::SignalEngine does. FeatureSamples are what the
// thresholds of a class are learned from; their order means nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/record.h"
#include "runtime/abi/table.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

/// Record::flags: only its time and its place in the order mean anything here; the rest is another
/// process's.
inline constexpr uint32_t kRecordMarker = 1u << 1;

/// The value of a feature on one entity of a node.
struct FeatureSample {
  abi::FeatureId feature = 0;
  SymbolId node = kNoSymbol;
  abi::ClassId hw_class = 0;
  double x = 0;
};

class SignalStage {
 public:
  virtual ~SignalStage() = default;
  virtual void process(std::span<const abi::Record* const> records, int64_t watermark_ns,
                       std::vector<abi::Firing>& firings) = 0;
  virtual void finish(int64_t end_ns, std::vector<abi::Firing>& firings) = 0;
  /// Values of node-keyed entities at a time up to which everything has been processed.
  virtual void sample(std::span<const abi::FeatureId> features, int64_t at_ns,
                      std::vector<FeatureSample>& out) = 0;
  virtual void set_tables(std::shared_ptr<const abi::TableSnapshot> tables) = 0;
  /// The evaluation that runs in this process: all of it, or what needs all nodes.
  virtual eval::SignalEngine& local() = 0;
};

/// Everything in this process.
class LocalSignals : public SignalStage {
 public:
  LocalSignals(std::shared_ptr<const abi::CompiledPack> pack,
               std::shared_ptr<const topology::Topology> topology, const eval::Options& options)
      : pack_(pack), engine_(std::move(pack), std::move(topology), options) {}
  void process(std::span<const abi::Record* const> records, int64_t watermark_ns,
               std::vector<abi::Firing>& firings) override {
    engine_.process(records, watermark_ns, firings);
  }
  void finish(int64_t end_ns, std::vector<abi::Firing>& firings) override {
    engine_.finish(end_ns, firings);
  }
  void sample(std::span<const abi::FeatureId> features, int64_t at_ns,
              std::vector<FeatureSample>& out) override;
  void set_tables(std::shared_ptr<const abi::TableSnapshot> tables) override {
    engine_.set_tables(std::move(tables));
  }
  eval::SignalEngine& local() override { return engine_; }

 private:
  std::shared_ptr<const abi::CompiledPack> pack_;
  eval::SignalEngine engine_;
};

using SignalStageMaker = std::function<std::unique_ptr<SignalStage>(
    std::shared_ptr<const abi::CompiledPack>, std::shared_ptr<const topology::Topology>,
    const eval::Options&)>;

}  // namespace reflex::engine
