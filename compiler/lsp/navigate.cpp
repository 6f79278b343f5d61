// Go to definition, references, highlights.
#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

/// The symbol at the place of the request; kNoSymbol: there is none, or it is builtin.
SymbolId symbol_at(Workspace& w, const Json& params) {
  const Place place = place_of_params(w, params);
  const Occurrence* o = w.index().at(place.file, place.offset);
  return o == nullptr ? kNoSymbol : o->symbol;
}

}  // namespace

Json definition(Workspace& w, const Json& params) {
  const SymbolId id = symbol_at(w, params);
  if (id == kNoSymbol || w.index().symbol(id).builtin) return nullptr;
  return location(w, w.index().symbol(id).span);
}

Json references(Workspace& w, const Json& params) {
  const SymbolId id = symbol_at(w, params);
  if (id == kNoSymbol) return nullptr;
  const Json& context = member(params, "context");
  const Json& wanted = member(context, "includeDeclaration");
  const bool with_declaration = !wanted.is_boolean() || wanted.get<bool>();
  Json out = Json::array();
  for (const Occurrence& o : w.index().places(id)) {
    if (with_declaration || !o.declares) out.push_back(location(w, o.span));
  }
  return out;
}

Json document_highlight(Workspace& w, const Json& params) {
  // Source: LSP 3.17 DocumentHighlightKind: Read 2, Write 3.
  constexpr int kRead = 2;
  constexpr int kWrite = 3;
  const FileId file = file_of_params(w, params);
  const SymbolId id = symbol_at(w, params);
  Json out = Json::array();
  if (id == kNoSymbol) return out;
  for (const Occurrence& o : w.index().occurrences(file)) {
    if (o.symbol != id) continue;
    out.push_back({{"range", range_json(w, o.span)}, {"kind", o.declares ? kWrite : kRead}});
  }
  return out;
}

}  // namespace reflex::lsp
