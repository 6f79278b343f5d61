// Call hierarchy over cause edges: what a fault or signal causes (outgoing), what causes it
// (incoming).
#include <map>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

bool is_node(SymbolKind kind) { return kind == SymbolKind::kCause || kind == SymbolKind::kSignal; }

Json item(Workspace& w, SymbolId id) {
  const Symbol& s = w.index().symbol(id);
  // Source: LSP 3.17 SymbolKind: Object 19, Event 24.
  const int kind = s.kind == SymbolKind::kCause ? 19 : 24;
  const Span whole = s.stale ? s.span : s.whole;
  return {{"name", s.name},
          {"kind", kind},
          {"detail", std::string(word_of(s.kind)) + " of " + w.index().packs().packs[s.pack].name},
          {"uri", w.uri_of(s.span.file)},
          {"range", range_json(w, whole)},
          {"selectionRange", range_json(w, s.span)}};
}

SymbolId symbol_of_item(Workspace& w, const Json& params) {
  const Json& given = member(params, "item");
  const auto file = w.file_of(text_of(given, "uri"));
  if (!file) throw RequestError(kInvalidParams, "no such document");
  const Range range = range_of(member(given, "selectionRange"));
  const Occurrence* o = w.index().at(*file, w.lines(*file).offset(range.start));
  return o == nullptr ? kNoSymbol : o->symbol;
}

/// The symbol that a name of an edge stands for.
SymbolId symbol_at_span(const Index& index, Span span) {
  const Occurrence* o = index.at(span.file, span.end);
  return o == nullptr ? kNoSymbol : o->symbol;
}

/// Ends of edges, with the places where they are written.
using Calls = std::map<SymbolId, Json>;

template <typename F>
void for_each_edge(Workspace& w, F&& f) {
  for (const ast::Module& m : w.session().modules()) {
    for (const ast::Decl& d : m.decls) {
      if (const auto* edge = std::get_if<ast::CausesDecl>(&d.node)) f(*edge);
    }
  }
}

}  // namespace

Json prepare_call_hierarchy(Workspace& w, const Json& params) {
  const Place place = place_of_params(w, params);
  const Occurrence* o = w.index().at(place.file, place.offset);
  if (o == nullptr || o->symbol == kNoSymbol || !is_node(w.index().symbol(o->symbol).kind)) {
    return nullptr;
  }
  return Json::array({item(w, o->symbol)});
}

Json incoming_calls(Workspace& w, const Json& params) {
  const SymbolId self = symbol_of_item(w, params);
  Calls calls;
  for_each_edge(w, [&](const ast::CausesDecl& edge) {
    const SymbolId cause = symbol_at_span(w.index(), edge.cause.span);
    if (cause == kNoSymbol) return;
    for (const ast::Name& effect : edge.effects) {
      if (symbol_at_span(w.index(), effect.span) != self) continue;
      calls[cause].push_back(range_json(w, effect.span));
    }
  });
  Json out = Json::array();
  for (auto& [cause, ranges] : calls) {
    out.push_back({{"from", item(w, cause)}, {"fromRanges", std::move(ranges)}});
  }
  return out;
}

Json outgoing_calls(Workspace& w, const Json& params) {
  const SymbolId self = symbol_of_item(w, params);
  Calls calls;
  for_each_edge(w, [&](const ast::CausesDecl& edge) {
    if (symbol_at_span(w.index(), edge.cause.span) != self) return;
    for (const ast::Name& effect : edge.effects) {
      const SymbolId to = symbol_at_span(w.index(), effect.span);
      if (to != kNoSymbol) calls[to].push_back(range_json(w, effect.span));
    }
  });
  Json out = Json::array();
  for (auto& [effect, ranges] : calls) {
    out.push_back({{"to", item(w, effect)}, {"fromRanges", std::move(ranges)}});
  }
  return out;
}

}  // namespace reflex::lsp
