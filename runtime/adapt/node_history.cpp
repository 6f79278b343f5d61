// Facts of a node's past: see node_history.h.
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
// Why: below this a balance of blame is the noise of jobs that a node was merely part of.
constexpr double kCountMin = 0.05;
// Why: many explained incidents of its jobs clear a node, but no node is better than this.
constexpr double kCountLeast = -0.5;

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
                         const HistoryOptions& options)
    : pack_(std::move(pack)), options_(options), by_cause_(pack_->causes.size() + 1) {}

int64_t NodeHistory::half_life(abi::CauseId cause) const {
  if (cause >= pack_->causes.size()) return options_.half_life_ns;
  const int64_t own = pack_->causes[cause].half_life_ns;
  return own > 0 ? own : options_.half_life_ns;
}

void NodeHistory::confirm(SymbolId node, abi::CauseId cause, int64_t at_ns, double weight) {
  if (cause >= pack_->causes.size()) cause = abi::kNone32;
  Entries& entries = nodes_[node];
  entries.push_back({at_ns, cause, weight, false, INT64_MAX});
  if (entries.size() > kEntriesMax) entries.pop_front();
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
    Entries& entries = nodes_[node];
    // One entry holds the whole balance, so that busy nodes do not lose their faults to it.
    auto at = std::find_if(entries.begin(), entries.end(),
                           [](const Entry& e) { return e.blame; });
    if (at == entries.end()) {
      entries.push_front({at_ns, abi::kNone32, excess, true, INT64_MAX});
    } else {
      at->weight = at->weight * fade(at_ns - at->ts_ns, h) + excess;
      at->ts_ns = at_ns;
    }
  }
}

void NodeHistory::part_replaced(SymbolId node, int64_t at_ns) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  for (Entry& e : it->second) {
    if (e.ts_ns <= at_ns) e.replaced_ns = std::min(e.replaced_ns, at_ns);
  }
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

std::string NodeHistory::words(const Entries& entries, int64_t repaired_ns,
                               int64_t at_ns) const {
  size_t faults = 0;
  int64_t first_ns = at_ns;
  double blamed = 0;
  for (const Entry& e : entries) {
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
  if (repaired_ns != kNoTimeNs && days_between(repaired_ns, at_ns) < options_.month_days) {
    append("repaired " + ago(repaired_ns, at_ns) + " ago");
  }
  if (blamed > 0.05) append(fmt::format("{:.2f} of unexplained job failures", blamed));
  return text;
}

// Faults are known with some certainty: what the newest one leaves is left to the one before.
void NodeHistory::add_last(const Entries& entries, int64_t repaired_ns, int64_t at_ns,
                           abi::Past& out) const {
  double left = 1;
  for (auto e = entries.rbegin(); e != entries.rend(); ++e) {
    if (e->blame || e->ts_ns >= at_ns) continue;
    const double days = days_between(e->ts_ns, at_ns);
    if (days >= options_.month_days) break;
    const bool repaired = repaired_ns != kNoTimeNs && e->ts_ns <= repaired_ns;
    const bool week = days < options_.week_days;
    const auto state = repaired ? (week ? abi::AfterFault::kRepairedWeek
                                        : abi::AfterFault::kRepairedMonth)
                                : (week ? abi::AfterFault::kUnrepairedWeek
                                        : abi::AfterFault::kUnrepairedMonth);
    const double share = left * std::clamp(e->weight, 0.0, 1.0);
    out.last[static_cast<size_t>(state)] += share;
    left -= share;
  }
}

std::optional<abi::Past> NodeHistory::past(SymbolId node, int64_t repaired_ns,
                                           int64_t at_ns) const {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return std::nullopt;
  const Entries& entries = it->second;
  double count = 0;  // faults that the node as it is now has behind it
  double all = 0;    // repairs aside: what it is prone to
  std::map<abi::CauseId, double> by_cause;
  for (const Entry& e : entries) {
    if (e.ts_ns >= at_ns && !e.blame) continue;
    double kept = e.weight * fade(at_ns - e.ts_ns, half_life(e.cause));
    if (!e.blame) {
      all += kept;
      if (e.cause != abi::kNone32) by_cause[e.cause] += kept;
    }
    if (e.replaced_ns <= at_ns) kept *= options_.kept_after_replacement;
    if (repaired_ns != kNoTimeNs && e.ts_ns <= repaired_ns) kept *= options_.kept_after_repair;
    count += kept;
  }
  if (all <= 0 && std::fabs(count) < kCountMin) return std::nullopt;
  abi::Past out;
  out.usual = 1 + std::max(count, kCountLeast) / options_.shape;
  add_last(entries, repaired_ns, at_ns, out);
  for (const auto& [cause, own] : by_cause) {
    out.causes.push_back({cause, own / all, share(cause, at_ns)});
  }
  out.origin = words(entries, repaired_ns, at_ns);
  return out;
}

}  // namespace reflex::adapt
