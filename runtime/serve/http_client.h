// HttpClient: requests to one server: sinks and the commands that talk to a daemon use it.
//
// Contract: blocks up to `timeout` for connecting, sending and receiving each; never throws. A URL
// is http:// or https:// + host[:port] + path.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace reflex::serve {

struct HttpRequestText {
  std::string method = "POST";  // GET, POST, DELETE
  std::string url;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string token;  // bearer; may be empty
  std::chrono::milliseconds timeout{10'000};
};

struct HttpResponseText {
  int status = 0;
  std::string body;
  int retry_after_s = 0;
};

/// Errors: no answer at all (refused, timeout, no such host).
Result<HttpResponseText> http_request(const HttpRequestText& request);

}  // namespace reflex::serve
