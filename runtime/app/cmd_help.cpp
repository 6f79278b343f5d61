// `reflex help R105` and `reflex schema verdict`: reference from the tables.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/diag/diagnostic.h"
#include "compiler/diag/help_page.h"
#include "compiler/driver/reference.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/app/manual_page.h"
#include "runtime/app/verdict_schema.h"

namespace reflex::app {
namespace {

const char* severity_text(diag::Severity severity) {
  return severity == diag::Severity::kError ? "error" : "warning";
}

int help_id(const std::string& text, const CommonFlags& common) {
  if (text.empty()) {
    for (const auto& row : diag::all_ids()) {
      fmt::print("{}  {:<8} {}\n", diag::to_text(row.id), severity_text(row.severity), row.title);
    }
    return kOk;
  }
  const auto id = diag::parse_id(text);
  if (!id) {
    print_error(common, fmt::format("no diagnostic '{}': `reflex help` lists them", text));
    return kUsage;
  }
  if (common.format == "json") {
    const auto& row = diag::info(*id);
    const auto page_text = diag::help_text(*id);
    const nlohmann::ordered_json page{
        {"id", diag::to_text(*id)}, {"severity", severity_text(row.severity)},
        {"title", row.title},       {"cause", page_text.cause},
        {"wrong", row.bad},         {"right", row.good},
        {"fix", page_text.fix}};
    fmt::print("{}\n", page.dump());
    return kOk;
  }
  fmt::print("{}", diag::render_help(*id));
  return kOk;
}

}  // namespace

Command add_help_id(CLI::App& app, const CommonFlags& common) {
  auto id = std::make_shared<std::string>();
  auto reference = std::make_shared<std::string>();
  auto* sub = app.add_subcommand("help", "what a diagnostic means, with an example");
  sub->add_option("id", *id, "like R105; none lists all");
  sub->add_option("--reference", *reference, "the generated file of grammar/, whole")
      ->check(CLI::IsMember({"diagnostics", "builtins"}));
  auto manual = std::make_shared<bool>(false);
  sub->add_flag("--manual", *manual, "reflex(1), as roff");
  return [sub, id, reference, manual, &app, &common]() -> int {
    if (!sub->parsed()) return -1;
    if (*manual) {
      fmt::print("{}", manual_page(app));
      return kOk;
    }
    if (reference->empty()) return help_id(*id, common);
    fmt::print("{}", *reference == "builtins" ? compiler::builtins_reference()
                                              : compiler::diagnostics_reference());
    return kOk;
  };
}

Command add_schema(CLI::App& app, const CommonFlags&) {
  auto* sub = app.add_subcommand("schema", "print the JSON Schema of verdicts");
  return [sub] {
    if (!sub->parsed()) return -1;
    fmt::print("{}", kVerdictSchema);
    return static_cast<int>(kOk);
  };
}

}  // namespace reflex::app
