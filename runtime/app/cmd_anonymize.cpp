// `reflex anonymize`: traces, inventory and labels -> a set that can be shared.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/anonymize/anonymize.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {
namespace {

struct AnonymizeFlags {
  anonymize::Options options;
  std::string key_file;
};

std::string counts_text(const std::map<std::string, uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

void print_report(const anonymize::Report& report, const CommonFlags& common) {
  if (common.format == "json") {
    nlohmann::ordered_json j;
    j["files"] = report.files;
    j["lines"] = report.lines;
    j["bad_lines"] = report.bad_lines;
    j["names"] = report.names;
    j["event_ids"] = report.ids;
    j["dropped"] = report.dropped;
    j["survivors"] = report.survivors.size();
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const auto& file : report.files) fmt::print("{}\n", file);
  }
  print_note(common, fmt::format("{} lines, {} left out; names replaced: {}", report.lines,
                                 report.bad_lines, counts_text(report.names)));
  if (!report.dropped.empty()) {
    print_note(common, fmt::format("strings dropped, by field: {} (--keep FIELD keeps one)",
                                   counts_text(report.dropped)));
  }
}

int report_survivors(const anonymize::Report& report, const CommonFlags& common) {
  for (const auto& s : report.survivors) {
    print_error(common, fmt::format("{}:{}:{}: the {} '{}' is still there", s.file, s.line,
                                    s.column, s.kind, s.name));
  }
  if (!report.survivors.empty()) {
    print_error(common, "do not share this output; --allow WORD when it is no name");
    return kFindings;
  }
  print_note(common,
             fmt::format("checked: no original name is in the output ({} of them as whole strings, "
                         "{} event ids by fingerprint)",
                         report.names_by_whole_string, report.ids));
  return kOk;
}

int run(AnonymizeFlags flags, const CommonFlags& common) {
  if (flags.options.events.empty() && flags.options.inventories.empty() &&
      flags.options.labels.empty()) {
    print_error(common, "nothing to do: give --events, --inventory or --labels");
    return kUsage;
  }
  auto key = anonymize::read_key(flags.key_file);
  if (!key.ok()) {
    print_error(common, key.error().message);
    return key.error().exit_code;
  }
  flags.options.key = key.value();
  if (flags.key_file.empty()) {
    print_note(common, "random key: a later run gives other names; --key-file keeps them");
  }
  auto report = anonymize::anonymize(flags.options);
  if (!report.ok()) {
    print_error(common, report.error().message);
    return report.error().exit_code;
  }
  print_report(report.value(), common);
  return report_survivors(report.value(), common);
}

}  // namespace

Command add_anonymize(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<AnonymizeFlags>();
  auto& o = flags->options;
  auto* sub = app.add_subcommand("anonymize", "make traces that can be shared: no names, no text");
  sub->add_option("--events", o.events, "NDJSON files, also .gz and .zst");
  sub->add_option("--inventory", o.inventories, "nodes, labels and jobs (JSON)");
  sub->add_option("--labels", o.labels, "labelled incidents (NDJSON)");
  sub->add_option("--key-file", flags->key_file,
                  "secret key, at least 16 bytes: the same key gives the same names");
  sub->add_option("-o,--output", o.output_dir, "folder for the result")->required();
  sub->add_option("--keep", o.keep_fields, "string fields that hold words, not names or text");
  sub->add_option("--allow", o.allow_words, "names that may stand in the output");
  sub->add_option("--mapping", o.mapping_path,
                  "write kind, name and pseudonym here, for yourself (TSV)");
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app
