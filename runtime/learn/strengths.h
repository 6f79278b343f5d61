// Strengths: the author's probabilities, updated by labelled incidents (attribution.md section 7).
//
// Labels name nodes, not faults: which fault of a labelled node it was is latent. EM: the faults
// of a culprit share one incident by their posterior (and by how well the fault goes with the
// site's own word for it, when labels have a `category`); each edge then is a coin with a Beta
// prior at the author's value. For what was seen with ratio r = P(seen | active) / P(seen |
// benign), the edge was the reason with probability p r / (1 - p + p r).
// Priors of causes and their class scales: the rates at which causes were true against the nodes
// that could have had them, with a Gamma prior at the author's value.
// Deterministic. Cost: iterations x fired terms of the true hypotheses.
#pragma once

#include <span>
#include <vector>

#include "runtime/learn/training_set.h"

namespace reflex::learn {

struct StrengthOptions {
  /// How many incidents the author's value counts as. Why 8: a number that a person wrote down is
  /// worth a handful of cases; 50 incidents of one fault overrule it, three do not.
  double pseudo_count = 8;
  double prior_pseudo_count = 8;
  double class_pseudo_count = 20;
  int iterations = 12;
};

struct Strengths {
  std::vector<double> edge_p;                    // [edge], NaN = the author's stands
  std::vector<double> edge_weight;               // [edge] incidents behind it
  std::vector<double> prior_scale;               // [cause] learned / author's
  std::vector<std::vector<double>> class_scale;  // [cause][class] learned / author's
  std::vector<double> cause_weight;              // [cause] incidents behind it
};

/// Fits on the incidents [first, last) of the set.
Strengths fit_strengths(const TrainingSet& set, size_t first, size_t last,
                        const StrengthOptions& options);

/// Numbers under which hypotheses are weighed.
class Weights {
 public:
  /// Null: the author's numbers.
  Weights(const TrainingSet& set, const Strengths* strengths);
  [[nodiscard]] double prior(const TrainingHypothesis& h) const;
  [[nodiscard]] double edge_p(uint32_t edge) const { return edge_p_[edge]; }
  [[nodiscard]] double term(const Term& term) const;
  [[nodiscard]] double silence(uint32_t edge) const { return silent_[edge]; }
  /// Prior plus all terms, without the count of alike nodes.
  [[nodiscard]] double log_odds(const TrainingHypothesis& h) const;

 private:
  const TrainingSet& set_;
  const Strengths* strengths_;
  std::vector<double> edge_p_;
  std::vector<double> silent_;   // [edge]
  std::vector<double> pattern_;  // [pattern]
  std::vector<double> group_;    // [group]
};

/// How often a signal fires on nodes that labels clear: [SignalId] per hour, NaN where labels do
/// not say more than what is measured at run time (fewer than 30 firings, a signal that victims
/// show too, or a rate within a factor of two of the one in the dossiers).
std::vector<double> fit_leaks(const TrainingSet& set, size_t first, size_t last);

}  // namespace reflex::learn
