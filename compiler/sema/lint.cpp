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

}  // namespace

void lint(State& s) {
  // Why: with errors about, what looks unused may be used by what could not be understood.
  if (s.sink.has_errors()) return;
  lint_unused(s, s.list_names, Id::kUnusedList, true);
  lint_unused(s, s.macro_names, Id::kUnusedMacro, true);
  lint_unused(s, s.feature_names, Id::kUnusedFeature, false);
  lint_signals(s);
  lint_causes(s);
}

}  // namespace reflex::sema
