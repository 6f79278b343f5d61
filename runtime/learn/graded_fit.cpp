// Shapes of graded counts; see graded_fit.h.
#include "runtime/learn/graded_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/learn/strengths.h"

namespace reflex::learn {
namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

struct Shape {
  double episodes = 0;  // expected number of true ones
  double extra = 0;     // events above the habit in them
  std::array<double, abi::kLeadBins> bins{};
};

double chance(double p, double log_ratio) {
  const double of_edge = p * std::exp(std::min(log_ratio, 60.0));
  return of_edge / (1 - p + of_edge);
}

/// P(episode) of each graded signal on each labelled culprit: the best-informed of its hypotheses.
std::vector<double> culprit_chances(const TrainingSet& set, const Weights& weights,
                                    const TrainingIncident& incident, uint32_t node) {
  const auto& pack = set.pack();
  std::vector<double> sum(pack.signals.size(), 0);
  double total = 0;
  double top = -std::numeric_limits<double>::infinity();
  for (const auto& h : incident.hypotheses) {
    if (h.is_node && h.node == node) top = std::max(top, weights.log_odds(h));
  }
  for (const auto& h : incident.hypotheses) {
    if (!h.is_node || h.node != node) continue;
    const double part = std::exp(weights.log_odds(h) - top);
    total += part;
    for (uint32_t k = 0; k < h.terms; ++k) {
      const Term& term = set.terms()[h.term + k];
      if (term.what != Term::What::kFired) continue;
      sum[pack.edges[term.edge].to] +=
          part * chance(weights.edge_p(term.edge), static_cast<double>(term.value));
    }
  }
  for (double& value : sum) value = total > 0 ? value / total : 0;
  return sum;
}

void add_shape(const abi::SignalPlan& plan, const CulpritCounts& counts, double z, Shape& shape) {
  const double hours = static_cast<double>(plan.count.window_ns) / static_cast<double>(kNsPerHour);
  shape.episodes += z;
  for (size_t b = 0; b < abi::kLeadBins; ++b) {
    const double width = hours * (abi::kLeadBounds[b] - abi::kLeadBounds[b + 1]);
    const double above = std::max(0.0, counts.counts[b] - counts.benign_per_hour * width);
    shape.bins[b] += z * above;
    shape.extra += z * above;
  }
}

double round3(double value) { return std::round(value * 1000) / 1000; }

void put_shape(const abi::GradedPlan& author, const Shape& shape, double n0, size_t s,
               abi::Model& model) {
  if (shape.episodes <= 0) return;
  model.graded_extra[s] = round3((n0 * author.extra_mean + shape.extra) / (n0 + shape.episodes));
  double total = 0;
  for (size_t b = 0; b < abi::kLeadBins; ++b) {
    model.graded_profile[s][b] = n0 * author.extra_mean * author.profile[b] + shape.bins[b];
    total += model.graded_profile[s][b];
  }
  for (double& share : model.graded_profile[s]) share = std::round(share / total * 1e4) / 1e4;
}

/// Healthy nodes: each (node, signal) once, from the first hypothesis that asks for it.
class EpisodeLeaks {
 public:
  EpisodeLeaks(const TrainingSet& set, size_t count) : set_(set) {
    const size_t n = set.pack().signals.size();
    asked_.assign(n, 0);
    for (const auto& signal : set.pack().signals) leak_.push_back(leak_of(signal));
    ratios_.resize(n);
    for (size_t i = 0; i < count; ++i) collect(set.incidents()[i]);
  }

  /// NaN where the author's stands.
  std::vector<double> run(double n0) {
    std::vector<double> out(leak_.size(), kUnset);
    for (size_t s = 0; s < leak_.size(); ++s) {
      if (!set_.pack().signals[s].count.graded.on || asked_[s] <= 0) continue;
      const double author = leak_[s];
      double e = author;
      for (int i = 0; i < 10; ++i) {
        double sum = 0;
        for (const double log_a : ratios_[s]) sum += chance(e, log_a);
        e = std::clamp((n0 * author + sum) / (n0 + asked_[s]), 1e-5, 0.5);
      }
      out[s] = std::round(e * 1e6) / 1e6;
    }
    return out;
  }

 private:
  double leak_of(const abi::SignalPlan& signal) const {
    const abi::Model* model = set_.model();
    const auto at = leak_.size();
    const bool learned =
        model && at < model->episode_leak.size() && !std::isnan(model->episode_leak[at]);
    // Why 0.01: what attribution takes when the author says nothing of healthy episodes.
    const double stated = signal.leak_probability > 0 ? signal.leak_probability : 0.01;
    return std::clamp(learned ? model->episode_leak[at] : stated, 1e-5, 0.5);
  }

  void collect(const TrainingIncident& incident) {
    const auto& pack = set_.pack();
    std::vector<std::vector<uint8_t>> seen(incident.nodes.size());
    for (const auto& h : incident.hypotheses) {
      if (!h.is_node || h.node == abi::kNone32 || incident.nodes[h.node].culprit) continue;
      auto& done = seen[h.node];
      done.resize(pack.signals.size(), 0);
      const double n = std::exp(static_cast<double>(h.alike_log));
      for (uint32_t k = 0; k < h.terms; ++k) {
        const Term& term = set_.terms()[h.term + k];
        if (term.what != Term::What::kFired && term.what != Term::What::kSilent) continue;
        const auto signal = pack.edges[term.edge].to;
        if (!pack.signals[signal].count.graded.on || done[signal]) continue;
        done[signal] = 1;
        asked_[signal] += n;
        if (term.what != Term::What::kFired) continue;
        // r = A / ((1 - e) + e A), solved for A.
        const double e = leak_[signal];
        const double r = std::min(std::exp(static_cast<double>(term.value)), (1 - 1e-9) / e);
        ratios_[signal].push_back(std::log(r * (1 - e) / (1 - r * e)));
      }
    }
  }

  const TrainingSet& set_;
  std::vector<double> leak_;
  std::vector<double> asked_;
  std::vector<std::vector<double>> ratios_;  // [signal] log A of healthy nodes that showed counts
};

}  // namespace

abi::Model fit_graded(const TrainingSet& set, size_t count, const GradedOptions& options) {
  const auto& pack = set.pack();
  abi::Model model;
  model.pack_sha256 = pack.set_sha256;
  if (std::none_of(pack.signals.begin(), pack.signals.end(),
                   [](const auto& s) { return s.count.graded.on; })) {
    return model;
  }
  const Strengths strengths = fit_strengths(set, 0, count, {});
  const Weights weights(set, &strengths);
  std::vector<Shape> shapes(pack.signals.size());
  for (size_t i = 0; i < count; ++i) {
    const auto& incident = set.incidents()[i];
    uint32_t node = abi::kNone32;
    std::vector<double> z;
    for (const CulpritCounts& counts : incident.counts) {
      if (counts.node != node) z = culprit_chances(set, weights, incident, counts.node);
      node = counts.node;
      add_shape(pack.signals[counts.signal], counts, z[counts.signal], shapes[counts.signal]);
    }
  }
  model.graded_extra.assign(pack.signals.size(), kUnset);
  model.graded_profile.assign(pack.signals.size(), {});
  for (size_t s = 0; s < pack.signals.size(); ++s) {
    const auto& graded = pack.signals[s].count.graded;
    if (graded.on) put_shape(graded, shapes[s], options.pseudo_count, s, model);
  }
  model.episode_leak = EpisodeLeaks(set, count).run(options.episode_pseudo_count);
  return model;
}

}  // namespace reflex::learn
