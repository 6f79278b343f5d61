// JSON, Markdown and text; see report.h. HTML is in report_html.cpp.
#include "runtime/backtest/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace reflex::backtest {
namespace {

using Json = nlohmann::ordered_json;

double r4(double value) { return std::round(value * 1e4) / 1e4; }

Json scores_json(const Scores& s) {
  return {{"incidents", s.incidents},
          {"with_culprit", s.with_culprit},
          {"tp", s.tp},
          {"fp", s.fp},
          {"fn", s.fn},
          {"precision", r4(s.precision)},
          {"recall", r4(s.recall)},
          {"f1", r4(s.f1)},
          {"f1_interval", {r4(s.f1_low), r4(s.f1_high)}},
          {"exact", r4(s.exact)},
          {"ac1", r4(s.ac1)},
          {"ac3", r4(s.ac3)},
          {"ac5", r4(s.ac5)},
          {"mrr", r4(s.mrr)},
          {"none_accuracy", r4(s.none_accuracy)},  // null: no such incident
          {"needless_evictions", r4(s.needless_evictions)}};
}

Json reliability_json(const Reliability& r) {
  Json bins = Json::array();
  for (const auto& bin : r.bins) {
    bins.push_back({{"from", bin.low},
                    {"to", bin.high},
                    {"count", bin.count},
                    {"mean_p", r4(bin.mean_p)},
                    {"share_true", r4(bin.share)}});
  }
  return {{"ece", r4(r.ece)}, {"incidents", r.count}, {"bins", bins}};
}

Json comparison_json(const Comparison& c) {
  Json j{{"name", c.name}};
  j["scores"] = scores_json(c.metrics.all);
  j["strata"] = Json::array();
  for (const auto& s : c.metrics.strata) {
    if (s.group != "type" && s.group != "culprits") continue;
    j["strata"].push_back({{"group", s.group},
                           {"name", s.name},
                           {"f1", r4(s.scores.f1)},
                           {"none_accuracy", r4(s.scores.none_accuracy)}});
  }
  return j;
}

Json difference_json(const Difference& d) {
  return {{"incidents", d.incidents},
          {"figure", d.of_none ? "none_accuracy" : "f1"},
          {"with", r4(d.with)},
          {"without", r4(d.without)},
          {"difference", r4(d.without - d.with)},
          {"interval", {r4(d.low), r4(d.high)}}};
}

Json worth_json(const Worth& w) {
  return {{"part", w.part},         {"all", difference_json(w.all)},
          {"nats", r4(w.more.mean_nats)},
          {"nats_interval", {r4(w.more.low_nats), r4(w.more.high_nats)}},
          {"stratum", w.stratum},
          {"there", difference_json(w.there)},
          {"nats_there", r4(w.more_there.mean_nats)},
          {"nats_there_interval", {r4(w.more_there.low_nats), r4(w.more_there.high_nats)}}};
}

/// "-" where there is nothing to say.
std::string or_dash(double value) {
  return std::isnan(value) ? std::string("-") : fmt::format("{:.3f}", value);
}

/// "-" where no incident has a culprit: nothing was there to be found, so nothing was missed.
std::string if_culprits(const Scores& s, double value) {
  return s.with_culprit == 0 ? std::string("-") : or_dash(value);
}

std::string f1_text(const Scores& s) {
  if (s.with_culprit == 0) return "-";
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", s.f1, s.f1_low, s.f1_high);
}

std::string row(const std::string& name, const Scores& s, double ece) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.3f} | {} |\n", name,
                     s.incidents, if_culprits(s, s.precision), if_culprits(s, s.recall), f1_text(s),
                     or_dash(s.exact), if_culprits(s, s.ac1), if_culprits(s, s.ac3),
                     or_dash(s.none_accuracy), s.needless_evictions, or_dash(ece));
}

constexpr const char* kRowHead =
    "| | incidents | P | R | F1 [95 %] | exact | AC@1 | AC@3 | none right | needless | ECE |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|\n";

std::string comparisons_markdown(const Report& r) {
  std::string out;
  if (!r.ablations.empty()) {
    out +=
        "\n## What each part is worth\n\nwith -> without the part (difference [95 %, paired]); "
        "nats: how much more the truth surprises without it\n\n| left out | F1 | nats | own stratum | "
        "incidents | there | nats |\n|---|---|---|---|---|---|---|\n";
    for (const Worth& w : r.ablations) {
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", w.part, difference_text(w.all),
                         surprise_text(w.more), w.stratum, w.there.incidents,
                         difference_text(w.there), surprise_text(w.more_there));
    }
  }
  if (!r.baselines.empty()) {
    out += std::string("\n## Other methods on the same evidence\n\n") + kRowHead;
    out += row("**reflex**", r.metrics.all, r.metrics.reliability.ece);
    for (const auto& b : r.baselines) {
      out += row(b.name, b.metrics.all, b.metrics.reliability.ece);
    }
  }
  return out;
}

}  // namespace

std::string surprise_text(const MoreSurprise& more) {
  return fmt::format("{:+.3f} [{:+.3f}, {:+.3f}]", more.mean_nats, more.low_nats, more.high_nats);
}

std::string difference_text(const Difference& d) {
  if (d.incidents == 0) return "-";
  return fmt::format("{}{:.3f} -> {:.3f} ({:+.3f} [{:+.3f}, {:+.3f}])", d.of_none ? "none " : "",
                     d.with, d.without, d.without - d.with, d.low, d.high);
}

std::string to_json(const Report& r) {
  Json j;
  j["title"] = r.title;
  j["pack_sha256"] = r.pack_sha256;
  j["model_sha256"] = r.model_sha256.empty() ? Json(nullptr) : Json(r.model_sha256);
  j["from"] = r.from.empty() ? Json(nullptr) : Json(r.from);
  j["labels_bad"] = r.labels_bad;
  j["unanswered"] = r.metrics.unanswered;
  j["scores"] = scores_json(r.metrics.all);
  j["strata"] = Json::array();
  for (const auto& s : r.metrics.strata) {
    Json entry{{"group", s.group}, {"name", s.name}};
    entry.update(scores_json(s.scores));
    entry["ece"] = r4(s.ece);
    j["strata"].push_back(entry);
  }
  j["calibration"] = reliability_json(r.metrics.reliability);
  for (const auto& w : r.ablations) j["ablations"].push_back(worth_json(w));
  for (const auto& b : r.baselines) j["baselines"].push_back(comparison_json(b));
  j["worst"] = Json::array();
  for (const auto& w : r.worst) {
    j["worst"].push_back({{"incident", w.incident},
                          {"truth", w.truth},
                          {"said", w.said},
                          {"surprise_nats", r4(w.surprise)},
                          {"explanation", w.explanation}});
  }
  j["expectations_missed"] = r.missed;
  const auto& l = r.metrics.latency;
  j["latency_ms"] = {
      {"p50", r4(l.p50)}, {"p95", r4(l.p95)}, {"p99", r4(l.p99)}, {"max", r4(l.max)}};
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_markdown(const Report& r) {
  std::string out = fmt::format("# Backtest: {}\n\n", r.title);
  out += fmt::format("pack set `{}`, model {}, {}\n\n", r.pack_sha256.substr(0, 12),
                     r.model_sha256.empty() ? "none" : "`" + r.model_sha256.substr(0, 12) + "`",
                     r.from.empty() ? "all labelled incidents" : "incidents from " + r.from);
  out += kRowHead;
  out += row("**all**", r.metrics.all, r.metrics.reliability.ece);
  for (const auto& s : r.metrics.strata) out += row(s.group + " " + s.name, s.scores, s.ece);
  out += fmt::format("\nAC@5 {:.3f}, MRR {:.3f}; {} incidents without a verdict.\n",
                     r.metrics.all.ac5, r.metrics.all.mrr, r.metrics.unanswered);
  out += fmt::format(
      "\n## Calibration (best node of each incident), ECE {:.3f}\n\n"
      "| said | incidents | mean p | true |\n|---|---|---|---|\n",
      r.metrics.reliability.ece);
  for (const auto& bin : r.metrics.reliability.bins) {
    out += fmt::format("| {:.1f}-{:.1f} | {} | {:.3f} | {:.3f} |\n", bin.low, bin.high, bin.count,
                       bin.mean_p, bin.share);
  }
  out += comparisons_markdown(r);
  out += "\n## The worst incidents\n";
  for (const auto& w : r.worst) {
    out += fmt::format("\n### {}: {} (truth: {}), {:.1f} nats\n\n```\n{}\n```\n", w.incident,
                       w.said, w.truth, w.surprise, w.explanation);
  }
  const auto& l = r.metrics.latency;
  out += fmt::format(
      "\n## Latency (wall clock)\n\np50 {:.2f} ms, p95 {:.2f} ms, p99 {:.2f} ms, max "
      "{:.2f} ms\n",
      l.p50, l.p95, l.p99, l.max);
  for (const auto& missed : r.missed) out += "\n**Missed:** " + missed + "\n";
  return out;
}

std::string to_text(const Report& r) {
  std::string out = r.title + "\n";
  const auto line = [&](const std::string& name, const Scores& s, double ece) {
    out += fmt::format(
        "{:<28} {:>6}  P {:<5}  R {:<5}  F1 {:<20}  exact {:<5}  AC@1 {:<5}  AC@3 {:<5}  "
        "none {:<5}  ECE {}\n",
        name, s.incidents, if_culprits(s, s.precision), if_culprits(s, s.recall), f1_text(s),
        or_dash(s.exact), if_culprits(s, s.ac1), if_culprits(s, s.ac3), or_dash(s.none_accuracy),
        or_dash(ece));
  };
  line("all", r.metrics.all, r.metrics.reliability.ece);
  for (const auto& s : r.metrics.strata) line(s.group + " " + s.name, s.scores, s.ece);
  out += fmt::format("AC@5 {:.3f}  MRR {:.3f}  needless evictions {:.3f}  without verdict {}\n",
                     r.metrics.all.ac5, r.metrics.all.mrr, r.metrics.all.needless_evictions,
                     r.metrics.unanswered);
  if (!r.ablations.empty()) {
    out += "\nleft out: F1 with -> without (difference [95 %, paired]); nats of surprise more\n";
  }
  for (const Worth& w : r.ablations) {
    out += fmt::format("{:<17} {}  nats {}\n"
                       "  own stratum, {} incidents ({}): {}  nats {}\n",
                       w.part, difference_text(w.all), surprise_text(w.more), w.there.incidents,
                       w.stratum, difference_text(w.there), surprise_text(w.more_there));
  }
  if (!r.baselines.empty()) out += "\nother methods on the same evidence\n";
  for (const auto& b : r.baselines) line(b.name, b.metrics.all, b.metrics.reliability.ece);
  const auto& l = r.metrics.latency;
  out += fmt::format("latency p50 {:.2f} ms  p95 {:.2f} ms  p99 {:.2f} ms (wall clock)\n", l.p50,
                     l.p95, l.p99);
  return out;
}

}  // namespace reflex::backtest
