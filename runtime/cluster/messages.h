// What the stages say to each other. Each message is one broker message; all carry the hash of the
// pack set, since numbers of kinds and signals mean nothing to another one.
//
//   EventBatch     router -> signal worker      records of a partition, and how far sources are
//   SignalBatch    signal worker -> attribution firings, the records that attribution needs
//   LimitTable     attribution -> signal worker thresholds in force from a whole hour on
//   OutcomeNotice  attribution -> attribution   what a final verdict says of nodes
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/adapt/thresholds.h"
#include "runtime/base/result.h"
#include "runtime/cluster/record_codec.h"
#include "runtime/engine/adaptation.h"
#include "runtime/engine/signal_stage.h"
#include "runtime/stream/slab.h"

namespace reflex::cluster {

struct EventBatch {
  uint64_t number = 0;  // from 1, of one partition
  stream::RecordBatch records;
  struct Progress {
    SymbolId source = kNoSymbol;
    int64_t newest_ns = 0;
  };
  struct Declared {
    SymbolId source = kNoSymbol;
    bool is_log = false;
    SymbolId node = kNoSymbol;  // whose log it is
  };
  std::vector<Declared> declared;    // before their first event
  std::vector<Progress> progress;    // of all partitions together
  std::vector<SymbolId> finished;    // sources that have ended
  int64_t tick_wall_ns = kNoTimeNs;  // live: the wall clock
  int64_t end_ns = kNoTimeNs;        // batch: nothing comes any more; time of the last event
};

struct SignalBatch {
  uint32_t partition = 0;
  uint64_t number = 0;  // from 1
  /// All events up to it are in, and all timers before it. INT64_MIN: nothing is known.
  int64_t watermark_ns = INT64_MIN;
  std::shared_ptr<stream::Slab> slab = std::make_shared<stream::Slab>();
  std::vector<abi::Record*> records;                            // in total order
  std::vector<std::pair<uint32_t, abi::Firing>> event_firings;  // index of the completing record
  std::vector<abi::Firing> timer_firings;
  std::vector<abi::Record*> late;  // parallel to late_after_ns
  std::vector<int64_t> late_after_ns;
  std::vector<std::pair<abi::KindId, int64_t>> seen_kinds;  // structured, first time
  std::vector<SymbolId> logged_nodes;
  std::vector<SymbolId> log_sources;
  /// The first whole hour that this worker will ask limits for; INT64_MAX: it has seen nothing.
  int64_t first_hour_ns = INT64_MAX;
  int64_t hour_ns = kNoTimeNs;  // samples are of this hour; limits are waited for
  std::vector<engine::FeatureSample> samples;
  int64_t end_ns = kNoTimeNs;  // this worker is done
};

struct LimitTable {
  int64_t hour_ns = 0;
  std::shared_ptr<const adapt::ThresholdRows> rows;
};

struct OutcomeNotice {
  std::string incident_key;
  engine::Adaptation::Outcome outcome;
};

void write_samples(StateWriter& out, const std::vector<engine::FeatureSample>& samples);
void read_samples(StateReader& in, std::vector<engine::FeatureSample>& samples,
                  const abi::CompiledPack& pack);

class MessageCodec {
 public:
  explicit MessageCodec(std::shared_ptr<const abi::CompiledPack> pack);
  [[nodiscard]] std::string encode(const EventBatch& batch) const;
  [[nodiscard]] std::string encode(const SignalBatch& batch) const;
  [[nodiscard]] std::string encode(const LimitTable& table) const;
  [[nodiscard]] std::string encode(const OutcomeNotice& notice) const;
  /// Errors: damaged, or of another pack set.
  [[nodiscard]] Result<EventBatch> event_batch(std::string_view bytes) const;
  [[nodiscard]] Result<SignalBatch> signal_batch(std::string_view bytes) const;
  [[nodiscard]] Result<LimitTable> limit_table(std::string_view bytes) const;
  [[nodiscard]] Result<OutcomeNotice> outcome(std::string_view bytes) const;

 private:
  [[nodiscard]] StateWriter start(std::string_view what) const;
  [[nodiscard]] Status enter(StateReader& in, std::string_view what) const;
  void write_row(StateWriter& out, const adapt::ThresholdRows::Row& row) const;
  [[nodiscard]] adapt::ThresholdRows::Row read_row(StateReader& in) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  RecordCodec records_;
};

}  // namespace reflex::cluster
