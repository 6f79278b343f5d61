// CloudEvents and Alertmanager as lines: see adapters.h.
#include "runtime/serve/http/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace reflex::serve {
namespace {

// The log of cluster-wide tools has no node of its own: their decoders take it from the line.
constexpr const char* kAlertmanagerNode = "alertmanager";
constexpr const char* kNvsentinelNode = "nvsentinel";

std::string text_of(const Json& object, const char* member) {
  if (!object.is_object()) return {};
  const auto it = object.find(member);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// One line, whatever a label holds.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string joined(const Json& array) {
  std::string out;
  if (!array.is_array()) return out;
  for (const Json& item : array) {
    if (!out.empty()) out += ",";
    out += item.is_string() ? item.get<std::string>() : json_text(item);
  }
  return out;
}

/// The jq line of rules/std/adapters/README.md.
void nvsentinel_line(const Json& event, AdaptedLines& out) {
  const std::string time = text_of(event, "generatedTimestamp");
  const std::string node = text_of(event, "nodeName");
  if (time.empty() || node.empty()) return out.reject("healthEvent without time or nodeName");
  std::string entities;
  if (event.contains("entitiesImpacted") && event["entitiesImpacted"].is_array()) {
    for (const Json& entity : event["entitiesImpacted"]) {
      entities += (entities.empty() ? "" : ",") + text_of(entity, "entityType") + ":" +
                  text_of(entity, "entityValue");
    }
  }
  const auto flag = [&](const char* member) {
    return event.contains(member) && event[member].is_boolean() && event[member].get<bool>();
  };
  out.logs[kNvsentinelNode] +=
      one_line(fmt::format("{} nvsentinel {} {} fatal={} healthy={} codes={} entities={} action={}",
                           time, node, text_of(event, "checkName"), flag("isFatal"),
                           flag("isHealthy"),
                           event.contains("errorCode") ? joined(event["errorCode"]) : "", entities,
                           text_of(event, "recommendedAction"))) +
      "\n";
}

void one_cloud_event(const Json& cloud, AdaptedLines& out) {
  if (!cloud.is_object()) return out.reject("no CloudEvent: not an object");
  if (text_of(cloud, "specversion") != "1.0") return out.reject("specversion is not 1.0");
  const std::string type = text_of(cloud, "type");
  if (type.empty()) return out.reject("no CloudEvent: no type");
  if (cloud.contains("data_base64")) return out.reject("data_base64: send JSON data");
  const Json data = cloud.contains("data") ? cloud["data"] : Json::object();
  if (!data.is_object()) return out.reject("data is not an object");
  if (data.contains("healthEvent")) return nvsentinel_line(data["healthEvent"], out);
  Json event = data;
  if (text_of(event, "kind").empty()) event["kind"] = type;
  const auto fill = [&](const char* member, const char* attribute) {
    const std::string value = text_of(cloud, attribute);
    if (!event.contains(member) && !value.empty()) event[member] = value;
  };
  fill("ts", "time");
  fill("id", "id");
  fill("source", "source");
  fill("node", "subject");
  if (!event.contains("ts")) return out.reject("neither data.ts nor time");
  out.events += json_text(event) + "\n";
}

}  // namespace

AdaptedLines from_cloud_events(const Json& body) {
  AdaptedLines out;
  if (!body.is_array()) {
    one_cloud_event(body, out);
    return out;
  }
  for (const Json& cloud : body) one_cloud_event(cloud, out);
  return out;
}

AdaptedLines from_binary_cloud_event(const HttpRequest& request) {
  Json cloud;
  for (const char* name : {"specversion", "type", "id", "source", "time", "subject"}) {
    const std::string value = request.header(std::string("ce-") + name);
    if (!value.empty()) cloud[name] = value;
  }
  cloud["data"] = parse_json(request.body);
  if (cloud["data"].is_discarded()) {
    AdaptedLines out;
    out.reject("the body is not JSON");
    return out;
  }
  return from_cloud_events(cloud);
}

AdaptedLines from_alertmanager(const Json& body) {
  AdaptedLines out;
  if (!body.is_object() || !body.contains("alerts") || !body["alerts"].is_array()) {
    out.reject("no Alertmanager webhook: no alerts");
    return out;
  }
  for (const Json& alert : body["alerts"]) {
    if (text_of(alert, "status") != "firing") continue;  // a recovery ends by itself here
    const std::string time = text_of(alert, "startsAt");
    if (time.empty() || !alert.contains("labels") || !alert["labels"].is_object()) {
      out.reject("an alert without startsAt or labels");
      continue;
    }
    std::set<std::string> labels;
    for (const auto& [name, value] : alert["labels"].items()) {
      if (value.is_string()) labels.insert(name + "=" + value.get<std::string>());
    }
    std::string line = time + " alert";
    for (const std::string& label : labels) line += " " + label;
    out.logs[kAlertmanagerNode] += one_line(line) + "\n";
  }
  return out;
}

}  // namespace reflex::serve
