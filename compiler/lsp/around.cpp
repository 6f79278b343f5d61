// The tokens before the cursor; see around.h.
#include "compiler/lsp/around.h"

#include <algorithm>
#include <cctype>

namespace reflex::lsp {

using Class = parse::EditorToken::Class;

namespace {

bool is_word(const parse::EditorToken& t) {
  return t.cls == Class::kKeyword || t.cls == Class::kName;
}

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A declaration begins at a line's beginning with a word; `}` and comments do not.
bool begins_declaration(std::string_view text, const parse::EditorToken& t) {
  const bool first = t.span.begin == 0 || text[t.span.begin - 1] == '\n';
  static constexpr std::string_view kContinue[] = {"and", "or", "then", "where", "leak"};
  return first && is_word(t) &&
         std::find(std::begin(kContinue), std::end(kContinue), t.text) == std::end(kContinue);
}

/// The longest dotted path from token `i` on that is a kind; `i` moves to its last token.
SymbolId kind_from(const Index& index, sema::PackIndex pack,
                   const std::vector<parse::EditorToken>& tokens, size_t& i) {
  std::string path;
  SymbolId best = kNoSymbol;
  size_t best_at = i;
  for (size_t k = i; k < tokens.size() && is_word(tokens[k]); k += 2) {
    path += (path.empty() ? "" : ".") + std::string(tokens[k].text);
    const auto found = index.find(SymbolKind::kKind, pack, path);
    if (!found.empty()) {
      best = found[0];
      best_at = k;
    }
    if (k + 1 >= tokens.size() || tokens[k + 1].text != ".") break;
  }
  i = best_at;
  return best;
}

void read_variables(const Index& index, Around& a) {
  static constexpr std::string_view kBefore[] = {
      ":", "then", "strictly", "absent", "unless", "none", "of", "(", "count", "on", "from"};
  const auto& tokens = a.before;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (!is_word(tokens[i])) continue;
    const std::string_view previous = tokens[i - 1].text;
    if (std::find(std::begin(kBefore), std::end(kBefore), previous) == std::end(kBefore)) continue;
    const size_t at = i;
    const SymbolId kind = kind_from(index, a.pack, tokens, i);
    if (kind == kNoSymbol) continue;
    a.record = kind;
    if (previous == ":" && at >= 2 && is_word(tokens[at - 2])) {
      a.variables.emplace_back(tokens[at - 2].text, kind);
    }
  }
}

}  // namespace

std::string Around::last(size_t n) const {
  return n <= before.size() ? std::string(before[before.size() - n].text) : std::string();
}

bool Around::has(std::string_view word) const {
  return std::any_of(before.begin(), before.end(),
                     [&](const parse::EditorToken& t) { return t.text == word; });
}

std::string Around::path_at(size_t n) const {
  if (n > before.size()) return {};
  size_t i = before.size() - n;
  if (!is_word(before[i])) return {};
  std::string path(before[i].text);
  while (i >= 2 && before[i - 1].text == "." && is_word(before[i - 2])) {
    path = std::string(before[i - 2].text) + "." + path;
    i -= 2;
  }
  return path;
}

SymbolId Around::statement_kind(const Index& index) const {
  for (size_t i = before.size(); i-- > 0;) {
    const std::string_view text = before[i].text;
    const bool event = text == ":" && declaration == "test";
    const bool assigns = text == "->" && declaration == "decoder";
    if (!event && !assigns) continue;
    size_t at = i + 1;
    return kind_from(index, pack, before, at);
  }
  return kNoSymbol;
}

Around around(Workspace& w, FileId file, uint32_t offset) {
  Around a;
  a.file = file;
  a.pack = w.index().pack_of(file);
  const std::string_view text = w.text(file);
  offset = std::min(offset, static_cast<uint32_t>(text.size()));
  a.replace = offset;
  while (a.replace > 0 && is_name_char(text[a.replace - 1])) --a.replace;
  uint32_t dotted = a.replace;
  while (dotted > 1 && text[dotted - 1] == '.' && is_name_char(text[dotted - 2])) {
    --dotted;
    while (dotted > 0 && is_name_char(text[dotted - 1])) --dotted;
  }
  // `n[1..8]` and `2.5` are no paths.
  if (dotted < a.replace && std::isdigit(static_cast<unsigned char>(text[dotted])) == 0) {
    a.base = std::string(text.substr(dotted, a.replace - dotted - 1));
  } else {
    dotted = a.replace;
  }
  // `peers(job).me|`: the call before the dot.
  if (a.base.empty() && a.replace > 1 && text[a.replace - 1] == '.' && text[a.replace - 2] == ')') {
    a.base = ")";
    dotted = a.replace - 1;
  }
  for (const auto& token : parse::editor_tokens(w.session().sources(), file)) {
    if (token.span.begin >= offset) break;
    const bool holds =
        token.span.end > offset || (token.span.end == offset && token.cls == Class::kComment);
    if (holds && token.cls == Class::kComment) a.in_comment = true;
    const bool open =
        token.cls == Class::kText &&
        (token.span.end > offset || (token.text.size() < 2 || token.text.back() != '"'));
    if (open) {
      a.in_text = true;
      a.text_before = std::string(token.text.substr(0, offset - token.span.begin));
    }
    if (token.cls == Class::kComment || token.span.end > dotted) continue;
    if (begins_declaration(text, token)) {
      a.before.clear();
      a.begin = token.span.begin;
    }
    a.before.push_back(token);
  }
  // What begins at a line's beginning begins a declaration, whatever stands before it.
  if (dotted == 0 || text[dotted - 1] == '\n') a.before.clear();
  if (a.before.empty()) a.begin = dotted;
  for (const auto& token : a.before) {
    if (token.text == "export") continue;
    a.declaration = std::string(token.text);
    break;
  }
  read_variables(w.index(), a);
  return a;
}

}  // namespace reflex::lsp
