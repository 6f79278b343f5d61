// See shadow_comparison.h.
#include "runtime/serve/http/shadow_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/explain/explain.h"

namespace reflex::serve {
namespace {

using Incidents = std::map<std::string, ShadowComparison::Incident>;
using Verdicts = std::vector<std::shared_ptr<const abi::Verdict>>;

int64_t comparable_since(const Status& status, const Verdicts& shadow, const Store& store) {
  int64_t since = std::max(status.shadow_since_ns, store.gone_until_ns());
  if (since != INT64_MIN) ++since;  // what is of that instant was said before it began
  // Then it has forgotten some: what is as old of the live set has no partner.
  if (shadow.size() >= kShadowVerdictsMax) since = std::max(since, shadow.front()->ts_ns + 1);
  return since;
}

reflex::Status add_live(int64_t since_ns, int64_t until_ns, Store& store, Incidents& incidents) {
  VerdictFilter filter;
  filter.final = true;
  filter.since_ns = since_ns;
  filter.until_ns = until_ns;
  return store.each_verdict(filter, [&](const StoredVerdict& stored) {
    const auto verdict = explain::from_json(stored.json);
    if (!verdict.ok()) return true;  // of an engine that wrote another form
    auto& row = incidents[stored.incident];
    row.incident = stored.incident;
    row.job = verdict.value().job;
    row.live = answer_words(verdict.value());
    row.live_id = stored.id;
    return true;
  });
}

void add_shadow(int64_t since_ns, int64_t until_ns, const Verdicts& verdicts,
                Incidents& incidents) {
  for (const auto& verdict : verdicts) {
    if (!verdict->final_revision || verdict->ts_ns < since_ns || verdict->ts_ns >= until_ns)
      continue;
    auto& row = incidents[verdict->incident];
    row.incident = verdict->incident;
    row.job = verdict->job;
    row.shadow = answer_words(*verdict);
  }
}

/// Incidents of which one has said something, and will say more.
Result<std::set<std::string>> open_ones(const Verdicts& shadow, Store& store) {
  // Why 10,000: an incident is open for minutes, some thousand are a day of a broken fleet.
  constexpr unsigned kOpenMax = 10'000;
  const auto live = store.incidents(/*open_only=*/true, kOpenMax);
  if (!live.ok()) return live.error();
  std::set<std::string> open;
  for (const auto& verdict : shadow) {  // revisions come in order: the last one counts
    if (verdict->final_revision) {
      open.erase(verdict->incident);
    } else {
      open.insert(verdict->incident);
    }
  }
  for (const auto& incident : live.value()) open.insert(incident.incident);
  return open;
}

std::vector<ShadowComparison::Firings> firings_that_differ(const LaneStatus& live,
                                                           const LaneStatus& shadow) {
  std::map<std::string, ShadowComparison::Firings> rows;
  for (const auto& [name, count] : live.firings_by_signal) rows[name].live = count;
  for (const auto& [name, count] : shadow.firings_by_signal) rows[name].shadow = count;
  std::vector<ShadowComparison::Firings> out;
  for (auto& [name, row] : rows) {
    row.signal = name;
    if (row.live != row.shadow) out.push_back(row);
  }
  return out;
}

}  // namespace

std::string answer_words(const abi::Verdict& verdict) {
  switch (verdict.answer) {
    case abi::Answer::kNodes: {
      const std::string words =
          fmt::format("{} {}", verdict.level, fmt::join(verdict.culprits, ", "));
      if (verdict.culprits.empty()) return words;
      const auto first = std::find_if(
          verdict.nodes.begin(), verdict.nodes.end(),
          [&](const abi::NodeProbability& node) { return node.node == verdict.culprits.front(); });
      return first == verdict.nodes.end() || first->top_cause.empty()
                 ? words
                 : fmt::format("{}: {}", words, first->top_cause);
    }
    case abi::Answer::kExternal:
      return fmt::format("no node: {}", verdict.external);
    case abi::Answer::kNone:
      return "no node";
    case abi::Answer::kUndetermined:
      return "undetermined";
  }
  return "";
}

Result<ShadowComparison> compare_shadow(const Status& status, const Verdicts& shadow,
                                        Store& store) {
  ShadowComparison out;
  out.since_ns = comparable_since(status, shadow, store);
  const int64_t until_ns = std::min(status.live.watermark_ns, status.shadow->watermark_ns) + 1;
  Incidents incidents;
  const auto read = add_live(out.since_ns, until_ns, store, incidents);
  if (!read.ok()) return read.error();
  add_shadow(out.since_ns, until_ns, shadow, incidents);
  const auto open = open_ones(shadow, store);
  if (!open.ok()) return open.error();
  for (auto& [id, row] : incidents) {
    if ((row.live.empty() || row.shadow.empty()) && open.value().contains(id)) {
      ++out.open;
    } else if (row.live == row.shadow) {
      ++out.same;
    } else {
      out.incidents.push_back(std::move(row));
    }
  }
  out.firings = firings_that_differ(status.live, *status.shadow);
  return out;
}

}  // namespace reflex::serve
