// Scores, strata, bootstrap and calibration; see metrics.h.
#include "runtime/backtest/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>

namespace reflex::backtest {
namespace {

constexpr size_t kBins = 10;
constexpr double kProbabilityMin = 1e-6;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

struct Counts {
  size_t tp = 0, fp = 0, fn = 0;
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Counts count(const Case& c) {
  Counts n;
  for (const auto& node : c.culprits) ++(contains(c.label.culprits, node) ? n.tp : n.fp);
  for (const auto& node : c.label.culprits) n.fn += contains(c.culprits, node) ? 0 : 1;
  return n;
}

double f1_of(size_t tp, size_t fp, size_t fn) {
  const size_t all = 2 * tp + fp + fn;
  return all > 0 ? 2.0 * static_cast<double>(tp) / static_cast<double>(all) : 0;
}

double ratio(size_t part, size_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

double accuracy_at(const Case& c, size_t k) {
  size_t hits = 0;
  for (size_t i = 0; i < std::min(k, c.ranked.size()); ++i) {
    hits += contains(c.label.culprits, c.ranked[i].node) ? 1 : 0;
  }
  return ratio(hits, std::min(k, c.label.culprits.size()));
}

double reciprocal_rank(const Case& c) {
  for (size_t i = 0; i < c.ranked.size(); ++i) {
    if (contains(c.label.culprits, c.ranked[i].node)) return 1.0 / static_cast<double>(i + 1);
  }
  return 0;
}

/// Percentile interval. mt19937_64 and a plain modulo are the same everywhere, unlike
/// std::uniform_int_distribution.
void bootstrap(const std::vector<Counts>& counts, int resamples, Scores& s) {
  if (resamples <= 0 || counts.empty()) return;
  std::mt19937_64 random(20260101);
  std::vector<double> values;
  for (int r = 0; r < resamples; ++r) {
    Counts sum;
    for (size_t i = 0; i < counts.size(); ++i) {
      const Counts& c = counts[random() % counts.size()];
      sum.tp += c.tp;
      sum.fp += c.fp;
      sum.fn += c.fn;
    }
    values.push_back(f1_of(sum.tp, sum.fp, sum.fn));
  }
  std::sort(values.begin(), values.end());
  s.f1_low = values[static_cast<size_t>(0.025 * static_cast<double>(values.size() - 1))];
  s.f1_high = values[static_cast<size_t>(0.975 * static_cast<double>(values.size() - 1))];
}

std::string month_of(int64_t ts_ns) {
  const int64_t days = ts_ns >= 0 ? ts_ns / kNsPerDay : (ts_ns - kNsPerDay + 1) / kNsPerDay;
  const CivilDate date = civil_from_days(days);
  return fmt::format("{:04}-{:02}", date.year, date.month);
}

std::string class_name(const Case& c, const std::string& node) {
  const auto it = c.class_of.find(node);
  return it == c.class_of.end() || it->second.empty() ? "unknown" : it->second;
}

/// The incident as nodes of one hardware class see it: truth and answers of other classes left out.
Case of_class(const Case& c, const std::string& hw_class) {
  Case part = c;
  const auto other = [&](const std::string& node) { return class_name(c, node) != hw_class; };
  std::erase_if(part.culprits, other);
  std::erase_if(part.label.culprits, other);
  return part;
}

void add_stratum(const std::string& group, const std::string& name,
                 const std::vector<const Case*>& cases, Metrics& m) {
  m.strata.push_back({group, name, score(cases), reliability(cases).ece});
}

void add_classes(const std::vector<Case>& cases, Metrics& m) {
  std::map<std::string, std::vector<Case>> by_class;
  for (const Case& c : cases) {
    std::set<std::string> classes;
    for (const auto& node : c.label.culprits) classes.insert(class_name(c, node));
    for (const auto& node : c.culprits) classes.insert(class_name(c, node));
    for (const auto& name : classes) by_class[name].push_back(of_class(c, name));
  }
  for (const auto& [name, parts] : by_class) {
    std::vector<const Case*> pointers;
    for (const Case& c : parts) pointers.push_back(&c);
    add_stratum("class", name, pointers, m);
    // Incidents without a culprit are here only when one was named: there is no share to tell.
    m.strata.back().scores.none_accuracy = kNothing;
  }
}

}  // namespace

Case make_case(const learn::Label& label, const abi::Verdict* v) {
  Case c;
  c.label = label;
  if (!v) return c;
  c.answered = true;
  c.verdict = v->id;
  c.culprits = v->culprits;
  c.ranked = v->nodes;
  c.answer = v->level;
  c.external = v->external;
  c.latency_ms = v->latency_ms;
  c.job_nodes = v->job_node_count;
  for (const auto& h : v->hypotheses) {
    if (!h.node.empty()) c.class_of.emplace(h.node, h.hw_class);
  }
  return c;
}

Scores score(const std::vector<const Case*>& cases, int resamples) {
  Scores s;
  s.incidents = cases.size();
  std::vector<Counts> counts;
  size_t exact = 0;
  size_t none = 0;
  size_t none_right = 0;
  for (const Case* c : cases) {
    counts.push_back(count(*c));
    s.tp += counts.back().tp;
    s.fp += counts.back().fp;
    s.fn += counts.back().fn;
    exact += is_exact(*c) ? 1 : 0;
    if (c->label.culprits.empty()) {
      ++none;
      none_right += c->culprits.empty() ? 1 : 0;
      continue;
    }
    ++s.with_culprit;
    s.ac1 += accuracy_at(*c, 1);
    s.ac3 += accuracy_at(*c, 3);
    s.ac5 += accuracy_at(*c, 5);
    s.mrr += reciprocal_rank(*c);
  }
  s.precision = ratio(s.tp, s.tp + s.fp);
  s.recall = ratio(s.tp, s.tp + s.fn);
  s.f1 = f1_of(s.tp, s.fp, s.fn);
  s.exact = ratio(exact, cases.size());
  s.none_accuracy = none > 0 ? ratio(none_right, none) : kNothing;
  s.needless_evictions = ratio(s.fp, cases.size());
  if (s.with_culprit > 0) {
    for (double* value : {&s.ac1, &s.ac3, &s.ac5, &s.mrr}) {
      *value /= static_cast<double>(s.with_culprit);
    }
  }
  bootstrap(counts, resamples, s);
  return s;
}

Reliability reliability(const std::vector<const Case*>& cases) {
  Reliability r;
  r.bins.resize(kBins);
  for (size_t b = 0; b < kBins; ++b) {
    r.bins[b].low = static_cast<double>(b) / kBins;
    r.bins[b].high = static_cast<double>(b + 1) / kBins;
  }
  for (const Case* c : cases) {
    if (!c->answered || (!c->ranked.empty() && c->ranked.front().p < 0)) continue;
    const double p = c->ranked.empty() ? 0 : c->ranked.front().p;
    const bool hit = !c->ranked.empty() && contains(c->label.culprits, c->ranked.front().node);
    auto& bin = r.bins[std::min(kBins - 1, static_cast<size_t>(std::max(p, 0.0) * kBins))];
    ++bin.count;
    bin.mean_p += p;
    bin.share += hit ? 1 : 0;
    ++r.count;
  }
  for (auto& bin : r.bins) {
    if (bin.count == 0) continue;
    const auto n = static_cast<double>(bin.count);
    bin.mean_p /= n;
    bin.share /= n;
    r.ece += n / static_cast<double>(r.count) * std::abs(bin.share - bin.mean_p);
  }
  if (r.count == 0) r.ece = kNothing;
  return r;
}

Metrics measure(const std::vector<Case>& cases) {
  Metrics m;
  std::vector<const Case*> all;
  std::map<std::pair<std::string, std::string>, std::vector<const Case*>> strata;
  std::vector<double> latencies;
  for (const Case& c : cases) {
    all.push_back(&c);
    if (!c.label.type.empty()) strata[{"type", c.label.type}].push_back(&c);
    if (!c.label.culprits.empty()) {
      strata[{"culprits", c.label.culprits.size() > 1 ? "several" : "one"}].push_back(&c);
    }
    const std::string& fault = c.label.category.empty() ? c.label.fault : c.label.category;
    if (!fault.empty()) strata[{"fault", fault}].push_back(&c);
    if (c.label.ts_ns != kNoTimeNs) strata[{"month", month_of(c.label.ts_ns)}].push_back(&c);
    if (c.answered) latencies.push_back(c.latency_ms);
    m.unanswered += c.answered ? 0 : 1;
  }
  m.all = score(all);
  m.reliability = reliability(all);
  add_classes(cases, m);
  for (const auto& [key, part] : strata) add_stratum(key.first, key.second, part, m);
  std::stable_sort(m.strata.begin(), m.strata.end(),
                   [](const Stratum& a, const Stratum& b) { return a.group < b.group; });
  std::sort(latencies.begin(), latencies.end());
  const auto percentile = [&](double q) {
    if (latencies.empty()) return 0.0;
    return latencies[static_cast<size_t>(q * static_cast<double>(latencies.size() - 1))];
  };
  m.latency = {percentile(0.50), percentile(0.95), percentile(0.99), percentile(1.0)};
  return m;
}

bool is_exact(const Case& c) {
  const std::set<std::string> said(c.culprits.begin(), c.culprits.end());
  const std::set<std::string> truth(c.label.culprits.begin(), c.label.culprits.end());
  return said == truth && (c.answered || !truth.empty());
}

double surprise(const Case& c) {
  double on_truth = 0;
  double on_nodes = 0;
  for (const auto& n : c.ranked) {
    on_nodes += n.p;
    if (contains(c.label.culprits, n.node)) on_truth += n.p;
  }
  const double p = c.label.culprits.empty() ? 1 - on_nodes : on_truth;
  return -std::log(std::clamp(p, kProbabilityMin, 1.0));
}

std::vector<const Case*> worst(const std::vector<Case>& cases, size_t count) {
  std::vector<const Case*> wrong;
  for (const Case& c : cases) {
    if (!is_exact(c)) wrong.push_back(&c);
  }
  std::sort(wrong.begin(), wrong.end(), [](const Case* a, const Case* b) {
    const double x = surprise(*a);
    const double y = surprise(*b);
    return x != y ? x > y : a->label.incident < b->label.incident;
  });
  if (wrong.size() > count) wrong.resize(count);
  return wrong;
}

bool parse_expectation(const std::string& text, Expectation& out) {
  const size_t op = text.find_first_of("<>");
  if (op == std::string::npos || op + 1 >= text.size() || text[op + 1] != '=') return false;
  out.text = text;
  out.at_least = text[op] == '>';
  const size_t begin = text.find_first_not_of(" \t");
  const size_t end = text.find_last_not_of(" \t", op == 0 ? 0 : op - 1);
  if (op == 0 || end == std::string::npos || begin > end) return false;
  out.name = text.substr(begin, end - begin + 1);
  const std::string number = text.substr(op + 2);
  char* rest = nullptr;
  out.limit = std::strtod(number.c_str(), &rest);
  return rest != number.c_str() &&
         number.find_first_not_of(" \t\r", rest - number.c_str()) == std::string::npos;
}

namespace {

struct Figure {
  std::string_view name;
  double Scores::* value;  // null: the calibration error, which stands beside the scores
};

constexpr std::array kFigures{
    Figure{"f1", &Scores::f1},
    Figure{"precision", &Scores::precision},
    Figure{"recall", &Scores::recall},
    Figure{"exact", &Scores::exact},
    Figure{"ac1", &Scores::ac1},
    Figure{"ac3", &Scores::ac3},
    Figure{"ac5", &Scores::ac5},
    Figure{"mrr", &Scores::mrr},
    Figure{"none_accuracy", &Scores::none_accuracy},
    Figure{"ece", nullptr},
    Figure{"needless_evictions", &Scores::needless_evictions},
};

const Figure* figure_of(std::string_view name) {
  const std::string_view word = name.substr(name.rfind('.') + 1);
  const auto it = std::find_if(kFigures.begin(), kFigures.end(),
                               [&](const Figure& f) { return f.name == word; });
  return it == kFigures.end() ? nullptr : it;
}

}  // namespace

bool is_figure(const std::string& name) { return figure_of(name) != nullptr; }

std::string figure_words() {
  std::string out;
  for (const Figure& figure : kFigures) {
    out += (out.empty() ? "" : ", ") + std::string(figure.name);
  }
  return out;
}

bool value_of(const Metrics& m, const std::string& name, double& out) {
  const Figure* figure = figure_of(name);
  if (figure == nullptr) return false;
  const auto take = [&](const Scores& scores, double ece) {
    out = figure->value == nullptr ? ece : scores.*(figure->value);
    return true;
  };
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return take(m.all, m.reliability.ece);
  for (const Stratum& s : m.strata) {
    if (s.name == name.substr(0, dot)) return take(s.scores, s.ece);
  }
  return false;
}

std::string check(const Metrics& metrics, const Expectation& e) {
  double value = 0;
  if (!is_figure(e.name)) return fmt::format("{}: no such figure", e.name);
  if (!value_of(metrics, e.name, value)) {
    return fmt::format("{}: no labelled incident is of '{}'", e.name,
                       e.name.substr(0, e.name.rfind('.')));
  }
  if (e.at_least ? value >= e.limit : value <= e.limit) return "";
  return fmt::format("{} is {:.4f}, expected {} {:g}", e.name, value,
                     e.at_least ? ">=" : "<=", e.limit);
}

}  // namespace reflex::backtest
