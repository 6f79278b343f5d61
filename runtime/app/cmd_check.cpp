// `reflex check`: parse, type, limits, lints; and the dumps of one signal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "compiler/ast/ast.h"
#include "compiler/backend/backend.h"
#include "compiler/ir/ir.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/engine/inventory.h"
#include "runtime/topology/topology.h"

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

/// Every expression that belongs to a signal, with the part it plays.
std::vector<std::pair<std::string, abi::ExprId>> exprs_of(const abi::CompiledPack& pack,
                                                          const abi::SignalPlan& signal) {
  std::vector<std::pair<std::string, abi::ExprId>> out;
  const auto add = [&](std::string part, abi::ExprId expr) {
    if (expr != abi::kNone32) out.emplace_back(std::move(part), expr);
  };
  const auto leaf = [&](const std::string& part, abi::LeafId id) {
    if (id == abi::kNone32) return;
    add(part + " predicate", pack.leaves[id].predicate);
    if (pack.leaves[id].residual != pack.leaves[id].predicate) {
      add(part + " residual", pack.leaves[id].residual);
    }
  };
  if (signal.shape == abi::SignalShape::kSequence) {
    for (const auto& step : signal.sequence.steps) {
      leaf("step " + step.variable, step.leaf);
      add("step " + step.variable + " join", step.join);
    }
    for (const auto& unless : signal.sequence.unless) {
      leaf("unless", unless.leaf);
      add("unless join", unless.join);
    }
    for (const auto& guard : signal.sequence.guards) leaf("none", guard.leaf);
  } else if (signal.shape == abi::SignalShape::kCount) {
    for (const auto& input : signal.count.inputs) leaf("count", input.leaf);
    add("threshold", signal.count.threshold);
    for (const auto& guard : signal.count.guards) leaf("none", guard.leaf);
  } else {
    add("when", signal.condition.when);
    add("clear", signal.condition.clear);
  }
  return out;
}

void emit_ast(const compiler::Compilation& c, const std::string& name) {
  const std::string short_name = name.substr(name.rfind('.') + 1);
  for (const auto& module : c.modules) {
    for (const auto& decl : module.decls) {
      const auto* signal = std::get_if<ast::SignalDecl>(&decl.node);
      if (!signal || (signal->name.text != name && signal->name.text != short_name)) continue;
      const auto text = c.sources.text(module.file);
      fmt::print("# {}\n{}\n", c.sources.path(module.file),
                 text.substr(decl.span.begin, decl.span.end - decl.span.begin));
      fmt::print("{}\n", ast::print_decl(decl));
    }
  }
}

int emit_code(const compiler::Compilation& c, const std::string& what, const std::string& name,
              const CommonFlags& common) {
  const auto& pack = *c.pack;
  const auto match = std::find_if(pack.signals.begin(), pack.signals.end(), [&](const auto& s) {
    return s.name == name || s.name.ends_with("." + name);
  });
  if (match == pack.signals.end()) {
    print_error(common, fmt::format("no signal '{}' in these packs", name));
    return kUsage;
  }
  backend::CodegenInput input;
  input.ir = std::make_shared<ir::Module>(c.ir);
  input.plans = &pack;
  input.symbols = pack.symbols;
  for (const auto& [part, expr] : exprs_of(pack, *match)) {
    fmt::print("; {} {}\n", match->name, part);
    if (what == "ir") {
      fmt::print("{}\n", ir::print(c.ir, c.ir.functions[expr]));
      continue;
    }
    auto text =
        what == "llvm" ? backend::dump_llvm(input, expr, 0) : backend::dump_asm(input, expr, 0);
    if (!text.ok()) {
      print_error(common, text.error().message);
      return kInternal;
    }
    fmt::print("{}\n", text.value());
  }
  return kOk;
}

/// Binds every node of an inventory to its class and names the ambiguous ones.
int bind_nodes(const compiler::Compilation& c, const CheckFlags& flags, const CommonFlags& common) {
  topology::Topology topology(c.pack);
  auto summary = engine::load_inventory(flags.nodes, *c.pack->symbols, topology);
  if (!summary.ok()) {
    print_error(common, summary.error().message);
    return summary.error().exit_code;
  }
  std::vector<size_t> counts(c.pack->classes.size(), 0);
  for (const SymbolId node : topology.nodes()) ++counts[topology.hw_class(node, 0)];
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) fmt::print("{:>7} nodes  {}\n", counts[i], c.pack->classes[i].name);
  }
  for (const auto& node : topology.ambiguous_nodes()) {
    fmt::print("ambiguous: {} matches two profiles that are not on one inheritance line\n", node);
  }
  return topology.ambiguous_nodes().empty() ? kOk : kFindings;
}

void print_cost(const abi::CompiledPack& pack) {
  std::vector<size_t> evaluators(pack.kinds.size(), 0);
  for (const auto& leaf : pack.leaves) evaluators[leaf.kind] += leaf.owners.size();
  fmt::print("{:<32} {:>10}\n", "event kind", "evaluators");
  for (size_t i = 0; i < pack.kinds.size(); ++i) {
    if (evaluators[i] > 0) fmt::print("{:<32} {:>10}\n", pack.kinds[i].name, evaluators[i]);
  }
  fmt::print("\n{:<44} {:>12} {:>12}\n", "signal", "bytes/key", "horizon s");
  for (const auto& s : pack.signals) {
    fmt::print("{:<44} {:>12} {:>12}\n", s.name, s.bytes_per_key, s.horizon_ns / 1'000'000'000);
  }
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
  if (loaded.exit_code != kOk) return loaded.exit_code;
  const auto& c = *loaded.compilation;
  if (flags.emit.size() == 2) {
    if (flags.emit[0] == "ast") {
      emit_ast(c, flags.emit[1]);
      return kOk;
    }
    return emit_code(c, flags.emit[0], flags.emit[1], common);
  }
  if (flags.verbose) print_overlay_changes(*c.pack);
  if (flags.cost) print_cost(*c.pack);
  if (!flags.nodes.empty()) {
    if (const int code = bind_nodes(c, flags, common); code != kOk) return code;
  }
  print_note(
      common,
      fmt::format("{} pack(s), {} kinds, {} profiles, {} signals, {} causes, {} edges, {} "
                  "decoders, {} tests: ok (parse {:.0f} ms, check {:.0f} ms, code {:.0f} ms)",
                  c.pack->packs.size(), c.pack->kinds.size(), c.pack->classes.size(),
                  c.pack->signals.size(), c.pack->causes.size(), c.pack->edges.size(),
                  c.pack->decoders.size(), c.tests.size(), c.parse_ms, c.check_ms + c.lower_ms,
                  c.codegen_ms));
  const bool findings = flags.fail_level == "warning" && c.sink.warning_count() > 0;
  return findings ? kFindings : kOk;
}

}  // namespace

Command add_check(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<CheckFlags>();
  flags->load.include_tests = true;
  flags->load.show_warnings = true;
  auto* sub = app.add_subcommand("check", "parse and check packs and profiles");
  sub->add_option("packs", flags->load.packs, "pack folders or .rfx files")->required();
  sub->add_option("--profiles", flags->load.profiles,
                  "hardware profiles (default: hwprofiles/ near the packs)");
  sub->add_option("--nodes", flags->nodes, "inventory whose nodes are bound to profiles");
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
    return run(*flags, common);
  };
}

}  // namespace reflex::app
