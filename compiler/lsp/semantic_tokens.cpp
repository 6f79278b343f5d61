// Semantic tokens: every token of the text with what its name means. Keywords are soft: a word of
// the grammar that stands for a name is coloured as that.
#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/lsp/requests.h"
#include "compiler/parse/lex.h"

namespace reflex::lsp {
namespace {

enum TokenType : uint32_t {
  kNamespace,
  kStruct,
  kProperty,
  kClass,
  kEnumMember,
  kFunction,
  kMacro,
  kVariable,
  kParameter,
  kEvent,
  kInterface,
  kType,
  kKeyword,
  kNumber,
  kString,
  kRegexp,
  kComment,
  kOperator,
  kTypes
};
constexpr std::array<std::string_view, kTypes> kTypeNames{
    "namespace", "struct",   "property",  "class",  "enumMember", "function",
    "macro",     "variable", "parameter", "event",  "interface",  "type",
    "keyword",   "number",   "string",    "regexp", "comment",    "operator"};
enum : uint32_t { kDeclaration = 1, kDefaultLibrary = 2, kReadonly = 4 };

TokenType type_of(SymbolKind kind) {
  switch (kind) {
    case SymbolKind::kPack:
    case SymbolKind::kOverlay:
    case SymbolKind::kSuppress:
      return kNamespace;
    case SymbolKind::kKind:
      return kStruct;
    case SymbolKind::kField:
    case SymbolKind::kParameter:
      return kProperty;
    case SymbolKind::kProfile:
      return kClass;
    case SymbolKind::kMacro:
      return kMacro;
    case SymbolKind::kList:
    case SymbolKind::kFeature:
    case SymbolKind::kException:
      return kVariable;
    case SymbolKind::kSignal:
      return kEvent;
    case SymbolKind::kCause:
    case SymbolKind::kIncident:
      return kInterface;
    case SymbolKind::kDecoder:
    case SymbolKind::kRule:
    case SymbolKind::kTest:
      return kFunction;
    case SymbolKind::kVariable:
      return kParameter;
  }
  return kVariable;
}

struct Painted {
  Span span;
  uint32_t type;
  uint32_t modifiers;
};

Painted paint(const Index& index, const Occurrence& o, Span span) {
  using Word = Occurrence::Word;
  if (o.symbol != kNoSymbol) {
    const Symbol& s = index.symbol(o.symbol);
    uint32_t modifiers = o.declares ? kDeclaration : 0u;
    if (s.builtin) modifiers |= kDefaultLibrary;
    if (s.kind == SymbolKind::kList || s.kind == SymbolKind::kParameter) modifiers |= kReadonly;
    return {span, type_of(s.kind), modifiers};
  }
  switch (o.word) {
    case Word::kType:
      return {span, kType, 0};
    case Word::kEnumWord:
      return {span, kEnumMember, 0};
    case Word::kFunction:
      return {span, kFunction, kDefaultLibrary};
    default:
      return {span, kVariable, 0};
  }
}

std::optional<TokenType> plain_type(parse::EditorToken::Class cls) {
  using Class = parse::EditorToken::Class;
  switch (cls) {
    case Class::kKeyword:
      return kKeyword;
    case Class::kNumber:
      return kNumber;
    case Class::kText:
      return kString;
    case Class::kPattern:
      return kRegexp;
    case Class::kComment:
      return kComment;
    default:
      return std::nullopt;  // operators and unknown names keep the colour of the grammar
  }
}

/// The tokens of [begin, end), in order, none of them over another.
std::vector<Painted> painted(Workspace& w, FileId file, uint32_t begin, uint32_t end) {
  const Index& index = w.index();
  const auto& uses = index.occurrences(file);
  size_t next = 0;
  std::vector<Painted> out;
  for (const auto& token : parse::editor_tokens(w.session().sources(), file)) {
    if (token.span.end <= begin || token.span.begin >= end) continue;
    while (next < uses.size() && uses[next].span.end <= token.span.begin) ++next;
    const Occurrence* hit = nullptr;
    std::vector<const Occurrence*> inside;
    for (size_t k = next; k < uses.size() && uses[k].span.begin < token.span.end; ++k) {
      const Span& s = uses[k].span;
      if (s.begin <= token.span.begin && s.end >= token.span.end) {
        if (hit == nullptr) hit = &uses[k];
      } else if (s.begin >= token.span.begin && s.end <= token.span.end) {
        inside.push_back(&uses[k]);
      }
    }
    using Class = parse::EditorToken::Class;
    const bool is_word = token.cls == Class::kKeyword || token.cls == Class::kName;
    if (hit != nullptr && (is_word || token.cls == Class::kNumber)) {
      out.push_back(paint(index, *hit, token.span));
    } else if (const auto type = plain_type(token.cls)) {
      // Names inside of a template: the text around them stays text.
      uint32_t at = token.span.begin;
      for (const Occurrence* o : inside) {
        if (o->span.begin < at) continue;
        if (o->span.begin > at) out.push_back({{file, at, o->span.begin}, *type, 0});
        out.push_back(paint(index, *o, o->span));
        at = o->span.end;
      }
      if (at < token.span.end) out.push_back({{file, at, token.span.end}, *type, 0});
    }
  }
  return out;
}

/// Source: LSP 3.17 "Semantic Tokens": five numbers a token, places relative to the one before; a
/// token stands on one line.
Json encoded(Workspace& w, FileId file, uint32_t begin, uint32_t end) {
  const TextLines& lines = w.lines(file);
  Json data = Json::array();
  Position last{0, 0};
  for (const Painted& p : painted(w, file, begin, end)) {
    const Position from = lines.position(p.span.begin);
    const Position to = lines.position(p.span.end);
    for (uint32_t line = from.line; line <= to.line; ++line) {
      const uint32_t first = line == from.line ? from.character : 0;
      const uint32_t stop =
          line == to.line ? to.character : lines.position(lines.line_end(line)).character;
      if (stop <= first) continue;
      const uint32_t column = line == last.line ? first - last.character : first;
      for (const uint32_t number : {line - last.line, column, stop - first, p.type, p.modifiers}) {
        data.push_back(number);
      }
      last = {line, first};
    }
  }
  return {{"data", std::move(data)}};
}

}  // namespace

Json semantic_legend() {
  return {{"tokenTypes", kTypeNames},
          {"tokenModifiers", {"declaration", "defaultLibrary", "readonly"}}};
}

Json semantic_tokens(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  return encoded(w, file, 0, static_cast<uint32_t>(w.text(file).size()));
}

Json semantic_tokens_range(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const Range range = range_of(member(params, "range"));
  return encoded(w, file, w.lines(file).offset(range.start), w.lines(file).offset(range.end));
}

}  // namespace reflex::lsp
