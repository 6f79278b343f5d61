// NDJSON lines -> records (events.md "Event"). Schema-guided: only fields that a rule reads are
// converted; key order is predicted from the previous line of the same kind, simdjson is the
// fallback for everything unusual, so that the common line costs ~100 ns.
//
// Errors: a bad line is counted by reason and sampled, never fatal. A field of wrong type is
// missing (counted), unless it is a key: then the event is rejected.
// Threads: one decoder a thread; they share only the SymbolTable.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/symbols.h"
#include "runtime/stream/slab.h"

namespace reflex::stream {

enum class Reject : uint8_t {
  kBadJson,
  kNotObject,
  kMissingTs,
  kBadTs,
  kMissingKind,
  kUnknownKind,
  kMissingKey,
  kLineTooLong,
  kBinary,
  kBadUtf8,
  kFutureTs,
  kClockJump,
  kNegativeTs,
  kLate,
  kDuplicate,
  kUnreadable,  // the rest of a source: truncated or damaged compression
  kCount,
};
std::string_view to_text(Reject reason);  // "bad_json", "unknown_kind", ...

struct IngestCounters {
  uint64_t lines = 0;
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t unmatched_lines = 0;  // log lines that no decoder matched (not an error)
  uint64_t unknown_fields = 0;
  uint64_t bad_fields = 0;  // of wrong type: field missing
  uint64_t deduplicated = 0;
  uint64_t ahead_of_arrival = 0;  // their time is that of their arrival
  std::array<uint64_t, static_cast<size_t>(Reject::kCount)> rejected{};
  void add(const IngestCounters& other);
  [[nodiscard]] uint64_t rejected_total() const;
};

/// Called for a sample of rejected lines (first 3 of each reason, then every 1000th).
struct RejectedLine {
  Reject reason;
  SymbolId source;
  uint64_t line;
  std::string_view text;  // cut to 200 bytes
  std::string detail;
};
using RejectSink = std::function<void(const RejectedLine&)>;

inline constexpr size_t kLineBytesMax = 1u << 20;  // Why: one event; a 1 GB line must not be kept

class NdjsonDecoder {
 public:
  /// `predict` = false sends every line through simdjson: the reference of the property test.
  explicit NdjsonDecoder(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink = {},
                         bool predict = true);
  ~NdjsonDecoder();
  /// `text` is whole lines, readable for simdjson padding (64 bytes) past its end. `first_line` is
  /// the 1-based number of its first line in `source`.
  void decode(std::string_view text, SymbolId source, uint64_t first_line, RecordBatch& out);
  [[nodiscard]] const IngestCounters& counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reflex::stream
