// Strata of the parts, and paired differences; see ablation.h.
#include "runtime/backtest/ablation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <tuple>

namespace reflex::backtest {
namespace {

// Why: what a history may say at the longest (abi::AfterFault).
constexpr int64_t kHistoryNs = 30 * kNsPerDay;
// Why: half a nat of one signal and more; below it pooling hardly changes what a firing weighs.
constexpr double kRateFactor = 2;
constexpr uint64_t kSeed = 20260101;  // of the bootstrap: two runs say the same

struct Pair {
  const Case* with = nullptr;
  const Case* without = nullptr;
};

/// Culprits, and whom either run names.
std::vector<std::string> nodes_of(const Pair& p) {
  std::vector<std::string> out = p.with->label.culprits;
  for (const auto& node : p.with->culprits) out.push_back(node);
  for (const auto& node : p.without->culprits) out.push_back(node);
  return out;
}

bool failed_before(const Pair& p, const FaultTimes& faults) {
  const auto nodes = nodes_of(p);
  return std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return faults.any(node, p.with->label.ts_ns, kHistoryNs);
  });
}

// Without explaining away each is held against nothing but "not at fault".
bool several_suspects(const Pair& p, const FaultTimes&) {
  return p.without->culprits.size() + (p.without->external.empty() ? 0 : 1) > 1;
}

bool no_culprit(const Pair& p, const FaultTimes&) { return p.with->label.culprits.empty(); }

bool rates_differ(const Pair& p, const FaultTimes&) {
  for (const auto& [key, rate] : p.with->benign_per_hour) {
    const auto pooled = p.without->benign_per_hour.find(key);
    if (pooled == p.without->benign_per_hour.end() || rate <= 0 || pooled->second <= 0) continue;
    const double factor = rate / pooled->second;
    if (factor >= kRateFactor || factor * kRateFactor <= 1) return true;
  }
  return false;
}

bool implicit(const Pair& p, const FaultTimes&) { return p.with->label.type == "implicit"; }
bool any(const Pair&, const FaultTimes&) { return true; }

struct Rule {
  const char* part;
  const char* stratum;
  bool (*in)(const Pair&, const FaultTimes&);
};
constexpr std::array<Rule, 6> kRules{{
    {"history", "a culprit or a named node failed within 30 days before", failed_before},
    {"explain-away", "several would be suspected, each for itself", several_suspects},
    {"common-mode", "no node at fault", no_culprit},
    {"class-thresholds", "pooling changes a shown signal's rate twofold", rates_differ},
    {"dynamic", "type implicit", implicit},
    {"learned", "all", any},
}};

struct Counts {
  size_t tp = 0, fp = 0, fn = 0, none = 0, none_right = 0;
  Counts& operator+=(const Counts& o) {
    tp += o.tp, fp += o.fp, fn += o.fn, none += o.none, none_right += o.none_right;
    return *this;
  }
  [[nodiscard]] double figure(bool of_none) const {
    const double part = of_none ? static_cast<double>(none_right) : 2.0 * static_cast<double>(tp);
    const double all = static_cast<double>(of_none ? none : 2 * tp + fp + fn);
    return all > 0 ? part / all : 0;
  }
};

Counts count(const Case& c) {
  const Scores s = score({&c}, 0);
  const bool none = c.label.culprits.empty();
  return {s.tp, s.fp, s.fn, none ? 1u : 0u, none && c.culprits.empty() ? 1u : 0u};
}

std::pair<double, double> middle_95(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.025), at(0.975)};
}

Difference difference(const std::vector<Pair>& pairs) {
  Difference d;
  d.incidents = pairs.size();
  if (pairs.empty()) return d;
  d.of_none = std::all_of(pairs.begin(), pairs.end(),
                          [](const Pair& p) { return p.with->label.culprits.empty(); });
  std::vector<std::pair<Counts, Counts>> counts;
  Counts with, without;
  for (const Pair& p : pairs) {
    counts.emplace_back(count(*p.with), count(*p.without));
    with += counts.back().first;
    without += counts.back().second;
  }
  d.with = with.figure(d.of_none);
  d.without = without.figure(d.of_none);
  std::mt19937_64 random(kSeed);
  std::vector<double> values;
  for (int r = 0; r < kBootstrapSamples; ++r) {
    Counts a, b;
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto& one = counts[random() % counts.size()];
      a += one.first;
      b += one.second;
    }
    values.push_back(b.figure(d.of_none) - a.figure(d.of_none));
  }
  std::tie(d.low, d.high) = middle_95(values);
  return d;
}

MoreSurprise more_surprise(const std::vector<Pair>& pairs) {
  MoreSurprise out;
  if (pairs.empty()) return out;
  std::vector<double> more;
  for (const Pair& p : pairs) more.push_back(surprise(*p.without) - surprise(*p.with));
  const auto count = static_cast<double>(more.size());
  for (const double nats : more) out.mean_nats += nats / count;
  std::mt19937_64 random(kSeed);
  std::vector<double> means(kBootstrapSamples, 0.0);
  for (double& mean : means) {
    for (size_t i = 0; i < more.size(); ++i) mean += more[random() % more.size()] / count;
  }
  std::tie(out.low_nats, out.high_nats) = middle_95(means);
  return out;
}

}  // namespace

void FaultTimes::add(const learn::Label& label) {
  for (const auto& node : label.culprits) of_node_[node].push_back(label.ts_ns);
}

bool FaultTimes::any(const std::string& node, int64_t at_ns, int64_t within_ns) const {
  const auto it = of_node_.find(node);
  if (it == of_node_.end()) return false;
  return std::any_of(it->second.begin(), it->second.end(),
                     [&](int64_t ts) { return ts < at_ns && at_ns - ts <= within_ns; });
}

std::string stratum_of(const std::string& part) {
  for (const Rule& rule : kRules) {
    if (part == rule.part) return rule.stratum;
  }
  return "";
}

Worth worth_of(const std::string& part, const std::vector<Case>& with,
               const std::vector<Case>& without, const FaultTimes& faults) {
  Worth out;
  out.part = part;
  out.stratum = stratum_of(part);
  std::vector<Pair> all, there;
  const auto* rule = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const Rule& r) { return part == r.part; });
  for (size_t i = 0; i < std::min(with.size(), without.size()); ++i) {
    all.push_back({&with[i], &without[i]});
    if (rule != kRules.end() && rule->in(all.back(), faults)) there.push_back(all.back());
  }
  out.all = difference(all);
  out.there = difference(there);
  out.more = more_surprise(all);
  out.more_there = more_surprise(there);
  return out;
}

}  // namespace reflex::backtest
