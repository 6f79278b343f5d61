// Metrics of a backtest (methods.md section 7): labelled incidents against their final verdicts.
//
// Node-micro precision, recall and F1 are primary: TP = |P & T|, FP = |P \ T|, FN = |T \ P| over
// all incidents; culprits named on an incident without culprit are FP, a labelled incident without
// verdict is all FN. Pure and deterministic (the bootstrap has a fixed seed).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi/verdict.h"
#include "runtime/learn/labels.h"

namespace reflex::backtest {

/// One labelled incident and what was answered.
struct Case {
  learn::Label label;
  bool answered = false;
  std::string verdict;                       // id
  std::vector<std::string> culprits;         // of the final revision
  std::vector<abi::NodeProbability> ranked;  // best first
  std::string answer;                        // confirmed, suspected, external, none, undetermined
  std::string external;
  double latency_ms = 0;
  uint32_t job_nodes = 0;
  std::map<std::string, std::string> class_of;  // hardware class of each node named anywhere here
  /// Benign rate, as it was used, of each (node of class_of, signal that shows on it).
  std::map<std::pair<std::string, uint32_t>, double> benign_per_hour;
};

Case make_case(const learn::Label& label, const abi::Verdict* final_verdict);

struct Scores {
  size_t incidents = 0;
  size_t with_culprit = 0;
  size_t tp = 0, fp = 0, fn = 0;
  double precision = 0, recall = 0, f1 = 0;
  double f1_low = 0, f1_high = 0;    // 95 % bootstrap interval over incidents
  double exact = 0;                  // share of incidents with P == T
  double ac1 = 0, ac3 = 0, ac5 = 0;  // over incidents with a culprit: |top k & T| / min(k, |T|)
  double mrr = 0;
  /// Share of incidents without culprit on which nobody was named; NaN: there is no such incident.
  double none_accuracy = 0;
  double needless_evictions = 0;  // wrong nodes named, for each incident
};

struct ReliabilityBin {
  double low = 0;
  double high = 0;
  size_t count = 0;
  double mean_p = 0;
  double share = 0;  // that were true
};
/// Of the best node of each incident: its probability against whether it is a culprit.
struct Reliability {
  std::vector<ReliabilityBin> bins;  // 10 of equal width
  double ece = 0;                    // NaN: no method said a probability
  size_t count = 0;
};

struct Latency {
  double p50 = 0, p95 = 0, p99 = 0, max = 0;  // milliseconds of wall clock
};

struct Stratum {
  std::string group;  // type, culprits, fault, class, month
  std::string name;
  Scores scores;
  double ece = 0;
};

struct Metrics {
  Scores all;
  std::vector<Stratum> strata;  // by group, then name
  Reliability reliability;
  Latency latency;
  size_t unanswered = 0;
};

inline constexpr int kBootstrapSamples = 1000;

/// `resamples` 0: no interval.
Scores score(const std::vector<const Case*>& cases, int resamples = kBootstrapSamples);
Reliability reliability(const std::vector<const Case*>& cases);
Metrics measure(const std::vector<Case>& cases);

/// -log of the probability that was given to the truth, in nats; for "the ten worst".
double surprise(const Case& c);
bool is_exact(const Case& c);
/// The wrong ones with the largest surprise, worst first.
std::vector<const Case*> worst(const std::vector<Case>& cases, size_t count);

/// A requirement like "f1>=0.88", "implicit.f1 >= 0.85", "ece<=0.05"; names: those of
/// value_of(). Result: "" when met, else what is wrong.
struct Expectation {
  std::string name;
  bool at_least = true;
  double limit = 0;
  std::string text;
};
/// Null: not of that form.
bool parse_expectation(const std::string& text, Expectation& out);
/// f1, precision, recall, exact, ac1, ac3, ac5, mrr, none_accuracy, needless_evictions, ece, and
/// the same with a stratum before it: "implicit.f1", "several.f1", "hw.h100.f1", "2025-03.f1".
/// Whether `name` is a figure, of all ("f1") or of a part ("explicit.f1"): its last word is known.
bool is_figure(const std::string& name);
std::string figure_words();  // "f1, precision, .."
bool value_of(const Metrics& metrics, const std::string& name, double& out);
std::string check(const Metrics& metrics, const Expectation& expectation);

}  // namespace reflex::backtest
