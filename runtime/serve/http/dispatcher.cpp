// From request to reply: see dispatcher.h.
#include "runtime/serve/http/dispatcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "runtime/serve/http/body_decode.h"
#include "runtime/serve/http/http_server.h"
#include "runtime/serve/http/router.h"

namespace reflex::serve {
namespace {

HttpReply passed() {
  HttpReply reply;
  reply.status = 0;
  return reply;
}

void add_header(HttpReply& reply, const char* name, const char* value) {
  const bool there = std::any_of(reply.headers.begin(), reply.headers.end(),
                                 [&](const auto& header) { return header.first == name; });
  if (!there) reply.headers.emplace_back(name, value);
}

void protect(HttpReply& reply) {
  add_header(reply, "X-Content-Type-Options", "nosniff");
  add_header(reply, "X-Frame-Options", "DENY");
  add_header(reply, "Referrer-Policy", "no-referrer");
  add_header(reply, "Cache-Control", "no-store");
  // The console sets its own; nothing else of ours runs or loads anything. Styles: explanation
  // pages carry theirs in the page.
  add_header(reply, "Content-Security-Policy",
             "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
}

/// Status 0, or the refusal of a key of the query that the route does not know.
HttpReply unknown_param(const Route& route, const HttpRequest& request) {
  for (const auto& [name, value] : request.query) {
    if (std::find(route.params.begin(), route.params.end(), name) != route.params.end()) continue;
    // Why 64: no name of ours is longer, and the key may be anything.
    return reply_error(
        400, fmt::format("{} {} knows no parameter '{}'", route.method, route.pattern,
                         name.substr(0, 64)),
        route.params.empty() ? "leave it out; this page takes none"
                             : fmt::format("known are {}", fmt::join(route.params, ", ")));
  }
  return passed();
}

HttpReply body_fault(BodyFault fault) {
  switch (fault) {
    case BodyFault::kTooLarge:
      return Dispatcher::refusal(413);
    case BodyFault::kNoRoom:
      return Dispatcher::refusal(429);
    case BodyFault::kUnknownEncoding:
      return reply_error(415, "the Content-Encoding is not known",
                         "send the body as it is, or with gzip, deflate or zstd");
    case BodyFault::kDamaged:
    case BodyFault::kNone:
      break;
  }
  return reply_error(400, "the compressed body is damaged or ends too early",
                     "compress the whole body again; nothing of it was read");
}

}  // namespace

HttpReply Dispatcher::refusal(int status) {
  switch (status) {
    case 408:
      return reply_error(408, "the request came too slowly", "send it at once, in smaller bodies");
    case 413:
      return reply_error(413, "the body is larger than http.body_max",
                         "send smaller bodies, or raise the limit");
    case 414:
      return reply_error(414, "the address is too long", "ask with fewer parameters");
    case 429: {
      HttpReply reply =
          reply_error(429, "the bodies of all requests together reach http.bodies_max",
                      "send the body again in 1 s");
      reply.headers.emplace_back("Retry-After", "1");
      return reply;
    }
    case 431:
      return reply_error(431, "the header is larger than 16 KiB", "send fewer headers");
    case 404:
      return reply_error(404, "there is no such page", "see /api/v1/openapi.json for all routes");
    default:
      break;
  }
  return reply_error(status < 400 ? 400 : status, "the request is malformed", "send HTTP/1.1");
}

HttpReply Dispatcher::framing_fault(const HttpRequest& request) {
  const auto lengths = request.headers.count("content-length");
  const std::string length = request.header("content-length");
  const bool digits =
      std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; });
  const std::string transfer = request.header("transfer-encoding");
  const bool both = lengths > 0 && !transfer.empty();
  if (lengths > 1 || both || !digits || length.size() > 18 ||
      (!transfer.empty() && transfer != "chunked")) {
    return reply_error(400, "the length of the body is not told clearly",
                       "send one Content-Length, or Transfer-Encoding: chunked");
  }
  if (request.content_type().starts_with("multipart/")) {
    return reply_error(415, "a form is no input of this API", "send the body itself");
  }
  return passed();
}

HttpReply Dispatcher::admit(HttpRequest& request) {
  // Why 2,048: the longest names fit, percent-encoded; what is longer is no name.
  if (request.path.size() > 2048) {
    HttpReply reply = refusal(414);
    protect(reply);
    return reply;
  }
  const Router::Match match = api_.router().match(request.method, request.path);
  HttpReply reply = passed();
  if (match.route == nullptr && match.allowed.empty()) {
    reply = refusal(404);
  } else if (match.route == nullptr) {
    reply = reply_error(405, fmt::format("{} is not a method of this page", request.method),
                        fmt::format("use {}", match.allowed));
    reply.headers.emplace_back("Allow", match.allowed);
  } else {
    const std::string remote = request.caller.name;
    reply = api_.access().check(request, match.route->role, request.caller);
    if (reply.status == 0) {
      size_t bytes = 0;
      const std::string length = request.header("content-length");
      for (const char c : length) bytes = bytes * 10 + static_cast<size_t>(c - '0');
      const unsigned wait = api_.access().wait_seconds(
          api_.access().has_tokens() && !request.caller.name.empty() ? request.caller.name : remote,
          bytes);
      if (wait > 0) {
        reply = reply_error(429, "too many requests for this token",
                            fmt::format("try again in {} s", wait));
        reply.headers.emplace_back("Retry-After", std::to_string(wait));
      } else if (bytes > config_.body_bytes_max) {
        reply = refusal(413);
      } else {
        reply = unknown_param(*match.route, request);
      }
    }
  }
  if (reply.status != 0) {
    api_.count(match.route == nullptr ? "unknown" : match.route->pattern, reply.status);
    protect(reply);
  }
  return reply;
}

HttpReply Dispatcher::run(HttpRequest& request) {
  HttpReply reply = handle(request);
  protect(reply);
  return reply;
}

HttpReply Dispatcher::run_with_body(HttpRequest& request, std::string&& raw, BodyLease& lease) {
  const BodyFault fault = decode_body(request.header("content-encoding"), std::move(raw),
                                      config_.body_bytes_max, lease, request.body);
  HttpReply reply = fault == BodyFault::kNone ? handle(request) : body_fault(fault);
  if (fault != BodyFault::kNone) api_.count("body", reply.status);
  protect(reply);
  return reply;
}

HttpReply Dispatcher::handle(HttpRequest& request) {
  const Router::Match match = api_.router().match(request.method, request.path);
  if (match.route == nullptr) return refusal(404);
  request.named = match.named;
  // The caller is found again here: a request with a body comes as a new object.
  HttpReply reply = api_.access().check(request, match.route->role, request.caller);
  if (reply.status != 0) return reply;
  try {
    reply = match.route->handle(request);
  } catch (const std::exception& e) {
    spdlog::error("http: {} {}: {}", request.method, match.route->pattern, e.what());
    reply = reply_error(500, "an internal error", "see the daemon's log, and report it");
  }
  api_.count(match.route->pattern, reply.status);
  return reply;
}

}  // namespace reflex::serve
