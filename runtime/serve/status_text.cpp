// Lines of words and numbers; see status_text.h.
#include "runtime/serve/status_text.h"

#include <fmt/format.h>

#include "runtime/base/time.h"

namespace reflex::serve {
namespace {

std::string instant(int64_t ns) {
  return ns == INT64_MIN || ns == 0 ? "never" : to_rfc3339(EventTime{ns});
}

std::string lane_text(const LaneStatus& lane) {
  return fmt::format(
      "set {}, position {}, watermark {}, {} events, {} late, {} deduplicated, {} incidents open, "
      "{} keys, {} bytes of state, {} evictions",
      lane.set_sha256.substr(0, 12), lane.position, instant(lane.watermark_ns), lane.events,
      lane.late, lane.deduplicated, lane.incidents_open, lane.keys, lane.state_bytes,
      lane.evictions);
}

}  // namespace

std::string status_text(const Status& status) {
  std::string out = status.ready ? "ready\n" : "not ready: " + status.not_ready_because + "\n";
  if (!status.live.set_sha256.empty()) out += "live: " + lane_text(status.live) + "\n";
  if (status.shadow) out += "shadow: " + lane_text(*status.shadow) + "\n";
  out += fmt::format("journal: {} bytes, positions {} to {}\n", status.journal_bytes,
                     status.journal_begin, status.journal_end);
  out += fmt::format(
      "snapshot: {}{}{}\n", instant(status.last_snapshot_wall_ns),
      status.last_snapshot_error.empty() ? "" : ", then failed: ", status.last_snapshot_error);
  out += fmt::format("reloads: {} good, {} failed, the last one {}\n", status.reloads_ok,
                     status.reloads_failed, status.last_reload_ok ? "good" : "failed");
  for (const auto& source : status.sources) {
    out += fmt::format(
        "source {}: {} bodies, {} lines, {} bytes, newest event {}, lag {:.1f} s, {} "
        "bytes waiting{}{}\n",
        source.name, source.bodies, source.lines, source.bytes, instant(source.newest_ns),
        source.lag_s, source.queue_bytes, source.idle ? ", idle" : "",
        source.behind ? fmt::format(", {} messages at the broker", *source.behind) : "");
  }
  for (const auto& sink : status.sinks) {
    out += fmt::format("sink {}: {} delivered, {} waiting, {} failed attempts{}{}\n", sink.name,
                       sink.delivered, sink.queued, sink.failed,
                       sink.last_error.empty() ? "" : ", last: ", sink.last_error);
  }
  return out;
}

}  // namespace reflex::serve
