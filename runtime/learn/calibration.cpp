// Conditional logit over the hypotheses of incidents; see calibration.h.
#include "runtime/learn/calibration.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "runtime/learn/lbfgs.h"

namespace reflex::learn {
namespace {

// Why 16: enough pieces for any number of cores that a learning run gets, few enough to sum.
constexpr size_t kPieces = 16;
// Why: terms below exp(-40) of the best cannot change a digit of the loss.
constexpr double kNegligibleNats = 40;
// Why: a hypothesis with less than this of the posterior moves no multiplier by a printed digit.
constexpr double kNegligibleSlope = 1e-9;

/// A term as the fit sees it: which number scales it, and the nats that it scales.
struct Feature {
  uint32_t at = 0;
  float nats = 0;  // half the memory to walk through, and far finer than the data
};

/// The incidents [first, last) with weights worked out once. Variables: one for each signal, for
/// "ailing", history and agreement (its square is the multiplier), one for each synergy and each cause (nats), log temperature, shift.
class Design {
 public:
  Design(const TrainingSet& set, const Weights& weights, size_t first, size_t last)
      : set_(set), first_(first), last_(last), scales_(set.pack().signals.size() + 3) {
    const auto& pack = set.pack();
    for (const auto& pattern : set.patterns()) {
      std::vector<Feature> row;
      for (uint32_t edge : pattern.edges) {
        row.push_back({pack.edges[edge].to, static_cast<float>(weights.silence(edge))});
      }
      patterns_.push_back(std::move(row));
    }
    for (size_t i = first; i < last; ++i) {
      for (const auto& h : set.incidents()[i].hypotheses) {
        prior_.push_back(weights.prior(h) - static_cast<double>(h.hazard_log));
        begin_.push_back(features_.size());
        if (h.ailing_nats != 0) {
          features_.push_back({static_cast<uint32_t>(ailing_at(pack)), h.ailing_nats});
        }
        if (h.agreement_nats != 0) {
          features_.push_back({static_cast<uint32_t>(agreement_at(pack)), h.agreement_nats});
        }
        if (h.hazard_log != 0) {
          features_.push_back({static_cast<uint32_t>(history_at(pack)), h.hazard_log});
        }
        for (uint32_t k = 0; k < h.terms; ++k) {
          const Term& term = set.terms()[h.term + k];
          if (term.what == Term::What::kSynergy) {
            features_.push_back({static_cast<uint32_t>(scales_ + term.index), 1});
          } else {
            features_.push_back({pack.edges[term.edge].to, static_cast<float>(weights.term(term))});
          }
        }
      }
      end_of_.push_back(prior_.size());
    }
    begin_.push_back(features_.size());
  }

  [[nodiscard]] size_t incidents() const { return last_ - first_; }
  [[nodiscard]] const TrainingIncident& incident(size_t i) const {
    return set_.incidents()[first_ + i];
  }
  [[nodiscard]] size_t row(size_t i) const { return i == 0 ? 0 : end_of_[i - 1]; }
  /// Scales (signals, ailing, history, agreement, synergies), shifts of causes, log temperature, shift of all culprits.
  [[nodiscard]] size_t variables() const { return causes_at() + set_.pack().causes.size() + 2; }
  [[nodiscard]] size_t causes_at() const { return scales_ + set_.pack().synergies.size(); }
  [[nodiscard]] const std::vector<std::vector<Feature>>& patterns() const { return patterns_; }
  [[nodiscard]] double prior(size_t row_at) const { return prior_[row_at]; }
  [[nodiscard]] const Feature* begin(size_t row_at) const {
    return features_.data() + begin_[row_at];
  }
  [[nodiscard]] const Feature* end(size_t row_at) const {
    return features_.data() + begin_[row_at + 1];
  }

 private:
  const TrainingSet& set_;
  size_t first_;
  size_t last_;
  size_t scales_;  // signals, "ailing", history, agreement
  std::vector<std::vector<Feature>> patterns_;
  std::vector<double> prior_;   // [row]
  std::vector<size_t> begin_;   // [row] into features_
  std::vector<size_t> end_of_;  // [incident] row after its last
  std::vector<Feature> features_;
};

/// The numbers of one point in the search.
struct Point {
  std::vector<double> scale;    // as Design::variables()
  std::vector<double> pattern;  // weight of each silent pattern
  const Calibration* layer = nullptr;
  double cool = 1;  // 1 / temperature
};

std::vector<double> scales_of(const Calibration& c) {
  std::vector<double> scale = c.multiplier;
  scale.insert(scale.end(), c.synergy.begin(), c.synergy.end());
  return scale;
}

/// Borrows `layer`.
Point make_point(const Design& design, const Calibration& layer) {
  Point point;
  point.scale = scales_of(layer);
  point.layer = &layer;
  point.cool = 1 / layer.temperature;
  for (const auto& row : design.patterns()) {
    double sum = 0;
    for (const Feature& f : row) sum += point.scale[f.at] * static_cast<double>(f.nats);
    point.pattern.push_back(sum);
  }
  return point;
}

struct Sums {
  double loss = 0;
  Eigen::VectorXd gradient;     // by scale, shift of a cause, cool, shift of all culprits
  std::vector<double> pattern;  // gradient by pattern weight
};

/// Scores of one incident (log weights against "none"), and the two totals.
struct Scored {
  std::vector<double> score;
  double all = 0;    // log of the sum over everything, "none" included
  double truth = 0;  // log of the sum over what is true; -inf: nothing can be
};

void score(const Design& design, const Point& point, size_t i, Scored& out) {
  const auto& hypotheses = design.incident(i).hypotheses;
  const bool none_true = !design.incident(i).truth_is_node;
  const size_t row = design.row(i);
  out.score.resize(hypotheses.size());
  double top = 0;
  for (size_t k = 0; k < hypotheses.size(); ++k) {
    const auto& h = hypotheses[k];
    double sum = design.prior(row + k) + point.pattern[h.pattern] +
                 point.layer->cause_shift[h.cause] + (h.is_node ? point.layer->none_shift_nats : 0);
    for (const Feature* f = design.begin(row + k); f != design.end(row + k); ++f) {
      sum += point.scale[f->at] * static_cast<double>(f->nats);
    }
    out.score[k] = sum * point.cool + static_cast<double>(h.alike_log);
    top = std::max(top, out.score[k]);
  }
  double all = std::exp(-top);
  double truth = none_true ? all : 0;
  for (size_t k = 0; k < hypotheses.size(); ++k) {
    if (out.score[k] < top - kNegligibleNats && hypotheses[k].truth <= 0) continue;
    const double e = std::exp(out.score[k] - top);
    all += e;
    truth += e * static_cast<double>(hypotheses[k].truth);
  }
  out.all = top + std::log(all);
  out.truth = top + std::log(truth);
}

bool reachable(const TrainingIncident& incident) {
  return !incident.truth_is_node ||
         std::any_of(incident.hypotheses.begin(), incident.hypotheses.end(),
                     [](const auto& h) { return h.truth > 0; });
}

void add_incident(const Design& design, const Point& point, size_t i, Scored& scored, Sums& sums) {
  const auto& incident = design.incident(i);
  if (!reachable(incident)) return;
  score(design, point, i, scored);
  sums.loss += std::min(scored.all - scored.truth, 1e6);
  const size_t row = design.row(i);
  const size_t cool_at = static_cast<size_t>(sums.gradient.size()) - 2;
  for (size_t k = 0; k < incident.hypotheses.size(); ++k) {
    const auto& h = incident.hypotheses[k];
    double g =
        scored.score[k] < scored.all - kNegligibleNats ? 0 : std::exp(scored.score[k] - scored.all);
    if (h.truth > 0) g -= static_cast<double>(h.truth) * std::exp(scored.score[k] - scored.truth);
    if (std::abs(g) < kNegligibleSlope) continue;
    const double raw = (scored.score[k] - static_cast<double>(h.alike_log)) / point.cool;
    sums.gradient[cool_at] += g * raw;
    sums.gradient[design.causes_at() + h.cause] += g * point.cool;
    if (h.is_node) sums.gradient[cool_at + 1] += g * point.cool;
    sums.pattern[h.pattern] += g * point.cool;
    for (const Feature* f = design.begin(row + k); f != design.end(row + k); ++f) {
      sums.gradient[f->at] += g * point.cool * static_cast<double>(f->nats);
    }
  }
}

/// Loss and gradient by (scales, cool, shift), the same for any number of threads.
Sums sum_all(const Design& design, const Point& point, unsigned threads) {
  const auto n = static_cast<Eigen::Index>(design.variables());
  std::vector<Sums> pieces(kPieces);
  const auto work = [&](size_t from, size_t step) {
    Scored scored;
    for (size_t p = from; p < kPieces; p += step) {
      pieces[p].gradient = Eigen::VectorXd::Zero(n);
      pieces[p].pattern.assign(design.patterns().size(), 0);
      const size_t begin = design.incidents() * p / kPieces;
      const size_t end = design.incidents() * (p + 1) / kPieces;
      for (size_t i = begin; i < end; ++i) add_incident(design, point, i, scored, pieces[p]);
    }
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(work, t, threads);
  work(0, std::max(threads, 1u));
  for (auto& thread : others) thread.join();
  Sums total = std::move(pieces[0]);
  for (size_t p = 1; p < kPieces; ++p) {
    total.loss += pieces[p].loss;
    total.gradient += pieces[p].gradient;
    for (size_t k = 0; k < total.pattern.size(); ++k) total.pattern[k] += pieces[p].pattern[k];
  }
  for (size_t k = 0; k < total.pattern.size(); ++k) {
    for (const Feature& f : design.patterns()[k]) {
      total.gradient[f.at] += total.pattern[k] * static_cast<double>(f.nats);
    }
  }
  return total;
}

/// The search variables of a layer, and back.
Eigen::VectorXd to_variables(const Calibration& c) {
  std::vector<double> x;
  for (const double m : c.multiplier) x.push_back(std::sqrt(m));
  x.insert(x.end(), c.synergy.begin(), c.synergy.end());
  x.insert(x.end(), c.cause_shift.begin(), c.cause_shift.end());
  x.push_back(std::log(c.temperature));
  x.push_back(c.none_shift_nats);
  return Eigen::Map<const Eigen::VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
}

Calibration from_variables(const Eigen::VectorXd& x, const abi::CompiledPack& pack) {
  Calibration c;
  Eigen::Index at = 0;
  for (size_t i = 0; i < pack.signals.size() + 3; ++i, ++at) c.multiplier.push_back(x[at] * x[at]);
  for (size_t i = 0; i < pack.synergies.size(); ++i) c.synergy.push_back(x[at++]);
  for (size_t i = 0; i < pack.causes.size(); ++i) c.cause_shift.push_back(x[at++]);
  c.temperature = std::exp(x[at++]);
  c.none_shift_nats = x[at];
  return c;
}

/// The pull towards "no change": adds to the gradient, returns the penalty.
double pull(const Calibration& c, const Calibration& neutral, const Eigen::VectorXd& x, double l2,
            Eigen::VectorXd& gradient) {
  // Why 2: shifts and the temperature move many incidents at once; a weak pull is enough.
  constexpr double kShiftL2 = 2;
  double penalty = 0;
  Eigen::Index at = 0;
  for (const double m : c.multiplier) {
    penalty += l2 / 2 * (m - 1) * (m - 1);
    gradient[at] = (gradient[at] + l2 * (m - 1)) * 2 * x[at];
    ++at;
  }
  for (size_t i = 0; i < c.synergy.size(); ++i, ++at) {
    const double off = c.synergy[i] - neutral.synergy[i];
    penalty += l2 / 2 * off * off;
    gradient[at] += l2 * off;
  }
  const auto temperature_at = x.size() - 2;
  gradient[temperature_at] /= -c.temperature;  // from 1 / temperature to its logarithm
  for (; at < x.size(); ++at) {
    penalty += kShiftL2 / 2 * x[at] * x[at];
    gradient[at] += kShiftL2 * x[at];
  }
  return penalty;
}

}  // namespace

Calibration no_calibration(const abi::CompiledPack& pack) {
  Calibration c;
  c.multiplier.assign(pack.signals.size() + 3, 1);
  for (const auto& synergy : pack.synergies) c.synergy.push_back(synergy.weight_nats);
  c.cause_shift.assign(pack.causes.size(), 0);
  return c;
}

Calibration fit_calibration(const TrainingSet& set, const Weights& weights, size_t first,
                            size_t last, const Calibration& start,
                            const CalibrationOptions& options) {
  const Design design(set, weights, first, last);
  const Calibration neutral = no_calibration(set.pack());
  const Objective objective = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
    const Calibration c = from_variables(x, set.pack());
    const Sums sums = sum_all(design, make_point(design, c), options.threads);
    gradient = sums.gradient;
    return sums.loss + pull(c, neutral, x, options.l2, gradient);
  };
  MinimizeOptions search;
  search.iterations = options.iterations;
  search.tolerance = 1e-5;  // Why: a thousandth of the gain that decides whether a layer is kept
  return from_variables(minimize(objective, to_variables(start), search), set.pack());
}

double log_loss(const TrainingSet& set, const Weights& weights, const Calibration& calibration,
                size_t first, size_t last) {
  if (first >= last) return 0;
  const Design design(set, weights, first, last);
  const Point point = make_point(design, calibration);
  Scored scored;
  double sum = 0;
  for (size_t i = 0; i < design.incidents(); ++i) {
    if (!reachable(design.incident(i))) {
      sum += kUnreachableNats;
      continue;
    }
    score(design, point, i, scored);
    sum += std::min(scored.all - scored.truth, 100.0);
  }
  return sum / static_cast<double>(design.incidents());
}

std::vector<double> node_posterior(const TrainingSet& set, const Weights& weights,
                                   const Calibration& c, const TrainingIncident& incident) {
  const auto& pack = set.pack();
  std::vector<double> scores;
  double top = 0;
  for (const auto& h : incident.hypotheses) {
    double sum = weights.prior(h) + c.multiplier[ailing_at(pack)] * static_cast<double>(h.ailing_nats) +
                 c.multiplier[agreement_at(pack)] * static_cast<double>(h.agreement_nats) +
                 (c.multiplier[history_at(pack)] - 1) * static_cast<double>(h.hazard_log) +
                 c.cause_shift[h.cause] + (h.is_node ? c.none_shift_nats : 0);
    for (uint32_t edge : set.patterns()[h.pattern].edges) {
      sum += c.multiplier[pack.edges[edge].to] * weights.silence(edge);
    }
    for (uint32_t k = 0; k < h.terms; ++k) {
      const Term& term = set.terms()[h.term + k];
      sum += term.what == Term::What::kSynergy
                 ? c.synergy[term.index]
                 : c.multiplier[pack.edges[term.edge].to] * weights.term(term);
    }
    scores.push_back(sum / c.temperature);
    top = std::max(top, scores.back() + static_cast<double>(h.alike_log));
  }
  double total = std::exp(-top);
  std::vector<double> p(incident.nodes.size(), 0);
  for (size_t k = 0; k < scores.size(); ++k) {
    const auto& h = incident.hypotheses[k];
    total += std::exp(scores[k] + static_cast<double>(h.alike_log) - top);
    if (h.is_node && h.node != abi::kNone32) p[h.node] += std::exp(scores[k] - top);
  }
  for (double& value : p) value /= total;
  return p;
}

}  // namespace reflex::learn
