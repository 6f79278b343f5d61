// Reports of a backtest: JSON for machines, Markdown for a review, one HTML page with plots (SVG,
// no script, nothing loaded from elsewhere), and a short text for the terminal.
//
// Deterministic but for latencies, which are wall clock and stand in a part of their own.
#pragma once

#include <string>
#include <vector>

#include "runtime/backtest/ablation.h"
#include "runtime/backtest/metrics.h"

namespace reflex::backtest {

/// The answers of another method.
struct Comparison {
  std::string name;
  Metrics metrics;
};

struct WorstCase {
  std::string incident;
  std::string truth;
  std::string said;
  double surprise = 0;
  std::string explanation;  // text of the verdict
};

struct Report {
  std::string title;  // packs, model, input
  std::string pack_sha256;
  std::string model_sha256;
  std::string from;  // RFC 3339; "" = everything
  size_t labels_bad = 0;
  Metrics metrics;
  std::vector<Worth> ablations;
  std::vector<Comparison> baselines;
  std::vector<WorstCase> worst;
  std::vector<std::string> missed;  // expectations that do not hold
};

std::string to_json(const Report& report);
std::string to_markdown(const Report& report);
std::string to_html(const Report& report);
std::string to_text(const Report& report);

/// "0.833 -> 0.801 (-0.032 [-0.041, -0.022])": with and without a part.
std::string difference_text(const Difference& d);
std::string surprise_text(const MoreSurprise& more);

}  // namespace reflex::backtest
