// Lints over the whole set (R2xx).
#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

void lint_unused(State& s, const Table& table, Id id, bool exported_counts) {
  for (const Symbol& symbol : table.symbols) {
    // What a pack exports may be read by packs that are not loaded now.
    if (symbol.used || (exported_counts && symbol.visible)) continue;
    s.report(id, symbol.span, table.what + " '" + symbol.name + "' is never used");
  }
}

void lint_signals(State& s) {
  std::vector<bool> read(s.pack.signals.size(), false);
  for (const abi::EdgePlan& e : s.pack.edges) {
    read[e.to] = true;
    if (e.from_signal) read[e.from] = true;
  }
  for (const abi::IncidentPlan& i : s.pack.incidents) {
    for (const abi::SignalId signal : i.open_signals) read[signal] = true;
  }
  for (const Symbol& symbol : s.signal_names.symbols) {
    if (read[symbol.index] || symbol.used || s.signals[symbol.index].broken) continue;
    s.report(Id::kUnreadSignal, symbol.span,
             "no edge, incident or test reads signal '" + symbol.name + "'");
  }
}

void lint_causes(State& s) {
  std::vector<bool> explains(s.pack.causes.size(), false);
  for (const abi::EdgePlan& e : s.pack.edges) {
    if (!e.from_signal) explains[e.cause] = true;
  }
  for (const Symbol& symbol : s.cause_names.symbols) {
    if (explains[symbol.index]) continue;
    const bool external = s.causes[symbol.index].decl->external;
    s.report(Id::kFaultWithoutEdges, symbol.span,
             std::string(external ? "external cause '" : "fault '") + symbol.name +
                 "' causes no signal: no verdict can name it");
  }
}

/// Words that mean something of their own at the head of a path.
bool is_built_in_name(const std::string& name) {
  return name == "profile" || name == "peers" || name == "now";
}

/// A local name wins over everything outside of it, silently: what is hidden cannot be read there.
void lint_local(State& s, PackIndex pack, const ast::Name& name, const char* what,
                const std::vector<ast::Name>& keys) {
  if (name.empty()) return;
  const auto warn = [&](const std::string& hidden, std::optional<Span> where) {
    auto& d = s.report(Id::kShadowedName, name.span,
                       std::string(what) + " '" + name.text + "' hides " + hidden);
    if (where) d.notes.push_back({where, "which is declared here"});
    d.help = "give it another name";
  };
  if (is_built_in_name(name.text)) return warn("the built-in '" + name.text + "'", std::nullopt);
  for (const ast::Name& key : keys) {
    if (key.text == name.text) return warn("the key of the signal", key.span);
  }
  for (const Table* table : {&s.feature_names, &s.list_names}) {
    bool ambiguous = false;
    const auto index = find(s, *table, pack, name.text, &ambiguous);
    if (!index) continue;
    for (const Symbol& symbol : table->symbols) {
      if (symbol.index == *index) return warn("the " + table->what, symbol.span);
    }
  }
}

void lint_shadowed(State& s) {
  for_each<ast::SignalDecl>(s, [&](DeclRef ref, const ast::SignalDecl& d, const ast::Decl&) {
    for (const ast::Step& step : d.steps) lint_local(s, ref.pack, step.variable, "step", d.on);
    for (const ast::Unless& u : d.unless) lint_local(s, ref.pack, u.variable, "step", d.on);
  });
  for_each<ast::MacroDecl>(s, [&](DeclRef ref, const ast::MacroDecl& d, const ast::Decl&) {
    for (const auto& param : d.params) lint_local(s, ref.pack, param.name, "parameter", {});
  });
}

}  // namespace

void lint(State& s) {
  // Why: with errors about, what looks unused may be used by what could not be understood.
  if (s.sink.has_errors()) return;
  lint_unused(s, s.list_names, Id::kUnusedList, true);
  lint_unused(s, s.macro_names, Id::kUnusedMacro, true);
  lint_unused(s, s.feature_names, Id::kUnusedFeature, false);
  lint_signals(s);
  lint_causes(s);
  lint_shadowed(s);
}

}  // namespace reflex::sema
