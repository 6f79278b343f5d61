// `reflex check`: parse, type, limits, lints; costs, class bindings and the dumps of one signal.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/app/check_parts.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {
namespace {

struct CheckFlags {
  LoadRequest load;
  std::string nodes;
  std::vector<std::string> emit;
  std::string fail_level = "error";
  bool cost = false;
  bool verbose = false;
};

void say_ok(const compiler::Compilation& c, const CommonFlags& common) {
  print_note(
      common,
      fmt::format("{} pack(s), {} kinds, {} profiles, {} signals, {} causes, {} edges, {} "
                  "decoders, {} tests: ok (parse {:.0f} ms, check {:.0f} ms, code {:.0f} ms)",
                  c.pack->packs.size(), c.pack->kinds.size(), c.pack->classes.size(),
                  c.pack->signals.size(), c.pack->causes.size(), c.pack->edges.size(),
                  c.pack->decoders.size(), c.tests.size(), c.parse_ms, c.check_ms + c.lower_ms,
                  c.codegen_ms));
}

/// Every change that overlays make to the packs, each with its place.
void print_overlay_changes(const abi::CompiledPack& pack) {
  for (const auto& change : pack.overlay_changes) {
    fmt::print("{}:{}:{}: overlay {}: {}{}\n", change.where.file, change.where.line,
               change.where.column, change.overlay, change.text,
               change.inert ? " [inert: its end has passed]" : "");
  }
}

int run(const CheckFlags& flags, const CommonFlags& common) {
  Loaded loaded = load_packs(flags.load, common);
  if (!loaded.compilation) return loaded.exit_code;
  compiler::Compilation& c = *loaded.compilation;
  int code = loaded.exit_code;
  if (code == kOk && flags.emit.size() == 2) {
    return emit_signal(c, flags.emit[0], flags.emit[1], common);
  }
  if (code == kOk && flags.verbose) print_overlay_changes(*c.pack);
  if (code == kOk && flags.cost) print_cost(*c.pack, common.format == "json");
  if (code == kOk && !flags.nodes.empty()) {
    code = bind_nodes(c, flags.nodes, c.sink, common);
    if (code == kUsage) return code;
  }
  if (code == kOk && flags.fail_level == "warning" && c.sink.warning_count() > 0) code = kFindings;
  print_diagnostics(c, /*warnings=*/true, code, common);
  if (code != kInvalidPack && code != kInternal) say_ok(c, common);
  return code;
}

/// One document or one command a line: a table beside it would break either.
bool is_report_form(const std::string& format) { return format == "sarif" || format == "github"; }

}  // namespace

Command add_check(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<CheckFlags>();
  flags->load.include_tests = true;
  flags->load.print_diagnostics = false;  // after the nodes are bound, with the exit code
  auto* sub = app.add_subcommand("check", "parse and check packs and profiles");
  sub->add_option("packs", flags->load.packs, "pack folders or .rfx files")->required();
  sub->add_option("--profiles", flags->load.profiles,
                  "hardware profiles (default: hwprofiles/ near the packs)");
  sub->add_option("--nodes", flags->nodes, "inventory: print the class of every node");
  sub->add_option("--emit", flags->emit, "ast|ir|llvm|asm SIGNAL: print it")->expected(2);
  sub->add_option("--fail-level", flags->fail_level, "exit 1 at this severity: error or warning")
      ->check(CLI::IsMember({"error", "warning"}));
  sub->add_flag("-v,--verbose", flags->verbose, "list every change that an overlay makes");
  sub->add_flag("--cost", flags->cost, "evaluators per kind, bytes per key and horizon per signal");
  sub->add_option("--backend", flags->load.backend, "jit or interp")
      ->check(CLI::IsMember({"jit", "interp"}));
  return [sub, flags, &common]() -> int {
    if (!sub->parsed()) return -1;
    const std::vector<std::string> known = {"ast", "ir", "llvm", "asm"};
    if (flags->emit.size() == 2 &&
        std::find(known.begin(), known.end(), flags->emit[0]) == known.end()) {
      print_error(common,
                  fmt::format("--emit: '{}' is none of ast, ir, llvm, asm", flags->emit[0]));
      return kUsage;
    }
    if (is_report_form(common.format) && (flags->cost || flags->verbose || !flags->emit.empty())) {
      print_error(common, fmt::format("--cost, --verbose and --emit have no {} form: use text or json",
                                      common.format));
      return kUsage;
    }
    return run(*flags, common);
  };
}

}  // namespace reflex::app
