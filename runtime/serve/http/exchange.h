// One HTTP request and its reply in our own types, so that routes know nothing of a server library.
//
// Contract: `path` and `query` are percent-decoded; `body` is decompressed and within the limits.
// Every text from outside may be anything (no UTF-8, control characters): json_text() replaces what
// is no UTF-8. Replies of errors have one form: {"error": what, "what_to_do": next step}.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reflex::serve {

using Json = nlohmann::ordered_json;

/// What a caller may do. kOpen needs nothing; kOperate includes kRead.
enum class Role : uint8_t { kOpen = 0, kRead = 1, kIngest = 2, kOperate = 4 };

struct Caller {
  std::string name;   // of the token; "local" without tokens
  uint8_t roles = 0;  // bits of Role
  [[nodiscard]] bool may(Role role) const {
    const auto bit = static_cast<uint8_t>(role);
    const bool includes = role == Role::kRead && (roles & static_cast<uint8_t>(Role::kOperate));
    return role == Role::kOpen || (roles & bit) != 0 || includes;
  }
};

struct HttpRequest {
  std::string method;
  std::string path;
  std::multimap<std::string, std::string> query;
  std::map<std::string, std::string> named;         // {name} parts of the route's pattern
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;
  Caller caller;

  /// The first value, or "".
  [[nodiscard]] std::string header(const std::string& lower_name) const;
  [[nodiscard]] std::string param(const std::string& name) const;
  [[nodiscard]] bool has_param(const std::string& name) const { return query.contains(name); }
  /// Content-Type in lower case, without parameters.
  [[nodiscard]] std::string content_type() const;
};

/// A reply that is made while it is sent (SSE, export).
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// Appends the next piece; may wait for some seconds at most. False: the end.
  virtual bool next(std::string& piece) = 0;
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<BodyStream> stream{};  // in place of body
};

/// Discarded when it is no JSON, or nested deeper than 64 (what writes it out again recurses).
Json parse_json(std::string_view text);
std::string json_text(const Json& json);
HttpReply reply_json(const Json& json, int status = 200);
HttpReply reply_error(int status, std::string_view error, std::string_view what_to_do);

}  // namespace reflex::serve
