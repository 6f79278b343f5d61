// EM over latent faults; see strengths.h.
#include "runtime/learn/strengths.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reflex::learn {
namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
// Why: learned strengths keep a way out: no amount of data makes a signal certain or impossible.
constexpr double kLearnedMin = 0.002;
constexpr double kLearnedMax = 0.995;
// Why: a word that never met a fault may still come: half a case each (Jeffreys).
constexpr double kWordPseudo = 0.5;
constexpr double kScaleMin = 0.02;
constexpr double kScaleMax = 50;

// The members of a group are victims of one event, not independent witnesses: they count as at most
// this many trials. Why 4: one job shows how often peers are hit about as well as a few nodes
// would.
constexpr double kGroupTrials = 4;

/// P(the edge was the reason | what was seen), for ratio r = P(seen | active) / P(seen | benign).
double active(double p, double r) {
  const double of_edge = p * std::min(r, 1e30);
  return of_edge / (1 - p + of_edge);
}

/// One labelled culprit (or the external answer) and the hypotheses that share it.
struct Share {
  size_t incident = 0;
  uint32_t word = abi::kNone32;
  std::vector<uint32_t> hypotheses;
  std::vector<double> part;  // responsibilities, sum 1
};

class Fitter {
 public:
  Fitter(const TrainingSet& set, size_t first, size_t last, const StrengthOptions& options)
      : set_(set), first_(first), last_(last), options_(options) {
    const auto& pack = set.pack();
    s_.edge_p.assign(pack.edges.size(), kUnset);
    s_.edge_weight.assign(pack.edges.size(), 0);
    s_.prior_scale.assign(pack.causes.size(), 1);
    s_.class_scale.assign(pack.causes.size(), std::vector<double>(pack.classes.size(), 1));
    s_.cause_weight.assign(pack.causes.size(), 0);
    make_shares();
    words_.assign(word_ids_.size(), std::vector<double>(pack.causes.size(), 1));
  }

  Strengths run() {
    for (int i = 0; i < options_.iterations; ++i) {
      expect();
      words();
      edges();
      priors();
    }
    return std::move(s_);
  }

 private:
  uint32_t word_of(const Label& label) {
    const std::string& word = label.category.empty() ? label.external : label.category;
    if (word.empty()) return abi::kNone32;
    return word_ids_.emplace(word, static_cast<uint32_t>(word_ids_.size())).first->second;
  }

  void make_shares() {
    for (size_t i = first_; i < last_; ++i) {
      const auto& incident = set_.incidents()[i];
      // External or nothing at all: only a label that names an external cause teaches them.
      if (!incident.truth_is_node && incident.label.external.empty()) continue;
      std::map<uint32_t, Share> by_node;
      for (uint32_t k = 0; k < incident.hypotheses.size(); ++k) {
        const auto& h = incident.hypotheses[k];
        if (h.truth <= 0 || h.alike_log > 0) continue;
        auto& share = by_node[h.is_node ? h.node : abi::kNone32];
        share.hypotheses.push_back(k);
      }
      for (auto& [node, share] : by_node) {
        share.incident = i;
        share.word = word_of(incident.label);
        share.part.assign(share.hypotheses.size(), 0);
        shares_.push_back(std::move(share));
      }
    }
  }

  void expect() {
    const Weights weights(set_, &s_);
    for (auto& share : shares_) {
      const auto& all = set_.incidents()[share.incident].hypotheses;
      double top = -std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < share.part.size(); ++k) {
        const auto& h = all[share.hypotheses[k]];
        share.part[k] = weights.log_odds(h);
        if (share.word != abi::kNone32) share.part[k] += std::log(words_[share.word][h.cause]);
        top = std::max(top, share.part[k]);
      }
      double total = 0;
      for (double& part : share.part) total += part = std::exp(part - top);
      for (double& part : share.part) part /= total;
    }
  }

  /// words_[word][cause] = P(word | cause), smoothed.
  void words() {
    for (auto& row : words_) std::fill(row.begin(), row.end(), kWordPseudo);
    for_parts([&](const Share& share, const TrainingHypothesis& h, double part) {
      if (share.word != abi::kNone32) words_[share.word][h.cause] += part;
    });
    for (size_t cause = 0; cause < s_.prior_scale.size(); ++cause) {
      double total = 0;
      for (const auto& row : words_) total += row[cause];
      for (auto& row : words_) row[cause] /= total;
    }
  }

  void edges() {
    const auto& then = set_.author_p();
    std::vector<double> hits(then.size(), 0);
    std::vector<double> trials(then.size(), 0);
    const Weights weights(set_, &s_);
    for_parts([&](const Share&, const TrainingHypothesis& h, double part) {
      for (uint32_t edge : set_.patterns()[h.pattern].edges) trials[edge] += part;
      for (uint32_t k = 0; k < h.terms; ++k) {
        const Term& term = set_.terms()[h.term + k];
        const double p = term.edge == abi::kNone32 ? 0 : weights.edge_p(term.edge);
        if (term.what == Term::What::kFired || term.what == Term::What::kSilent) {
          trials[term.edge] += part;
          hits[term.edge] += part * active(p, std::exp(static_cast<double>(term.value)));
        } else if (term.what == Term::What::kGroup) {
          const auto& group = set_.groups()[term.index];
          const double n = std::min<double>(group.members, kGroupTrials);
          const double fired = static_cast<double>(group.fired) / group.members;
          trials[term.edge] += part * n;
          hits[term.edge] += part * n *
                             (fired * active(p, std::exp(group.log_ratio)) +
                              (1 - fired) * active(p, group.silent_ratio));
        }
      }
    });
    for (size_t e = 0; e < then.size(); ++e) {
      if (!set_.learnable()[e] || trials[e] <= 0) continue;
      const double n0 = options_.pseudo_count;
      s_.edge_p[e] =
          std::clamp((n0 * then[e] + hits[e]) / (n0 + trials[e]), kLearnedMin, kLearnedMax);
      s_.edge_weight[e] = trials[e];
    }
  }

  /// Rates by majorisation: scale = (pseudo + true cases) / (pseudo + expected at scale 1).
  void priors() {
    const size_t classes = set_.pack().classes.size();
    const size_t causes = s_.prior_scale.size();
    std::vector<double> seen(causes * classes, 0);
    for_parts([&](const Share&, const TrainingHypothesis& h, double part) {
      seen[h.cause * classes + h.hw_class] += part;
    });
    const std::vector<double> expected = expected_cases();
    for (size_t c = 0; c < causes; ++c) {
      double cases = 0;
      double base = 0;
      for (size_t k = 0; k < classes; ++k) {
        cases += seen[c * classes + k];
        base += expected[c * classes + k] * s_.class_scale[c][k];
      }
      const double n0 = options_.prior_pseudo_count;
      s_.cause_weight[c] = cases;
      s_.prior_scale[c] = std::clamp((n0 + cases) / (n0 + base), kScaleMin, kScaleMax);
      for (size_t k = 0; k < classes; ++k) {
        const double nk = options_.class_pseudo_count;
        const double base_k = expected[c * classes + k] * s_.prior_scale[c];
        s_.class_scale[c][k] =
            std::clamp((nk + seen[c * classes + k]) / (nk + base_k), kScaleMin, kScaleMax);
      }
    }
  }

  /// [cause * classes + class]: cases that the author's priors lead to, each incident being one
  /// draw among "none" and its hypotheses.
  std::vector<double> expected_cases() const {
    const size_t classes = set_.pack().classes.size();
    std::vector<double> expected(s_.prior_scale.size() * classes, 0);
    for (size_t i = first_; i < last_; ++i) {
      const auto& incident = set_.incidents()[i];
      double z = 1;
      for (const auto& h : incident.hypotheses) {
        z += std::exp(static_cast<double>(h.prior_nats) + static_cast<double>(h.alike_log)) *
             s_.prior_scale[h.cause] * s_.class_scale[h.cause][h.hw_class];
      }
      for (const auto& h : incident.hypotheses) {
        expected[h.cause * classes + h.hw_class] +=
            std::exp(static_cast<double>(h.prior_nats) + static_cast<double>(h.alike_log)) / z;
      }
    }
    return expected;
  }

  template <typename Visit>
  void for_parts(const Visit& visit) const {
    for (const auto& share : shares_) {
      const auto& all = set_.incidents()[share.incident].hypotheses;
      for (size_t k = 0; k < share.part.size(); ++k) {
        visit(share, all[share.hypotheses[k]], share.part[k]);
      }
    }
  }

  const TrainingSet& set_;
  size_t first_;
  size_t last_;
  const StrengthOptions& options_;
  Strengths s_;
  std::map<std::string, uint32_t> word_ids_;
  std::vector<std::vector<double>> words_;
  std::vector<Share> shares_;
};

}  // namespace

Strengths fit_strengths(const TrainingSet& set, size_t first, size_t last,
                        const StrengthOptions& options) {
  return Fitter(set, first, last, options).run();
}

Weights::Weights(const TrainingSet& set, const Strengths* strengths)
    : set_(set), strengths_(strengths), edge_p_(set.author_p()) {
  for (size_t e = 0; e < edge_p_.size(); ++e) {
    if (strengths && !std::isnan(strengths->edge_p[e])) edge_p_[e] = strengths->edge_p[e];
    silent_.push_back(std::log(1 - edge_p_[e]));
  }
  for (const auto& pattern : set.patterns()) {
    double sum = 0;
    for (uint32_t edge : pattern.edges) sum += silent_[edge];
    pattern_.push_back(sum);
  }
  std::vector<attribution::Levels> levels;  // [edge]
  for (const double p : edge_p_) levels.push_back(attribution::level_weights(p));
  for (size_t g = 0; g < set.groups().size(); ++g) {
    const auto& shape = set.shapes()[g];
    group_.push_back(shape.rest + attribution::mix(levels[set.groups()[g].edge], shape.levels));
  }
}

double Weights::prior(const TrainingHypothesis& h) const {
  const double prior = static_cast<double>(h.prior_nats);
  if (!strengths_) return prior;
  return prior +
         std::log(strengths_->prior_scale[h.cause] * strengths_->class_scale[h.cause][h.hw_class]);
}

double Weights::term(const Term& term) const {
  switch (term.what) {
    case Term::What::kFixed:
    case Term::What::kSynergy:
      return static_cast<double>(term.value);
    case Term::What::kGroup:
      return group_[term.index];
    case Term::What::kFired:
    case Term::What::kSilent:
      break;
  }
  const double p = edge_p_[term.edge];
  return std::log(1 - p + p * std::exp(static_cast<double>(term.value)));
}

double Weights::log_odds(const TrainingHypothesis& h) const {
  double sum = prior(h) + static_cast<double>(h.ailing_nats) +
               static_cast<double>(h.agreement_nats) + pattern_[h.pattern];
  for (uint32_t k = 0; k < h.terms; ++k) sum += term(set_.terms()[h.term + k]);
  return sum;
}

std::vector<double> fit_leaks(const TrainingSet& set, size_t first, size_t last) {
  const auto& pack = set.pack();
  constexpr double kFiringsMin = 10;
  constexpr double kWorthSaying = 2;
  std::vector<uint8_t> on_victims(pack.signals.size(), 0);
  for (const auto& edge : pack.edges) {
    if (edge.scope != abi::Scope::kSelf) on_victims[edge.to] = 1;
  }
  std::vector<double> fired(pack.signals.size(), 0);
  std::vector<double> asked(pack.signals.size(), 0);
  std::vector<double> hours(pack.signals.size(), 0);
  std::vector<double> leak(pack.signals.size(), 0);
  const auto count = [&](uint32_t edge_at, double n, double n_fired, double leak_now) {
    const auto& edge = pack.edges[edge_at];
    if (on_victims[edge.to] || pack.signals[edge.to].count.graded.on) return;
    asked[edge.to] += n;
    fired[edge.to] += n_fired;
    hours[edge.to] +=
        n * static_cast<double>(edge.lag_hi_ns - edge.lag_lo_ns) / static_cast<double>(kNsPerHour);
    leak[edge.to] += n_fired * leak_now;
  };
  for (size_t i = first; i < last; ++i) {
    const auto& incident = set.incidents()[i];
    for (const auto& h : incident.hypotheses) {
      if (!h.is_node || h.truth > 0) continue;
      const double n = std::exp(static_cast<double>(h.alike_log));
      for (uint32_t edge : set.patterns()[h.pattern].edges) count(edge, n, 0, 0);
      for (uint32_t k = 0; k < h.terms; ++k) {
        const Term& term = set.terms()[h.term + k];
        if (term.what == Term::What::kFired || term.what == Term::What::kSilent) {
          const bool shown = term.what == Term::What::kFired;
          count(term.edge, n, shown ? n : 0, static_cast<double>(term.leak));
        }
      }
    }
  }
  std::vector<double> rates(pack.signals.size(), kUnset);
  for (size_t s = 0; s < rates.size(); ++s) {
    if (fired[s] < kFiringsMin || hours[s] <= 0 || fired[s] >= asked[s]) continue;
    const double share = fired[s] / asked[s];
    const double now = leak[s] / fired[s];  // what the dossiers held the firings against
    if (share < now * kWorthSaying && share > now / kWorthSaying) continue;
    rates[s] = -std::log1p(-share) / (hours[s] / asked[s]);
  }
  return rates;
}

}  // namespace reflex::learn
