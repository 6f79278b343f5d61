// Ingestion: events, logs, CloudEvents, Alertmanager, OTLP. Answers when the journal has it.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/serve/http/adapters.h"
#include "runtime/serve/http/api.h"

namespace reflex::serve {
namespace {

/// Names are metric labels: printable ASCII, or a scrape of all metrics would be refused.
bool is_label(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

/// The name under which watermark and counters of this sender are kept; false: not usable.
bool source_of(const HttpRequest& request, std::string& source) {
  source = request.param("source");
  if (source.empty()) source = "http/" + request.caller.name;
  // Why 128: names are metric labels and stand in every explanation.
  return source.size() <= 128 && is_label(source);
}

HttpReply bad_source() {
  return reply_error(400, "the source's name is not usable",
                     "give a name of at most 128 printable ASCII characters, no spaces");
}

std::string key_of(const HttpRequest& request, std::string_view part) {
  const std::string key = request.header("idempotency-key");
  return key.empty() ? key : fmt::format("{}/{}{}", request.caller.name, key, part);
}

HttpReply refusal(const IngestAnswer& answer) {
  using Outcome = IngestAnswer::Outcome;
  HttpReply reply;
  switch (answer.outcome) {
    case Outcome::kOverloaded:
      reply = reply_error(429, "more comes in than is evaluated",
                          fmt::format("send the body again in {} s", answer.retry_after_s));
      reply.headers.emplace_back("Retry-After", std::to_string(std::max(1u, answer.retry_after_s)));
      break;
    case Outcome::kNoSpace:
      reply = reply_error(
          507, answer.error.empty() ? "the journal cannot grow" : answer.error,
          "mend it on the daemon's disk (room, the journal's folder), then send it again");
      break;
    case Outcome::kStopping:
      reply = reply_error(503, "the daemon is stopping", "send the body again after its start");
      reply.headers.emplace_back("Retry-After", "5");
      break;
    case Outcome::kAccepted:
    case Outcome::kRepeated:
      break;
  }
  return reply;
}

struct Taken {
  uint64_t position = 0;
  uint64_t lines = 0;
  bool repeated = true;  // all of it was there
};

/// Hands a body over; false: `reply` is the refusal.
bool take(Api& api, IngestBody&& body, Taken& taken, HttpReply& reply) {
  if (body.text.empty()) return true;
  const IngestAnswer answer = api.port().accept(std::move(body));
  if (answer.outcome != IngestAnswer::Outcome::kAccepted &&
      answer.outcome != IngestAnswer::Outcome::kRepeated) {
    reply = refusal(answer);
    return false;
  }
  taken.position = std::max(taken.position, answer.position);
  taken.lines += answer.lines;
  taken.repeated = taken.repeated && answer.outcome == IngestAnswer::Outcome::kRepeated;
  return true;
}

Json taken_json(const Taken& taken) {
  Json out{{"position", taken.position}, {"lines", taken.lines}};
  if (taken.repeated) out["repeated"] = true;
  return out;
}

/// All pieces of an adapted body. When a later piece is refused the sender repeats all of it: with
/// an Idempotency-Key, or ids in the events, nothing counts twice.
bool take_all(Api& api, const HttpRequest& request, const std::string& source,
              AdaptedLines& adapted, Taken& taken, HttpReply& reply) {
  IngestBody events{IngestBody::Form::kEvents, source, "", std::move(adapted.events),
                    key_of(request, "/events")};
  if (!take(api, std::move(events), taken, reply)) return false;
  for (auto& [node, text] : adapted.logs) {
    IngestBody log{IngestBody::Form::kLog, source + "/" + node, node, std::move(text),
                   key_of(request, "/log/" + node)};
    if (!take(api, std::move(log), taken, reply)) return false;
  }
  return true;
}

HttpReply adapted_reply(Api& api, const HttpRequest& request, AdaptedLines&& adapted) {
  std::string source;
  if (!source_of(request, source)) return bad_source();
  const bool nothing = adapted.events.empty() && adapted.logs.empty();
  if (nothing && adapted.rejected > 0) {
    return reply_error(400,
                       fmt::format("nothing of the body can be read: {}", adapted.first_reason),
                       "see /api/v1/openapi.json for the forms");
  }
  Taken taken;
  taken.repeated = !nothing;
  HttpReply reply;
  if (!take_all(api, request, source, adapted, taken, reply)) return reply;
  Json out = taken_json(taken);
  out["rejected"] = adapted.rejected;
  if (adapted.rejected > 0) out["first_reason"] = adapted.first_reason;
  return reply_json(out);
}

HttpReply not_json() {
  return reply_error(400, "the body is not JSON", "send one JSON document in UTF-8");
}

/// The line at `at`, without blanks before it; `at` goes to the next one.
std::string_view next_line(std::string_view text, size_t& at) {
  const size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  at = end + 1;
  const size_t first = line.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

bool is_array(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  return first != std::string_view::npos && text[first] == '[' &&
         text[text.find_last_not_of(kBlanks)] == ']';
}

/// Status 0, or the refusal of a body in which no line begins like an object, or that is an array:
/// it is of another form altogether, and who sends it hears of it. Single bad lines are counted
/// where they are decoded. Cost: the first line, of a body of events.
HttpReply no_events(std::string_view text) {
  if (is_array(text)) {
    return reply_error(400, "the body is a JSON array",
                       "send an object a line, as `jq -c '.[]'` makes them");
  }
  HttpReply reply;
  reply.status = 0;
  std::string_view sample;
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = next_line(text, at);
    if (line.starts_with('{')) return reply;
    if (sample.empty()) sample = line;
  }
  if (sample.empty()) return reply;  // nothing is nothing
  // Why 40: enough to know one's own data by.
  return reply_error(
      400,
      fmt::format("no line of the body is a JSON object; it begins with '{}'",
                  sample.substr(0, 40)),
      R"(send an object a line, like {"ts":"2026-03-01T12:00:00Z","kind":"gpu.xid","node":"n1"}; )"
      "log text goes to /api/v1/logs/{node}, compressed bodies want Content-Encoding");
}

HttpReply events(Api& api, HttpRequest& request) {
  const std::string type = request.content_type();
  if (type == "application/cloudevents+json" || type == "application/cloudevents-batch+json") {
    const Json body = parse_json(request.body);
    if (body.is_discarded()) return not_json();
    if (body.is_array() != (type == "application/cloudevents-batch+json")) {
      return reply_error(400, "the body is not what its Content-Type says",
                         "an event is an object, a batch an array of them");
    }
    return adapted_reply(api, request, from_cloud_events(body));
  }
  if (!request.header("ce-specversion").empty()) {
    return adapted_reply(api, request, from_binary_cloud_event(request));
  }
  const bool known = type.empty() || type == "application/x-ndjson" || type == "application/json" ||
                     type == "application/jsonl" || type == "application/ndjson" ||
                     type == "text/plain" || type == "application/octet-stream" ||
                     type == "application/x-www-form-urlencoded";  // what curl says by itself
  if (!known) {
    return reply_error(415, fmt::format("'{}' is no form of events", type),
                       "send application/x-ndjson, application/cloudevents+json or "
                       "application/cloudevents-batch+json");
  }
  IngestBody body;
  if (!source_of(request, body.source)) return bad_source();
  if (HttpReply refused = no_events(request.body); refused.status != 0) return refused;
  body.key = key_of(request, "");
  Taken taken;
  taken.repeated = !request.body.empty();
  body.text = std::move(request.body);
  HttpReply reply;
  if (!take(api, std::move(body), taken, reply)) return reply;
  return reply_json(taken_json(taken));
}

HttpReply log_text(Api& api, HttpRequest& request) {
  IngestBody body;
  body.form = IngestBody::Form::kLog;
  body.node = request.named.at("node");
  // Source: RFC 1035, the longest host name
  if (body.node.size() > 253 || !is_label(body.node)) {
    return reply_error(400, "the node's name is no host name", "give its host name");
  }
  const bool named = request.has_param("source");
  if (!source_of(request, body.source)) return bad_source();
  // Each node's log is a stream of its own: its watermark holds nobody else's.
  if (!named) body.source += "/" + body.node;
  body.key = key_of(request, "");
  Taken taken;
  taken.repeated = !request.body.empty();
  body.text = std::move(request.body);
  HttpReply reply;
  if (!take(api, std::move(body), taken, reply)) return reply;
  return reply_json(taken_json(taken));
}

HttpReply alertmanager(Api& api, HttpRequest& request) {
  const Json body = parse_json(request.body);
  if (body.is_discarded()) return not_json();
  return adapted_reply(api, request, from_alertmanager(body));
}

/// As OTLP wants it: partialSuccess on 200, {code, message} on errors (beside ours).
HttpReply otlp(Api& api, HttpRequest& request) {
  if (request.content_type() != "application/json") {
    return reply_error(415, "only the JSON form of OTLP is read",
                       "set `encoding: json` in the otlphttp exporter");
  }
  const Json body = parse_json(request.body);
  if (body.is_discarded()) return not_json();
  AdaptedLines adapted = from_otlp_logs(body, wall_now_ns());
  std::string source;
  if (!source_of(request, source)) return bad_source();
  if (adapted.rejected > 0 && adapted.events.empty() && adapted.logs.empty()) {
    HttpReply reply = reply_error(400, adapted.first_reason, "send ExportLogsServiceRequest");
    return reply;
  }
  Taken taken;
  HttpReply reply;
  if (!take_all(api, request, source, adapted, taken, reply)) return reply;
  Json partial = Json::object();
  if (adapted.rejected > 0) {
    partial["rejectedLogRecords"] = std::to_string(adapted.rejected);
    partial["errorMessage"] = adapted.first_reason;
  }
  return reply_json({{"partialSuccess", partial}});
}

}  // namespace

void add_ingest_routes(Api& api) {
  Router& router = api.router();
  const auto with = [&api](HttpReply (*handle)(Api&, HttpRequest&)) {
    return [&api, handle](HttpRequest& request) { return handle(api, request); };
  };
  router.add({"POST", "/api/v1/events", Role::kIngest, with(events), {"source"}});
  router.add({"POST", "/api/v1/logs/{node}", Role::kIngest, with(log_text), {"source"}});
  router.add({"POST", "/api/v1/alertmanager", Role::kIngest, with(alertmanager), {"source"}});
  router.add({"POST", "/v1/logs", Role::kIngest, with(otlp), {"source"}});
}

}  // namespace reflex::serve
