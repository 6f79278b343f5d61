// Hazards from a node's past: see node_history.h.
#include "runtime/adapt/node_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/base/time.h"

namespace reflex::adapt {
namespace {

// Why: at one fault a week a node is out of service before its list is full.
constexpr size_t kEntriesMax = 32;
// Nodes of the fleet that stand for a class whose own are few.
constexpr double kClassPriorNodes = 20;

double fade(int64_t ns, int64_t half_life_ns) {
  return std::exp2(-static_cast<double>(std::max<int64_t>(ns, 0)) /
                   static_cast<double>(half_life_ns));
}

double days_between(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / static_cast<double>(kNsPerDay);
}

std::string ago(int64_t from_ns, int64_t to_ns) {
  const double days = days_between(from_ns, to_ns);
  if (days < 1) return fmt::format("{:.0f} hours", std::max(1.0, days * 24));
  return fmt::format("{:.0f} {}", days, days < 1.5 ? "day" : "days");
}

}  // namespace

void NodeHistory::Fading::add(double x, int64_t at_ns, int64_t half_life_ns) {
  value = at(at_ns, half_life_ns) + x;
  ts_ns = std::max(ts_ns, at_ns);
}

double NodeHistory::Fading::at(int64_t at_ns, int64_t half_life_ns) const {
  return ts_ns == kNoTimeNs ? 0 : value * fade(at_ns - ts_ns, half_life_ns);
}

NodeHistory::NodeHistory(std::shared_ptr<const abi::CompiledPack> pack,
                         const HazardOptions& options)
    : pack_(std::move(pack)),
      options_(options),
      class_nodes_(std::max<size_t>(pack_->classes.size(), 1), 0),
      by_class_(class_nodes_.size()),
      by_cause_(pack_->causes.size() + 1) {}

int64_t NodeHistory::half_life(abi::CauseId cause) const {
  if (cause >= pack_->causes.size()) return options_.half_life_ns;
  const int64_t own = pack_->causes[cause].half_life_ns;
  return own > 0 ? own : options_.half_life_ns;
}

void NodeHistory::see_node(SymbolId node, abi::ClassId hw_class) {
  const auto [it, added] = nodes_.try_emplace(node);
  if (!added) class_nodes_[it->second.hw_class] -= 1;
  it->second.hw_class = hw_class;
  class_nodes_[hw_class] += 1;
}

void NodeHistory::add(SymbolId node, const Entry& entry) {
  if (!nodes_.contains(node)) see_node(node, 0);
  Node& n = nodes_[node];
  n.entries.push_back(entry);
  if (n.entries.size() > kEntriesMax) n.entries.pop_front();
  by_class_[n.hw_class].add(entry.weight, entry.ts_ns, options_.half_life_ns);
}

void NodeHistory::confirm(SymbolId node, abi::CauseId cause, int64_t at_ns, double weight) {
  if (cause >= pack_->causes.size()) cause = abi::kNone32;
  add(node, {at_ns, cause, weight, false, INT64_MAX});
  by_cause_[std::min<size_t>(cause, pack_->causes.size())].add(weight, at_ns,
                                                               options_.half_life_ns);
}

void NodeHistory::blame(std::span<const SymbolId> nodes, bool unexplained, int64_t at_ns) {
  if (nodes.empty()) return;
  const int64_t h = options_.half_life_ns;
  // Half an incident of prior: the first one must not look as if all of them were unexplained.
  const double usual = (unexplained_.at(at_ns, h) + 0.25) / (incidents_.at(at_ns, h) + 0.5);
  incidents_.add(1, at_ns, h);
  if (unexplained) unexplained_.add(1, at_ns, h);
  const double excess = ((unexplained ? 1.0 : 0.0) - usual) / static_cast<double>(nodes.size());
  for (const SymbolId node : nodes) {
    if (!nodes_.contains(node)) see_node(node, 0);
    Node& n = nodes_[node];
    // One entry holds the whole balance, so that busy nodes do not lose their faults to it.
    auto at = std::find_if(n.entries.begin(), n.entries.end(),
                           [](const Entry& e) { return e.blame; });
    if (at == n.entries.end()) {
      n.entries.push_front({at_ns, abi::kNone32, excess, true, INT64_MAX});
    } else {
      at->weight = at->weight * fade(at_ns - at->ts_ns, h) + excess;
      at->ts_ns = at_ns;
    }
  }
}

void NodeHistory::part_replaced(SymbolId node, int64_t at_ns) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  for (Entry& e : it->second.entries) {
    if (e.ts_ns <= at_ns) e.replaced_ns = std::min(e.replaced_ns, at_ns);
  }
}

// Faults that a node of the class has behind it on average.
double NodeHistory::expected(abi::ClassId hw_class, int64_t at_ns) const {
  double all = 0;
  double nodes = 0;
  for (size_t c = 0; c < by_class_.size(); ++c) {
    all += by_class_[c].at(at_ns, options_.half_life_ns);
    nodes += class_nodes_[c];
  }
  const double fleet = nodes > 0 ? all / nodes : 0;
  const double own = by_class_[hw_class].at(at_ns, options_.half_life_ns);
  return (own + kClassPriorNodes * fleet) / (class_nodes_[hw_class] + kClassPriorNodes);
}

// The cause's share of all faults of the fleet, half a fault of each to begin with.
double NodeHistory::share(abi::CauseId cause, int64_t at_ns) const {
  double all = 0;
  size_t kinds = 0;
  for (size_t c = 0; c < pack_->causes.size(); ++c) {
    if (pack_->causes[c].kind != abi::CauseKind::kFault) continue;
    all += by_cause_[c].at(at_ns, options_.half_life_ns);
    ++kinds;
  }
  const double own = by_cause_[cause].at(at_ns, options_.half_life_ns);
  return (own + 0.5) / (all + 0.5 * static_cast<double>(std::max<size_t>(kinds, 1)));
}

double NodeHistory::recurrence(int64_t since_ns, int64_t at_ns) const {
  if (since_ns == kNoTimeNs) return 1;
  const double days = days_between(since_ns, at_ns);
  if (days < options_.first_days) return options_.first_factor;
  return days < options_.later_days ? options_.later_factor : 1;
}

std::string NodeHistory::words(const Node& node, int64_t repaired_ns, int64_t at_ns) const {
  size_t faults = 0;
  int64_t first_ns = at_ns;
  double blamed = 0;
  for (const Entry& e : node.entries) {
    if (e.ts_ns >= at_ns && !e.blame) continue;
    if (e.blame) {
      blamed = e.weight;
    } else {
      ++faults;
      first_ns = std::min(first_ns, e.ts_ns);
    }
  }
  std::string text;
  const auto append = [&](const std::string& part) {
    text += (text.empty() ? "" : ", ") + part;
  };
  if (faults > 0) {
    append(fmt::format("{} confirmed {} in {}", faults, faults == 1 ? "fault" : "faults",
                       ago(first_ns, at_ns)));
  }
  if (repaired_ns != kNoTimeNs && days_between(repaired_ns, at_ns) < options_.later_days) {
    append("repaired " + ago(repaired_ns, at_ns) + " ago");
  }
  if (blamed > 0.05) append(fmt::format("{:.2f} of unexplained job failures", blamed));
  return text;
}

Hazard NodeHistory::hazard(SymbolId node, int64_t repaired_ns, int64_t at_ns) const {
  Hazard out;
  const auto it = nodes_.find(node);
  static const Node kNew{};
  const Node& n = it == nodes_.end() ? kNew : it->second;
  double count = 0;  // faults that the node as it is now has behind it
  double all = 0;    // repairs aside: what it is prone to
  int64_t last_ns = repaired_ns;
  std::map<abi::CauseId, double> by_cause;
  for (const Entry& e : n.entries) {
    if (e.ts_ns >= at_ns && !e.blame) continue;
    double kept = e.weight * fade(at_ns - e.ts_ns, half_life(e.cause));
    if (!e.blame) {
      all += kept;
      if (e.cause != abi::kNone32) by_cause[e.cause] += kept;
      last_ns = std::max(last_ns, e.ts_ns);
    }
    if (e.replaced_ns <= at_ns) kept *= options_.kept_after_replacement;
    if (repaired_ns != kNoTimeNs && e.ts_ns <= repaired_ns) kept *= options_.kept_after_repair;
    count += kept;
  }
  // Why steps of a quarter octave: no history is known better, and nodes that are alike in all else
  // stay one group for attribution, which keeps jobs of 10,000 nodes fast.
  const auto bounded = [&](double x) {
    const double step = std::exp2(std::round(std::log2(std::max(x, 1e-9)) * 4) / 4);
    return std::clamp(step, options_.factor_min, options_.factor_max);
  };
  const double usual = (options_.shape + std::max(count, 0.0)) /
                       (options_.shape + expected(n.hw_class, at_ns));
  // What the days after a fault or repair add is mostly the same cause again; the rest is the mix
  // of the fleet.
  const double added = recurrence(last_ns, at_ns) - 1;
  const double again = all > 0 ? options_.same_cause : 0;
  out.factor = bounded(usual * (1 + added * (1 - again)));
  for (const auto& [cause, own] : by_cause) {
    const double same = again * (own / all) / share(cause, at_ns);
    out.causes.emplace_back(cause, bounded(usual * (1 + added * (same + 1 - again))));
  }
  out.origin = words(n, repaired_ns, at_ns);
  return out;
}

}  // namespace reflex::adapt
