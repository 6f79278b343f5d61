// The simple methods and the harness around them; see baselines.h.
#include "runtime/backtest/baselines.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace reflex::backtest {
namespace {

using NodeScores = std::vector<double>;  // parallel to IncidentFeatures::nodes
constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// What authors say of a signal, reduced to two numbers.
struct SignalFacts {
  double severity = 0;       // of the gravest fault that it speaks for
  double static_weight = 0;  // nats, with the author's leak, whatever the hardware
};

double severity_rank(const std::string& word) {
  if (word == "critical") return 3;
  if (word == "warning") return 2;
  return word == "info" ? 1 : 0;
}

std::vector<SignalFacts> facts_of(const abi::CompiledPack& pack) {
  std::vector<SignalFacts> facts(pack.signals.size());
  for (const auto& edge : pack.edges) {
    if (edge.from_signal || edge.scope != abi::Scope::kSelf) continue;
    if (pack.causes[edge.cause].kind != abi::CauseKind::kFault) continue;
    const auto& signal = pack.signals[edge.to];
    const double hours =
        static_cast<double>(edge.lag_hi_ns - edge.lag_lo_ns) / static_cast<double>(kNsPerHour);
    double leak = signal.leak_per_hour > 0 ? 1 - std::exp(-signal.leak_per_hour * hours)
                                           : signal.leak_probability;
    leak = std::clamp(leak, 1e-6, 1.0);
    auto& f = facts[edge.to];
    // A strong symptom of a grave fault is grave; a weak hint at one is not.
    f.severity = std::max(f.severity, severity_rank(pack.causes[edge.cause].severity) * edge.p);
    f.static_weight = std::max(f.static_weight, std::log(1 - edge.p + edge.p / leak));
  }
  return facts;
}

NodeScores most_severe(const IncidentFeatures& incident, const std::vector<SignalFacts>& facts) {
  NodeScores out;
  for (const auto& node : incident.nodes) {
    double best = kNothing;
    for (const auto& s : node.signals) best = std::max(best, facts[s.signal].severity);
    out.push_back(best);
  }
  return out;
}

NodeScores most_events(const IncidentFeatures& incident) {
  NodeScores out;
  for (const auto& node : incident.nodes) {
    double sum = node.signals.empty() ? kNothing : 0;
    for (const auto& s : node.signals) sum += s.firings;
    out.push_back(sum);
  }
  return out;
}

NodeScores first_event(const IncidentFeatures& incident) {
  NodeScores out;
  for (const auto& node : incident.nodes) {
    double first = kNothing;
    for (const auto& s : node.signals) first = std::max(first, -static_cast<double>(s.onset_ns));
    out.push_back(first);
  }
  return out;
}

NodeScores static_rules(const IncidentFeatures& incident, const std::vector<SignalFacts>& facts) {
  NodeScores out;
  for (const auto& node : incident.nodes) {
    double best = kNothing;
    for (const auto& s : node.signals) best = std::max(best, facts[s.signal].static_weight);
    out.push_back(best);
  }
  return out;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// [node][signal] robust z of log(1 + firings) among the nodes of the job.
std::vector<std::vector<double>> peer_z(const IncidentFeatures& incident, size_t signals) {
  constexpr double kMadFloor = 0.2;  // Why: most peers show nothing; a MAD of 0 is no scale
  constexpr double kZMax = 10;
  const size_t n = incident.nodes.size();
  std::vector<std::vector<double>> z(n, std::vector<double>(signals, 0));
  for (size_t i = 0; i < n; ++i) {
    for (const auto& s : incident.nodes[i].signals) z[i][s.signal] = std::log1p(s.firings);
  }
  for (size_t s = 0; s < signals; ++s) {
    std::vector<double> column;
    for (size_t i = 0; i < n; ++i) column.push_back(z[i][s]);
    const double middle = median(column);
    for (double& value : column) value = std::abs(value - middle);
    const double scale = std::max(1.4826 * median(column), kMadFloor);
    for (size_t i = 0; i < n; ++i) {
      z[i][s] = std::clamp((z[i][s] - middle) / scale, -kZMax, kZMax);
    }
  }
  return z;
}

NodeScores peer_z_score(const IncidentFeatures& incident, size_t signals) {
  NodeScores out;
  for (const auto& row : peer_z(incident, signals)) {
    double sum = 0;
    for (const double z : row) sum += std::max(0.0, z);
    out.push_back(sum);
  }
  return out;
}

bool is_culprit(const IncidentFeatures& incident, size_t node) {
  const auto& c = incident.label.culprits;
  return std::find(c.begin(), c.end(), incident.nodes[node].node) != c.end();
}

/// Sum of log(P(shown | culprit) / P(shown | other)), every signal as if it stood alone.
class NaiveBayes {
 public:
  NaiveBayes(const std::vector<IncidentFeatures>& train, size_t signals)
      : shown_(signals, 0), silent_(signals, 0) {
    std::vector<double> on(signals, 1), off(signals, 1);  // Laplace
    double culprits = 2;
    double others = 2;
    for (const auto& incident : train) {
      for (size_t i = 0; i < incident.nodes.size(); ++i) {
        const bool culprit = is_culprit(incident, i);
        (culprit ? culprits : others) += 1;
        for (const auto& s : incident.nodes[i].signals) (culprit ? on : off)[s.signal] += 1;
      }
    }
    for (size_t s = 0; s < signals; ++s) {
      shown_[s] = std::log((on[s] / culprits) / (off[s] / others));
      silent_[s] = std::log((1 - on[s] / culprits) / (1 - off[s] / others));
      base_ += silent_[s];
    }
  }
  [[nodiscard]] NodeScores scores(const IncidentFeatures& incident) const {
    NodeScores out;
    for (const auto& node : incident.nodes) {
      double sum = base_;
      for (const auto& s : node.signals) sum += shown_[s.signal] - silent_[s.signal];
      out.push_back(sum);
    }
    return out;
  }

 private:
  std::vector<double> shown_;
  std::vector<double> silent_;
  double base_ = 0;
};

/// Rows for gradient boosting: own counts, how far above the peers, and the job's total.
void append_rows(const IncidentFeatures& incident, size_t signals, std::vector<float>& rows,
                 std::vector<float>& truth) {
  const auto z = peer_z(incident, signals);
  std::vector<float> total(signals, 0);
  for (const auto& node : incident.nodes) {
    for (const auto& s : node.signals) total[s.signal] += 1;
  }
  for (size_t i = 0; i < incident.nodes.size(); ++i) {
    std::vector<float> own(signals, 0);
    for (const auto& s : incident.nodes[i].signals) {
      own[s.signal] = std::log1p(static_cast<float>(s.firings));
    }
    rows.insert(rows.end(), own.begin(), own.end());
    for (const double value : z[i]) rows.push_back(static_cast<float>(value));
    for (const float value : total) {
      rows.push_back(value / static_cast<float>(incident.nodes.size()));
    }
    rows.push_back(static_cast<float>(incident.nodes.size()));
    truth.push_back(is_culprit(incident, i) ? 1.0f : 0.0f);
  }
}

std::vector<NodeScores> boosted(const std::vector<IncidentFeatures>& train,
                                const std::vector<IncidentFeatures>& all, size_t signals) {
  std::vector<float> rows, truth, test, unused;
  for (const auto& incident : train) append_rows(incident, signals, rows, truth);
  for (const auto& incident : all) append_rows(incident, signals, test, unused);
  const auto p = boosted_probabilities(rows, 3 * signals + 1, truth, test);
  std::vector<NodeScores> out;
  size_t at = 0;
  for (const auto& incident : all) {
    if (p.empty()) break;
    NodeScores scores;
    for (size_t i = 0; i < incident.nodes.size(); ++i)
      scores.push_back(static_cast<double>(p[at++]));
    out.push_back(std::move(scores));
  }
  return out;
}

std::vector<size_t> ranked(const NodeScores& scores) {
  std::vector<size_t> order;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > kNothing) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

/// Names the best node when its score reaches `level`.
Case decide(const IncidentFeatures& incident, const NodeScores& scores, double level,
            bool probability) {
  Case c;
  c.label = incident.label;
  c.answered = true;
  for (const auto& node : incident.nodes) c.class_of.emplace(node.node, node.hw_class);
  for (const size_t i : ranked(scores)) {
    abi::NodeProbability n;
    n.node = incident.nodes[i].node;
    n.p = probability ? scores[i] : -1;  // < 0: the method says no probability
    c.ranked.push_back(n);
    if (c.ranked.size() == 1 && scores[i] >= level) c.culprits.push_back(n.node);
  }
  c.job_nodes = static_cast<uint32_t>(incident.nodes.size());
  return c;
}

/// The level with the best F1 on the training incidents.
double best_level(const std::vector<IncidentFeatures>& train,
                  const std::vector<NodeScores>& scores) {
  struct Top {
    double score;
    bool hit;
  };
  std::vector<Top> tops;
  double positives = 0;
  for (size_t i = 0; i < train.size(); ++i) {
    positives += static_cast<double>(train[i].label.culprits.size());
    const auto order = ranked(scores[i]);
    if (order.empty()) continue;
    tops.push_back({scores[i][order[0]], is_culprit(train[i], order[0])});
  }
  std::sort(tops.begin(), tops.end(), [](const Top& a, const Top& b) { return a.score > b.score; });
  double best = -1;
  double level = std::numeric_limits<double>::infinity();
  double hits = 0;
  for (size_t i = 0; i < tops.size(); ++i) {
    hits += tops[i].hit ? 1 : 0;
    if (i + 1 < tops.size() && tops[i + 1].score == tops[i].score) continue;
    const double f1 = 2 * hits / (static_cast<double>(i + 1) + positives);
    if (f1 > best) {
      best = f1;
      level = tops[i].score;
    }
  }
  return level;
}

using Method = std::function<NodeScores(const IncidentFeatures&)>;

Baseline run(const std::string& name, const std::vector<IncidentFeatures>& test,
             const Method& method, double level) {
  Baseline out{name, {}};
  for (const auto& incident : test) {
    out.cases.push_back(decide(incident, method(incident), level, false));
  }
  return out;
}

Baseline run_trained(const std::string& name, const std::vector<IncidentFeatures>& train,
                     const std::vector<IncidentFeatures>& test, const Method& method) {
  std::vector<NodeScores> scores;
  for (const auto& incident : train) scores.push_back(method(incident));
  return run(name, test, method, best_level(train, scores));
}

void run_boosting(const std::vector<IncidentFeatures>& train,
                  const std::vector<IncidentFeatures>& test, size_t signals,
                  std::vector<Baseline>& out) {
  // The level is chosen on the last quarter of the training time, which those trees do not see.
  const size_t cut = train.size() * 3 / 4;
  const std::vector<IncidentFeatures> early(train.begin(),
                                            train.begin() + static_cast<std::ptrdiff_t>(cut));
  const std::vector<IncidentFeatures> late(train.begin() + static_cast<std::ptrdiff_t>(cut),
                                           train.end());
  const auto held_out = boosted(early, late, signals);
  const auto scores = boosted(train, test, signals);
  if (held_out.size() != late.size() || scores.size() != test.size()) return;
  const double level = best_level(late, held_out);
  Baseline b{"gradient boosting", {}};
  for (size_t i = 0; i < test.size(); ++i) {
    b.cases.push_back(decide(test[i], scores[i], level, true));
  }
  out.push_back(std::move(b));
}

}  // namespace

IncidentFeatures features_of(const abi::CompiledPack& pack, const attribution::Input& input,
                             const learn::Label& label) {
  IncidentFeatures out;
  out.label = label;
  std::map<std::string, NodeFeatures> nodes;
  for (const auto& view : input.nodes) {
    if (!view.in_job) continue;
    NodeFeatures node;
    node.node = std::string(pack.symbols->name(view.node));
    node.hw_class = pack.classes[view.hw_class].name;
    nodes.emplace(node.node, std::move(node));
  }
  for (const auto& evidence : input.evidence) {
    const auto& keys = pack.entity_kinds[evidence.entity.kind].keys;
    if (keys.empty() || keys[0] != "node" || evidence.episodes.empty()) continue;
    const auto name = pack.symbols->name(static_cast<SymbolId>(evidence.entity.values[0]));
    const auto it = nodes.find(std::string(name));
    if (it == nodes.end()) continue;
    SignalCount count{evidence.signal, 0, evidence.episodes.front().onset_ns};
    for (const auto& episode : evidence.episodes) count.firings += episode.firings;
    auto& signals = it->second.signals;
    const auto same = std::find_if(signals.begin(), signals.end(),
                                   [&](const auto& s) { return s.signal == count.signal; });
    if (same == signals.end()) {
      signals.push_back(count);
    } else {
      same->firings += count.firings;
      same->onset_ns = std::min(same->onset_ns, count.onset_ns);
    }
  }
  for (auto& [name, node] : nodes) {
    std::sort(node.signals.begin(), node.signals.end(),
              [](const auto& a, const auto& b) { return a.signal < b.signal; });
    out.nodes.push_back(std::move(node));
  }
  return out;
}

std::vector<Baseline> run_baselines(const abi::CompiledPack& pack,
                                    const std::vector<IncidentFeatures>& train,
                                    const std::vector<IncidentFeatures>& test) {
  const auto facts = facts_of(pack);
  const size_t signals = pack.signals.size();
  // Why log 20: "twenty times as likely on a sick node" is what a hand-set alarm stands for.
  const double alarm = std::log(20.0);
  std::vector<Baseline> out;
  out.push_back(run(
      "most severe first", test, [&](const auto& i) { return most_severe(i, facts); }, kNothing));
  out.push_back(run("most events", test, most_events, kNothing));
  out.push_back(run("first event", test, first_event, kNothing));
  out.push_back(run(
      "static-threshold rules", test, [&](const auto& i) { return static_rules(i, facts); },
      alarm));
  if (train.empty()) return out;
  const NaiveBayes bayes(train, signals);
  out.push_back(
      run_trained("naive Bayes sum", train, test, [&](const auto& i) { return bayes.scores(i); }));
  out.push_back(run_trained("peer z-score", train, test,
                            [&](const auto& i) { return peer_z_score(i, signals); }));
  if (has_boosting()) run_boosting(train, test, signals, out);
  return out;
}

}  // namespace reflex::backtest
