// Reading parameters and writing places; see requests.h.
#include <algorithm>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {

const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_string()) {
    throw RequestError(kInvalidParams, std::string("'") + name + "' must be a string");
  }
  return value.get<std::string>();
}

std::string uri_of_params(const Json& params) {
  return text_of(member(params, "textDocument"), "uri");
}

namespace {

uint32_t index_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_number_integer()) {
    throw RequestError(kInvalidParams, std::string("'") + name + "' must be a whole number");
  }
  const auto number = value.get<int64_t>();
  return static_cast<uint32_t>(std::clamp<int64_t>(number, 0, INT32_MAX));
}

}  // namespace

Position position_of(const Json& json) {
  return {index_of(json, "line"), index_of(json, "character")};
}

Range range_of(const Json& json) {
  return {position_of(member(json, "start")), position_of(member(json, "end"))};
}

FileId file_of_params(const Workspace& w, const Json& params) {
  const std::string uri = uri_of_params(params);
  const auto file = w.file_of(uri);
  if (!file) throw RequestError(kInvalidParams, "no such document: " + uri);
  return *file;
}

Place place_of_params(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  return {file, w.lines(file).offset(position_of(member(params, "position")))};
}

Json to_json(Position position) {
  return {{"line", position.line}, {"character", position.character}};
}

Json to_json(Range range) { return {{"start", to_json(range.start)}, {"end", to_json(range.end)}}; }

Json range_json(Workspace& w, Span span) {
  return to_json(w.lines(span.file).range(span.begin, span.end));
}

Json location(Workspace& w, Span span) {
  return {{"uri", w.uri_of(span.file)}, {"range", range_json(w, span)}};
}

Json markdown(const std::string& text) { return {{"kind", "markdown"}, {"value", text}}; }

}  // namespace reflex::lsp
