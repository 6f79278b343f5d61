// `reflex diff A B`: what changes when pack set B takes the place of A: meaning, state, verdicts.
//
// Three forms: text, Markdown for a pull request, one JSON object. Exit 0, or with --exit-code 1
// when there is any difference.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/abi/state_plan.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/app/pack_diff.h"
#include "runtime/app/verdict_diff.h"

namespace reflex::app {
namespace {

struct DiffFlags {
  std::string before;
  std::string after;
  std::vector<std::string> with;
  std::vector<std::string> profiles;
  std::string backend = "jit";
  ReplayInput replay;
  bool exit_code = false;
  bool all = false;
};

struct Difference {
  std::vector<PackChange> packs;
  std::vector<abi::StateChange> state;
  std::optional<ReplayDifference> replay;

  [[nodiscard]] bool any() const {
    const bool state_changed =
        std::any_of(state.begin(), state.end(), [](const auto& s) { return s.changed; });
    return !packs.empty() || state_changed ||
           (replay && (!replay->answers.empty() || !replay->shifts.empty()));
  }
};

std::string_view word_of(PackChange::How how) {
  switch (how) {
    case PackChange::How::kAdded:
      return "added";
    case PackChange::How::kRemoved:
      return "removed";
    case PackChange::How::kChanged:
      return "changed";
  }
  return "";
}

std::string state_text(const abi::StateChange& s) {
  std::string text = s.why;
  if (s.incomplete) text += (text.empty() ? "" : "; ") + std::string("history incomplete");
  return text;
}

/// "12 kept, 1 trimmed, 2 reset": always all five words, so that scripts may look for them.
std::string state_summary(const std::vector<abi::StateChange>& state) {
  std::map<abi::Fate, std::pair<size_t, uint64_t>> sums;
  for (const auto& s : state) {
    ++sums[s.fate].first;
    sums[s.fate].second += s.bytes_per_key;
  }
  std::string text;
  for (const auto fate : {abi::Fate::kKept, abi::Fate::kTrimmed, abi::Fate::kReset, abi::Fate::kNew,
                          abi::Fate::kRemoved}) {
    text += fmt::format("{}{} {} ({} B/key)", text.empty() ? "" : ", ", sums[fate].first,
                        abi::word_of(fate), sums[fate].second);
  }
  return text;
}

// ---------------------------------------------------------------- text

void print_replay_text(const ReplayDifference& r) {
  fmt::print("\nreplay of {} events: {} incidents before, {} after, {} other answers\n", r.events,
             r.incidents_before, r.incidents_after, r.answers.size());
  for (const auto* list : {&r.answers, &r.shifts}) {
    for (const auto& change : *list) {
      fmt::print("  {}\n    - {}\n    + {}\n", change.incident,
                 change.before.empty() ? "no incident" : change.before,
                 change.after.empty() ? "no incident" : change.after);
    }
  }
  for (const auto& [name, counts] : r.firings) {
    fmt::print("  {} fires {} times, before {}\n", name, counts.second, counts.first);
  }
}

void print_text(const Difference& d, bool all) {
  fmt::print("packs: {} difference(s)\n", d.packs.size());
  for (const PackChange& c : d.packs) {
    fmt::print("  {} {} {}{}\n", c.category, c.name, word_of(c.how),
               c.note.empty() ? "" : " (" + c.note + ")");
    for (const auto& line : c.lines) fmt::print("    {}\n", line);
  }
  fmt::print("\nstate: {}\n", state_summary(d.state));
  for (const auto& s : d.state) {
    if (!s.changed && !all) continue;
    const std::string why = state_text(s);
    fmt::print("  {:<8} {} {} {} B/key{}\n", abi::word_of(s.fate),
               s.is_feature ? "feature" : "signal", s.name, s.bytes_per_key,
               why.empty() ? "" : "  " + why);
  }
  if (d.replay) print_replay_text(*d.replay);
}

// ---------------------------------------------------------------- Markdown

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') {
      out += "\\|";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

void print_replay_markdown(const ReplayDifference& r) {
  fmt::print(
      "\n### Verdicts\n\nReplay of {} events: {} incidents before, {} after, **{} other "
      "answers**.\n",
      r.events, r.incidents_before, r.incidents_after, r.answers.size());
  if (!r.answers.empty() || !r.shifts.empty()) {
    fmt::print("\n| incident | before | after |\n|---|---|---|\n");
  }
  for (const auto* list : {&r.answers, &r.shifts}) {
    for (const auto& change : *list) {
      fmt::print("| {} | {} | {} |\n", cell(change.incident),
                 change.before.empty() ? "no incident" : cell(change.before),
                 change.after.empty() ? "no incident" : cell(change.after));
    }
  }
  if (r.firings.empty()) return;
  fmt::print("\n| signal | firings before | after |\n|---|---|---|\n");
  for (const auto& [name, counts] : r.firings) {
    fmt::print("| `{}` | {} | {} |\n", name, counts.first, counts.second);
  }
}

void print_markdown(const Difference& d, bool all) {
  fmt::print("### Packs\n\n{} difference(s)\n", d.packs.size());
  for (const PackChange& c : d.packs) {
    fmt::print("\n- {} `{}` {}{}\n", c.category, c.name, word_of(c.how),
               c.note.empty() ? "" : " (" + c.note + ")");
    if (c.lines.empty()) continue;
    fmt::print("  ```diff\n");
    for (const auto& line : c.lines) fmt::print("  {}\n", line);
    fmt::print("  ```\n");
  }
  fmt::print("\n### State\n\n{}\n", state_summary(d.state));
  bool head = false;
  for (const auto& s : d.state) {
    if (!s.changed && !all) continue;
    if (!head) fmt::print("\n| what becomes of it | state of | B/key | why |\n|---|---|---|---|\n");
    head = true;
    fmt::print("| {} | {} `{}` | {} | {} |\n", abi::word_of(s.fate),
               s.is_feature ? "feature" : "signal", s.name, s.bytes_per_key, cell(state_text(s)));
  }
  if (d.replay) print_replay_markdown(*d.replay);
}

// ---------------------------------------------------------------- JSON

void print_json(const Difference& d) {
  using Json = nlohmann::ordered_json;
  Json object;
  object["packs"] = Json::array();
  for (const PackChange& c : d.packs) {
    Json entry{{"category", c.category}, {"name", c.name}, {"how", word_of(c.how)}};
    entry["lines"] = c.lines;
    if (!c.note.empty()) entry["note"] = c.note;
    object["packs"].push_back(std::move(entry));
  }
  object["state"] = Json::array();
  for (const auto& s : d.state) {
    Json entry{{"name", s.name},
               {"what", s.is_feature ? "feature" : "signal"},
               {"fate", abi::word_of(s.fate)},
               {"bytes_per_key", s.bytes_per_key},
               {"changed", s.changed},
               {"history_incomplete", s.incomplete},
               {"why", s.why}};
    if (!s.old_name.empty()) entry["was"] = s.old_name;
    object["state"].push_back(std::move(entry));
  }
  if (d.replay) {
    Json replay{{"events", d.replay->events},
                {"incidents_before", d.replay->incidents_before},
                {"incidents_after", d.replay->incidents_after}};
    const auto list = [](const std::vector<VerdictChange>& changes) {
      Json out = Json::array();
      for (const auto& c : changes) {
        out.push_back(Json{{"incident", c.incident}, {"before", c.before}, {"after", c.after}});
      }
      return out;
    };
    replay["answers"] = list(d.replay->answers);
    replay["shifts"] = list(d.replay->shifts);
    replay["firings"] = Json::array();
    for (const auto& [name, counts] : d.replay->firings) {
      replay["firings"].push_back(
          Json{{"signal", name}, {"before", counts.first}, {"after", counts.second}});
    }
    object["replay"] = std::move(replay);
  }
  fmt::print("{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// ---------------------------------------------------------------- the command

/// The profiles near one side, and whether there is anything to take from the other side.
struct SideProfiles {
  std::vector<std::string> paths;
  bool lacks = false;
};

SideProfiles profiles_near(const DiffFlags& flags, const std::string& path) {
  std::vector<std::string> packs = {path};
  // Its own first: what --with names is the same for both.
  SideProfiles near{default_profiles(packs), false};
  packs.insert(packs.end(), flags.with.begin(), flags.with.end());
  if (near.paths.empty()) near.paths = default_profiles(packs);
  near.lacks = near.paths.empty() && !names_profiles(packs);
  return near;
}

/// Of A and B. Each with those near it, since a class whose numbers change is a difference. A side
/// without any has those of the other: a copy of A outside of the repository would seem to lack them
/// all.
std::array<std::vector<std::string>, 2> profiles_of_sides(const DiffFlags& flags) {
  if (!flags.profiles.empty()) return {flags.profiles, flags.profiles};
  const SideProfiles before = profiles_near(flags, flags.before);
  const SideProfiles after = profiles_near(flags, flags.after);
  return {before.lacks ? after.paths : before.paths, after.lacks ? before.paths : after.paths};
}

Loaded load_side(const DiffFlags& flags, const std::string& path,
                 const std::vector<std::string>& profiles,
                 const std::shared_ptr<SymbolTable>& symbols, const CommonFlags& common) {
  LoadRequest request;
  request.packs = {path};
  request.packs.insert(request.packs.end(), flags.with.begin(), flags.with.end());
  request.profiles = profiles;
  request.include_tests = true;
  request.backend = flags.backend;
  request.symbols = symbols;
  return load_packs(request, common);
}

int run(const DiffFlags& flags, CommonFlags common) {
  const std::string form = common.format;
  if (form == "sarif" || form == "github") {
    print_error(common, fmt::format("diff has no {} form: use text, md or json", form));
    return kUsage;
  }
  if (form == "md") common.format = "text";  // of diagnostics
  const auto symbols = std::make_shared<SymbolTable>();
  const auto profiles = profiles_of_sides(flags);
  const Loaded before = load_side(flags, flags.before, profiles[0], symbols, common);
  if (before.exit_code != kOk) return before.exit_code;
  const Loaded after = load_side(flags, flags.after, profiles[1], symbols, common);
  if (after.exit_code != kOk) return after.exit_code;
  const compiler::Compilation& a = *before.compilation;
  const compiler::Compilation& b = *after.compilation;
  Difference d;
  d.packs = pack_changes(a, b);
  d.state = abi::state_plan(abi::state_items(*a.pack), abi::state_items(*b.pack));
  if (!flags.replay.events.empty()) {
    auto replay = replay_difference(a, b, flags.replay);
    if (!replay.ok()) {
      print_error(common, replay.error().message);
      return replay.error().exit_code;
    }
    d.replay = std::move(replay).value();
  }
  if (form == "json") {
    print_json(d);
  } else if (form == "md") {
    print_markdown(d, flags.all);
  } else {
    print_text(d, flags.all);
  }
  return flags.exit_code && d.any() ? kFindings : kOk;
}

}  // namespace

Command add_diff(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<DiffFlags>();
  auto* sub = app.add_subcommand("diff", "what changes when pack set B takes the place of A");
  sub->add_option("A", flags->before, "pack folder or .rfx file, as it is")->required();
  sub->add_option("B", flags->after, "the same, as it shall be")->required();
  sub->add_option("--with", flags->with, "packs that both sides load: what A and B import");
  sub->add_option("--profiles", flags->profiles,
                  "hardware profiles of both (default: hwprofiles/ near each)");
  sub->add_option("--events", flags->replay.events, "NDJSON to replay through both");
  sub->add_option("--inventory", flags->replay.inventories, "inventory for the replay");
  sub->add_flag("--all", flags->all, "also list the state that nothing happens to");
  sub->add_flag("--exit-code", flags->exit_code, "exit 1 when there is a difference");
  sub->add_option("--backend", flags->backend, "jit or interp")
      ->check(CLI::IsMember({"jit", "interp"}));
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app
