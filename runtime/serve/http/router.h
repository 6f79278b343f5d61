// Router: which handler answers a method and a path.
//
// Patterns are paths whose parts may be {named}; a named part matches one part that is not empty,
// after decoding, so that "a%2Fb" is one part. Path tricks ("..", empty parts, control
// characters) match nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/serve/http/exchange.h"

namespace reflex::serve {

struct Route {
  std::string method;
  std::string pattern;
  Role role = Role::kRead;
  /// May take the body out of the request.
  std::function<HttpReply(HttpRequest&)> handle{};
  /// Of the query; every other one is refused, so that a misspelt filter does not answer with all.
  std::vector<std::string> params{};
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }
  struct Match {
    const Route* route = nullptr;  // null: none
    std::map<std::string, std::string> named;
    std::string allowed;  // methods of the path when the method is wrong: "GET, POST"
  };
  /// `raw_path` as it came (percent-encoded, without query).
  [[nodiscard]] Match match(const std::string& method, const std::string& raw_path) const;
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

/// Percent-decoding; false on a malformed escape.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace reflex::serve
