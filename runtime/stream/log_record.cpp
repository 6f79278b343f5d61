// Conversions of decoder blocks; a failed conversion leaves the field missing.
#include "runtime/stream/log_record.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "runtime/abi/gpu_address.h"
#include "runtime/base/time.h"

namespace reflex::stream {
namespace {

constexpr std::string_view kSeparators = " ,;\t\n(){}[]";

bool parse_real(std::string_view text, double& out) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, out);
  return code == std::errc() && stop == end && std::isfinite(out);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return out;
}

/// A number of `scale` units as an integer, rounded; false beyond 64 bits.
bool scaled(std::string_view text, double scale, int64_t& out) {
  int64_t integer = 0;
  if (parse_integer(text, 10, integer) && scale == std::floor(scale) && scale < 1e18) {
    return !__builtin_mul_overflow(integer, static_cast<int64_t>(scale), &out);
  }
  double real = 0;
  if (!parse_real(text, real)) return false;
  real = std::round(real * scale);
  if (!(std::abs(real) < 9.2e18)) return false;
  out = static_cast<int64_t>(real);
  return true;
}

bool parse_duration_text(std::string_view text, double scale, int64_t& out) {
  if (scale != 1.0) return scaled(text, scale, out);
  if (const std::optional<Duration> parsed = parse_duration(text); parsed) {
    out = parsed->ns;
    return true;
  }
  return scaled(text, static_cast<double>(kNsPerSecond), out);
}

bool parse_instant(std::string_view text, int64_t& out) {
  if (const std::optional<EventTime> parsed = parse_rfc3339(text); parsed) {
    out = parsed->ns;
    return true;
  }
  return scaled(text, static_cast<double>(kNsPerMs), out);
}

}  // namespace

LogRecordBuilder::LogRecordBuilder(std::shared_ptr<const abi::CompiledPack> pack, SymbolId node,
                                   const LogOptions& options)
    : pack_(std::move(pack)), converter_(pack_), node_(node) {
  for (const auto& [address, index] : options.gpu_map) {
    if (const std::optional<int64_t> gpu = abi::gpu_from_pci(address); gpu) gpu_map_[*gpu] = index;
  }
  for (const abi::KindSchema& kind : pack_->kinds) {
    int found = -1;
    for (size_t slot = 0; slot < kind.fields.size(); ++slot) {
      const abi::FieldSchema& field = kind.fields[slot];
      if (field.is_key && field.name == "node") found = static_cast<int>(slot);
    }
    node_slot_.push_back(found);
  }
}

abi::Record* LogRecordBuilder::build(const abi::DecoderLine& line,
                                     std::span<const std::string_view> groups, Slab& slab,
                                     std::string& missing_key) {
  const KindPlan& plan = converter_.kinds()[line.kind];
  abi::Record& record = *slab.new_record(static_cast<unsigned>(plan.fields.size()));
  record.kind = line.kind;
  const int node_slot = node_slot_[line.kind];
  if (node_slot >= 0) record.set_i64(static_cast<unsigned>(node_slot), node_);
  for (const abi::DecoderAssign& item : line.assigns) {
    const FieldPlan& field = plan.fields[item.slot];
    if (field.form == FieldForm::kSkip) continue;
    std::string_view text;
    if (item.group >= 0 && static_cast<size_t>(item.group) < groups.size()) {
      text = groups[static_cast<size_t>(item.group)];
    }
    assign(item, field, text, record, slab);
  }
  const uint64_t missing = plan.required_mask & ~record.present;
  if (missing == 0) return &record;
  missing_key = pack_->kinds[line.kind].fields[static_cast<size_t>(std::countr_zero(missing))].name;
  return nullptr;
}

void LogRecordBuilder::assign(const abi::DecoderAssign& assign, const FieldPlan& field,
                              std::string_view text, abi::Record& record, Slab& slab) {
  using From = abi::DecoderAssign::From;
  int64_t integer = 0;
  switch (assign.from) {
    case From::kGroup:
      if (!text.empty()) assign_group(assign, field, text, record, slab);
      return;
    case From::kConstantInt:
      if (field.form == FieldForm::kReal) {
        record.set_f64(assign.slot, static_cast<double>(assign.constant_int));
      } else {
        record.set_i64(assign.slot, assign.constant_int);
      }
      return;
    case From::kConstantReal:
      record.set_f64(assign.slot, assign.constant_real);
      return;
    case From::kConstantText:
      assign_constant_text(assign, field, record, slab);
      return;
    case From::kGpuAtGroup:
      if (gpu_at(text, integer)) record.set_i64(assign.slot, integer);
      return;
    case From::kNode:
      if (field.form == FieldForm::kText) {
        set_text(assign.slot, pack_->symbols->name(node_), record, slab);
      } else {
        record.set_i64(assign.slot, node_);
      }
      return;
    case From::kHexWords:
      assign_words(assign, field, text, record, slab);
      return;
  }
}

void LogRecordBuilder::assign_group(const abi::DecoderAssign& assign, const FieldPlan& field,
                                    std::string_view text, abi::Record& record, Slab& slab) {
  int64_t integer = 0;
  double real = 0;
  bool known = false;
  switch (field.form) {
    case FieldForm::kSkip:
      return;
    case FieldForm::kText:
      set_text(assign.slot, text, record, slab);
      return;
    case FieldForm::kArray:
    case FieldForm::kNameArray:
      assign_words(assign, field, text, record, slab);
      return;
    case FieldForm::kReal:
      if (parse_real(text, real)) record.set_f64(assign.slot, real * assign.scale);
      return;
    case FieldForm::kWord:
      integer = converter_.symbols().intern(lower_case(text));
      known = true;
      break;
    case FieldForm::kDeclaredWord:
      integer = converter_.declared_word(field.enum_id, lower_case(text));
      known = true;
      break;
    case FieldForm::kName:
      integer = converter_.symbols().intern(text);
      known = true;
      break;
    case FieldForm::kBool: {
      const std::string word = lower_case(text);
      known = word == "true" || word == "false" || word == "1" || word == "0" || word == "yes" ||
              word == "no";
      integer = word == "true" || word == "1" || word == "yes";
      break;
    }
    case FieldForm::kIndex:
      known = parse_integer(text, assign.base, integer) || gpu_at(text, integer);
      known = known && integer >= assign.int_min && integer <= assign.int_max;
      break;
    case FieldForm::kInt:
      known = assign.scale != 1.0 ? scaled(text, assign.scale, integer)
                                  : parse_integer(text, assign.base, integer);
      known = known && integer >= assign.int_min && integer <= assign.int_max;
      break;
    case FieldForm::kDuration:
      known = parse_duration_text(text, assign.scale, integer);
      break;
    case FieldForm::kInstant:
      known = parse_instant(text, integer);
      break;
  }
  if (known) record.set_i64(assign.slot, integer);
}

void LogRecordBuilder::assign_constant_text(const abi::DecoderAssign& assign,
                                            const FieldPlan& field, abi::Record& record,
                                            Slab& slab) {
  switch (field.form) {
    case FieldForm::kText:
      set_text(assign.slot, assign.constant_text, record, slab);
      return;
    case FieldForm::kDeclaredWord:
      record.set_i64(assign.slot, converter_.declared_word(field.enum_id, assign.constant_text));
      return;
    case FieldForm::kWord:
    case FieldForm::kName:
      record.set_i64(assign.slot, converter_.symbols().intern(assign.constant_text));
      return;
    default:
      assign_group(assign, field, assign.constant_text, record, slab);
      return;
  }
}

void LogRecordBuilder::assign_words(const abi::DecoderAssign& assign, const FieldPlan& field,
                                    std::string_view text, abi::Record& record, Slab& slab) {
  words_.clear();
  while (!text.empty() && (field.bound == 0 || words_.size() < field.bound)) {
    const size_t start = text.find_first_not_of(kSeparators);
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::string_view word = text.substr(0, text.find_first_of(kSeparators));
    text.remove_prefix(word.size());
    const bool hex = assign.base == 16 || word.size() == 8 ||
                     word.find_first_of("abcdefABCDEF") != std::string_view::npos;
    int64_t value = 0;
    if (!parse_integer(word, hex ? 16 : 10, value)) break;  // a cut line: keep what is whole
    words_.push_back(value);
  }
  if (words_.empty()) return;
  record.slots()[assign.slot] = reinterpret_cast<uint64_t>(slab.new_array(words_));
  record.present |= uint64_t{1} << assign.slot;
}

bool LogRecordBuilder::gpu_at(std::string_view address, int64_t& out) const {
  const std::optional<int64_t> gpu = abi::gpu_from_pci(address);
  if (!gpu) return false;
  const auto found = gpu_map_.find(*gpu);
  out = found == gpu_map_.end() ? *gpu : found->second;
  return true;
}

void LogRecordBuilder::set_text(unsigned slot, std::string_view text, abi::Record& record,
                                Slab& slab) {
  record.slots()[slot] = reinterpret_cast<uint64_t>(slab.new_text(text));
  record.present |= uint64_t{1} << slot;
}

}  // namespace reflex::stream
