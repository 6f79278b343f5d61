// DaemonPort: what the HTTP side may ask of the daemon. The one boundary between the two.
//
// Contract: every function may be called from any thread, blocks no longer than it says, and never
// throws. The daemon implements it (daemon.h); tests of the HTTP side use a fake.
// Times: event time unless the name says wall.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"

namespace reflex::engine {
class Engine;
}

namespace reflex::serve {

/// One body of input, in the daemon's own forms; adapters (CloudEvents, Alertmanager, OTLP) turn
/// theirs into event lines before.
struct IngestBody {
  enum class Form : uint8_t { kEvents, kLog };  // NDJSON of events.md | raw log text of `node`
  Form form = Form::kEvents;
  std::string source;  // name of the source: watermark, counters
  std::string node;    // of kLog
  std::string text;    // whole lines; the last '\n' may be missing
  std::string key;     // idempotency: a body with a key seen before is accepted and not read again
};

struct IngestAnswer {
  enum class Outcome : uint8_t {
    kAccepted,    // on disk
    kRepeated,    // the same key was accepted before
    kOverloaded,  // queues are full: try again after `retry_after_s` (HTTP 429)
    kNoSpace,     // the journal cannot grow (HTTP 507)
    kStopping,    // shutting down (HTTP 503)
  };
  Outcome outcome = Outcome::kAccepted;
  uint64_t position = 0;  // journal position after it
  uint64_t lines = 0;
  unsigned retry_after_s = 0;
  std::string error;
};

struct StateFate {  // one row of a migration plan (B6 rule 5)
  std::string name;
  std::string kind;  // "signal" | "feature"
  std::string fate;  // kept | trimmed | reset | new | removed
  std::string why;
  uint64_t bytes = 0;
};

struct ReloadAnswer {
  enum class Outcome : uint8_t {
    kSwapped,
    kUnchanged,
    kInvalid,
    kFailed,
    kBusy,
    kNoShadow,  // of promote(): nothing to promote
  };
  Outcome outcome = Outcome::kFailed;
  std::string set_sha256;                // in force now
  std::vector<std::string> diagnostics;  // JSON objects, as `reflex check --format json` prints
  std::vector<StateFate> plan;
  double compile_ms = 0;
  double restore_ms = 0;
  /// How the state came along: "in place" (nothing was copied) or "restored" (saved and loaded),
  /// and why it was not in place.
  std::string path, path_reason;
  double pause_us = 0;       // the longest time in which no event was evaluated
  uint64_t state_bytes = 0;  // that the new set took over
  // Keys of reflex.toml that are not what they were: in force now, and only after a restart.
  std::vector<std::string> config_applied, config_needs_restart;
  std::string error;  // of kFailed, kBusy, kNoShadow
};

struct SourceStatus {
  std::string name;
  uint64_t bodies = 0, lines = 0, bytes = 0;
  uint64_t rejected = 0;
  int64_t newest_ns = INT64_MIN;  // event time
  double lag_s = 0;               // wall clock - newest event
  bool idle = false;
  uint64_t queue_bytes = 0;        // accepted and not yet evaluated
  std::optional<uint64_t> behind;  // messages that wait at a broker; none: not of a broker
};

/// A count under one or two labels (source and kind, signal and by), in the order of the field's
/// name.
struct CountOf {
  std::string first, second;
  uint64_t count = 0;
};

/// Verdicts of a shadow that are kept to be looked at.
constexpr size_t kShadowVerdictsMax = 1000;

struct LaneStatus {
  std::string set_sha256;
  std::vector<abi::PackIdentity> packs;
  int64_t watermark_ns = INT64_MIN;
  uint64_t position = 0;  // of the journal: evaluated up to here
  uint64_t events = 0, late = 0, deduplicated = 0;
  uint64_t incidents_open = 0;
  std::vector<std::pair<std::string, uint64_t>> events_by_kind, firings_by_signal,
      rejected_by_reason;
  uint64_t keys = 0, state_bytes = 0, evictions = 0, partials_dropped = 0;
  // For /metrics; what is left empty has no line there.
  std::vector<CountOf> events_by_source_kind, late_by_source, evaluations_by_signal,
      suppressed_by_signal, keys_by_entity, evictions_by_reason, regime_changes_by_class,
      partials_by_signal;
  uint64_t ambiguous_nodes = 0, jit_code_bytes = 0;
  // Time that the rules took for one step of the stream: cumulative counts by upper bound, seconds.
  std::vector<std::pair<double, uint64_t>> evaluation_seconds;
  double evaluation_seconds_sum = 0;
};

struct SinkStatus {
  std::string name;
  uint64_t queued = 0;                 // lines that are not delivered yet
  uint64_t delivered = 0, failed = 0;  // lines, attempts
  uint64_t dropped = 0;                // lines that retention took before the sink had them
  std::string last_error;              // "" when the last attempt was good
};

struct Status {
  bool ready = false;
  std::string not_ready_because;  // "no pack set is active", "replaying the journal: 43 %"
  std::string started;            // what the start found, one line each
  LaneStatus live;
  std::shared_ptr<const LaneStatus> shadow;  // null: none
  int64_t shadow_since_ns = INT64_MIN;       // event time: the watermark that it began with
  std::vector<SourceStatus> sources;
  std::vector<SinkStatus> sinks;
  uint64_t journal_bytes = 0, journal_begin = 0, journal_end = 0;
  int64_t last_snapshot_wall_ns = 0;
  std::string last_snapshot_error;
  double last_snapshot_pause_us = 0;  // the live lane stood still
  uint64_t last_snapshot_bytes = 0;
  uint64_t reloads_ok = 0, reloads_failed = 0;
  uint64_t reloads_in_place = 0, reloads_restored = 0;  // of those that swapped: ReloadAnswer::path
  int64_t last_reload_wall_ns = 0;
  bool last_reload_ok = true;
  double last_swap_s = 0, last_compile_s = 0;
  std::shared_ptr<const ReloadAnswer> last_reload;  // of any cause (HTTP, SIGHUP); null: none yet
};

/// A verdict that was made live: already in the store.
struct LiveVerdict {
  uint64_t sequence = 0;  // of the store: SSE event id
  std::shared_ptr<const abi::Verdict> verdict;
  std::shared_ptr<const std::string> json;  // reflex.verdict/1, one line without '\n'
};

struct Feedback {
  std::string incident;
  std::string verdict_id;
  bool confirmed = true;
  std::vector<std::string> culprits;  // when wrong: what was at fault ("" = no node)
  std::string fault;
  std::string by;  // who
  std::string comment;
};

/// An operator's word that a signal on a node counts for nothing until then (A11). `lifted`: the
/// order of this id ends now.
struct SuppressionOrder {
  std::string id;
  std::string node, signal;  // empty: every one
  int64_t from_ns = 0, until_ns = 0;
  std::string reason, by;
  bool lifted = false;
};

class DaemonPort {
 public:
  virtual ~DaemonPort() = default;

  /// Returns when the body is on disk, or refused.
  virtual IngestAnswer accept(IngestBody&& body) = 0;
  /// Runs `look` on the live lane's thread between two batches and returns when it has run; false
  /// when the daemon stops first or `timeout` passes: then `look` never runs afterwards (it may
  /// refer to the caller's stack). `look` must be short (the stream waits).
  virtual bool ask(const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look,
                   std::chrono::milliseconds timeout) = 0;
  virtual Status status() = 0;
  /// Compiles and swaps; seconds for large sets.
  virtual ReloadAnswer reload() = 0;
  /// `paths` of a candidate set; runs beside the live one until promote() or drop_shadow().
  virtual ReloadAnswer start_shadow(const std::vector<std::string>& paths) = 0;
  virtual ReloadAnswer promote() = 0;
  virtual reflex::Status drop_shadow() = 0;
  /// The newest verdicts of the shadow set (kShadowVerdictsMax), oldest first; empty without one.
  virtual std::vector<std::shared_ptr<const abi::Verdict>> shadow_verdicts() { return {}; }
  virtual reflex::Status snapshot() = 0;
  /// On disk (journal) when it returns; the engine learns it at its place in the stream.
  virtual reflex::Status feedback(const Feedback& feedback) = 0;
  /// The same for an order of suppression; engine::Engine::suppress() applies it.
  virtual reflex::Status suppress(const SuppressionOrder& order) {
    (void)order;
    return Error{"this daemon takes no orders of suppression"};
  }
  /// Calls `told` for every verdict from now on, from the lane's thread: only queue it there.
  virtual uint64_t subscribe(std::function<void(const LiveVerdict&)> told) = 0;
  virtual void unsubscribe(uint64_t subscription) = 0;
  /// Latency of diagnosis: cumulative counts of the histogram, upper bounds in seconds.
  virtual std::vector<std::pair<double, uint64_t>> diagnosis_latency() = 0;
};

}  // namespace reflex::serve
