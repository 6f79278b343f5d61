// Raw log text of one node -> records, through the packs' `decoder` blocks (events.md A14).
//
// Steps a line: strip container and launcher prefixes, parse the time prefix (all forms of
// domain_reference.md 1.9), expand "message repeated N times", join continuation and folded lines,
// prefilter (RE2::Set), then the first matching `line` of a decoder makes the event. A line that user
// space wrote (LogPrefix::user_space) is not for decoders with `prefix kernel`; said once.
// Time: stamps without year or zone take them from the options; a stamp that goes back by more than
// half a year is taken as the next year (New Year). dmesg seconds-since-boot need `boot_ns`;
// without it they count from `base_ns`. A line without any stamp takes the stamp of the line before
// it. Of two absolute stamps on one line (shipper, then application) the outer one is the time. A
// gpu named by PCI address gets its index from `gpu_map`, else the address is its identity.
// Threads: one decoder per node and thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"
#include "runtime/base/state_stream.h"
#include "runtime/base/time.h"
#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/slab.h"

namespace reflex::stream {

struct LogOptions {
  int year = 0;               // 0: from the file's time
  int64_t utc_offset_ns = 0;  // --tz
  int64_t boot_ns = kNoTimeNs;
  int64_t base_ns = 0;  // for lines without any usable stamp: the file's time
  std::vector<std::pair<std::string, int>> gpu_map;  // PCI address (any spelling) -> gpu index
};

class LineMatcher;

/// The compiled patterns of all decoders of a pack set; shared by the logs of many nodes.
std::shared_ptr<const LineMatcher> compile_line_patterns(const abi::CompiledPack& pack);

class LogDecoder {
 public:
  /// `patterns` must come from `pack`; null compiles them for this decoder alone (~30 ms).
  LogDecoder(std::shared_ptr<const abi::CompiledPack> pack, SymbolId node, SymbolId source,
             const LogOptions& options, RejectSink sink = {},
             std::shared_ptr<const LineMatcher> patterns = nullptr);
  ~LogDecoder();
  /// Whole lines. Call finish() at the end of the source to flush folded lines.
  void decode(std::string_view text, uint64_t first_line, RecordBatch& out);
  void finish(RecordBatch& out);
  [[nodiscard]] const IngestCounters& counters() const;
  /// What the next line may depend on: lines that may fold, the last stamp, year, boot and file time.
  /// The zone and gpu_map stay those of this decoder's options; counters begin at zero. load() before
  /// the first line.
  void save(StateWriter& writer) const;
  Status load(StateReader& reader);
  /// Goes on for another set whose ids mean the same (abi/same_ids.h): nothing else changes.
  void use(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink);
  /// What was assumed or left out, each said once ("year 2026 assumed for stamps without one").
  [[nodiscard]] const std::vector<std::string>& notices() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reflex::stream
