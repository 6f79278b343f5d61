// Conditional logit over the nodes of a job; see history_fit.h.
#include "runtime/learn/history_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/attribution/past.h"
#include "runtime/learn/lbfgs.h"

namespace reflex::learn {
namespace {

// Why: the author's factors are right within one of two either way (one standard deviation), and
// whether older faults say anything is open.
constexpr double kFactorPull = 1 / (0.7 * 0.7);
constexpr double kUsualPull = 1 / (0.5 * 0.5);
constexpr double kFactorMin = 0.2;
constexpr double kFactorMax = 50;
// Recurrences that the author's share of the same cause is worth.
constexpr double kSameCausePseudo = 20;

struct Row {
  std::string node;
  const abi::Past* past = nullptr;
  bool culprit = false;
};
/// The nodes of a job with a history, or at fault; all others have hazard 1.
struct Case {
  const Label* label = nullptr;
  std::vector<Row> rows;
  double plain = 0;           // healthy nodes without history
  double culprits_plain = 0;  // culprits without
};

Case case_of(const abi::CompiledPack& pack, const attribution::Input& input, const Label& label) {
  Case c;
  c.label = &label;
  size_t at = 0;  // pasts stand in the order of nodes
  for (const auto& view : input.nodes) {
    const bool known = at < input.pasts.size() && input.pasts[at].node == view.node;
    const abi::Past* past = known ? &input.pasts[at++].past : nullptr;
    if (!view.in_job) continue;
    const std::string name(pack.symbols->name(view.node));
    const bool culprit = std::binary_search(label.culprits.begin(), label.culprits.end(), name);
    if (past)
      c.rows.push_back({name, past, culprit});
    else
      (culprit ? c.culprits_plain : c.plain) += 1;
  }
  return c;
}

double culprits(const Case& c) {
  double n = c.culprits_plain;
  for (const Row& row : c.rows) n += row.culprit ? 1 : 0;
  return n;
}

abi::HistoryLaw law_of(const Eigen::VectorXd& x) {
  abi::HistoryLaw law;
  for (size_t s = 0; s < abi::kAfterFault; ++s) law.again[s] = std::exp(x[static_cast<int>(s)]);
  law.usual = x[abi::kAfterFault];
  return law;
}

/// -log likelihood of one incident; adds its gradient.
double add_case(const Case& c, const abi::HistoryLaw& law, Eigen::VectorXd& gradient) {
  const double n = culprits(c);
  if (n <= 0) return 0;
  double total = c.plain + c.culprits_plain;
  double loss = 0;
  Eigen::VectorXd of_total = Eigen::VectorXd::Zero(gradient.size());
  for (const Row& row : c.rows) {
    const double h = attribution::raw_hazard(*row.past, law);
    Eigen::VectorXd slope(gradient.size());
    double recent = 0;
    for (size_t s = 0; s < abi::kAfterFault; ++s) {
      slope[static_cast<int>(s)] = row.past->last[s] * law.again[s];
      recent += row.past->last[s];
    }
    slope[abi::kAfterFault] = std::max(0.0, 1 - recent) * std::pow(row.past->usual, law.usual) *
                              std::log(row.past->usual);
    total += h;
    of_total += slope;
    if (!row.culprit) continue;
    loss -= std::log(h);
    gradient -= slope / h;
  }
  gradient += n * of_total / total;
  return loss + n * std::log(total);
}

/// The site's own word for what it was; "": not said.
const std::string& word_of(const Label& label) {
  return label.fault.empty() ? label.category : label.fault;
}

/// How often two faults that the site calls the same are the same cause to the engine: what recurs
/// can only be known as the same as far as its causes are told apart.
double same_to_engine(const std::vector<Case>& cases) {
  std::map<std::string, const Label*> last;                       // by node
  std::map<std::string, std::map<abi::CauseId, double>> by_word;  // cases
  std::set<std::pair<std::string, std::string>> counted;          // (node, incident): once a fault
  for (const Case& c : cases) {
    for (const Row& row : c.rows) {
      const auto before = last.find(row.node);
      if (before == last.end() || word_of(*before->second).empty() || row.past->causes.empty()) {
        continue;
      }
      if (!counted.emplace(row.node, before->second->incident).second) continue;
      const auto top = std::max_element(row.past->causes.begin(), row.past->causes.end(),
                                        [](const auto& a, const auto& b) { return a.own < b.own; });
      by_word[word_of(*before->second)][top->cause] += 1;
    }
    for (const auto& node : c.label->culprits) last[node] = c.label;
  }
  double same = kSameCausePseudo;
  double all = kSameCausePseudo;
  for (const auto& [word, causes] : by_word) {
    double n = 0;
    for (const auto& [cause, k] : causes) n += k;
    for (const auto& [cause, k] : causes) {
      if (n > 1) same += k * (k - 1) / (n - 1), all += k;  // against the others, not itself
    }
  }
  return same / all;
}

/// Of the faults that came soon after another of the same node: was it the same again?
double fit_same_cause(const std::vector<Case>& cases, const abi::HistoryLaw& law) {
  std::map<std::string, double> count;
  double all = 0;
  for (const Case& c : cases) {
    if (c.label->culprits.empty() || word_of(*c.label).empty()) continue;
    count[word_of(*c.label)] += 1;
    all += 1;
  }
  double by_chance = 0;
  for (const auto& [word, n] : count) by_chance += n / all * n / all;
  double same = 0;
  double asked = 0;
  std::map<std::string, const Label*> last;  // by node
  for (const Case& c : cases) {
    const auto& word = word_of(*c.label);
    for (const Row& row : c.rows) {
      double recent = 0;
      for (const double x : row.past->last) recent += x;
      if (!row.culprit || recent < 0.5 || c.label->culprits.size() != 1 || word.empty()) continue;
      const auto before = last.find(c.label->culprits.front());
      if (before == last.end() || word_of(*before->second).empty()) continue;
      // What came by chance is the mix of the fleet.
      const double h = attribution::raw_hazard(*row.past, law);
      asked += std::max(0.0, 1 - 1 / h) * (1 - by_chance);
      same += (word == word_of(*before->second) ? 1 : 0) - by_chance;
    }
    for (const auto& node : c.label->culprits) last[node] = c.label;
  }
  const double again =
      (kSameCausePseudo * law.same_cause + same) / (kSameCausePseudo + asked);
  return std::clamp(again * same_to_engine(cases), 0.0, 0.95);
}

double rounded(double x) { return std::round(x * 1000) / 1000; }

}  // namespace

abi::HistoryLaw fit_history(const abi::CompiledPack& pack, const RecordedInputs& inputs,
                            int64_t until_ns) {
  std::vector<Case> cases;
  for (const auto& input : inputs) {
    if (input->label().ts_ns >= until_ns) continue;
    cases.push_back(case_of(pack, input->input(), input->label()));
  }
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    return a.label->ts_ns != b.label->ts_ns ? a.label->ts_ns < b.label->ts_ns
                                            : a.label->incident < b.label->incident;
  });
  const abi::HistoryLaw author;
  Eigen::VectorXd start(abi::kAfterFault + 1);
  for (size_t s = 0; s < abi::kAfterFault; ++s) {
    start[static_cast<int>(s)] = std::log(author.again[s]);
  }
  start[abi::kAfterFault] = author.usual;
  Eigen::VectorXd pull = Eigen::VectorXd::Constant(start.size(), kFactorPull);
  pull[abi::kAfterFault] = kUsualPull;
  const Objective objective = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
    const abi::HistoryLaw law = law_of(x);
    const Eigen::VectorXd off = x - start;
    gradient = pull.cwiseProduct(off);
    double loss = 0.5 * off.dot(gradient);
    for (const Case& c : cases) loss += add_case(c, law, gradient);
    return loss;
  };
  abi::HistoryLaw law = law_of(minimize(objective, start));
  for (double& factor : law.again) factor = rounded(std::clamp(factor, kFactorMin, kFactorMax));
  law.usual = rounded(std::clamp(law.usual, 0.0, 2.0));
  law.same_cause = rounded(fit_same_cause(cases, law));
  return law;
}

}  // namespace reflex::learn
