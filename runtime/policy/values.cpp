// Values of rule expressions as text, and the JSON lines of alerts and actions.
#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/abi/gpu_address.h"
#include "runtime/base/time.h"
#include "runtime/policy/policy.h"

namespace reflex::policy {
namespace {

using Json = nlohmann::ordered_json;

/// A printf conversion that sema has checked against the type of the value.
std::string printed(const std::string& format, double number) {
  const char last = format.back();
  char buffer[128];
  int size = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  if (last == 'd') {
    const std::string wide = format.substr(0, format.size() - 1) + "lld";
    size = std::snprintf(buffer, sizeof buffer, wide.c_str(), static_cast<long long>(number));
  } else {
    size = std::snprintf(buffer, sizeof buffer, format.c_str(), number);
  }
#pragma GCC diagnostic pop
  return {buffer, static_cast<size_t>(std::clamp(size, 0, static_cast<int>(sizeof buffer) - 1))};
}

std::string number_text(const abi::Type& type, double number, const std::string& format) {
  // A ratio is read as a percentage: "93%", not "0.93".
  const bool ratio = type.unit == abi::Unit::kRatio && !type.per_time;
  const double shown = ratio ? number * 100 : number;
  const std::string text = format.empty() ? fmt::format("{:.4g}", shown) : printed(format, shown);
  return ratio ? text + "%" : text;
}

Json words(const Named& list) {
  Json out = Json::object();
  for (const auto& [name, value] : list) {
    out[name] = value.empty() ? Json(nullptr) : Json(value);
  }
  return out;
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string Policy::text_of(abi::ExprId expr, const std::string& format) {
  uint64_t bits = 0;
  if (eval(expr, bits) == abi::kUnknown) return "";
  const abi::Type& type = pack_->exprs[expr].type;
  const auto number = static_cast<int64_t>(bits);
  switch (type.scalar) {
    case abi::Scalar::kBool:
      return number != 0 ? "true" : "false";
    case abi::Scalar::kDuration:
      return to_text(Duration{number});
    case abi::Scalar::kInstant:
      return to_rfc3339(EventTime{number});
    case abi::Scalar::kEntity:
      if (type.gpu_index) return abi::gpu_to_text(number);
      [[fallthrough]];
    case abi::Scalar::kEnum:
      return std::string(pack_->symbols->name(static_cast<SymbolId>(bits)));
    case abi::Scalar::kInt:
      return format.empty() ? std::to_string(number)
                            : number_text(type, static_cast<double>(number), format);
    default:
      return number_text(type, std::bit_cast<double>(bits), format);
  }
}

std::string to_json(const Alert& a) {
  Json json;
  json["schema"] = "reflex.alert/1";
  json["id"] = a.id;
  json["rule"] = a.rule;
  json["state"] = a.state;
  json["reason"] = a.reason;
  json["ts"] = to_rfc3339(EventTime{a.ts_ns});
  json["since"] = to_rfc3339(EventTime{a.since_ns});
  json["incident"] = a.incident;
  json["job"] = or_null(a.job);
  json["node"] = or_null(a.node);
  json["verdict"] = a.verdict;
  json["revision"] = a.revision;
  json["severity"] = or_null(a.severity);
  json["labels"] = words(a.labels);
  json["annotations"] = words(a.annotations);
  return line(json);
}

std::string to_json(const ActionRequest& a) {
  Json json;
  json["schema"] = "reflex.action/1";
  json["alert"] = a.alert;
  json["rule"] = a.rule;
  json["action"] = a.action;
  json["args"] = Json::array();
  for (const auto& arg : a.args) json["args"].push_back(or_null(arg));
  json["mode"] = a.mode;
  json["outcome"] = a.outcome;
  json["reason"] = or_null(a.reason);
  json["ts"] = to_rfc3339(EventTime{a.ts_ns});
  return line(json);
}

}  // namespace reflex::policy
