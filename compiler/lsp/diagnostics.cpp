// Diagnostics as LSP has them, and the code actions that their fixes become.
#include <map>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

/// Source: LSP 3.17 DiagnosticSeverity.
int lsp_severity(diag::Severity severity) {
  switch (severity) {
    case diag::Severity::kError:
      return 1;
    case diag::Severity::kWarning:
      return 2;
    case diag::Severity::kNote:
      return 3;
  }
  return 1;
}

bool overlap(const Range& a, const Range& b) { return a.start <= b.end && b.start <= a.end; }

Json workspace_edit(Workspace& w, const std::vector<diag::Fix>& fixes) {
  std::map<std::string, Json> changes;
  for (const diag::Fix& fix : fixes) {
    Json& edits = changes[w.uri_of(fix.range.file)];
    edits.push_back({{"range", range_json(w, fix.range)}, {"newText", fix.new_text}});
  }
  return {{"changes", changes}};
}

/// `# allow R204 reason` behind the line: how a lint is silenced on purpose.
Json allow_action(Workspace& w, const diag::Diagnostic& d, const Json& diagnostic) {
  const TextLines& lines = w.lines(d.span.file);
  const uint32_t line = lines.position(d.span.begin).line;
  const uint32_t end = lines.line_end(line);
  const auto text =
      w.text(d.span.file).substr(lines.line_begin(line), end - lines.line_begin(line));
  if (text.find('#') != std::string_view::npos) return nullptr;  // a comment is there already
  diag::Fix fix{
      {d.span.file, end, end}, "  # allow " + diag::to_text(d.id) + " state the reason", true};
  return {{"title", "Allow " + diag::to_text(d.id) + " on this line"},
          {"kind", "quickfix"},
          {"diagnostics", Json::array({diagnostic})},
          {"edit", workspace_edit(w, {fix})}};
}

bool wants_kind(const Json& context, const std::string& kind) {
  const Json& only = member(context, "only");
  if (!only.is_array() || only.empty()) return true;
  for (const Json& wanted : only) {
    if (!wanted.is_string()) continue;
    const auto text = wanted.get<std::string>();
    if (kind == text || (kind.size() > text.size() && kind.compare(0, text.size(), text) == 0 &&
                         kind[text.size()] == '.')) {
      return true;
    }
  }
  return false;
}

}  // namespace

Json diagnostic_json(Workspace& w, const diag::Diagnostic& d) {
  std::string message = d.message;
  if (!d.help.empty()) message += "\nhelp: " + d.help;
  Json related = Json::array();
  for (const diag::Note& note : d.notes) {
    if (note.span) {
      related.push_back({{"location", location(w, *note.span)}, {"message", note.message}});
    } else {
      message += "\nnote: " + note.message;
    }
  }
  Json out = {{"range", range_json(w, d.span)},
              {"severity", lsp_severity(d.severity)},
              {"code", diag::to_text(d.id)},
              {"source", "reflex"},
              {"message", message}};
  if (!related.empty()) out["relatedInformation"] = std::move(related);
  // Source: LSP 3.17 DiagnosticTag.Unnecessary.
  constexpr int kUnnecessary = 1;
  const bool unused = d.id == diag::Id::kUnusedList || d.id == diag::Id::kUnusedMacro ||
                      d.id == diag::Id::kUnusedFeature;
  if (unused) out["tags"] = {kUnnecessary};
  return out;
}

Json code_actions(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const Range range = range_of(member(params, "range"));
  const Json& context = member(params, "context");
  Json out = Json::array();
  std::vector<diag::Fix> safe;
  for (const diag::Diagnostic& d : w.check().sink.sorted()) {
    if (d.span.file != file) continue;
    for (const diag::Fix& fix : d.fixes) {
      if (fix.safe && fix.range.file == file) safe.push_back(fix);
    }
    if (!overlap(w.lines(file).range(d.span.begin, d.span.end), range)) continue;
    if (!wants_kind(context, "quickfix")) continue;
    const Json shown = diagnostic_json(w, d);
    for (const diag::Fix& fix : d.fixes) {
      const std::string title =
          fix.new_text.empty() ? "Remove this" : "Write '" + fix.new_text + "'";
      out.push_back({{"title", title},
                     {"kind", "quickfix"},
                     {"diagnostics", Json::array({shown})},
                     {"isPreferred", fix.safe},
                     {"edit", workspace_edit(w, {fix})}});
    }
    if (d.severity != diag::Severity::kWarning) continue;
    Json allow = allow_action(w, d, shown);
    if (!allow.is_null()) out.push_back(std::move(allow));
  }
  // Two fixes of one place would contradict each other: the first one stays.
  std::vector<diag::Fix> apart;
  for (const diag::Fix& fix : safe) {
    const bool clear = apart.empty() || apart.back().range.end <= fix.range.begin;
    if (clear) apart.push_back(fix);
  }
  if (!apart.empty() && wants_kind(context, "source.fixAll")) {
    out.push_back({{"title", "Apply all safe fixes of the file"},
                   {"kind", "source.fixAll"},
                   {"edit", workspace_edit(w, apart)}});
  }
  return out;
}

}  // namespace reflex::lsp
