// One request over cpp-httplib; see http_client.h.
#include "runtime/serve/http_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <cstdlib>

namespace reflex::serve {
namespace {

httplib::Result send(httplib::Client& client, const HttpRequestText& request,
                     const std::string& path, const httplib::Headers& headers) {
  if (request.method == "GET") return client.Get(path, headers);
  if (request.method == "DELETE") {
    return client.Delete(path, headers, request.body, request.content_type);
  }
  return client.Post(path, headers, request.body, request.content_type);
}

}  // namespace

Result<HttpResponseText> http_request(const HttpRequestText& request) {
  const size_t scheme = request.url.find("://");
  if (scheme == std::string::npos) {
    return Error{fmt::format("'{}' is not like http://host:port/path", request.url)};
  }
  const size_t slash = request.url.find('/', scheme + 3);
  const std::string origin = request.url.substr(0, slash);
  const std::string path = slash == std::string::npos ? "/" : request.url.substr(slash);
  httplib::Client client(origin);
  if (!client.is_valid()) return Error{fmt::format("'{}' cannot be asked", origin)};
  client.set_connection_timeout(request.timeout);
  client.set_read_timeout(request.timeout);
  client.set_write_timeout(request.timeout);
  httplib::Headers headers;
  for (const auto& [name, value] : request.headers) headers.emplace(name, value);
  if (!request.token.empty()) headers.emplace("Authorization", "Bearer " + request.token);
  const httplib::Result result = send(client, request, path, headers);
  if (!result) {
    const bool unreached = result.error() == httplib::Error::Connection;
    return Error{fmt::format("{}: {}", origin,
                             unreached ? "no connection can be made"
                                       : httplib::to_string(result.error()))};
  }
  HttpResponseText response;
  response.status = result->status;
  response.body = result->body;
  response.retry_after_s = std::atoi(result->get_header_value("Retry-After").c_str());
  return response;
}

}  // namespace reflex::serve
