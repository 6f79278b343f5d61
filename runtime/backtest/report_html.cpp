// The HTML page of a backtest: tables and SVG plots in one file; see report.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/backtest/report.h"
#include "runtime/explain/escape.h"

namespace reflex::backtest {
namespace {

constexpr const char* kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;color:#1a1a1a}"
    "table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .7em;text-align:right;"
    "border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}"
    "pre{background:#f6f6f6;padding:.8em;overflow:auto}svg text{font:11px system-ui,sans-serif}"
    ".missed{color:#a00}summary{cursor:pointer}";
constexpr const char* kBlue = "#2563a8";
constexpr const char* kGrey = "#999";

std::string or_dash(double value) {
  return std::isnan(value) ? std::string("-") : fmt::format("{:.3f}", value);
}

/// Without an incident that has a culprit nothing was there to be found: a dash, not a zero.
std::string scores_row(const std::string& name, const Scores& s, double ece) {
  const auto found = [&](double value) {
    return s.with_culprit == 0 ? std::string("-") : or_dash(value);
  };
  const std::string interval =
      s.with_culprit == 0 ? "-" : fmt::format("{:.3f}-{:.3f}", s.f1_low, s.f1_high);
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
      explain::html(name), s.incidents, found(s.precision), found(s.recall), found(s.f1), interval,
      or_dash(s.exact), found(s.ac1), found(s.ac3), or_dash(s.none_accuracy), or_dash(ece));
}

constexpr const char* kHead =
    "<table><tr><th></th><th>incidents</th><th>P</th><th>R</th><th>F1</th><th>95 %</th>"
    "<th>exact</th><th>AC@1</th><th>AC@3</th><th>none right</th><th>ECE</th></tr>\n";

/// Said probability against the share that was true; the area of a dot is its number of incidents.
std::string reliability_plot(const Reliability& r) {
  constexpr double kSize = 260;
  constexpr double kPad = 40;
  const auto x = [](double v) { return kPad + v * kSize; };
  const auto y = [](double v) { return kPad / 2 + (1 - v) * kSize; };
  std::string svg = fmt::format(
      "<svg width=\"{0}\" height=\"{0}\" role=\"img\"><title>reliability</title>"
      "<rect x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{3}\" fill=\"none\" stroke=\"#ccc\"/>"
      "<line x1=\"{1}\" y1=\"{4}\" x2=\"{5}\" y2=\"{2}\" stroke=\"{6}\" stroke-dasharray=\"4\"/>",
      kSize + kPad * 2, kPad, kPad / 2, kSize, kPad / 2 + kSize, kPad + kSize, kGrey);
  for (const auto& bin : r.bins) {
    if (bin.count == 0) continue;
    const double share = static_cast<double>(bin.count) / static_cast<double>(r.count);
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\".7\"><title>"
        "{:.1f}-{:.1f}: {} incidents, said {:.3f}, true {:.3f}</title></circle>",
        x(bin.mean_p), y(bin.share), 3 + 14 * share, kBlue, bin.low, bin.high, bin.count,
        bin.mean_p, bin.share);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">said probability</text>"
      "<text x=\"12\" y=\"{}\" transform=\"rotate(-90 12 {})\" text-anchor=\"middle\">share true"
      "</text></svg>\n",
      kPad + kSize / 2, kPad / 2 + kSize + 20, kPad / 2 + kSize / 2, kPad / 2 + kSize / 2);
  return svg;
}

struct Bar {
  std::string name;
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Horizontal bars from 0 to 1 with their intervals.
std::string bar_plot(const std::string& title, const std::vector<Bar>& bars) {
  constexpr double kLeft = 190;
  constexpr double kWidth = 420;
  constexpr double kRow = 20;
  std::string svg = fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\"><title>{}</title>",
                                kLeft + kWidth + 60, kRow * static_cast<double>(bars.size()) + 24,
                                explain::html(title));
  double top = 6;
  for (const Bar& bar : bars) {
    svg += fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"12\" fill=\"{}\"/>",
        kLeft - 8, top + 11, explain::html(bar.name), kLeft, top + 1, bar.value * kWidth, kBlue);
    if (bar.high > bar.low) {
      svg += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.0f}\" x2=\"{:.1f}\" y2=\"{:.0f}\" "
          "stroke=\"#222\"/>",
          kLeft + bar.low * kWidth, top + 7, kLeft + bar.high * kWidth, top + 7);
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{:.3f}</text>",
                       kLeft + std::max(bar.value, bar.high) * kWidth + 6, top + 11, bar.value);
    top += kRow;
  }
  return svg + "</svg>\n";
}

std::string strata_plots(const Metrics& m) {
  std::string out;
  for (const char* group : {"type", "culprits", "class", "month", "fault"}) {
    std::vector<Bar> bars;
    for (const auto& s : m.strata) {
      if (s.group != group || s.scores.with_culprit == 0) continue;
      bars.push_back({s.name, s.scores.f1, s.scores.f1_low, s.scores.f1_high});
    }
    if (bars.empty()) continue;
    out +=
        fmt::format("<h3>F1 by {}</h3>\n", group) + bar_plot(std::string("F1 by ") + group, bars);
  }
  return out;
}

std::string comparisons(const Report& r) {
  std::string out;
  if (!r.ablations.empty()) {
    out +=
        "<h2>What each part is worth</h2>\n<p>With and without the part (difference, 95 % of "
        "pairs); nats: how much more the truth surprises without it.</p>\n<table><tr><th>left out</th>"
        "<th>F1</th><th>nats</th><th>own stratum</th><th>incidents</th><th>there</th><th>nats</th>"
        "</tr>\n";
    for (const Worth& w : r.ablations) {
      out += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td></tr>\n",
          explain::html(w.part), explain::html(difference_text(w.all)), surprise_text(w.more),
          explain::html(w.stratum), w.there.incidents, explain::html(difference_text(w.there)),
          surprise_text(w.more_there));
    }
    out += "</table>\n";
  }
  if (r.baselines.empty()) return out;
  out += "<h2>Other methods on the same evidence</h2>\n";
  std::vector<Bar> bars{{"reflex", r.metrics.all.f1, r.metrics.all.f1_low, r.metrics.all.f1_high}};
  for (const auto& b : r.baselines) {
    bars.push_back({b.name, b.metrics.all.f1, b.metrics.all.f1_low, b.metrics.all.f1_high});
  }
  out += bar_plot("F1 of other methods", bars) + kHead;
  for (const auto& b : r.baselines) {
    out += scores_row(b.name, b.metrics.all, b.metrics.reliability.ece);
  }
  return out + "</table>\n";
}

}  // namespace

std::string to_html(const Report& r) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Backtest: {0}"
      "</title><style>{1}</style></head><body>\n<h1>Backtest: {0}</h1>\n<p>pack set <code>{2}"
      "</code>, model <code>{3}</code>, {4}</p>\n",
      explain::html(r.title), kStyle, r.pack_sha256.substr(0, 12),
      r.model_sha256.empty() ? "none" : r.model_sha256.substr(0, 12),
      r.from.empty() ? "all labelled incidents" : "incidents from " + r.from);
  for (const auto& missed : r.missed) {
    out += fmt::format("<p class=\"missed\">Missed: {}</p>\n", explain::html(missed));
  }
  out += kHead + scores_row("all", r.metrics.all, r.metrics.reliability.ece);
  for (const auto& s : r.metrics.strata) out += scores_row(s.group + " " + s.name, s.scores, s.ece);
  out += fmt::format(
      "</table>\n<p>AC@5 {:.3f}, MRR {:.3f}, needless evictions for each incident "
      "{:.3f}; {} incidents without a verdict.</p>\n",
      r.metrics.all.ac5, r.metrics.all.mrr, r.metrics.all.needless_evictions, r.metrics.unanswered);
  out += fmt::format("<h2>Calibration, ECE {:.3f}</h2>\n", r.metrics.reliability.ece);
  out += reliability_plot(r.metrics.reliability);
  out += strata_plots(r.metrics);
  out += comparisons(r);
  out += "<h2>The worst incidents</h2>\n";
  for (const auto& w : r.worst) {
    out += fmt::format(
        "<details><summary>{}: {} (truth: {}), {:.1f} nats</summary><pre>{}</pre>"
        "</details>\n",
        explain::html(w.incident), explain::html(w.said), explain::html(w.truth), w.surprise,
        explain::html(w.explanation));
  }
  const auto& l = r.metrics.latency;
  out += fmt::format(
      "<h2>Latency (wall clock)</h2>\n<p>p50 {:.2f} ms, p95 {:.2f} ms, p99 {:.2f} ms,"
      " max {:.2f} ms</p>\n</body></html>\n",
      l.p50, l.p95, l.p99, l.max);
  return out;
}

}  // namespace reflex::backtest
