// Entities and thresholds as JSON: see engine_words.h.
#include "runtime/serve/http/engine_words.h"

#include <array>
#include <cmath>
#include <cstring>

#include "runtime/abi/gpu_address.h"
#include "runtime/base/time.h"

namespace reflex::serve {
namespace {

std::string_view unit_word(const abi::Type& type) {
  if (type.scalar == abi::Scalar::kDuration) return "s";
  switch (type.unit) {
    case abi::Unit::kCelsius:
    case abi::Unit::kCelsiusDelta:
      return "celsius";
    case abi::Unit::kWatt:
      return "watt";
    case abi::Unit::kHertz:
      return "hertz";
    case abi::Unit::kByte:
      return "byte";
    case abi::Unit::kBitPerSecond:
      return "bit/s";
    case abi::Unit::kRatio:
      return "ratio";
    case abi::Unit::kCount:
      return "count";
    case abi::Unit::kNone:
      break;
  }
  return "";
}

double as_f64(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The bits of a parameter in its slot form.
Json value_json(const abi::CompiledPack& pack, const abi::Type& type, uint64_t bits) {
  switch (type.scalar) {
    case abi::Scalar::kBool:
      return bits != 0;
    case abi::Scalar::kReal:
    case abi::Scalar::kQuantity:
      return number_json(as_f64(bits));
    case abi::Scalar::kDuration:
      return static_cast<double>(static_cast<int64_t>(bits)) / 1e9;
    case abi::Scalar::kEnum:
      return std::string(pack.symbols->name(static_cast<SymbolId>(bits)));
    case abi::Scalar::kInt:
    case abi::Scalar::kInstant:
    case abi::Scalar::kEntity:
      return static_cast<int64_t>(bits);
    case abi::Scalar::kString:
    case abi::Scalar::kArray:
    case abi::Scalar::kError:
      break;  // no parameter has these
  }
  return Json();
}

Json place_json(const abi::SourceRef& where) {
  if (where.file.empty()) return Json();
  return Json{{"file", where.file}, {"line", where.line}};
}

/// What a sketch of the feature holds, in the unit of the parameter.
Json baseline_json(const adapt::QuantileSketch& sketch, double scale) {
  constexpr std::array kQuantiles{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
  Json points = Json::array();
  for (const double q : kQuantiles) {
    if (const auto x = sketch.quantile(q)) points.push_back({q, number_json(*x * scale)});
  }
  return Json{{"samples", std::llround(sketch.samples())}, {"quantiles", points}};
}

Json adaptive_json(const adapt::Thresholds& thresholds, const abi::TableSnapshot& tables,
                   const abi::CompiledPack& pack, abi::ClassId c, abi::AdaptiveId a) {
  const abi::AdaptiveSettings& s = pack.classes[c].adaptive[a];
  const abi::Type& type = pack.params[pack.adaptives[a].param].type;
  const double scale = type.scalar == abi::Scalar::kDuration ? 1e-9 : 1;
  const abi::Value value = tables.row(c)[a];
  const abi::TableOrigin origin = tables.origin(a, c, kNoSymbol);
  const abi::FeatureId feature = pack.adaptives[a].feature;
  Json out;
  out["value"] = value.known == 0 ? Json() : value_json(pack, type, value.bits);
  out["origin"] = {
      {"from", origin_word(origin.from)},
      {"quantile", origin.quantile},
      {"samples", origin.samples},
      {"from_tail", origin.from_tail},
      {"clamped", origin.clamped},
      {"shifted",
       origin.shifted_ns == kNoTimeNs ? Json() : Json(to_rfc3339(EventTime{origin.shifted_ns}))},
      {"where", place_json(s.where)}};
  out["settings"] = {{"quantile", s.quantile},
                     {"default", number_json(s.initial * scale)},
                     {"floor", number_json(s.floor * scale)},
                     {"ceiling", number_json(s.ceiling * scale)},
                     {"min_samples", s.min_samples}};
  out["feature"] = feature < pack.features.size() ? Json(pack.features[feature].name) : Json();
  out["baseline"] = baseline_json(thresholds.baseline(c, a), scale);
  return out;
}

}  // namespace

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string entity_words(const abi::CompiledPack& pack, const abi::EntityKey& entity) {
  const auto& keys = pack.entity_kinds[entity.kind].keys;
  std::string out;
  for (size_t i = 0; i < entity.count && i < keys.size(); ++i) {
    if (i > 0) out += '/';
    const uint64_t value = entity.values[i];
    // As in verdicts (attribution/evidence_field.cpp): a gpu is an index or a PCI identity, links
    // and ranks are numbers, everything else is a name.
    if (keys[i] == "gpu" || keys[i] == "gpu_index") {
      out += abi::gpu_to_text(static_cast<int64_t>(value));
    } else if (keys[i] == "link" || keys[i] == "rank" || value >= pack.symbols->size()) {
      out += std::to_string(static_cast<int64_t>(value));
    } else {
      out += pack.symbols->name(static_cast<SymbolId>(value));
    }
  }
  return out;
}

double adaptive_number(const abi::CompiledPack& pack, abi::AdaptiveId adaptive,
                       const abi::Value& value) {
  const abi::ParamId param = pack.adaptives[adaptive].param;
  if (param >= pack.params.size()) return value.f64();
  const abi::Type& type = pack.params[param].type;
  if (abi::slot_form(type) == abi::SlotForm::kF64) return value.f64();
  const auto number = static_cast<double>(value.i64());
  return type.scalar == abi::Scalar::kDuration ? number / 1e9 : number;
}

std::string_view origin_word(abi::TableOrigin::From from) {
  switch (from) {
    case abi::TableOrigin::From::kNode:
      return "node";
    case abi::TableOrigin::From::kClass:
      return "class";
    case abi::TableOrigin::From::kModel:
      return "parent";
    case abi::TableOrigin::From::kFleet:
      return "fleet";
    case abi::TableOrigin::From::kStatic:
      break;
  }
  return "profile";
}

Json class_json(const adapt::Thresholds& thresholds, const abi::TableSnapshot& tables,
                const abi::CompiledPack& pack, abi::ClassId hw_class) {
  const abi::ClassPlan& plan = pack.classes[hw_class];
  Json parameters = Json::array();
  for (abi::ParamId p = 0; p < pack.params.size(); ++p) {
    if (p >= plan.params_known.size() || plan.params_known[p] == 0) continue;
    const abi::ParamSchema& param = pack.params[p];
    Json row{{"parameter", param.name}, {"unit", unit_word(param.type)}};
    abi::AdaptiveId a = 0;
    while (a < pack.adaptives.size() && pack.adaptives[a].param != p) ++a;
    if (a < pack.adaptives.size() && a < plan.adaptive.size()) {
      row.update(adaptive_json(thresholds, tables, pack, hw_class, a));
    } else {
      row["value"] = value_json(pack, param.type, plan.params[p]);
      row["origin"] = {{"from", "profile"}, {"where", place_json(plan.param_where[p])}};
    }
    parameters.push_back(std::move(row));
  }
  return Json{{"class", plan.name},
              {"parent", pack.classes[plan.parent].name},
              {"abstract", plan.abstract_class},
              {"parameters", parameters}};
}

}  // namespace reflex::serve
