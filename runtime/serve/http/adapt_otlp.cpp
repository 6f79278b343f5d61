// OTLP/HTTP JSON logs as lines: see adapters.h. Source: opentelemetry-proto 1.x, logs.proto, and
// the specification's JSON encoding (int64 as strings, both spellings accepted here).
#include <charconv>

#include "runtime/base/time.h"
#include "runtime/serve/http/adapters.h"

namespace reflex::serve {
namespace {

const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto it = object.find(name);
  return it == object.end() ? kNone : *it;
}

/// AnyValue as plain JSON; depth is bounded by the parser's own nesting here: at most 16.
Json plain(const Json& value, int depth = 0) {
  if (depth > 16) return Json();
  if (const Json& v = member(value, "stringValue"); v.is_string()) return v;
  if (const Json& v = member(value, "boolValue"); v.is_boolean()) return v;
  if (const Json& v = member(value, "doubleValue"); v.is_number()) return v;
  if (const Json& v = member(value, "intValue"); !v.is_null()) {
    if (v.is_number_integer()) return v;
    const std::string text = v.is_string() ? v.get<std::string>() : "";
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    return Json();
  }
  if (const Json& v = member(member(value, "kvlistValue"), "values"); v.is_array()) {
    Json out = Json::object();
    for (const Json& entry : v) {
      const Json& key = member(entry, "key");
      if (key.is_string()) out[key.get<std::string>()] = plain(member(entry, "value"), depth + 1);
    }
    return out;
  }
  if (const Json& v = member(member(value, "arrayValue"), "values"); v.is_array()) {
    Json out = Json::array();
    for (const Json& entry : v) out.push_back(plain(entry, depth + 1));
    return out;
  }
  return Json();
}

std::string attribute(const Json& holder, std::string_view name) {
  const Json& list = member(holder, "attributes");
  if (!list.is_array()) return {};
  for (const Json& entry : list) {
    const Json& key = member(entry, "key");
    if (!key.is_string() || key.get_ref<const std::string&>() != name) continue;
    const Json value = plain(member(entry, "value"));
    if (value.is_string()) return value.get<std::string>();
  }
  return {};
}

/// Nanoseconds of a fixed64 member; 0: none.
int64_t nanos(const Json& record, const char* name) {
  const Json& value = member(record, name);
  if (value.is_number_unsigned()) {
    const auto n = value.get<uint64_t>();
    return n > static_cast<uint64_t>(INT64_MAX) ? 0 : static_cast<int64_t>(n);
  }
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() ? n : 0;
}

class Reader {
 public:
  Reader(int64_t now_ns, AdaptedLines& out) : now_ns_(now_ns), out_(out) {}

  void resource(const Json& entry) {
    const Json& resource = member(entry, "resource");
    node_.clear();
    for (const char* name : {"host.name", "k8s.node.name", "host.id"}) {
      if (node_.empty()) node_ = attribute(resource, name);
    }
    for (const char* scopes : {"scopeLogs", "instrumentationLibraryLogs"}) {
      const Json& list = member(entry, scopes);
      if (!list.is_array()) continue;
      for (const Json& scope : list) {
        const Json& records = member(scope, "logRecords");
        if (!records.is_array()) continue;
        for (const Json& record : records) read(record);
      }
    }
  }

 private:
  void read(const Json& record) {
    int64_t at_ns = nanos(record, "timeUnixNano");
    if (at_ns <= 0) at_ns = nanos(record, "observedTimeUnixNano");
    if (at_ns <= 0) at_ns = now_ns_;
    const Json body = plain(member(record, "body"));
    if (body.is_object() && body.contains("kind") && body["kind"].is_string()) {
      Json event = body;
      if (!event.contains("ts")) event["ts"] = to_rfc3339(EventTime{at_ns});
      if (!event.contains("node") && !node_.empty()) event["node"] = node_;
      out_.events += json_text(event) + "\n";
      return;
    }
    if (!body.is_string()) return out_.reject("a record whose body is neither text nor an event");
    if (node_.empty()) return out_.reject("log text of a resource without host.name");
    lines(body.get_ref<const std::string&>(), to_rfc3339(EventTime{at_ns}));
  }

  /// Each physical line with the record's time, as a file would have them.
  void lines(std::string_view text, const std::string& time) {
    std::string& log = out_.logs[node_];
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) {
        log += time;
        log += ' ';
        log += line;
        log += '\n';
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  const int64_t now_ns_;
  AdaptedLines& out_;
  std::string node_;
};

}  // namespace

AdaptedLines from_otlp_logs(const Json& body, int64_t now_ns) {
  AdaptedLines out;
  const Json& resources = member(body, "resourceLogs");
  if (!resources.is_array()) {
    out.reject("no OTLP logs: no resourceLogs");
    return out;
  }
  Reader reader(now_ns, out);
  for (const Json& entry : resources) reader.resource(entry);
  return out;
}

}  // namespace reflex::serve
