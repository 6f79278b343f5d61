// Types as they are written in declarations, and their text for messages.
#include <algorithm>
#include <array>
#include <limits>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using abi::Unit;

struct IntRow {
  std::string_view name;
  int64_t lo;
  int64_t hi;
};
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr std::array<IntRow, 10> kInts{{{"u8", 0, 255},
                                        {"u16", 0, 65535},
                                        {"u32", 0, 4294967295},
                                        {"u64", 0, kMax},  // values above 2^63 saturate (abi)
                                        {"i8", -128, 127},
                                        {"i16", -32768, 32767},
                                        {"i32", -2147483648LL, 2147483647},
                                        {"i64", kMin, kMax},
                                        {"int", kMin, kMax},
                                        {"uint", 0, kMax}}};

// Source: abi::Type::array_bound is 16 bits.
constexpr uint32_t kArrayMax = 65535;

Type scalar_type(Scalar scalar) {
  Type t;
  t.scalar = scalar;
  return t;
}

std::string_view unit_text(Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return "number";
    case Unit::kCelsius:
      return "celsius";
    case Unit::kCelsiusDelta:
      return "celsius difference";
    case Unit::kWatt:
      return "watt";
    case Unit::kHertz:
      return "hertz";
    case Unit::kByte:
      return "byte";
    case Unit::kBitPerSecond:
      return "bit/s";
    case Unit::kRatio:
      return "ratio";
    case Unit::kCount:
      return "count";
  }
  return "?";
}

std::optional<Type> named_type(const State& s, const std::string& name) {
  if (name == "bool") return bool_type();
  if (name == "f64" || name == "f32" || name == "real" || name == "float") return real_type();
  if (name == "string" || name == "text") return scalar_type(Scalar::kString);
  if (name == "word") return scalar_type(Scalar::kEnum);
  if (name == "duration") return duration_type();
  if (name == "instant") return scalar_type(Scalar::kInstant);
  if (name == "number") return real_type();
  if (const auto entity = entity_type_id(s, name)) {
    Type t = scalar_type(Scalar::kEntity);
    t.entity = *entity;
    const std::string& base = s.pack.entity_types[*entity].name;
    t.gpu_index = base == "gpu" || base == "link" || base == "rank";
    return t;
  }
  const auto unit = parse_unit(name);
  if (unit && unit->type.scalar == Scalar::kQuantity && unit->multiply == 1 &&
      (unit->divide == 1 || name == "percent" || name == "%")) {
    return unit->type;
  }
  return std::nullopt;
}

std::vector<std::string> type_words(const State& s) {
  std::vector<std::string> words{"bool",    "f64",  "string", "word",    "duration",
                                 "instant", "enum", "array",  "celsius", "watt",
                                 "hertz",   "byte", "bit/s",  "ratio",   "per"};
  for (const IntRow& row : kInts) words.emplace_back(row.name);
  for (const auto& e : s.pack.entity_types) words.push_back(e.name);
  return words;
}

}  // namespace

std::optional<uint16_t> entity_type_id(const State& s, const std::string& name) {
  const std::string wanted = name == "gpu_index" ? "gpu" : name;
  for (size_t i = 0; i < s.pack.entity_types.size(); ++i) {
    if (s.pack.entity_types[i].name == wanted) return static_cast<uint16_t>(i);
  }
  return std::nullopt;
}

uint16_t enum_id(State& s, const std::vector<std::string>& words) {
  std::string key;
  for (const std::string& w : words) key += w + "\n";
  const auto found = s.enum_ids.find(key);
  if (found != s.enum_ids.end()) return found->second;
  const auto id = static_cast<uint16_t>(s.pack.enums.size());
  abi::EnumWords row;
  row.words = words;
  for (const std::string& w : words) row.symbols.push_back(s.in.symbols->intern(w));
  s.pack.enums.push_back(std::move(row));
  s.enum_ids[key] = id;
  return id;
}

std::optional<Type> resolve_type(State& s, const ast::TypeRef& ref, FieldRange* range) {
  if (range != nullptr) *range = {kMin, kMax, ref.span};
  auto set = [&](Type t) {
    t.optional = ref.optional;
    return std::optional(t);
  };
  for (const IntRow& row : kInts) {
    if (row.name != ref.name) continue;
    if (range != nullptr) *range = {row.lo, row.hi, ref.span};
    return set(int_type());
  }
  if (ref.name == "enum") {
    std::vector<std::string> words;
    for (const ast::Name& w : ref.enum_words) {
      if (std::find(words.begin(), words.end(), w.text) != words.end()) {
        s.report(Id::kDuplicateName, w.span, "the word '" + w.text + "' is in the enum twice");
        continue;
      }
      words.push_back(w.text);
    }
    Type t = scalar_type(Scalar::kEnum);
    t.enum_id = enum_id(s, words);
    return set(t);
  }
  if (ref.name == "array") {
    if (ref.element == nullptr) return std::nullopt;
    const auto element = resolve_type(s, *ref.element, nullptr);
    if (!element) return std::nullopt;
    if (abi::slot_form(*element) != abi::SlotForm::kI64) {
      s.report(Id::kUnknownType, ref.span, "an array holds integers, words or entities");
      return std::nullopt;
    }
    if (ref.bound > kArrayMax) {
      auto& d = s.report(Id::kNumberRange, ref.span,
                         "an array holds at most " + std::to_string(kArrayMax) + " elements");
      d.help = "send what is larger as several events";
      return std::nullopt;
    }
    Type t = *element;  // keeps the element's entity or enum
    t.scalar = Scalar::kArray;
    t.array_bound = static_cast<uint16_t>(ref.bound);
    return set(t);
  }
  if (ref.name == "per") return set(quantity_type(Unit::kCount, true));
  if (const auto t = named_type(s, ref.name)) {
    if (range != nullptr && t->scalar == Scalar::kBool) *range = {0, 1, ref.span};
    return set(*t);
  }
  auto& d = s.report(Id::kUnknownType, ref.span, "no type '" + ref.name + "'");
  suggest(d, ref.name, type_words(s), ref.span);
  if (d.help.empty()) {
    d.help = "there are: bool, int, u8 to u64, i8 to i64, f64, string, word, enum(a, b), duration, instant, "
             "quantities (celsius, watt, byte, ..), entities (node, gpu, job, ..), array<T, N>";
  }
  return std::nullopt;
}

bool is_number(const Type& t) {
  return t.scalar == Scalar::kInt || t.scalar == Scalar::kReal || t.scalar == Scalar::kQuantity;
}

bool integer_like(const Type& t) {
  return abi::slot_form(t) == abi::SlotForm::kI64 && t.scalar != Scalar::kError;
}

std::string to_text(const State& s, const Type& t) {
  switch (t.scalar) {
    case Scalar::kError:
      return "?";
    case Scalar::kBool:
      return "bool";
    case Scalar::kInt:
      return "integer";
    case Scalar::kReal:
      return "number";
    case Scalar::kString:
      return "string";
    case Scalar::kDuration:
      return "duration";
    case Scalar::kInstant:
      return "instant";
    case Scalar::kArray:
      return "array";
    case Scalar::kEntity:
      return s.pack.entity_types[t.entity].name;
    case Scalar::kEnum: {
      if (t.enum_id == 0) return "word";
      std::string text = "enum(";
      const auto& words = s.pack.enums[t.enum_id].words;
      for (size_t i = 0; i < words.size(); ++i) text += (i ? ", " : "") + words[i];
      return text + ")";
    }
    case Scalar::kQuantity: {
      std::string text(unit_text(t.unit));
      return t.per_time ? text + " per time" : text;
    }
  }
  return "?";
}

}  // namespace reflex::sema
