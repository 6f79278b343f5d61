// Numbers: every strength, leak, prior and level of one incident, from the authors, the model and
// the measured tables (attribution.md sections 2, 3, 5, 7).
//
// Order of trust: measured at run time (leaks), then the model, then the author; a chance that is
// stated or learned for the windows of incidents bounds the measured one from below. Lazily cached, so
// one object serves all rankings of an incident; not for several threads. Borrows pack and Input.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "runtime/attribution/attribution.h"
#include "runtime/attribution/graded.h"
#include "runtime/attribution/latent.h"
#include "runtime/attribution/level_cache.h"

namespace reflex::attribution {

/// Rounded to a multiple of 2^-32: sums of such numbers are exact and do not depend on the order.
inline double round_nats(double nats) {
  const double x = nats * 0x1p32;
  if (!(std::fabs(x) < 0x1p51)) return std::nearbyint(x) * 0x1p-32;
  // nearbyint() without a call: a sum that large has no room for fractions.
  constexpr double kNoFractions = 0x1.8p52;
  return std::copysign(x + kNoFractions - kNoFractions, x) * 0x1p-32;
}

/// Benign chance of the edge's signal in the edge's window, by its author alone.
double author_leak(const abi::CompiledPack& pack, const abi::EdgePlan& edge);

class Numbers {
 public:
  Numbers(const abi::CompiledPack& pack, const Input& input, LevelCache& levels);

  [[nodiscard]] double strength(uint32_t edge, abi::ClassId c) const {
    return strengths_[edge * class_count_ + (c < class_count_ ? c : 0)];
  }
  /// Benign chance that `edge`'s signal shows on `view` (null: no node) in the edge's window.
  [[nodiscard]] double leak(uint32_t edge, const NodeView* view) const;
  /// "author", "model", "class hw.h100, 41000 h", "node n3, 800 h".
  [[nodiscard]] std::string leak_origin(uint32_t edge, const NodeView* view) const;
  /// Likelihood ratio "active : benign" of a firing, when observed parents leave `survive` of the
  /// benign silence. The weight of a member is log(1 - p + p * ratio).
  [[nodiscard]] static double fired_ratio(double leak, double survive);
  /// The same for graded evidence that speaks with likelihood ratio `a` for an episode (graded.h).
  [[nodiscard]] double soft_ratio(abi::SignalId s, double a, double survive) const;
  [[nodiscard]] double log_a(abi::SignalId s, const NodeView* view, const LeadCounts& counts) const;
  [[nodiscard]] bool votes(abi::SignalId s) const { return votes_[s] != 0; }
  [[nodiscard]] double episode_leak(abi::SignalId s) const { return laws_[s].episode_leak; }
  [[nodiscard]] bool graded(abi::SignalId s) const { return graded_[s] != 0; }

  [[nodiscard]] const std::vector<abi::SignalId>& graded_signals() const { return graded_list_; }
  [[nodiscard]] int64_t longest_window_ns() const { return longest_window_ns_; }

  /// Prior log-odds against "none", before the temperature.
  [[nodiscard]] double prior_nats(abi::CauseId c, const NodeView* view) const;
  [[nodiscard]] double hazard(abi::CauseId c, const NodeView& view) const;
  /// What the finished weight of a signal's terms is multiplied by (calibration layer).
  [[nodiscard]] double multiplier(abi::SignalId s) const { return multipliers_[s]; }
  [[nodiscard]] double temperature() const { return temperature_; }
  [[nodiscard]] double synergy_nats(uint32_t synergy) const;
  [[nodiscard]] double co_culprit_nats() const;
  [[nodiscard]] double degrading_elsewhere() const;
  /// What the agreement on one part is multiplied by (calibration layer).
  [[nodiscard]] double agreement_multiplier() const;
  /// What "ailing for another reason" is multiplied by (calibration layer).
  [[nodiscard]] double ailing_multiplier() const;
  [[nodiscard]] abi::DecisionLevels levels(abi::ClassId c) const;
  [[nodiscard]] const abi::Model* model() const { return model_; }
  /// level_weights(p), kept: the same few strengths are asked for again and again.
  [[nodiscard]] const Levels& weights(double p) const;

 private:
  struct Law {
    GradedLaw law;
    double episode_leak = 0;
  };
  [[nodiscard]] const abi::BenignRate& rate(abi::SignalId s, const NodeView& view) const;
  [[nodiscard]] double stated_rate(abi::SignalId s, double fallback) const;
  [[nodiscard]] bool learned_leak(abi::SignalId s) const;
  [[nodiscard]] double scaled_hazard(double factor) const;
  void add_strengths();
  void add_laws();

  const abi::CompiledPack& pack_;
  const Input& input_;
  const abi::Model* model_;
  const abi::TableSnapshot* tables_;
  size_t class_count_ = 1;
  std::vector<double> strengths_;     // [edge * classes + class]
  std::vector<double> author_leaks_;  // [edge]
  std::vector<double> stated_leaks_;  // [edge] the model's, else the author's
  std::vector<uint8_t> graded_;       // [signal]
  std::vector<uint8_t> votes_;        // [signal]
  std::vector<Law> laws_;             // [signal]
  std::vector<abi::SignalId> graded_list_;
  int64_t longest_window_ns_ = 0;
  std::vector<double> multipliers_;  // [signal]
  double temperature_ = 1;
  struct Known {
    bool asked = false;
    abi::BenignRate rate;
  };
  mutable std::vector<std::vector<Known>> rates_;  // [signal][Input::nodes]
  mutable std::vector<double> hazards_;            // [Input::nodes] of all faults; NaN: not asked
  LevelCache& shared_levels_;
  mutable LevelWeights level_weights_;
  double job_nodes_ = 1;
};

}  // namespace reflex::attribution
