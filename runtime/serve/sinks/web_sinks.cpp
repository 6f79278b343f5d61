// Webhook (CloudEvents 1.0, batched content mode) and Alertmanager v2.
//
// At least once: a batch whose answer was lost is sent again. The id of a CloudEvent is that of the
// verdict (or the key of the alert's line), so that the receiver can leave out what it has.
// Source: CloudEvents 1.0.2 JSON batch format; Alertmanager API v2 openapi.yaml (postAlerts).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/base/time.h"
#include "runtime/serve/http_client.h"
#include "runtime/serve/sinks/sink.h"

namespace reflex::serve {
namespace {

using Json = nlohmann::ordered_json;

Json parse(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

reflex::Status post(const WebOptions& options, const std::string& type, const Json& body) {
  HttpRequestText request;
  request.url = options.url;
  request.token = options.token;
  request.timeout = options.timeout;
  request.content_type = type;
  request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto answer = http_request(request);
  if (!answer.ok()) return answer.error();
  const int status = answer.value().status;
  if (status >= 200 && status < 300) return ok_status();
  return Error{
      fmt::format("{} answered {}: {}", options.url, status, answer.value().body.substr(0, 200))};
}

class Webhook final : public Delivery {
 public:
  explicit Webhook(WebOptions options) : options_(std::move(options)) {}
  reflex::Status deliver(const SinkBatch& batch, SinkCursor&) override {
    Json events = Json::array();
    for (const auto& verdict : batch.verdicts) {
      events.push_back(
          event("io.reflex.verdict.v1", verdict.id, verdict.incident, verdict.ts_ns, verdict.json));
    }
    for (const auto& alert : batch.alerts) {
      events.push_back(event("io.reflex." + alert.type + ".v1", fmt::format("a-{}", alert.sequence),
                             alert.incident, alert.ts_ns, alert.json));
    }
    return post(options_, "application/cloudevents-batch+json", events);
  }

 private:
  static Json event(const std::string& type, const std::string& id, const std::string& subject,
                    int64_t ts_ns, const std::string& data) {
    return {{"specversion", "1.0"},
            {"id", id},
            {"source", "/reflex"},
            {"type", type},
            {"subject", subject},
            {"time", to_rfc3339(EventTime{ts_ns})},
            {"datacontenttype", "application/json"},
            {"data", parse(data)}};
  }
  WebOptions options_;
};

class Alertmanager final : public Delivery {
 public:
  explicit Alertmanager(WebOptions options) : options_(std::move(options)) {
    if (options_.url.find("/api/") == std::string::npos) {
      while (options_.url.ends_with('/')) options_.url.pop_back();
      options_.url += "/api/v2/alerts";
    }
  }
  reflex::Status deliver(const SinkBatch& batch, SinkCursor&) override {
    Json alerts = Json::array();
    for (const auto& line : batch.alerts) {
      if (line.type == "alert") alerts.push_back(alert(parse(line.json), line.ts_ns));
    }
    if (alerts.empty()) return ok_status();
    return post(options_, "application/json", alerts);
  }

 private:
  /// Labels are the identity of an alert there: they must not change from firing to resolved.
  static Json alert(const Json& in, int64_t ts_ns) {
    Json labels = Json::object();
    Json annotations = Json::object();
    const auto text = [&](const char* key) { return in.value(key, std::string()); };
    if (in.contains("labels")) labels = in["labels"];
    if (in.contains("annotations")) annotations = in["annotations"];
    labels["alertname"] = text("rule");
    labels["incident"] = text("incident");
    for (const char* key : {"job", "node", "severity"}) {
      if (in.contains(key) && in[key].is_string() && !text(key).empty()) labels[key] = text(key);
    }
    for (const char* key : {"verdict", "reason"}) {
      if (in.contains(key) && in[key].is_string()) annotations[key] = text(key);
    }
    Json out{{"labels", labels}, {"annotations", annotations}};
    if (in.contains("since") && in["since"].is_string()) out["startsAt"] = text("since");
    if (text("state") == "resolved") out["endsAt"] = to_rfc3339(EventTime{ts_ns});
    return out;
  }
  WebOptions options_;
};

}  // namespace

std::unique_ptr<Delivery> webhook_delivery(const WebOptions& options) {
  return std::make_unique<Webhook>(options);
}
std::unique_ptr<Delivery> alertmanager_delivery(const WebOptions& options) {
  return std::make_unique<Alertmanager>(options);
}

}  // namespace reflex::serve
