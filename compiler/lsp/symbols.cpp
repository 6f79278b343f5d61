// Symbols of a document, as a tree, and of the workspace, by a part of their name.
#include <algorithm>
#include <cctype>
#include <map>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

/// Source: LSP 3.17 SymbolKind.
int lsp_kind(SymbolKind kind) {
  enum : int {
    kModule = 2,
    kNamespace = 3,
    kClass = 5,
    kMethod = 6,
    kProperty = 7,
    kField = 8,
    kInterface = 11,
    kFunction = 12,
    kVariable = 13,
    kConstant = 14,
    kArray = 18,
    kObject = 19,
    kStruct = 23,
    kEvent = 24,
    kOperator = 25
  };
  switch (kind) {
    case SymbolKind::kPack:
      return kModule;
    case SymbolKind::kKind:
      return kStruct;
    case SymbolKind::kField:
      return kField;
    case SymbolKind::kProfile:
      return kClass;
    case SymbolKind::kParameter:
      return kProperty;
    case SymbolKind::kList:
      return kArray;
    case SymbolKind::kMacro:
      return kFunction;
    case SymbolKind::kFeature:
      return kConstant;
    case SymbolKind::kSignal:
      return kEvent;
    case SymbolKind::kCause:
      return kObject;
    case SymbolKind::kIncident:
      return kInterface;
    case SymbolKind::kDecoder:
      return kOperator;
    case SymbolKind::kOverlay:
    case SymbolKind::kSuppress:
      return kNamespace;
    case SymbolKind::kRule:
    case SymbolKind::kTest:
      return kMethod;
    case SymbolKind::kException:
    case SymbolKind::kVariable:
      return kVariable;
  }
  return kVariable;
}

bool is_listed(SymbolKind kind) {
  return kind != SymbolKind::kVariable && kind != SymbolKind::kException;
}

/// The letters of `wanted` in their order, whatever the case: how editors ask.
bool matches(const std::string& name, const std::string& wanted) {
  size_t at = 0;
  for (const char c : name) {
    if (at == wanted.size()) break;
    const auto lower = [](char x) { return std::tolower(static_cast<unsigned char>(x)); };
    at += lower(c) == lower(wanted[at]) ? 1 : 0;
  }
  return at == wanted.size();
}

}  // namespace

Json document_symbols(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const Index& index = w.index();
  // Children stand behind their owner in the table; parameters behind their profile.
  std::vector<SymbolId> roots;
  std::map<SymbolId, std::vector<SymbolId>> children;
  SymbolId profile = kNoSymbol;
  for (SymbolId id = 0; id < index.symbols().size(); ++id) {
    const Symbol& s = index.symbol(id);
    const bool here = !s.builtin && s.span.file == file && is_listed(s.kind) &&
                      !(s.stale && s.owner != kNoSymbol);
    if (!here) continue;
    if (s.kind == SymbolKind::kProfile) profile = id;
    const bool below_profile = s.kind == SymbolKind::kParameter && profile != kNoSymbol;
    if (below_profile || s.owner != kNoSymbol) {
      children[below_profile ? profile : s.owner].push_back(id);
    } else {
      roots.push_back(id);
    }
  }
  std::stable_sort(roots.begin(), roots.end(), [&](SymbolId a, SymbolId b) {
    return index.symbol(a).span.begin < index.symbol(b).span.begin;
  });
  auto tree = [&](auto&& self, SymbolId id) -> Json {
    const Symbol& s = index.symbol(id);
    const Span whole =
        s.whole.begin <= s.span.begin && s.whole.end >= s.span.end ? s.whole : s.span;
    Json json = {{"name", s.name},
                 {"detail", std::string(word_of(s.kind))},
                 {"kind", lsp_kind(s.kind)},
                 {"range", range_json(w, whole)},
                 {"selectionRange", range_json(w, s.span)}};
    const auto below = children.find(id);
    if (below != children.end()) {
      json["children"] = Json::array();
      for (const SymbolId child : below->second) json["children"].push_back(self(self, child));
    }
    return json;
  };
  Json out = Json::array();
  for (const SymbolId id : roots) out.push_back(tree(tree, id));
  return out;
}

Json workspace_symbols(Workspace& w, const Json& params) {
  // Why: an editor asks again with every letter; more than that is not looked at.
  constexpr size_t kAnswersMax = 500;
  const Json& query = member(params, "query");
  const std::string wanted = query.is_string() ? query.get<std::string>() : "";
  const Index& index = w.index();
  std::vector<SymbolId> found;
  for (SymbolId id = 0; id < index.symbols().size(); ++id) {
    const Symbol& s = index.symbol(id);
    const bool listed = !s.builtin && is_listed(s.kind) && s.kind != SymbolKind::kField &&
                        !(s.stale && s.owner != kNoSymbol);
    if (listed && matches(s.name, wanted)) found.push_back(id);
  }
  std::stable_sort(found.begin(), found.end(), [&](SymbolId a, SymbolId b) {
    // A name that begins so comes before one that only has the letters.
    const bool a_begins = index.symbol(a).name.starts_with(wanted);
    const bool b_begins = index.symbol(b).name.starts_with(wanted);
    if (a_begins != b_begins) return a_begins;
    return index.symbol(a).name < index.symbol(b).name;
  });
  if (found.size() > kAnswersMax) found.resize(kAnswersMax);
  Json out = Json::array();
  for (const SymbolId id : found) {
    const Symbol& s = index.symbol(id);
    out.push_back({{"name", s.name},
                   {"kind", lsp_kind(s.kind)},
                   {"containerName", index.packs().packs[s.pack].name},
                   {"location", location(w, s.span)}});
  }
  return out;
}

}  // namespace reflex::lsp
