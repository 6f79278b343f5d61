// Names and sums of the ingest counters, and the sampling of rejected lines.
#include <array>

#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/reject_sampler.h"

namespace reflex::stream {

std::string_view to_text(Reject reason) {
  constexpr std::array<std::string_view, static_cast<size_t>(Reject::kCount)> kNames = {
      "bad_json",    "not_object",    "missing_ts", "bad_ts",    "missing_kind", "unknown_kind",
      "missing_key", "line_too_long", "binary",     "bad_utf8",  "future_ts",    "clock_jump",
      "negative_ts", "late",          "duplicate",  "unreadable"};
  const auto index = static_cast<size_t>(reason);
  return index < kNames.size() ? kNames[index] : "unknown";
}

void IngestCounters::add(const IngestCounters& other) {
  lines += other.lines;
  bytes += other.bytes;
  events += other.events;
  unmatched_lines += other.unmatched_lines;
  unknown_fields += other.unknown_fields;
  bad_fields += other.bad_fields;
  deduplicated += other.deduplicated;
  ahead_of_arrival += other.ahead_of_arrival;
  for (size_t i = 0; i < rejected.size(); ++i) rejected[i] += other.rejected[i];
}

uint64_t IngestCounters::rejected_total() const {
  uint64_t total = 0;
  for (uint64_t count : rejected) total += count;
  return total;
}

void RejectSampler::reject(Reject reason, SymbolId source, uint64_t line, std::string_view text,
                           std::string detail) {
  const uint64_t count = ++counters_->rejected[static_cast<size_t>(reason)];
  if (!sink_ || (count > kFirstSamples && count % kSampleEvery != 0)) return;
  sink_({reason, source, line, text.substr(0, kTextBytes), std::move(detail)});
}

}  // namespace reflex::stream
