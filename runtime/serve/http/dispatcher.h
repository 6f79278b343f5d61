// Dispatcher: from a request to its reply: framing, access, rate, route, body, handler.
//
// Contract: no exception leaves run(); whatever a handler throws becomes 500 and a line in the log.
// Every reply has the headers that keep browsers from doing more than is meant.
#pragma once

#include <string>

#include "runtime/serve/http/api.h"
#include "runtime/serve/http/body_budget.h"
#include "runtime/serve/http/exchange.h"

namespace reflex::serve {

struct HttpConfig;

class Dispatcher {
 public:
  Dispatcher(const HttpConfig& config, Api& api) : config_(config), api_(api) {}

  /// Status 0, or why the header cannot be trusted (two lengths, a form upload).
  static HttpReply framing_fault(const HttpRequest& request);
  /// Status 0, or the refusal: no such route, wrong method, no token, too often, a key
  /// of the query that the route does not know. Sets the caller.
  HttpReply admit(HttpRequest& request);
  /// Of an admitted request without a body.
  HttpReply run(HttpRequest& request);
  /// Of an admitted request; decodes `raw` first. `lease` holds `raw` and lives as long as the
  /// body.
  HttpReply run_with_body(HttpRequest& request, std::string&& raw, BodyLease& lease);
  /// The reply for a status that the server gives by itself (400, 408, 413, 414, 429, 431).
  static HttpReply refusal(int status);

 private:
  HttpReply handle(HttpRequest& request);
  const HttpConfig& config_;
  Api& api_;
};

}  // namespace reflex::serve
