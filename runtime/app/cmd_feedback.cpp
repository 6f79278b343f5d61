// `reflex feedback`: what turned out to be true, appended to the labelled history.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/base/time.h"
#include "runtime/explain/explain.h"
#include "runtime/learn/labels.h"

namespace reflex::app {
namespace {

struct FeedbackFlags {
  std::string history;
  std::string verdict;
  std::string incident;
  std::string outcome;
  std::vector<std::string> culprits;
  bool none = false;
  std::string external;
  std::string fault;
  std::string category;
  std::string verdicts;
  std::string job;
  std::string ts;
};

/// The verdict that is judged, from the NDJSON that `run` wrote: the one with the id, or the last
/// one of the incident.
Result<std::optional<abi::Verdict>> find_verdict(const FeedbackFlags& flags) {
  if (flags.verdicts.empty()) return std::optional<abi::Verdict>();
  std::ifstream in(flags.verdicts);
  if (!in) return Error{fmt::format("cannot read {}", flags.verdicts)};
  std::optional<abi::Verdict> found;
  std::string line;
  while (std::getline(in, line)) {
    if (line.find(flags.verdict.empty() ? flags.incident : flags.verdict) == std::string::npos) {
      continue;
    }
    auto v = explain::from_json(line);
    if (!v.ok()) continue;
    const bool hit = flags.verdict.empty() ? v.value().incident == flags.incident
                                           : v.value().id == flags.verdict;
    if (hit) found = std::move(v).value();
  }
  if (!found) {
    return Error{
        fmt::format("{} holds no verdict {}", flags.verdicts,
                    flags.verdict.empty() ? "of incident " + flags.incident : flags.verdict)};
  }
  return found;
}

Result<learn::Label> make_label(const FeedbackFlags& flags) {
  auto found = find_verdict(flags);
  if (!found.ok()) return found.error();
  const auto& v = found.value();
  learn::Label label;
  label.verdict = v ? v->id : flags.verdict;
  label.incident = v ? v->incident : flags.incident;
  label.job = v ? v->job : flags.job;
  label.outcome = flags.outcome;
  if (v) label.ts_ns = v->opened_ns;
  if (!flags.ts.empty()) {
    const auto t = parse_rfc3339(flags.ts);
    if (!t) return Error{fmt::format("--ts: '{}' is not an RFC 3339 time", flags.ts)};
    label.ts_ns = t->ns;
  }
  label.external = flags.external;
  label.fault = flags.fault;
  label.category = flags.category;
  if (label.incident.empty()) {
    return Error{"--verdict needs --verdicts FILE (what `reflex run` wrote), or give --incident"};
  }
  if (label.ts_ns == kNoTimeNs) {
    return Error{"when was it? give --verdicts FILE or --ts TIME"};
  }
  label.culprits = flags.culprits;
  label.truth_known = !flags.culprits.empty() || flags.none || !flags.external.empty();
  if (!label.truth_known && flags.outcome == "confirmed") {
    if (!v) {
      return Error{
          "confirmed, but what? give --verdicts FILE, --culprit NODE, --none or "
          "--external NAME"};
    }
    label.culprits = v->culprits;
    label.external = v->external;
    label.truth_known = true;
    const auto& top = v->hypotheses;
    if (label.fault.empty() && !label.culprits.empty() && !top.empty() &&
        top.front().node == label.culprits.front()) {
      label.fault = top.front().cause;
    }
  }
  std::sort(label.culprits.begin(), label.culprits.end());
  return label;
}

int run(const FeedbackFlags& flags, const CommonFlags& common) {
  const auto fail = [&](const Error& error) {
    print_error(common, error.message);
    return error.exit_code;
  };
  if (flags.verdict.empty() == flags.incident.empty()) {
    return fail(Error{"give --verdict ID or --incident ID"});
  }
  if (!flags.culprits.empty() && (flags.none || !flags.external.empty())) {
    return fail(Error{"--culprit contradicts --none and --external"});
  }
  const auto label = make_label(flags);
  if (!label.ok()) return fail(label.error());
  if (auto status = learn::append_label(flags.history, label.value()); !status.ok()) {
    return fail(status.error());
  }
  std::string truth;
  for (const auto& c : label.value().culprits) truth += (truth.empty() ? "" : ", ") + c;
  if (truth.empty()) truth = label.value().truth_known ? "no faulty node" : "culprit unknown";
  print_note(common, fmt::format("{}: {} {}: {}", flags.history, label.value().incident,
                                 flags.outcome, truth));
  return kOk;
}

}  // namespace

Command add_feedback(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<FeedbackFlags>();
  auto* sub = app.add_subcommand("feedback", "say whether a verdict was right");
  sub->add_option("--history", flags->history, "labelled history to append to")->required();
  sub->add_option("--verdict", flags->verdict, "id of the verdict");
  sub->add_option("--incident", flags->incident, "id of the incident");
  sub->add_option("outcome", flags->outcome, "confirmed or wrong")
      ->required()
      ->check(CLI::IsMember({"confirmed", "wrong"}));
  sub->add_option("--culprit", flags->culprits, "a node that was faulty");
  sub->add_flag("--none", flags->none, "no node was faulty");
  sub->add_option("--external", flags->external, "it was this, and no node");
  sub->add_option("--fault", flags->fault, "the fault, as the packs name it");
  sub->add_option("--category", flags->category, "the site's own word for it");
  sub->add_option("--verdicts", flags->verdicts, "verdicts that `reflex run` wrote (NDJSON)");
  sub->add_option("--job", flags->job, "the job, when there is no --verdicts");
  sub->add_option("--ts", flags->ts, "when (RFC 3339), when there is no --verdicts");
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app
