// Requests and replies: see exchange.h.
#include "runtime/serve/http/exchange.h"

#include <algorithm>
#include <cctype>

namespace reflex::serve {

std::string HttpRequest::header(const std::string& lower_name) const {
  const auto it = headers.find(lower_name);
  return it == headers.end() ? std::string() : it->second;
}

std::string HttpRequest::param(const std::string& name) const {
  const auto it = query.find(name);
  return it == query.end() ? std::string() : it->second;
}

std::string HttpRequest::content_type() const {
  std::string type = header("content-type");
  type.resize(std::min(type.find(';'), type.size()));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type;
}

Json parse_json(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 64) return Json(Json::value_t::discarded);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return Json::parse(text, nullptr, false);
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpReply reply_json(const Json& json, int status) {
  HttpReply reply;
  reply.status = status;
  reply.body = json_text(json) + "\n";
  return reply;
}

HttpReply reply_error(int status, std::string_view error, std::string_view what_to_do) {
  Json json;
  json["error"] = error;
  json["what_to_do"] = what_to_do;
  return reply_json(json, status);
}

}  // namespace reflex::serve
