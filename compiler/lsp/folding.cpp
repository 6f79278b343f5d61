// Folding: blocks in braces or brackets over several lines, and runs of comment lines.
#include <string_view>

#include "compiler/lsp/requests.h"
#include "compiler/parse/lex.h"

namespace reflex::lsp {

Json folding_ranges(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const TextLines& lines = w.lines(file);
  Json out = Json::array();
  auto fold = [&](uint32_t first, uint32_t last, const char* kind) {
    if (last <= first) return;
    Json range = {{"startLine", first}, {"endLine", last}};
    if (kind != nullptr) range["kind"] = kind;
    out.push_back(std::move(range));
  };
  std::vector<uint32_t> open;  // lines
  using Class = parse::EditorToken::Class;
  uint32_t comment_first = 0;
  uint32_t comment_last = 0;
  bool in_comment = false;
  for (const auto& token : parse::editor_tokens(w.session().sources(), file)) {
    const uint32_t line = lines.position(token.span.begin).line;
    if (token.cls == Class::kComment) {
      const auto before =
          w.text(file).substr(lines.line_begin(line), token.span.begin - lines.line_begin(line));
      const bool alone = before.find_first_not_of(" \t") == std::string_view::npos;
      if (in_comment && alone && line == comment_last + 1) {
        comment_last = line;
        continue;
      }
      if (in_comment) fold(comment_first, comment_last, "comment");
      in_comment = alone;
      comment_first = comment_last = line;
      continue;
    }
    if (in_comment) fold(comment_first, comment_last, "comment");
    in_comment = false;
    if (token.text == "{" || token.text == "[" || token.text == "(") open.push_back(line);
    if ((token.text == "}" || token.text == "]" || token.text == ")") && !open.empty()) {
      // The closing line stays in sight.
      if (line > 0) fold(open.back(), line - 1, nullptr);
      open.pop_back();
    }
  }
  if (in_comment) fold(comment_first, comment_last, "comment");
  return out;
}

}  // namespace reflex::lsp
