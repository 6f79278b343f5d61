// Hover: what the name, function, unit or type under the cursor is.
#include "compiler/driver/compile.h"
#include "compiler/lsp/requests.h"
#include "compiler/parse/lex.h"
#include "compiler/sema/builtins.h"

namespace reflex::lsp {
namespace {

std::string function_text(std::string_view name) {
  std::string out;
  for (const sema::FunctionDoc& doc : sema::function_docs()) {
    if (doc.name != name) continue;
    if (!out.empty()) out += "\n\n---\n\n";
    out += "```rfx\n" + std::string(doc.signature) + "\n```\n\n" + std::string(doc.meaning) +
           "\n\nunknown when: " + std::string(doc.unknown_when);
  }
  return out;
}

std::string unit_text(const std::string& word) {
  const double factor = compiler::unit_factor(word);
  if (factor == 1.0) return "unit `" + word + "`";
  std::string number = std::to_string(factor);
  while (number.find('.') != std::string::npos && (number.back() == '0' || number.back() == '.')) {
    const bool dot = number.back() == '.';
    number.pop_back();
    if (dot) break;
  }
  return "unit `" + word + "`: " + number + " of its base unit";
}

Json answer(Workspace& w, Span span, const std::string& text) {
  if (text.empty()) return nullptr;
  return {{"contents", markdown(text)}, {"range", range_json(w, span)}};
}

}  // namespace

Json hover(Workspace& w, const Json& params) {
  const Place place = place_of_params(w, params);
  const Occurrence* o = w.index().at(place.file, place.offset);
  if (o != nullptr && o->symbol != kNoSymbol) return answer(w, o->span, describe(w, o->symbol));
  for (const auto& token : parse::editor_tokens(w.session().sources(), place.file)) {
    if (place.offset < token.span.begin || place.offset > token.span.end) continue;
    const std::string word(token.text);
    if (o != nullptr && o->word == Occurrence::Word::kFunction) {
      return answer(w, token.span, function_text(word));
    }
    if (token.cls == parse::EditorToken::Class::kKeyword) {
      // `count`, `distinct`, `last` are words of the grammar and functions.
      const std::string text = function_text(word);
      if (!text.empty()) return answer(w, token.span, text);
      static const std::vector<std::string> kUnits{
          "celsius", "watt", "kW", "mW", "hertz", "Hz",  "kHz", "MHz", "GHz",   "byte",
          "kB",      "MB",   "GB", "TB", "KiB",   "MiB", "GiB", "TiB", "ratio", "nats"};
      for (const std::string& unit : kUnits) {
        if (unit == word) return answer(w, token.span, unit_text(word));
      }
    }
    if (token.cls == parse::EditorToken::Class::kName) {
      return answer(w, token.span, function_text(word));
    }
  }
  return nullptr;
}

}  // namespace reflex::lsp
