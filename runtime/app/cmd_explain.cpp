// `reflex explain`: one verdict of a verdict file as text, page, Markdown or JSON; or why not.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <optional>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/app/why_not.h"
#include "runtime/explain/explain.h"

namespace reflex::app {
namespace {

struct ExplainFlags {
  std::string file;
  std::string which;
  std::string as = "text";
  bool all = false;
  WhyNotFlags why_not;
};

bool is_wanted(const abi::Verdict& verdict, const std::string& which) {
  return which.empty() || verdict.id == which || verdict.incident == which || verdict.job == which;
}

void print(const abi::Verdict& verdict, const ExplainFlags& flags, const CommonFlags& common) {
  if (flags.as == "table") {
    fmt::print("{}\n", explain::to_table_row(verdict, common.color_on(STDOUT_FILENO)));
  } else if (flags.as == "markdown" || flags.as == "md") {
    fmt::print("{}", explain::to_markdown(verdict));
  } else if (flags.as == "html") {
    fmt::print("{}", explain::to_html(verdict));
  } else if (flags.as == "full") {
    fmt::print("{}", explain::to_text(verdict, common.color_on(STDOUT_FILENO)));
  } else if (flags.as == "json" || common.format == "json") {
    fmt::print("{}\n", explain::to_json(verdict, false));
  } else {
    fmt::print("{}", explain::to_brief(verdict, common.color_on(STDOUT_FILENO)));
  }
}

/// The last verdict of what was asked for (a final one is never replaced by an earlier one); none
/// when that was said to the user. With `--all` it prints the final ones on the way.
std::optional<abi::Verdict> read_verdicts(const ExplainFlags& flags, const CommonFlags& common,
                                          bool print_all) {
  std::ifstream file;
  if (flags.file != "-") {
    file.open(flags.file);
    if (!file) {
      print_error(common, fmt::format("cannot read {}", flags.file));
      return {};
    }
  }
  std::istream& in = flags.file == "-" ? std::cin : file;
  std::optional<abi::Verdict> last;
  std::string line;
  size_t number = 0;
  size_t read = 0;
  while (std::getline(in, line)) {
    ++number;
    if (line.empty()) continue;
    auto verdict = explain::from_json(line);
    if (!verdict.ok()) {
      print_error(common, fmt::format("{}:{}: {}", flags.file, number, verdict.error().message));
      return {};
    }
    ++read;
    if (!is_wanted(verdict.value(), flags.which)) continue;
    if (print_all && verdict.value().final_revision) print(verdict.value(), flags, common);
    last = std::move(verdict).value();
  }
  if (!last) {
    print_error(common, read == 0
                            ? fmt::format("{} holds no verdict", flags.file)
                            : fmt::format("no verdict, incident or job '{}' among {} verdicts",
                                          flags.which, read));
  }
  return last;
}

/// With a verdict file the question is about its incident, not about the node's last one.
int run_why_not(const ExplainFlags& flags, const CommonFlags& common) {
  WhyNotFlags asked = flags.why_not;
  if (!flags.file.empty()) {
    const auto verdict = read_verdicts(flags, common, false);
    if (!verdict) return kUsage;
    asked.incident = verdict->incident;
    asked.job = verdict->job;
  }
  return why_not(asked, common);
}

int run(const ExplainFlags& flags, const CommonFlags& common) {
  if (!flags.why_not.subject.empty()) return run_why_not(flags, common);
  if (flags.file.empty()) {
    print_error(common, "give a verdict file, or --why-not NODE|SIGNAL");
    return kUsage;
  }
  if (flags.as == "html" && flags.all) {
    print_error(common, "--as html makes one page of one verdict; --all makes many");
    return kUsage;
  }
  if (flags.as == "table") {
    fmt::print("{}\n", explain::table_header(common.color_on(STDOUT_FILENO)));
  }
  const auto last = read_verdicts(flags, common, flags.all);
  if (!last) return kUsage;
  if (!flags.all) print(*last, flags, common);
  return kOk;
}

}  // namespace

Command add_explain(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<ExplainFlags>();
  auto* sub = app.add_subcommand("explain", "explain one verdict of a verdict file");
  sub->add_option("file", flags->file, "verdict NDJSON as `run` wrote it; - is standard input");
  sub->add_option("which", flags->which, "verdict id, incident id or job (default: the last)");
  sub->add_option(
         "--as", flags->as,
         "text (for the engineer on call), full (every number), html, markdown (md), json, table")
      ->check(CLI::IsMember({"text", "full", "html", "markdown", "md", "json", "table"}));
  sub->add_flag("--all", flags->all, "every final verdict");
  auto& w = flags->why_not;
  sub->add_option("--why-not", w.subject,
                  "why this node is not named, or why this signal did not fire; needs --pack, "
                  "--events");
  sub->add_option("--pack", w.input.load.packs, "pack folders or .rfx files (--why-not)");
  sub->add_option("--profiles", w.input.load.profiles, "hardware profiles (--why-not)");
  sub->add_option("--events", w.input.events, "NDJSON files (--why-not)");
  sub->add_option("--log", w.input.logs, "NODE=FILE: raw log text of one node (--why-not)");
  sub->add_option("--year", w.input.year, "year of log stamps without one (--why-not)");
  sub->add_option("--tz", w.input.tz, "zone of log stamps without one (--why-not)");
  sub->add_option("--inventory", w.input.inventories, "nodes, labels and jobs (--why-not)");
  sub->add_option("--model", w.model, "learned numbers (--why-not NODE)");
  sub->add_option("--history", w.history, "labelled incidents (--why-not NODE)");
  sub->add_option("--on", w.on, "--why-not SIGNAL: only on this node");
  sub->add_option("--at", w.at, "--why-not: as of this time (RFC 3339)");
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app
