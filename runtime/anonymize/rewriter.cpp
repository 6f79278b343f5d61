// The walk over one document; see rewriter.h. `Json::value_t::discarded` marks what is dropped.
#include "runtime/anonymize/rewriter.h"

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/time.h"

namespace reflex::anonymize {
namespace {

using Json = Rewriter::Json;

// Why: words kept on purpose are a vocabulary; more than this is no vocabulary any more, and the
// check falls back to the strict side (it then reports more).
constexpr size_t kKeptWordsMax = 100'000;

Json nothing() { return Json(Json::value_t::discarded); }

/// A number as an instant: ns in one of its unit; 0 when it is no plausible instant (2001..2100).
double epoch_unit_ns(double v) {
  for (const double unit : {1e9, 1e6, 1e3, 1.0}) {
    const double seconds = v * unit / 1e9;
    if (seconds >= 978307200.0 && seconds < 4102444800.0) return unit;
  }
  return 0;
}

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

}  // namespace

Json Rewriter::drop(const std::string& key) {
  if (rewriting_) ++dropped_[field_of(key).use != FieldUse::kUnknown || is_word(key) ? key : "?"];
  return nothing();
}

Json Rewriter::document(const Json& in) { return object(in, false); }

std::string Rewriter::key_text(const std::string& key, bool label) {
  if (label && is_site_key(key)) return book_.of(NameKind::kLabelKey, key);
  if (!rewriting_) return key;
  if (field_of(key).use != FieldUse::kUnknown) return key;
  const NameKind kind = book_.known(key);
  if (kind != NameKind::kCount) return book_.of(kind, key);
  return is_word(key) ? key : "";
}

Json Rewriter::object(const Json& in, bool labels) {
  Json out = Json::object();
  for (const auto& [key, member] : in.items()) {
    Json v = value(key, labels ? label_of(key) : field_of(key), member);
    if (v.is_discarded()) continue;
    const std::string written = key_text(key, labels);
    if (written.empty()) {
      drop(key);
      continue;
    }
    out[written] = std::move(v);
  }
  return out;
}

Json Rewriter::value(const std::string& key, Field field, const Json& in) {
  if (field.use == FieldUse::kText) return in.is_null() ? in : drop(key);
  if (in.is_object()) return object(in, field.use == FieldUse::kLabels);
  if (in.is_array()) {
    Json out = Json::array();
    for (const Json& item : in) {
      Json v = value(key, field, item);
      if (!v.is_discarded()) out.push_back(std::move(v));
    }
    return out;
  }
  if (in.is_null() || in.is_boolean()) return in;
  switch (field.use) {
    case FieldUse::kName:
      return name(field, in, key);
    case FieldUse::kTime:
      return time(in);
    case FieldUse::kWord:
      return in.is_string() ? word_text(key, in.get<std::string>()) : in;
    case FieldUse::kPlace:
      return place(key, in);
    case FieldUse::kLabels:  // "key=value" pairs
      return in.is_string() ? Json(label_pair(in.get<std::string>())) : in;
    case FieldUse::kText:
    case FieldUse::kUnknown:
      break;
  }
  return unknown(key, in);
}

Json Rewriter::name(Field field, const Json& in, const std::string& key) {
  if (in.is_string()) return name_text(field, key, in.get<std::string>());
  // A number is a name where the field holds one (Slurm's job 12345), else an index.
  const bool index = field.kind == NameKind::kNic || field.kind == NameKind::kStorage ||
                     field.kind == NameKind::kLabel;
  return index ? in : Json(book_.of(field.kind, in.dump()));
}

Json Rewriter::name_text(Field field, const std::string& key, const std::string& text) {
  if (text.empty()) return Json(text);
  if (field.kind == NameKind::kLabel && is_plain_value(text)) return Json(text);
  if (const size_t comma = text.find(','); comma != std::string::npos) {
    std::string out;  // a list of names in one string: joins with the single ones must hold
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      const Json part = name_text(field, key, text.substr(at, end - at));
      out += (at > 0 ? "," : "") + part.get<std::string>();
      at = end + 1;
    }
    return Json(out);
  }
  // A peer, or an address, may be the name of something else that is known.
  const NameKind known = rewriting_ ? book_.known(text) : NameKind::kCount;
  const bool loose = key == "peer" || key == "peers" || key == "src" || key == "dst";
  return Json(book_.of(loose && known != NameKind::kCount ? known : field.kind, text));
}

Json Rewriter::time(const Json& in) {
  const int64_t shift = book_.pseudonyms().shift_ns();
  if (in.is_string()) {
    const auto t = parse_rfc3339(in.get<std::string>());
    if (!t) return drop("time");
    // Alertmanager's "never" (year 1) is no instant.
    return t->ns <= 0 ? in : Json(to_rfc3339(EventTime{t->ns + shift}));
  }
  const double unit = epoch_unit_ns(in.get<double>());
  if (unit == 0) return in;  // seconds since something else: a duration, kept
  if (in.is_number_integer()) {
    return Json(in.get<int64_t>() + shift / static_cast<int64_t>(unit));
  }
  return Json(in.get<double>() + static_cast<double>(shift) / unit);
}

Json Rewriter::place(const std::string& key, const Json& in) {
  if (!in.is_string()) return in;
  const std::string text = in.get<std::string>();
  const bool address = text.size() <= 18 && !text.empty() &&
                       text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
  return address ? in : name_text({FieldUse::kName, NameKind::kSerial}, key, text);
}

std::string Rewriter::label_pair(const std::string& text) {
  const size_t equal = text.find('=');
  if (equal == std::string::npos) return book_.of(NameKind::kLabel, text);
  const std::string key = text.substr(0, equal);
  const Json v = value(key, label_of(key), Json(text.substr(equal + 1)));
  const std::string written = key_text(key, true);
  return written + "=" + (v.is_string() ? v.get<std::string>() : "");
}

/// Kept; but a name in it ("storage st-7 slow") is replaced where it stands.
Json Rewriter::word_text(const std::string& key, const std::string& text) {
  if (text.empty()) return Json(text);
  if (!is_word(text)) return drop(key);
  if (!rewriting_) return Json(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const std::string token = text.substr(at, end - at);
    const NameKind kind = token.empty() ? NameKind::kCount : book_.known(token);
    out += kind == NameKind::kCount ? token : book_.of(kind, token);
    if (end < text.size()) out += text[end++];
    at = end;
  }
  if (kept_.size() < kKeptWordsMax) kept_.insert(out);
  return Json(out);
}

Json Rewriter::unknown(const std::string& key, const Json& in) {
  if (in.is_number()) return in;
  const std::string text = in.get<std::string>();
  if (parse_rfc3339(text)) return time(in);
  if (keep_fields_.count(key) != 0) return word_text(key, text);
  if (!rewriting_) return Json(text);
  const NameKind kind = book_.known(text);
  return kind == NameKind::kCount ? drop(key) : Json(book_.of(kind, text));
}

}  // namespace reflex::anonymize
