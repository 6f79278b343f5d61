// Verdicts: lists, one, its explanation, followers, open incidents, alerts, explaining a line.
#include <fmt/format.h>

#include "runtime/explain/explain.h"
#include "runtime/serve/http/api.h"
#include "runtime/serve/http/export.h"

namespace reflex::serve {
namespace {

/// The filter of a request; false: `reply` says which parameter is wrong.
bool filter_of(const HttpRequest& request, VerdictFilter& filter, HttpReply& reply) {
  filter.incident = request.param("incident");
  filter.job = request.param("job");
  filter.node = request.param("node");
  filter.mentions = request.param("mentions");
  filter.fault = request.param("fault");
  filter.level = request.param("level");
  if (request.has_param("final")) {
    const std::string word = request.param("final");
    if (word != "true" && word != "false") {
      reply = bad_param("final", "true or false");
      return false;
    }
    filter.final = word == "true";
  }
  for (const auto& [name, bound] :
       {std::pair{"since", &filter.since_ns}, std::pair{"until", &filter.until_ns}}) {
    if (!instant_param(request, name, *bound)) {
      reply = bad_param(name, "RFC 3339, such as 2026-03-01T12:00:00Z, or epoch milliseconds");
      return false;
    }
  }
  return true;
}

/// What filter_of() reads, and `more`.
std::vector<std::string> with_filter(std::vector<std::string> more) {
  for (const char* name :
       {"incident", "job", "node", "mentions", "fault", "level", "final", "since", "until"}) {
    more.emplace_back(name);
  }
  return more;
}

HttpReply verdict_list(Api& api, const HttpRequest& request) {
  VerdictFilter filter;
  HttpReply reply;
  if (!filter_of(request, filter, reply)) return reply;
  uint64_t limit = 100;
  if (!number_param(request, "limit", 1, 1000, limit)) {
    return bad_param("limit", "a number from 1 to 1000");
  }
  filter.limit = static_cast<unsigned>(limit);
  uint64_t cursor = 0;
  if (!number_param(request, "cursor", 0, UINT64_MAX, cursor)) {
    return bad_param("cursor", "the next_cursor of the page before");
  }
  const std::string order = request.param("order");
  if (!order.empty() && order != "newest" && order != "oldest") {
    return bad_param("order", "newest or oldest");
  }
  filter.newest_first = order != "oldest";
  (filter.newest_first ? filter.before : filter.after) = cursor;
  auto page = api.store().verdicts(filter);
  if (!page) return store_error(page.error());
  // The rows are JSON already: they are put together as text.
  reply.body = "{\"verdicts\":[";
  uint64_t last = 0;
  for (const StoredVerdict& verdict : page.value().verdicts) {
    if (last != 0) reply.body += ',';
    reply.body += fmt::format("{{\"sequence\":{},\"verdict\":{}}}", verdict.sequence, verdict.json);
    last = verdict.sequence;
  }
  reply.body += page.value().more ? fmt::format("],\"next_cursor\":\"{}\"}}\n", last)
                                  : "],\"next_cursor\":null}\n";
  return reply;
}

HttpReply not_found(std::string_view what) {
  return reply_error(404, fmt::format("there is no such {}", what),
                     "it may be older than the store keeps; see GET /api/v1/verdicts");
}

HttpReply one_verdict(Api& api, const HttpRequest& request) {
  auto found = api.store().verdict(request.named.at("id"));
  if (!found) return store_error(found.error());
  if (!found.value()) return not_found("verdict");
  HttpReply reply;
  reply.body = found.value()->json + "\n";
  return reply;
}

/// A verdict in the form that `as` asks for (the words of `reflex explain --as`); without it, what
/// the Accept header prefers. `md`: of older clients.
HttpReply explained(const HttpRequest& request, const std::string& json) {
  std::string as = request.param("as");
  if (as.empty()) {
    const std::string accept = request.header("accept");
    as = accept.find("text/html") != std::string::npos       ? "html"
         : accept.find("text/markdown") != std::string::npos ? "markdown"
                                                             : "json";
  }
  HttpReply reply;
  if (as == "json") {
    reply.body = json + "\n";
    return reply;
  }
  auto verdict = explain::from_json(json);
  if (!verdict) {
    return reply_error(400, verdict.error().message, "send one line that reflex wrote");
  }
  if (as == "html") {
    reply.type = "text/html; charset=utf-8";
    reply.body = explain::to_html(verdict.value());
  } else if (as == "markdown" || as == "md") {
    reply.type = "text/markdown; charset=utf-8";
    reply.body = explain::to_markdown(verdict.value());
  } else if (as == "text" || as == "full") {
    reply.type = "text/plain; charset=utf-8";
    reply.body = as == "full" ? explain::to_text(verdict.value(), false)
                              : explain::to_brief(verdict.value(), false);
  } else {
    return bad_param("as", "json, markdown, html, text or full");
  }
  return reply;
}

HttpReply explanation(Api& api, const HttpRequest& request) {
  auto found = api.store().verdict(request.named.at("id"));
  if (!found) return store_error(found.error());
  if (!found.value()) return not_found("verdict");
  return explained(request, found.value()->json);
}

/// A line from elsewhere: it is read and written anew, so that nothing of it is echoed as it came.
HttpReply explain_line(const HttpRequest& request) {
  if (parse_json(request.body).is_discarded()) {
    return reply_error(400, "the body is not JSON", "send one verdict as reflex writes it");
  }
  auto verdict = explain::from_json(request.body);
  if (!verdict) {
    return reply_error(400, verdict.error().message, "send one verdict as reflex writes it");
  }
  return explained(request, explain::to_json(verdict.value(), false));
}

HttpReply follow(Api& api, const HttpRequest& request) {
  VerdictFilter filter;
  HttpReply reply;
  if (!filter_of(request, filter, reply)) return reply;
  filter.after = api.streams().newest();
  std::string from = request.header("last-event-id");
  if (from.empty()) from = request.param("after");
  if (!from.empty()) {
    HttpRequest named;
    named.query.emplace("after", from);
    if (!number_param(named, "after", 0, UINT64_MAX, filter.after)) {
      return bad_param("after", "the id of the last event that you have");
    }
  }
  reply.stream = api.streams().follow(filter);
  if (reply.stream == nullptr) {
    reply = reply_error(503, "too many follow the verdicts",
                        "close a follower, or raise http.streams_max");
    reply.headers.emplace_back("Retry-After", "30");
    return reply;
  }
  reply.type = "text/event-stream";
  // A proxy in between must not keep events back.
  reply.headers.emplace_back("X-Accel-Buffering", "no");
  return reply;
}

HttpReply incidents(Api& api, const HttpRequest& request) {
  uint64_t limit = 200;
  if (!number_param(request, "limit", 1, 1000, limit)) {
    return bad_param("limit", "a number from 1 to 1000");
  }
  const std::string state = request.param("state");
  if (!state.empty() && state != "open" && state != "all") return bad_param("state", "open or all");
  auto found = api.store().incidents(state != "all", static_cast<unsigned>(limit));
  if (!found) return store_error(found.error());
  std::string body = "{\"incidents\":[";
  for (const StoredIncident& incident : found.value()) {
    if (body.back() != '[') body += ',';
    Json head{{"incident", incident.incident},
              {"type", incident.type},
              {"job", incident.job.empty() ? Json() : Json(incident.job)},
              {"opened", instant(incident.opened_ns)},
              {"revision", incident.revision},
              {"final", incident.final}};
    std::string text = json_text(head);
    text.pop_back();
    body += fmt::format("{},\"latest\":{}}}", text, incident.latest.json);
  }
  HttpReply reply;
  reply.body = body + "]}\n";
  return reply;
}

HttpReply alerts(Api& api, const HttpRequest& request) {
  uint64_t after = 0;
  uint64_t limit = 200;
  if (!number_param(request, "after", 0, UINT64_MAX, after))
    return bad_param("after", "a sequence");
  if (!number_param(request, "limit", 1, 1000, limit)) {
    return bad_param("limit", "a number from 1 to 1000");
  }
  auto found = api.store().alerts(after, static_cast<unsigned>(limit));
  if (!found) return store_error(found.error());
  HttpReply reply;
  reply.body = "{\"alerts\":[";
  for (const StoredAlert& alert : found.value()) {
    if (reply.body.back() != '[') reply.body += ',';
    std::string json = alert.json;
    while (json.ends_with('\n')) json.pop_back();
    reply.body += fmt::format("{{\"sequence\":{},\"type\":{},\"line\":{}}}", alert.sequence,
                              json_text(Json(alert.type)), json);
  }
  reply.body += "]}\n";
  return reply;
}

HttpReply export_all(Api& api, const HttpRequest& request) {
  VerdictFilter filter;
  HttpReply reply;
  if (!filter_of(request, filter, reply)) return reply;
  const std::string as = request.param("as");
  if (as == "tar") {
    reply.type = "application/x-tar";
    reply.headers.emplace_back("Content-Disposition", "attachment; filename=\"explanations.tar\"");
    reply.stream = export_tar(api.store(), filter);
  } else if (as.empty() || as == "ndjson") {
    reply.type = "application/x-ndjson";
    reply.stream = export_lines(api.store(), filter);
  } else {
    return bad_param("as", "ndjson or tar");
  }
  return reply;
}

}  // namespace

void add_verdict_routes(Api& api) {
  Router& router = api.router();
  const auto with = [&api](HttpReply (*handle)(Api&, const HttpRequest&)) {
    return [&api, handle](const HttpRequest& request) { return handle(api, request); };
  };
  router.add({"GET", "/api/v1/verdicts", Role::kRead, with(verdict_list),
              with_filter({"limit", "cursor", "order"})});
  router.add({"GET", "/api/v1/verdicts/stream", Role::kRead, with(follow), with_filter({"after"})});
  router.add({"GET", "/api/v1/verdicts/{id}", Role::kRead, with(one_verdict)});
  router.add({"GET", "/api/v1/verdicts/{id}/explanation", Role::kRead, with(explanation), {"as"}});
  router.add({"GET", "/api/v1/incidents", Role::kRead, with(incidents), {"state", "limit"}});
  router.add({"GET", "/api/v1/alerts", Role::kRead, with(alerts), {"after", "limit"}});
  router.add({"GET", "/api/v1/export", Role::kRead, with(export_all), with_filter({"as"})});
  router.add({"POST", "/api/v1/explain", Role::kRead, explain_line, {"as"}});
}

}  // namespace reflex::serve
