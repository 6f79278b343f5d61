// Prometheus text: see metrics_page.h. Source: prometheus/docs, exposition_formats.md.
#include "runtime/serve/metrics_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/base/time.h"

namespace reflex::serve {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class Page {
 public:
  /// Begins a family; samples follow.
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void sample(double value, const Labels& labels = {}, std::string_view suffix = "") {
    out_ += name_;
    out_ += suffix;
    char open = '{';
    for (const auto& [label, text] : labels) {
      out_ += fmt::format("{}{}=\"{}\"", open, label, escaped(text));
      open = ',';
    }
    out_ += labels.empty() ? " " : "} ";
    out_ += number(value);
    out_ += '\n';
  }
  void sample(uint64_t value, const Labels& labels = {}, std::string_view suffix = "") {
    sample(static_cast<double>(value), labels, suffix);
  }
  void one(std::string_view name, std::string_view type, std::string_view help, double value) {
    family(name, type, help);
    sample(value);
  }
  void one(std::string_view name, std::string_view type, std::string_view help, uint64_t value) {
    one(name, type, help, static_cast<double>(value));
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  std::string name_;
};

using Pairs = std::vector<std::pair<std::string, uint64_t>>;

/// A counter under one label; nothing when there is nothing.
void counted(Page& page, std::string_view name, std::string_view label, std::string_view help,
             const Pairs& counts, std::string_view type = "counter") {
  if (counts.empty()) return;
  page.family(name, type, help);
  uint64_t rest = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i >= kLabelsMax) {
      rest += counts[i].second;
    } else {
      page.sample(counts[i].second, {{label, counts[i].first}});
    }
  }
  if (counts.size() > kLabelsMax) page.sample(rest, {{label, "other"}});
}

Pairs by_first(const std::vector<CountOf>& counts) {
  Pairs out;
  for (const CountOf& c : counts) out.emplace_back(c.first, c.count);
  return out;
}

/// The same under two labels.
void counted_two(Page& page, std::string_view name, std::string_view first, std::string_view second,
                 std::string_view help, const std::vector<CountOf>& counts) {
  if (counts.empty()) return;
  page.family(name, "counter", help);
  uint64_t rest = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const CountOf& c = counts[i];
    if (i >= kLabelsMax) {
      rest += c.count;
    } else {
      page.sample(c.count, {{first, c.first}, {second, c.second}});
    }
  }
  if (counts.size() > kLabelsMax) page.sample(rest, {{first, "other"}, {second, "other"}});
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

void build_and_packs(Page& page, const MetricsInput& in) {
  page.family("reflex_build_info", "gauge", "Version of this daemon; always 1.");
  page.sample(uint64_t{1}, {{"version", in.version}, {"commit", in.commit}});
  page.one("reflex_ready", "gauge", "Whether a pack set is active and the journal is read.",
           uint64_t{in.status.ready ? 1u : 0u});
  if (!in.status.live.packs.empty()) {
    page.family("reflex_pack_info", "gauge", "Packs in force; always 1.");
    for (const auto& pack : in.status.live.packs) {
      page.sample(uint64_t{1},
                  {{"pack", pack.name}, {"version", pack.version}, {"sha256", pack.sha256}});
    }
  }
}

void reloads(Page& page, const Status& s) {
  page.one("reflex_config_last_reload_successful", "gauge",
           "Whether the last reload of packs succeeded.", uint64_t{s.last_reload_ok ? 1u : 0u});
  if (s.last_reload_ok && s.last_reload_wall_ns != 0) {
    page.one("reflex_config_last_reload_success_timestamp_seconds", "gauge",
             "When the packs in force were loaded.", seconds(s.last_reload_wall_ns));
  }
  page.family("reflex_reloads_total", "counter", "Reloads since the start.");
  page.sample(s.reloads_ok, {{"result", "ok"}});
  page.sample(s.reloads_failed, {{"result", "failed"}});
  page.family("reflex_reload_paths_total", "counter",
              "Swaps by how the state came along: in place, or saved and loaded.");
  page.sample(s.reloads_in_place, {{"path", "in_place"}});
  page.sample(s.reloads_restored, {{"path", "restored"}});
  page.one("reflex_reload_swap_seconds", "gauge",
           "How long no event was evaluated during the last swap.", s.last_swap_s);
  page.one("reflex_jit_compile_seconds", "gauge", "Compile time of the last load.",
           s.last_compile_s);
  if (s.live.jit_code_bytes > 0) {
    page.one("reflex_jit_code_bytes", "gauge", "Machine code of the rules in force.",
             s.live.jit_code_bytes);
  }
}

void events(Page& page, const Status& s) {
  const LaneStatus& lane = s.live;
  if (!lane.events_by_source_kind.empty()) {
    counted_two(page, "reflex_events_total", "source", "kind",
                "Events that were read, late and repeated ones among them.",
                lane.events_by_source_kind);
  } else {
    counted(page, "reflex_events_total", "kind", "Events that reached the rules.",
            lane.events_by_kind);
  }
  counted(page, "reflex_events_rejected_total", "reason", "Input that made no event.",
          lane.rejected_by_reason);
  if (!lane.late_by_source.empty()) {
    counted(page, "reflex_events_late_total", "source", "Events that came after the watermark.",
            by_first(lane.late_by_source));
  } else {
    page.one("reflex_events_late_total", "counter", "Events that came after the watermark.",
             lane.late);
  }
  page.one("reflex_events_deduplicated_total", "counter",
           "Events that a `dedup` of their kind folded into another one.", lane.deduplicated);
}

void sources(Page& page, const Status& s) {
  if (s.live.watermark_ns != kNoTimeNs) {
    page.one("reflex_watermark_timestamp_seconds", "gauge",
             "Event time up to which everything is evaluated.", seconds(s.live.watermark_ns));
  }
  if (s.sources.empty()) return;
  const size_t count = std::min(s.sources.size(), kLabelsMax);
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help,
                        auto&& value) {
    page.family(name, type, help);
    for (size_t i = 0; i < count; ++i) {
      page.sample(value(s.sources[i]), {{"source", s.sources[i].name}});
    }
  };
  page.family("reflex_watermark_lag_seconds", "gauge",
              "Wall clock minus the newest event of the source.");
  for (size_t i = 0; i < count; ++i) {
    if (s.sources[i].newest_ns == kNoTimeNs) continue;
    page.sample(s.sources[i].lag_s, {{"source", s.sources[i].name}});
  }
  each("reflex_source_idle", "gauge", "Whether the source holds back no watermark.",
       [](const SourceStatus& x) { return uint64_t{x.idle ? 1u : 0u}; });
  each("reflex_source_lines_total", "counter", "Lines accepted.",
       [](const SourceStatus& x) { return x.lines; });
  each("reflex_source_received_bytes_total", "counter", "Bytes accepted.",
       [](const SourceStatus& x) { return x.bytes; });
  each("reflex_source_rejected_total", "counter", "Lines that made no event.",
       [](const SourceStatus& x) { return x.rejected; });
  each("reflex_source_queue_bytes", "gauge", "Accepted and not yet evaluated.",
       [](const SourceStatus& x) { return x.queue_bytes; });
  const auto at_broker = [](const SourceStatus& x) { return x.behind.has_value(); };
  if (std::none_of(s.sources.begin(), s.sources.end(), at_broker)) return;
  page.family("reflex_source_behind_messages", "gauge",
              "Messages that the broker has and this source has not accepted.");
  for (size_t i = 0; i < count; ++i) {
    if (s.sources[i].behind) page.sample(*s.sources[i].behind, {{"source", s.sources[i].name}});
  }
}

/// Cumulative counts by upper bound, the last one infinite, and the sum.
void histogram(Page& page, const std::vector<std::pair<double, uint64_t>>& counts, double sum) {
  for (const auto& [bound, count] : counts) {
    page.sample(count, {{"le", number(bound)}}, "_bucket");
  }
  page.sample(sum, {}, "_sum");
  page.sample(counts.back().second, {}, "_count");
}

void evaluation(Page& page, const LaneStatus& lane) {
  if (!lane.evaluation_seconds.empty()) {
    page.family("reflex_evaluation_seconds", "histogram",
                "Time that the rules took for one step of the stream (up to 1 MiB of input).");
    histogram(page, lane.evaluation_seconds, lane.evaluation_seconds_sum);
  }
  counted(page, "reflex_evaluations_total", "signal", "Evaluations of conditions.",
          by_first(lane.evaluations_by_signal));
  counted(page, "reflex_signal_firings_total", "signal", "Firings of signals.",
          lane.firings_by_signal);
  counted_two(page, "reflex_signal_suppressed_total", "signal", "by",
              "Evidence that counted for nothing.", lane.suppressed_by_signal);
  counted(page, "reflex_partial_matches", "signal", "Partial matches of sequences that wait now.",
          by_first(lane.partials_by_signal), "gauge");
  page.one("reflex_partial_matches_dropped_total", "counter",
           "Partial matches beyond `limits { partials }`.", lane.partials_dropped);
  if (!lane.evictions_by_reason.empty()) {
    counted(page, "reflex_state_evictions_total", "reason", "Keys that lost their state.",
            by_first(lane.evictions_by_reason));
  } else {
    page.one("reflex_state_evictions_total", "counter", "Keys that lost their state.",
             lane.evictions);
  }
  page.one("reflex_state_bytes", "gauge", "State of all keys.", lane.state_bytes);
  if (!lane.keys_by_entity.empty()) {
    counted(page, "reflex_keys", "entity", "Entities with state.", by_first(lane.keys_by_entity),
            "gauge");
  } else {
    page.one("reflex_keys", "gauge", "Entities with state.", lane.keys);
  }
  page.one("reflex_profile_ambiguous_nodes", "gauge", "Nodes that match several profiles.",
           lane.ambiguous_nodes);
  counted(page, "reflex_regime_changes_total", "class", "Baselines that moved as a whole.",
          by_first(lane.regime_changes_by_class));
}

void verdicts(Page& page, const MetricsInput& in) {
  page.one("reflex_incidents_open", "gauge", "Incidents without a final verdict.",
           in.status.live.incidents_open);
  page.family("reflex_verdicts_total", "counter", "Verdicts, revisions included.");
  for (const auto& [labels, count] : in.verdicts) {
    page.sample(count, {{"fault", labels.first}, {"level", labels.second}});
  }
  page.one("reflex_verdict_revisions_total", "counter", "Verdicts that revised an earlier one.",
           in.revisions);
  if (in.latency.empty()) return;
  page.family("reflex_diagnosis_latency_seconds", "histogram",
              "From the event that opened an incident, when it was accepted, to the verdict.");
  double low = 0;
  double sum = 0;
  uint64_t before = 0;
  for (const auto& [bound, count] : in.latency) {
    page.sample(count, {{"le", number(bound)}}, "_bucket");
    // The port gives no sum: the middle of the bucket stands for each (an estimate, as quantiles
    // from buckets are).
    const double high = std::isinf(bound) ? low : bound;
    sum += (low + high) / 2 * static_cast<double>(count - before);
    low = high;
    before = count;
  }
  if (!std::isinf(in.latency.back().first)) page.sample(before, {{"le", "+Inf"}}, "_bucket");
  page.sample(sum, {}, "_sum");
  page.sample(before, {}, "_count");
}

void sinks(Page& page, const Status& s) {
  if (s.sinks.empty()) return;
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help,
                        uint64_t SinkStatus::*value) {
    page.family(name, type, help);
    for (const SinkStatus& sink : s.sinks) page.sample(sink.*value, {{"sink", sink.name}});
  };
  each("reflex_sink_queue_depth", "gauge", "Lines that are not delivered yet.",
       &SinkStatus::queued);
  each("reflex_sink_delivered_total", "counter", "Lines delivered.", &SinkStatus::delivered);
  each("reflex_sink_failures_total", "counter", "Attempts that failed.", &SinkStatus::failed);
  each("reflex_sink_dropped_total", "counter", "Lines that retention took before the sink.",
       &SinkStatus::dropped);
}

void storage(Page& page, const MetricsInput& in) {
  const Status& s = in.status;
  page.one("reflex_journal_bytes", "gauge", "Size of the journal.", s.journal_bytes);
  page.one("reflex_journal_unread_bytes", "gauge", "Accepted and not yet evaluated.",
           s.journal_end > s.live.position ? s.journal_end - s.live.position : 0);
  if (s.last_snapshot_wall_ns != 0) {
    page.one("reflex_snapshot_last_success_timestamp_seconds", "gauge",
             "When state was last saved.", seconds(s.last_snapshot_wall_ns));
  }
  page.one("reflex_snapshot_failing", "gauge", "Whether the last snapshot failed.",
           uint64_t{s.last_snapshot_error.empty() ? 0u : 1u});
  page.one("reflex_store_bytes", "gauge", "Size of the store of verdicts.", in.store_file_bytes);
}

void http(Page& page, const MetricsInput& in) {
  page.one("reflex_verdict_followers", "gauge", "Clients that follow verdicts.",
           uint64_t{in.followers});
  if (in.requests.empty()) return;
  page.family("reflex_http_requests_total", "counter", "Requests by route and status.");
  for (const auto& [key, count] : in.requests) {
    page.sample(count, {{"route", key.first}, {"code", std::to_string(key.second)}});
  }
}

}  // namespace

std::string metrics_page(const MetricsInput& input) {
  Page page;
  build_and_packs(page, input);
  reloads(page, input.status);
  events(page, input.status);
  sources(page, input.status);
  evaluation(page, input.status.live);
  verdicts(page, input);
  if (!input.thresholds.empty()) {
    page.family("reflex_threshold", "gauge", "Thresholds in force of hardware classes.");
    for (const auto& t : input.thresholds) {
      page.sample(t.value,
                  {{"profile", t.profile}, {"parameter", t.parameter}, {"origin", t.origin}});
    }
  }
  sinks(page, input.status);
  storage(page, input);
  http(page, input);
  return page.take();
}

}  // namespace reflex::serve
