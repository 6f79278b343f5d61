// Signature help: functions and macros inside their parentheses, and the fields of a test event.
#include <algorithm>

#include "compiler/lsp/around.h"
#include "compiler/lsp/requests.h"
#include "compiler/sema/builtins.h"

namespace reflex::lsp {
namespace {

/// The argument that the cursor is in, of the innermost call that is open.
struct OpenCall {
  std::string callee;
  uint32_t argument = 0;
};

std::optional<OpenCall> open_call(const Around& a) {
  uint32_t commas = 0;
  size_t depth = 0;
  for (size_t n = 1; n <= a.before.size(); ++n) {
    const std::string text = a.last(n);
    if (text == ")" || text == "]") ++depth;
    if (text == "{" || text == "}") return std::nullopt;
    if (text == "," && depth == 0) ++commas;
    if (text != "(" && text != "[") continue;
    if (depth > 0) {
      --depth;
      continue;
    }
    const std::string callee = text == "(" ? a.path_at(n + 1) : "";
    if (callee.empty()) return std::nullopt;
    return OpenCall{callee, commas};
  }
  return std::nullopt;
}

/// The parameters of "label(node, NAME)" as UTF-16 ranges of that text: all of it is ASCII.
Json parameters_of(const std::string& signature) {
  Json out = Json::array();
  const size_t open = signature.find('(');
  const size_t close = signature.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return out;
  size_t begin = open + 1;
  while (begin < close) {
    size_t end = std::min(signature.find(',', begin), close);
    out.push_back({{"label", {begin, end}}});
    begin = end + 1;
    while (begin < close && signature[begin] == ' ') ++begin;
  }
  return out;
}

Json signature(const std::string& label, const std::string& documentation) {
  Json out = {{"label", label}, {"parameters", parameters_of(label)}};
  if (!documentation.empty()) out["documentation"] = markdown(documentation);
  return out;
}

Json answer(Json signatures, uint32_t argument) {
  if (signatures.empty()) return nullptr;
  // A last parameter `..` stands for all that follow.
  const size_t count = signatures[0]["parameters"].size();
  const uint32_t last = count == 0 ? 0 : static_cast<uint32_t>(count - 1);
  return {{"signatures", std::move(signatures)},
          {"activeSignature", 0},
          {"activeParameter", std::min(argument, last)}};
}

Json fields_of_event(Workspace& w, SymbolId kind) {
  const Index& index = w.index();
  std::string label = index.symbol(kind).name + " (";
  bool first = true;
  for (const SymbolId id : index.fields(kind)) {
    const Symbol& s = index.symbol(id);
    if (s.kind != SymbolKind::kField) continue;
    label += (first ? "" : ", ") + s.name + ": " + type_text(w, s);
    first = false;
  }
  Json out = signature(label + ")", "fields of the event");
  out["parameters"] = Json::array();
  return answer(Json::array({out}), 0);
}

}  // namespace

Json signature_help(Workspace& w, const Json& params) {
  const Place place = place_of_params(w, params);
  const Around a = around(w, place.file, place.offset);
  if (a.in_comment || a.in_text) return nullptr;
  const Index& index = w.index();
  const auto call = open_call(a);
  if (!call) {
    const SymbolId kind = a.declaration == "test" ? a.statement_kind(index) : kNoSymbol;
    const bool same_line =
        w.lines(place.file).position(place.offset).line ==
        (a.before.empty() ? 0 : w.lines(place.file).position(a.before.back().span.end).line);
    return kind == kNoSymbol || !same_line ? Json(nullptr) : fields_of_event(w, kind);
  }
  Json signatures = Json::array();
  const auto macros = index.find(SymbolKind::kMacro, a.pack, call->callee);
  if (!macros.empty() && !index.symbol(macros[0]).stale) {
    const Symbol& s = index.symbol(macros[0]);
    const auto& macro = std::get<ast::MacroDecl>(s.decl->node);
    std::string label = s.name + "(";
    for (const auto& p : macro.params) {
      label += (label.back() == '(' ? "" : ", ") + p.name.text;
      if (!p.type.empty()) label += ": " + p.type.text;
    }
    signatures.push_back(
        signature(label + ")", comment_above(w.text(s.whole.file), s.whole.begin)));
  }
  for (const sema::FunctionDoc& doc : sema::function_docs()) {
    if (doc.name != call->callee) continue;
    signatures.push_back(
        signature(std::string(doc.signature),
                  std::string(doc.meaning) + "\n\nunknown when: " + std::string(doc.unknown_when)));
  }
  return answer(std::move(signatures), call->argument);
}

}  // namespace reflex::lsp
