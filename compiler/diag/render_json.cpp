// Diagnostics as JSON, one object a line (language.md B3):
// {file, range{start{line,col},end}, severity, id, message, notes[], help, fixes[{range,newText,
// safe}]}. Beyond the cap the last line is a note without a place: {severity, message "n more errors"}.
#include <nlohmann/json.hpp>

#include "compiler/diag/diagnostic.h"

namespace reflex::diag {
namespace {

using Json = nlohmann::ordered_json;

Json place(const source::SourceMap& map, source::FileId file, uint32_t offset) {
  const source::LineColumn at = map.locate(file, offset);
  return Json{{"line", at.line}, {"col", at.column}};
}

Json range(const source::SourceMap& map, const source::Span& span) {
  return Json{{"start", place(map, span.file, span.begin)},
              {"end", place(map, span.file, span.end)}};
}

Json to_json(const Diagnostic& d, const source::SourceMap& map) {
  Json object;
  object["file"] = map.path(d.span.file);
  object["range"] = range(map, d.span);
  object["severity"] = word_of(d.severity);
  object["id"] = to_text(d.id);
  object["message"] = d.message;
  object["notes"] = Json::array();
  for (const Note& note : d.notes) {
    Json entry;
    if (note.span) {
      entry["file"] = map.path(note.span->file);
      entry["range"] = range(map, *note.span);
    }
    entry["message"] = note.message;
    object["notes"].push_back(std::move(entry));
  }
  if (!d.help.empty()) {
    object["help"] = d.help;
  }
  object["fixes"] = Json::array();
  for (const Fix& fix : d.fixes) {
    object["fixes"].push_back(
        Json{{"range", range(map, fix.range)}, {"newText", fix.new_text}, {"safe", fix.safe}});
  }
  return object;
}

}  // namespace

std::string render_json(const std::vector<Diagnostic>& diagnostics, const source::SourceMap& map,
                        size_t errors_max) {
  std::string out;
  size_t errors = 0;
  for (const Diagnostic& d : diagnostics) {
    const bool is_error = d.severity == Severity::kError;
    errors += is_error ? 1 : 0;
    if (is_error && errors > errors_max) {
      continue;
    }
    // replace: a message may quote bytes of a file that is not UTF-8.
    out += to_json(d, map).dump(-1, ' ', false, Json::error_handler_t::replace);
    out += '\n';
  }
  if (errors > errors_max) {
    const size_t hidden = errors - errors_max;
    const Json more{{"severity", "note"},
                    {"message", std::to_string(hidden) +
                                    (hidden == 1 ? " more error" : " more errors")}};
    out += more.dump() + '\n';
  }
  return out;
}

}  // namespace reflex::diag
