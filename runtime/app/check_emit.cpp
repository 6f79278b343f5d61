// The dumps of one signal: `reflex check --emit ast|ir|llvm|asm SIGNAL`.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ast/ast.h"
#include "compiler/backend/backend.h"
#include "compiler/ir/ir.h"
#include "runtime/app/check_parts.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {
namespace {

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

}  // namespace

int emit_signal(const compiler::Compilation& c, const std::string& what, const std::string& name,
                const CommonFlags& common) {
  if (what != "ast") return emit_code(c, what, name, common);
  emit_ast(c, name);
  return kOk;
}

}  // namespace reflex::app
