// Conversion rules of events.md "Event" and language.md A2.
#include "runtime/stream/field_convert.h"

#include <algorithm>
#include <charconv>

#include "runtime/abi/gpu_address.h"
#include "runtime/base/check.h"
#include "runtime/base/time.h"

namespace reflex::stream {
namespace {

FieldPlan plan_field(const abi::KindSchema& kind, unsigned slot) {
  const abi::FieldSchema& field = kind.fields[slot];
  const abi::Type& type = field.type;
  FieldPlan plan;
  plan.is_key = field.is_key;
  plan.bound = type.array_bound;
  plan.enum_id = type.enum_id;
  const bool in_dedup = std::count(kind.dedup_slots.begin(), kind.dedup_slots.end(), slot) != 0;
  if (!field.used && !field.is_key && !kind.builtin && !in_dedup) return plan;
  switch (type.scalar) {
    case abi::Scalar::kError:
      break;
    case abi::Scalar::kBool:
      plan.form = FieldForm::kBool;
      break;
    case abi::Scalar::kInt:
      plan.form = FieldForm::kInt;
      break;
    case abi::Scalar::kReal:
    case abi::Scalar::kQuantity:
      plan.form = FieldForm::kReal;
      break;
    case abi::Scalar::kString:
      plan.form = FieldForm::kText;
      break;
    case abi::Scalar::kEnum:
      plan.form = type.enum_id == 0 ? FieldForm::kWord : FieldForm::kDeclaredWord;
      break;
    case abi::Scalar::kDuration:
      plan.form = FieldForm::kDuration;
      break;
    case abi::Scalar::kInstant:
      plan.form = FieldForm::kInstant;
      break;
    case abi::Scalar::kEntity:
      plan.form = type.gpu_index ? FieldForm::kIndex : FieldForm::kName;
      break;
    case abi::Scalar::kArray:
      plan.form = kind.builtin ? FieldForm::kNameArray : FieldForm::kArray;
      break;
  }
  return plan;
}

/// The text of a scalar inside `labels` or a name array; null has none.
bool scalar_text(const JsonValue& value, std::string_view& out) {
  switch (value.type) {
    case JsonType::kTrue:
      out = "true";
      return true;
    case JsonType::kFalse:
      out = "false";
      return true;
    case JsonType::kInt:
    case JsonType::kDecimal:
    case JsonType::kReal:
    case JsonType::kString:
      out = value.text;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool parse_integer(std::string_view text, int base, int64_t& out) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
    text.remove_prefix(2);
    base = 16;
  }
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, out, base);
  if (code == std::errc() && stop == end) return true;
  uint64_t wide = 0;  // registers use all 64 bits
  const auto [wide_stop, wide_code] = std::from_chars(text.data(), end, wide, base);
  if (wide_code != std::errc() || wide_stop != end) return false;
  out = base == 16 ? static_cast<int64_t>(wide) : INT64_MAX;
  return true;
}

FieldConverter::FieldConverter(std::shared_ptr<const abi::CompiledPack> pack)
    : pack_(std::move(pack)), symbols_(*pack_->symbols), other_(symbols_.intern("other")) {
  kinds_.resize(pack_->kinds.size());
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const abi::KindSchema& schema = pack_->kinds[k];
    RFX_CHECK(schema.fields.size() <= abi::kFieldsMax);
    for (unsigned slot = 0; slot < schema.fields.size(); ++slot) {
      kinds_[k].fields.push_back(plan_field(schema, slot));
      if (!schema.fields[slot].is_key) continue;
      kinds_[k].key_mask |= uint64_t{1} << slot;
      if (!schema.fields[slot].type.optional) kinds_[k].required_mask |= uint64_t{1} << slot;
    }
  }
}

SymbolId FieldConverter::declared_word(uint16_t enum_id, std::string_view word) {
  const SymbolId symbol = symbols_.intern(word);
  const std::vector<SymbolId>& known = pack_->enums[enum_id].symbols;
  return std::find(known.begin(), known.end(), symbol) != known.end() ? symbol : other_;
}

Converted FieldConverter::convert_name(const JsonValue& value, int64_t& out) {
  // A job or node that a source writes as a number (118) is the name "118".
  if (value.type != JsonType::kString && value.type != JsonType::kInt) return Converted::kBad;
  if (value.text.empty()) return Converted::kMissing;
  out = symbols_.intern(value.text);
  return Converted::kOk;
}

Converted FieldConverter::convert_index(const JsonValue& value, int64_t& out) {
  if (to_integer(value, out)) return Converted::kOk;
  if (value.type != JsonType::kString) return Converted::kBad;
  if (value.text.empty()) return Converted::kMissing;
  if (parse_integer(value.text, 10, out)) return Converted::kOk;
  const std::optional<int64_t> gpu = abi::gpu_from_pci(value.text);
  if (!gpu) return Converted::kBad;
  out = *gpu;
  return Converted::kOk;
}

bool FieldConverter::array_item(const JsonValue& item, bool names, int64_t& out) {
  if (!names && to_integer(item, out)) return true;
  std::string_view text;
  if (!names && item.type != JsonType::kString) return false;
  if (!scalar_text(item, text)) return false;
  out = symbols_.intern(text);
  return true;
}

Converted FieldConverter::convert_array(const FieldPlan& field, unsigned slot,
                                        const JsonValue& value, abi::Record& record, Slab& slab) {
  const bool is_object = value.type == JsonType::kObject;
  if ((!is_object && value.type != JsonType::kArray) || value.items == nullptr) {
    return Converted::kBad;
  }
  const bool names = field.form == FieldForm::kNameArray;
  const std::vector<JsonValue>& source = *value.items;
  items_.clear();
  if (is_object) {  // key, value, key, value: only labels come this way
    for (size_t i = 0; i + 1 < source.size(); i += 2) {
      if (source[i + 1].type == JsonType::kNull) continue;
      int64_t item = 0;
      if (!array_item(source[i + 1], true, item)) return Converted::kBad;
      items_.push_back(symbols_.intern(source[i].text));
      items_.push_back(item);
    }
  } else {
    for (const JsonValue& element : source) {
      int64_t item = 0;
      if (!array_item(element, names, item)) return Converted::kBad;
      items_.push_back(item);
    }
  }
  if (field.bound != 0 && items_.size() > field.bound) items_.resize(field.bound);
  record.slots()[slot] = reinterpret_cast<uint64_t>(slab.new_array(items_));
  record.present |= uint64_t{1} << slot;
  return Converted::kOk;
}

Converted FieldConverter::convert(const FieldPlan& field, unsigned slot, const JsonValue& value,
                                  abi::Record& record, Slab& slab) {
  if (value.type == JsonType::kNull || field.form == FieldForm::kSkip) return Converted::kMissing;
  int64_t integer = 0;
  double real = 0;
  Converted result = Converted::kBad;
  switch (field.form) {
    case FieldForm::kSkip:
      return Converted::kMissing;
    case FieldForm::kInt:
      if (to_integer(value, integer)) result = Converted::kOk;
      break;
    case FieldForm::kReal:
      if (!to_real(value, real)) return Converted::kBad;
      record.set_f64(slot, real);
      return Converted::kOk;
    case FieldForm::kName:
      result = convert_name(value, integer);
      break;
    case FieldForm::kIndex:
      result = convert_index(value, integer);
      break;
    case FieldForm::kText:
      if (value.type != JsonType::kString) return Converted::kBad;
      record.slots()[slot] = reinterpret_cast<uint64_t>(slab.new_text(value.text));
      record.present |= uint64_t{1} << slot;
      return Converted::kOk;
    case FieldForm::kWord:
    case FieldForm::kDeclaredWord:
      if (value.type != JsonType::kString) return Converted::kBad;
      integer = field.form == FieldForm::kWord ? symbols_.intern(value.text)
                                               : declared_word(field.enum_id, value.text);
      result = Converted::kOk;
      break;
    case FieldForm::kBool:
      if (value.type == JsonType::kTrue || value.type == JsonType::kFalse) {
        integer = value.type == JsonType::kTrue;
        result = Converted::kOk;
      } else if (value.type == JsonType::kInt && (value.i64 == 0 || value.i64 == 1)) {
        integer = value.i64;
        result = Converted::kOk;
      }
      break;
    case FieldForm::kDuration:
      if (value.type == JsonType::kString) {
        const std::optional<Duration> parsed = parse_duration(value.text);
        if (parsed) integer = parsed->ns;
        result = parsed ? Converted::kOk : Converted::kBad;
      } else if (to_scaled(value, kNsPerSecond, integer)) {
        result = Converted::kOk;
      }
      break;
    case FieldForm::kInstant:
      if (value.type == JsonType::kString) {
        const std::optional<EventTime> parsed = parse_rfc3339(value.text);
        if (parsed) integer = parsed->ns;
        result = parsed ? Converted::kOk : Converted::kBad;
      } else if (to_scaled(value, kNsPerMs, integer)) {
        result = Converted::kOk;
      }
      break;
    case FieldForm::kArray:
    case FieldForm::kNameArray:
      return convert_array(field, slot, value, record, slab);
  }
  if (result == Converted::kOk) record.set_i64(slot, integer);
  return result;
}

}  // namespace reflex::stream
