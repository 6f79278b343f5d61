// Calibration: one non-negative multiplier for each signal, a temperature, and shifts of causes
// and against "none", fitted by conditional logit (attribution.md section 7).
//
// The likelihood of an incident is the posterior mass of what its label says: any hypothesis on a
// labelled culprit; without one, "none" and all external causes. L2 pulls every multiplier towards
// 1 and the rest towards no change, so that few incidents change little. Whether the layer is kept
// is not decided here (fit.h: only when it improves the log-loss on later incidents).
// Deterministic for any number of threads: fixed pieces, summed in order.
#pragma once

#include <vector>

#include "runtime/learn/strengths.h"
#include "runtime/learn/training_set.h"

namespace reflex::learn {

struct Calibration {
  /// [SignalId], then "ailing for another reason", then the history of the node (log
  /// hazard), then the agreement on one part.
  std::vector<double> multiplier;
  std::vector<double> synergy;      // [synergy] nats
  std::vector<double> cause_shift;  // [CauseId] nats, added to the prior
  double temperature = 1;
  double none_shift_nats = 0;
};

struct CalibrationOptions {
  double l2 = 20;  // what a multiplier of 0 or 2 costs, in half nats
  int iterations = 40;
  unsigned threads = 2;
};

/// Where the three that belong to no signal stand in Calibration::multiplier.
inline size_t ailing_at(const abi::CompiledPack& pack) { return pack.signals.size(); }
inline size_t history_at(const abi::CompiledPack& pack) { return pack.signals.size() + 1; }
inline size_t agreement_at(const abi::CompiledPack& pack) { return pack.signals.size() + 2; }

/// The layer that changes nothing.
Calibration no_calibration(const abi::CompiledPack& pack);

Calibration fit_calibration(const TrainingSet& set, const Weights& weights, size_t first,
                            size_t last, const Calibration& start,
                            const CalibrationOptions& options);

/// Mean over the incidents [first, last) of -log P(label), in nats. Labels that no hypothesis can
/// meet count as kUnreachableNats.
double log_loss(const TrainingSet& set, const Weights& weights, const Calibration& calibration,
                size_t first, size_t last);
inline constexpr double kUnreachableNats = 12;

/// Probabilities of the nodes of one incident, parallel to TrainingIncident::nodes.
std::vector<double> node_posterior(const TrainingSet& set, const Weights& weights,
                                   const Calibration& calibration,
                                   const TrainingIncident& incident);

}  // namespace reflex::learn
