// The console and the OpenAPI document: files that are compiled in (http.cmake).
#include "runtime/explain/html_parts.h"
#include "runtime/serve/http/api.h"
#include "runtime/serve/http/embedded_files.h"
#include "runtime/serve/http/http_server.h"

namespace reflex::serve {
namespace {

// Nothing from elsewhere, no inline script or style: a hostile name that found a way into the page
// could run and load nothing.
constexpr const char* kConsolePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpReply page(std::string type, std::string_view text) {
  HttpReply reply;
  reply.type = std::move(type);
  reply.body = text;
  reply.headers.emplace_back("Content-Security-Policy", kConsolePolicy);
  reply.headers.emplace_back("Cache-Control", "no-cache");
  return reply;
}

}  // namespace

void add_page_routes(Api& api) {
  Router& router = api.router();
  router.add({"GET", "/api/v1/openapi.json", Role::kOpen, [](const HttpRequest&) {
                HttpReply reply;
                reply.body = kOpenapiJson;
                return reply;
              }});
  if (!api.config().console) return;
  router.add({"GET", "/", Role::kOpen,
              [](const HttpRequest&) { return page("text/html; charset=utf-8", kConsoleHtml); }});
  router.add({"GET", "/console.js", Role::kOpen, [](const HttpRequest&) {
                return page("text/javascript; charset=utf-8", kConsoleJs);
              }});
  router.add({"GET", "/console.css", Role::kOpen, [](const HttpRequest&) {
                // The console shows explanation pages, so it begins with their style.
                return page("text/css; charset=utf-8",
                            std::string(explain::page_style()) + std::string(kConsoleCss));
              }});
}

}  // namespace reflex::serve
