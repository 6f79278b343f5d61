// Why a node is not named: its own hypotheses beside the winner's, and what was seen on it.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "runtime/app/why_not.h"
#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory.h"
#include "runtime/engine/pipeline.h"
#include "runtime/explain/escape.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"
#include "runtime/learn/model_file.h"

namespace reflex::app {
namespace {

constexpr uint32_t kAllHypotheses = 1'000'000;
constexpr size_t kFiringsMax = 8;     // Why: what happened last; the stream has the rest
constexpr size_t kHypothesesMax = 3;  // of the node
constexpr size_t kContributionsMax = 8;

struct Seen {
  std::optional<abi::Verdict> verdict;
  std::deque<std::string> firings;  // on the node, the last ones
  bool incident = false;            // the one that was asked for was opened
  bool known = false;               // the node is in the topology or fired
};

void print_hypothesis(const abi::Hypothesis& h, int64_t opened_ns) {
  fmt::print("  {}  {}  prior {}  log-odds {}\n", explain::title(h), explain::percent(h.p),
             explain::nats_text(h.prior_nats), explain::nats_text(h.log_odds_nats));
  for (size_t i = 0; i < std::min(h.contributions.size(), kContributionsMax); ++i) {
    const auto& c = h.contributions[i];
    fmt::print("    {:>8}  {}  [{}]\n", explain::nats_text(c.nats), explain::reason(c, opened_ns),
               explain::place(c.rule));
  }
  if (h.contributions.size() > kContributionsMax) {
    fmt::print("              and {} smaller ones\n", h.contributions.size() - kContributionsMax);
  }
  for (const auto& e : h.explained_away) {
    fmt::print("    {:>8}  {} on {} explained away by {}\n", explain::nats_text(-e.nats_lost),
               e.signal, e.entity, e.by);
  }
  for (const auto& s : h.suppressed) {
    fmt::print("    {:>8}  {} on {} suppressed: {}\n", explain::nats_text(-s.nats_lost), s.signal,
               s.entity, s.by);
  }
  for (const auto& u : h.unobserved) {
    fmt::print("              {} on {} unobserved: {}\n", u.signal, u.entity, u.reason);
  }
}

/// Hypotheses that name the node; without any, the group of nodes alike it may stand in.
std::vector<const abi::Hypothesis*> hypotheses_of(const abi::Verdict& v, const std::string& node) {
  std::vector<const abi::Hypothesis*> own;
  std::vector<const abi::Hypothesis*> groups;
  for (const auto& h : v.hypotheses) {
    if (h.what != abi::Hypothesis::What::kNode) continue;
    const bool group = h.entity.find(" alike") != std::string::npos;
    if (h.node == node)
      own.push_back(&h);
    else if (group)
      groups.push_back(&h);
  }
  return own.empty() ? groups : own;
}

void print_answer(const Seen& seen, const std::string& node) {
  const abi::Verdict v = explain::printable(*seen.verdict);
  fmt::print("incident {} of job {}, revision {}: {}\n", v.incident, v.job, v.revision,
             explain::sentence(v));
  const bool culprit = std::find(v.culprits.begin(), v.culprits.end(), node) != v.culprits.end();
  const auto listed =
      std::find_if(v.nodes.begin(), v.nodes.end(), [&](const auto& n) { return n.node == node; });
  if (culprit) {
    fmt::print("{} is named: {}\n", node, v.level);
  } else if (listed != v.nodes.end()) {
    fmt::print("{} is not named: its probability is {}\n", node, explain::percent(listed->p));
  } else {
    fmt::print("{} is not named: its probability is below 1%\n", node);
  }
  const auto own = hypotheses_of(v, node);
  const bool grouped = !own.empty() && own.front()->node != node;
  fmt::print("{}\n", own.empty() ? "No fault of the packs can be on it."
                     : grouped   ? "No signal that a fault causes fired on it; nodes like it were "
                                   "weighed together:"
                                 : "Its hypotheses, best first:");
  for (size_t i = 0; i < std::min(own.size(), kHypothesesMax); ++i) {
    print_hypothesis(*own[i], v.opened_ns);
  }
  const abi::Hypothesis* winner = explain::lead(v);
  if (winner && winner->what != abi::Hypothesis::What::kNone && winner->node != node) {
    fmt::print("Against the answer's:\n");
    print_hypothesis(*winner, v.opened_ns);
    if (!own.empty()) {
      fmt::print("It lacks {} nats to be level with it.\n",
                 explain::nats_text(winner->log_odds_nats - own.front()->log_odds_nats).substr(1));
    }
  } else if (!own.empty() && !culprit) {
    fmt::print("It stands at {} nats against \"no faulty node\" at 0.\n",
               explain::nats_text(own.front()->log_odds_nats));
  }
}

/// The learned model and the history that the verdicts in question were made with.
Status add_knowledge(const WhyNotFlags& flags, const abi::CompiledPack& pack,
                     const CommonFlags& common, engine::EngineOptions& options) {
  if (!flags.model.empty()) {
    auto model = learn::load_model(flags.model, pack);
    if (!model.ok()) return model.error();
    options.model = std::make_shared<const abi::Model>(std::move(model).value());
  }
  auto known = load_history(flags.history, common);
  if (!known.ok()) return known.error();
  options.known = std::move(known).value();
  return ok_status();
}

std::string why_no_answer(const WhyNotFlags& flags, const Seen& seen) {
  if (flags.incident.empty()) return "no incident opened on a job that it was in";
  if (seen.incident) {
    return fmt::format("it is not in job {} of incident {}", explain::printable(flags.job),
                       explain::printable(flags.incident));
  }
  return fmt::format("these packs and events opened no incident {} on job {}",
                     explain::printable(flags.incident), explain::printable(flags.job));
}

}  // namespace

int why_not_node(const WhyNotFlags& flags, int64_t at_ns, const compiler::Compilation& compilation,
                 const CommonFlags& common) {
  const auto fail = [&](const Error& error) {
    print_error(common, error.message);
    return error.exit_code;
  };
  const auto& pack = compilation.pack;
  const SymbolId node = pack->symbols->intern(flags.subject);
  Seen seen;
  engine::Engine* running = nullptr;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) {
    if (!flags.incident.empty() && (v.incident != flags.incident || v.job != flags.job)) return;
    seen.incident = true;
    const auto& nodes = running->topology().nodes_of(pack->symbols->intern(v.job), v.opened_ns);
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) return;
    // An incident that was still open at --at is shown as it stood.
    if (at_ns == INT64_MAX || v.ts_ns <= at_ns || !seen.verdict) seen.verdict = std::move(v);
  };
  sinks.firing = [&](const abi::Firing& f) {
    const auto& kind = pack->entity_kinds[f.entity.kind];
    if (kind.keys.empty() || kind.keys[0] != "node" || f.entity.values[0] != node) return;
    if (f.change != abi::FiringChange::kStart) return;
    seen.known = true;
    seen.firings.push_back(
        fmt::format("{}  {}", to_rfc3339(EventTime{f.ts_ns}), pack->signals[f.signal].name));
    if (seen.firings.size() > kFiringsMax) seen.firings.pop_front();
  };
  engine::EngineOptions options;
  options.hypotheses_max = kAllHypotheses;
  if (auto status = add_knowledge(flags, *pack, common, options); !status.ok())
    return fail(status.error());
  auto created = engine::Engine::create(pack, options, std::move(sinks));
  if (!created.ok()) return fail(created.error());
  running = created.value().get();
  for (const auto& path : flags.input.inventories) {
    auto summary = engine::load_inventory(path, *pack->symbols, running->topology());
    if (!summary.ok()) return fail(summary.error());
  }
  auto pipeline = pipeline_options(flags.input);
  if (!pipeline.ok()) return fail(pipeline.error());
  pipeline.value().until_ns = at_ns;
  auto summary = engine::run_pipeline(pack, *running, pipeline.value(), {});
  if (!summary.ok()) return fail(summary.error());
  const auto all = running->topology().nodes();
  seen.known = seen.known || seen.verdict || std::find(all.begin(), all.end(), node) != all.end();
  if (!seen.known) {
    print_error(common, fmt::format("'{}' is neither a signal of the packs nor a node of the input",
                                    explain::printable(flags.subject)));
    return kUsage;
  }
  const std::string name = explain::printable(flags.subject);
  if (seen.verdict) {
    print_answer(seen, name);
  } else {
    fmt::print("{} is not named: {}{}\n", name, why_no_answer(flags, seen),
               at_ns == INT64_MAX ? "" : " up to that time");
  }
  fmt::print("{}\n", seen.firings.empty() ? "No signal fired on it at all."
                                          : "Signals that fired on it, the last ones:");
  for (const auto& line : seen.firings) fmt::print("  {}\n", explain::printable(line));
  return kOk;
}

}  // namespace reflex::app
