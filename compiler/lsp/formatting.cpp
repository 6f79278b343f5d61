// Formatting of a document or of the declarations in a range: what `reflex fmt` does.
#include <algorithm>

#include "compiler/format/format.h"
#include "compiler/lsp/requests.h"
#include "compiler/parse/parse.h"

namespace reflex::lsp {
namespace {

/// One edit of the lines that differ.
Json edit_between(Workspace& w, FileId file, uint32_t begin, uint32_t end, std::string_view now) {
  const std::string_view all = w.text(file);
  std::string_view old = all.substr(begin, end - begin);
  size_t head = 0;
  for (size_t i = 0; i < std::min(old.size(), now.size()) && old[i] == now[i]; ++i) {
    if (old[i] == '\n') head = i + 1;
  }
  old.remove_prefix(head);
  now.remove_prefix(head);
  size_t tail = 0;
  for (size_t i = 0; i < std::min(old.size(), now.size()); ++i) {
    if (old[old.size() - 1 - i] != now[now.size() - 1 - i]) break;
    if (i + 1 < std::min(old.size(), now.size()) && old[old.size() - 2 - i] == '\n' &&
        now[now.size() - 2 - i] == '\n') {
      tail = i + 1;
    }
  }
  old.remove_suffix(tail);
  now.remove_suffix(tail);
  Json edits = Json::array();
  if (old == now) return edits;
  const auto from = static_cast<uint32_t>(begin + head);
  const Span span{file, from, static_cast<uint32_t>(from + old.size())};
  edits.push_back({{"range", range_json(w, span)}, {"newText", std::string(now)}});
  return edits;
}

/// Nothing when the file has syntax errors: they are shown as diagnostics already.
std::optional<std::string> formatted(Workspace& w, FileId file) {
  diag::Sink unheard;
  return format::format_file(w.session().sources(), file, {}, unheard);
}

}  // namespace

Json formatting(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const auto text = formatted(w, file);
  if (!text) throw RequestError(kRequestFailed, "the file has syntax errors: it is not laid out");
  return edit_between(w, file, 0, static_cast<uint32_t>(w.text(file).size()), *text);
}

Json range_formatting(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const Range range = range_of(member(params, "range"));
  const uint32_t begin = w.lines(file).offset(range.start);
  const uint32_t end = w.lines(file).offset(range.end);
  const auto text = formatted(w, file);
  if (!text) throw RequestError(kRequestFailed, "the file has syntax errors: it is not laid out");
  // Both texts have the same declarations in the same order.
  source::SourceMap copy;
  diag::Sink unheard;
  const auto laid_out = parse::parse(copy, copy.add("copy", *text), {}, unheard);
  const ast::Module* now = nullptr;
  for (const ast::Module& m : w.session().modules()) now = m.file == file ? &m : now;
  if (now == nullptr || now->decls.size() != laid_out.decls.size()) return Json::array();
  std::optional<Span> old_span, new_span;
  for (size_t i = 0; i < now->decls.size(); ++i) {
    const Span& s = now->decls[i].span;
    if (s.end < begin || s.begin > end) continue;
    const Span& t = laid_out.decls[i].span;
    old_span = old_span ? source::cover(*old_span, s) : s;
    new_span = new_span ? source::cover(*new_span, t) : t;
  }
  if (!old_span) return Json::array();
  return edit_between(
      w, file, old_span->begin, old_span->end,
      std::string_view(*text).substr(new_span->begin, new_span->end - new_span->begin));
}

}  // namespace reflex::lsp
