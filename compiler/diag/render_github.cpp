// Diagnostics as workflow commands of GitHub Actions: one line each, shown beside the changed line.
//
// Source: GitHub Docs, "Workflow commands for GitHub Actions", sections "Setting an error message"
// and "Example: masking": in messages % CR LF are escaped, in properties also ':' and ','.
// GitHub shows at most ten of each kind a step, so the cap of the text form costs nothing.
#include "compiler/diag/diagnostic.h"

namespace reflex::diag {
namespace {

std::string_view command_of(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "notice";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else if (property && c == ':') {
      out += "%3A";
    } else if (property && c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

std::string line_of(const Diagnostic& d, const source::SourceMap& map) {
  const source::LineColumn begin = map.locate(d.span.file, d.span.begin);
  const source::LineColumn end = map.locate(d.span.file, d.span.end);
  std::string message = d.message;
  for (const Note& note : d.notes) {
    message += "\nnote: " + note.message;
    if (note.span) {
      message += " (" + std::string(map.path(note.span->file)) + ":" +
                 std::to_string(map.locate(note.span->file, note.span->begin).line) + ")";
    }
  }
  if (!d.help.empty()) message += "\nhelp: " + d.help;
  std::string out = "::" + std::string(command_of(d.severity)) +
                    " file=" + escaped(map.path(d.span.file), true) +
                    ",line=" + std::to_string(begin.line) + ",endLine=" + std::to_string(end.line);
  // Columns only within one line: the service refuses a range whose lines differ.
  if (begin.line == end.line) {
    out += ",col=" + std::to_string(begin.column) + ",endColumn=" + std::to_string(end.column);
  }
  return out + ",title=" + to_text(d.id) + "::" + escaped(message, false) + "\n";
}

}  // namespace

std::string render_github(const std::vector<Diagnostic>& diagnostics, const source::SourceMap& map,
                          size_t errors_max) {
  std::string out;
  size_t errors = 0;
  for (const Diagnostic& d : diagnostics) {
    const bool is_error = d.severity == Severity::kError;
    errors += is_error ? 1 : 0;
    if (!is_error || errors <= errors_max) out += line_of(d, map);
  }
  if (errors > errors_max) {
    out += "::notice::" + std::to_string(errors - errors_max) + " more errors\n";
  }
  return out;
}

}  // namespace reflex::diag
