// /metrics: a strict reader of the text format, and the names of language.md B7.
#include <cctype>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "runtime/serve/metrics_page.h"
#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

bool is_name(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == ':'; });
}

/// Reads a page as Prometheus does; everything that it would refuse is a failure.
class Reader {
 public:
  explicit Reader(const std::string& page) {
    std::istringstream lines(page);
    EXPECT_TRUE(page.ends_with('\n'));
    for (std::string line; std::getline(lines, line);) read(line);
  }
  [[nodiscard]] double value(const std::string& name,
                             const std::map<std::string, std::string>& labels = {}) const {
    for (const Sample& s : samples) {
      if (s.name == name && s.labels == labels) return s.value;
    }
    ADD_FAILURE() << name << " is not there";
    return NAN;
  }
  std::vector<Sample> samples;
  std::map<std::string, std::string> types;

 private:
  void read(const std::string& line) {
    if (line.starts_with("# ")) return comment(line);
    ASSERT_FALSE(line.empty());
    Sample s;
    size_t at = line.find_first_of("{ ");
    ASSERT_NE(at, std::string::npos) << line;
    s.name = line.substr(0, at);
    EXPECT_TRUE(is_name(s.name)) << line;
    if (line[at] == '{') at = labels(line, at + 1, s);
    ASSERT_EQ(line[at], ' ') << line;
    const std::string number = line.substr(at + 1);
    char* end = nullptr;
    s.value = number == "+Inf" ? INFINITY : strtod(number.c_str(), &end);
    EXPECT_TRUE(number == "+Inf" || *end == '\0') << line;
    std::string family = s.name;
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      const std::string base = family.substr(0, family.rfind(suffix));
      if (family.ends_with(suffix) && types.contains(base) && types[base] == "histogram")
        family = base;
    }
    EXPECT_EQ(family, family_) << line << ": samples of a family stand together, after its TYPE";
    std::string key = s.name;
    for (const auto& [name, text] : s.labels) key += "," + name + "=" + text;
    EXPECT_TRUE(seen_.insert(key).second) << "twice: " << line;
    if (types[family] == "counter") {
      EXPECT_TRUE(s.name.ends_with("_total")) << line;
      EXPECT_GE(s.value, 0) << line;
    }
    samples.push_back(s);
  }
  void comment(const std::string& line) {
    std::istringstream words(line);
    std::string hash, what, name, rest;
    words >> hash >> what >> name >> rest;
    EXPECT_TRUE(is_name(name)) << line;
    if (what == "HELP") {
      EXPECT_TRUE(helped_.insert(name).second) << "HELP twice: " << line;
      helped_last_ = name;
      return;
    }
    ASSERT_EQ(what, "TYPE") << line;
    EXPECT_EQ(name, helped_last_) << line;
    EXPECT_FALSE(types.contains(name)) << "TYPE twice: " << line;
    EXPECT_TRUE(rest == "counter" || rest == "gauge" || rest == "histogram") << line;
    types[name] = rest;
    family_ = name;
  }
  size_t labels(const std::string& line, size_t at, Sample& s) {
    while (line[at] != '}') {
      const size_t equals = line.find("=\"", at);
      EXPECT_NE(equals, std::string::npos) << line;
      const std::string name = line.substr(at, equals - at);
      EXPECT_TRUE(is_name(name)) << line;
      std::string text;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] != '\\') {
          text += line[at];
          continue;
        }
        ++at;
        EXPECT_TRUE(line[at] == '\\' || line[at] == '"' || line[at] == 'n') << line;
        text += line[at] == 'n' ? '\n' : line[at];
      }
      EXPECT_TRUE(s.labels.emplace(name, text).second) << line;
      ++at;
      if (line[at] == ',') ++at;
    }
    return at + 1;
  }
  std::string family_, helped_last_;
  std::set<std::string> helped_, seen_;
};

MetricsInput full() {
  MetricsInput in;
  in.version = "1.0\"\\\n";
  LaneStatus& lane = in.status.live;
  lane.packs = {{"std.nvidia", "1.0.0", "abc"}};
  lane.events_by_source_kind = {{"a\"b\\c\nd", "gpu.xid", 5}};
  lane.late_by_source = {{"s", "", 1}};
  lane.evaluations_by_signal = {{"p.hot", "", 9}};
  lane.suppressed_by_signal = {{"p.hot", "maintenance", 2}};
  lane.keys_by_entity = {{"node", "", 12}};
  lane.evictions_by_reason = {{"keys", "", 3}};
  lane.regime_changes_by_class = {{"hw.h100", "", 1}};
  lane.firings_by_signal = {{"p.hot", 4}};
  lane.rejected_by_reason = {{"unknown_kind", 7}};
  lane.watermark_ns = 5 * kNsPerSecond;
  lane.jit_code_bytes = 4096;
  lane.partials_by_signal = {{"p.after", "", 6}};
  lane.evaluation_seconds = {{0.001, 5}, {0.01, 7}, {INFINITY, 8}};
  lane.evaluation_seconds_sum = 0.25;
  SourceStatus source;
  source.name = "http/x";
  source.newest_ns = 1;
  source.lag_s = 1.5;
  in.status.sources = {source};
  in.status.sinks = {{"webhook", 3, 10, 1, 0, "refused"}};
  in.status.last_reload_wall_ns = 7 * kNsPerSecond;
  in.status.last_snapshot_wall_ns = 8 * kNsPerSecond;
  in.status.reloads_failed = 1;
  in.latency = {{0.01, 3}, {0.1, 4}};
  in.requests = {{{"/api/v1/events", 200}, 6}};
  in.verdicts = {{{"p.gpu", "confirmed"}, 2}};
  in.thresholds = {{"hw.h100", "heat_limit", "class", 74.5}};
  return in;
}

// Source: language.md B7. The time of evaluations is a histogram over steps of the stream instead
// of a counter by signal: a clock around each predicate would cost more than the predicate.
constexpr const char* kSpecified[] = {
    "reflex_build_info",
    "reflex_pack_info",
    "reflex_config_last_reload_successful",
    "reflex_config_last_reload_success_timestamp_seconds",
    "reflex_reloads_total",
    "reflex_reload_swap_seconds",
    "reflex_jit_compile_seconds",
    "reflex_jit_code_bytes",
    "reflex_events_total",
    "reflex_events_rejected_total",
    "reflex_events_late_total",
    "reflex_events_deduplicated_total",
    "reflex_watermark_lag_seconds",
    "reflex_source_idle",
    "reflex_evaluations_total",
    "reflex_evaluation_seconds",
    "reflex_partial_matches",
    "reflex_signal_firings_total",
    "reflex_signal_suppressed_total",
    "reflex_state_evictions_total",
    "reflex_state_bytes",
    "reflex_keys",
    "reflex_incidents_open",
    "reflex_verdicts_total",
    "reflex_verdict_revisions_total",
    "reflex_diagnosis_latency_seconds",
    "reflex_profile_ambiguous_nodes",
    "reflex_threshold",
    "reflex_regime_changes_total",
    "reflex_sink_queue_depth",
    "reflex_sink_dropped_total",
    "reflex_snapshot_last_success_timestamp_seconds",
};

TEST(Metrics, TheNamesOfTheSpecification) {
  const Reader page(metrics_page(full()));
  for (const char* name : kSpecified) {
    EXPECT_TRUE(page.types.contains(name)) << name;
  }
  EXPECT_EQ(page.value("reflex_events_total", {{"source", "a\"b\\c\nd"}, {"kind", "gpu.xid"}}), 5);
  EXPECT_EQ(page.value("reflex_reloads_total", {{"result", "failed"}}), 1);
  EXPECT_EQ(page.value("reflex_threshold",
                       {{"profile", "hw.h100"}, {"parameter", "heat_limit"}, {"origin", "class"}}),
            74.5);
  EXPECT_EQ(page.value("reflex_verdicts_total", {{"fault", "p.gpu"}, {"level", "confirmed"}}), 2);
}

TEST(Metrics, TheHistogramIsCumulativeAndEndsInInf) {
  const Reader page(metrics_page(full()));
  const std::string bucket = "reflex_diagnosis_latency_seconds_bucket";
  EXPECT_EQ(page.value(bucket, {{"le", "0.01"}}), 3);
  EXPECT_EQ(page.value(bucket, {{"le", "+Inf"}}), 4);
  EXPECT_EQ(page.value("reflex_diagnosis_latency_seconds_count"), 4);
  EXPECT_NEAR(page.value("reflex_diagnosis_latency_seconds_sum"), 3 * 0.005 + 0.055, 1e-12);
}

TEST(Metrics, TheTimeOfEvaluation) {
  const Reader page(metrics_page(full()));
  EXPECT_EQ(page.value("reflex_evaluation_seconds_bucket", {{"le", "0.01"}}), 7);
  EXPECT_EQ(page.value("reflex_evaluation_seconds_bucket", {{"le", "+Inf"}}), 8);
  EXPECT_EQ(page.value("reflex_evaluation_seconds_sum"), 0.25);
  EXPECT_EQ(page.value("reflex_evaluation_seconds_count"), 8);
  EXPECT_EQ(page.value("reflex_partial_matches", {{"signal", "p.after"}}), 6);
}

TEST(Metrics, LabelsAreBounded) {
  MetricsInput in = full();
  in.status.live.rejected_by_reason.clear();
  for (size_t i = 0; i < kLabelsMax + 100; ++i) {
    in.status.live.rejected_by_reason.emplace_back("reason" + std::to_string(i), 2);
  }
  const Reader page(metrics_page(in));
  EXPECT_EQ(page.value("reflex_events_rejected_total", {{"reason", "other"}}), 200);
}

TEST(Metrics, AnEmptyDaemonGivesAGoodPage) {
  const Reader page(metrics_page({}));
  EXPECT_EQ(page.value("reflex_ready"), 0);
  EXPECT_EQ(page.value("reflex_config_last_reload_successful"), 1);
}

/// Names of metrics in a file that people load into Prometheus or Grafana.
std::set<std::string> metrics_in(const std::string& path) {
  std::ifstream file(std::string(REFLEX_SOURCE_DIR) + "/runtime/serve/" + path);
  EXPECT_TRUE(file) << path;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> used;
  const std::regex name("reflex_[a-z_]+");
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    std::string metric = it->str();
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (metric.ends_with(suffix)) metric.resize(metric.size() - std::strlen(suffix));
    }
    used.insert(metric);
  }
  return used;
}

TEST(Metrics, AlertsAndTheDashboardUseMetricsThatExist) {
  const Reader page(metrics_page(full()));
  for (const auto& [path, at_least] :
       {std::pair<std::string, size_t>{"packaging/prometheus-alerts.yaml", 12},
        {"packaging/grafana-dashboard.json", 20}}) {
    const auto used = metrics_in(path);
    EXPECT_GE(used.size(), at_least) << path;
    for (const auto& metric : used)
      EXPECT_TRUE(page.types.contains(metric)) << path << ": " << metric;
  }
}

TEST(Metrics, TheDashboardShowsThoseOfTheSpecification) {
  const auto shown = metrics_in("packaging/grafana-dashboard.json");
  for (const char* name : kSpecified)
    EXPECT_TRUE(shown.contains(name)) << name << " is in no panel";
}

TEST(Metrics, OverHttp) {
  const Served s(false);
  s.daemon->publish(small_verdict("i9", 2, true));
  const auto reply = s.get("/metrics");
  EXPECT_EQ(reply.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const Reader page(reply.body);
  EXPECT_EQ(
      page.value("reflex_verdicts_total", {{"fault", "site.gpu_dead"}, {"level", "confirmed"}}), 1);
  EXPECT_EQ(page.value("reflex_verdict_revisions_total"), 1);
  EXPECT_EQ(page.value("reflex_build_info", {{"version", "9.9.9"}, {"commit", ""}}), 1);
  const Reader next(s.get("/metrics").body);
  EXPECT_EQ(next.value("reflex_http_requests_total", {{"route", "/metrics"}, {"code", "200"}}), 1);
}

}  // namespace
}  // namespace reflex::serve
