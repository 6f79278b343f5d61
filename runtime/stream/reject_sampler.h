// RejectSampler: counts each rejected line and hands a sample of them to the sink.
#pragma once

#include <utility>

#include "runtime/stream/ndjson_decoder.h"

namespace reflex::stream {

class RejectSampler {
 public:
  RejectSampler(IngestCounters& counters, RejectSink sink)
      : counters_(&counters), sink_(std::move(sink)) {}
  [[nodiscard]] const RejectSink& sink() const { return sink_; }
  void set_sink(RejectSink sink) { sink_ = std::move(sink); }
  void reject(Reject reason, SymbolId source, uint64_t line, std::string_view text,
              std::string detail = {});

 private:
  // Why: enough to see what is wrong, too few to flood a log.
  static constexpr uint64_t kFirstSamples = 3;
  static constexpr uint64_t kSampleEvery = 1000;
  static constexpr size_t kTextBytes = 200;
  IngestCounters* counters_;
  RejectSink sink_;
};

}  // namespace reflex::stream
