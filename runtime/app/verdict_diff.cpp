// Two replays and their comparison; see verdict_diff.h.
#include "runtime/app/verdict_diff.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory.h"
#include "runtime/engine/pipeline.h"

namespace reflex::app {
namespace {

// Why: below that a reader would act in the same way.
constexpr double kShiftMin = 0.05;

struct Answer {
  std::string text;
  double p = 0;
};

struct Seen {
  uint64_t events = 0;
  std::map<std::string, Answer> answers;  // by incident
  std::map<std::string, uint64_t> firings;
};

/// Kind, job and opening: not the id, which holds the hash of the pack set.
std::string incident_text(const abi::Verdict& v) {
  return fmt::format("{} {} {}", v.incident_type, v.job, to_rfc3339(EventTime{v.opened_ns}));
}

Answer answer_of(const abi::Verdict& v) {
  Answer answer;
  answer.text = v.level;
  for (const auto& node : v.culprits) answer.text += " " + node;
  if (!v.external.empty()) answer.text += " " + v.external;
  if (!v.hypotheses.empty()) {
    const auto& top = v.hypotheses.front();
    answer.p = top.p;
    if (!v.culprits.empty() && !top.cause.empty()) answer.text += " (" + top.cause + ")";
  }
  return answer;
}

Result<Seen> replay(const compiler::Compilation& c, const ReplayInput& input) {
  Seen seen;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) {
    if (v.final_revision) seen.answers[incident_text(v)] = answer_of(v);
  };
  sinks.firing = [&](const abi::Firing& f) {
    if (f.change == abi::FiringChange::kStart) ++seen.firings[c.pack->signals[f.signal].name];
  };
  auto created = engine::Engine::create(c.pack, {}, std::move(sinks));
  if (!created.ok()) return created.error();
  engine::Engine& running = *created.value();
  for (const auto& path : input.inventories) {
    auto summary = engine::load_inventory(path, *c.pack->symbols, running.topology());
    if (!summary.ok()) return summary.error();
  }
  engine::PipelineOptions pipeline;
  pipeline.events = input.events;
  auto summary = engine::run_pipeline(c.pack, running, pipeline, {});
  if (!summary.ok()) return summary.error();
  seen.events = summary.value().events_evaluated;
  return seen;
}

std::string with_p(const Answer& a) { return fmt::format("{} {:.2f}", a.text, a.p); }

void compare_answers(const Seen& before, const Seen& after, ReplayDifference& out) {
  std::map<std::string, std::pair<const Answer*, const Answer*>> all;
  for (const auto& [incident, answer] : before.answers) all[incident].first = &answer;
  for (const auto& [incident, answer] : after.answers) all[incident].second = &answer;
  for (const auto& [incident, pair] : all) {
    const auto& [a, b] = pair;
    const VerdictChange change{incident, a ? with_p(*a) : "", b ? with_p(*b) : ""};
    if (!a || !b || a->text != b->text) {
      out.answers.push_back(change);
    } else if (std::fabs(a->p - b->p) >= kShiftMin) {
      out.shifts.push_back(change);
    }
  }
}

}  // namespace

Result<ReplayDifference> replay_difference(const compiler::Compilation& before,
                                           const compiler::Compilation& after,
                                           const ReplayInput& input) {
  auto a = replay(before, input);
  if (!a.ok()) return a.error();
  auto b = replay(after, input);
  if (!b.ok()) return b.error();
  ReplayDifference out;
  out.events = b.value().events;
  out.incidents_before = a.value().answers.size();
  out.incidents_after = b.value().answers.size();
  compare_answers(a.value(), b.value(), out);
  for (const auto& [name, count] : a.value().firings) out.firings[name].first = count;
  for (const auto& [name, count] : b.value().firings) out.firings[name].second = count;
  std::erase_if(out.firings,
                [](const auto& entry) { return entry.second.first == entry.second.second; });
  return out;
}

}  // namespace reflex::app
