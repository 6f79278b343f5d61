// See the header.
#include "runtime/stream/template_reader.h"

#include <algorithm>
#include <bit>

#include "runtime/base/time.h"

namespace reflex::stream {
namespace {
constexpr unsigned kPatienceMax = 1024;  // Why: learning again costs about ten lines
// Why: bounds what a stream with ever new key orders can make us remember.
constexpr size_t kPrefixesMax = 1024;

/// Of epoch milliseconds.
bool set_time(int64_t ms, int64_t& out_ns) {
  if (ms < 0 || ms > INT64_MAX / kNsPerMs) return false;
  out_ns = ms * kNsPerMs;
  return true;
}

}  // namespace

TemplateReader::TemplateReader(RecordBuilder& builder)
    : builder_(&builder),
      symbols_(&builder.converter().symbols()),
      templates_(builder.wire_kind_count()) {}

abi::Record* TemplateReader::read(const char*& line, const LineOrigin& origin, Slab& slab) {
  if (last_ == nullptr) return nullptr;
  uint32_t kind = 0;
  name_count_ = 0;
  arrival_ns_ = INT64_MAX;
  const char* p = read_prefix(line, kind);
  if (p == nullptr) return nullptr;
  Template& own = templates_[kind];
  if (own.prefix != last_->prefix) return nullptr;
  abi::Record& record = *slab.new_unset_record(own.slot_count);
  record.kind = builder_->kind_of(kind);
  record.source = origin.source;
  record.seq = origin.line;
  if (store_prefix(own, record, slab)) {
    p = read_rest(own, p, record, slab);
    if (p != nullptr) builder_->set_constants(kind, record, slab);
    if (p != nullptr && static_cast<size_t>(p - line) <= kLineBytesMax && finish(own, record)) {
      own.misses = 0;
      last_ = &own;
      line = p;
      return &record;
    }
  }
  slab.undo(record);
  return nullptr;
}

/// Tokens up to the kind, which decides what becomes of them. Returns what follows its value.
const char* TemplateReader::read_prefix(const char* p, uint32_t& kind) {
  const Step* steps = last_->steps.data();
  for (size_t i = 0; i < last_->kind_step; ++i) {
    const Step& step = steps[i];
    if (!step.matches(p)) return nullptr;
    p += step.size;
    JsonValue& token = tokens_[i];
    if (step.is_string) {
      const char* end = find_string_end(p);
      if (end == nullptr) return nullptr;
      if (step.action == Action::kName) {
        if (end == p) return nullptr;
        add_name(p, end, 0);
      } else {
        token.type = JsonType::kString;
        token.text = {p, static_cast<size_t>(end - p)};
      }
      p = end + 1;
    } else {
      const char* end = scan_integer(p, token.i64);
      if (end != nullptr && static_cast<unsigned char>(*end | 0x20) != 'e' && *end != '.') {
        token.type = JsonType::kInt;
        token.text = {p, static_cast<size_t>(end - p)};
      } else {
        end = scan_value(p, token);
        if (end == nullptr || token.type == JsonType::kString) return nullptr;
      }
      p = end;
    }
  }
  const Step& step = steps[last_->kind_step];
  if (!step.matches(p)) return nullptr;
  p += step.size;
  const char* end = find_string_end(p);
  if (end == nullptr) return nullptr;
  kind = builder_->find_kind({p, static_cast<size_t>(end - p)});
  return kind == NameIndex::kAbsent ? nullptr : end + 1;
}

bool TemplateReader::store_prefix(const Template& own, abi::Record& record, Slab& slab) {
  size_t name = 0;
  for (size_t i = 0; i < own.kind_step; ++i) {
    const Step& step = own.steps[i];
    switch (step.action) {
      case Action::kSkip:
        break;
      case Action::kName:
        names_[name++].slot = step.slot;
        record.present |= uint64_t{1} << step.slot;
        break;
      case Action::kInt:
        if (tokens_[i].type != JsonType::kInt) return false;
        record.set_i64(step.slot, tokens_[i].i64);
        break;
      case Action::kTime:
        if (tokens_[i].type == JsonType::kInt && set_time(tokens_[i].i64, record.ts_ns)) break;
        [[fallthrough]];
      default:
        if (!store(step, tokens_[i], record, slab)) return false;
    }
  }
  return true;
}

/// The values after the kind, and the end of the line; returns the byte after the '\n'.
const char* TemplateReader::read_rest(const Template& own, const char* p, abi::Record& record,
                                      Slab& slab) {
  const Step* step = own.steps.data() + own.kind_step + 1;
  const Step* end_of_line = own.steps.data() + own.steps.size() - 1;
  for (; step != end_of_line; ++step) {
    if (!step->matches(p)) return nullptr;
    p += step->size;
    const char* end = nullptr;
    if (step->is_string) {
      end = find_string_end(p);
      if (end == nullptr) return nullptr;
      if (step->action == Action::kName) {
        if (end == p) return nullptr;
        add_name(p, end, step->slot);
        record.present |= uint64_t{1} << step->slot;
      } else if (step->action != Action::kSkip) {
        JsonValue value;
        value.type = JsonType::kString;
        value.text = {p, static_cast<size_t>(end - p)};
        if (!store(*step, value, record, slab)) return nullptr;
      }
      p = end + 1;
      continue;
    }
    if (step->action == Action::kInt) {
      int64_t value = 0;
      end = scan_integer(p, value);
      if (end != nullptr) record.set_i64(step->slot, value);
    } else if (step->action == Action::kTime) {
      int64_t value = 0;
      end = scan_integer(p, value);
      // A fraction after it fits no literal: the other readers take such times.
      if (end != nullptr && !set_time(value, record.ts_ns)) return nullptr;
    } else if (step->action == Action::kArrival) {
      int64_t value = 0;
      end = scan_integer(p, value);
      if (end != nullptr && !set_time(value, arrival_ns_)) return nullptr;
    } else if (step->action == Action::kReal) {
      double value = 0;
      end = scan_real(p, value);
      if (end != nullptr) record.set_f64(step->slot, value);
    }
    if (end == nullptr) {
      JsonValue value;
      end = scan_value(p, value);
      if (end == nullptr || value.type == JsonType::kString) return nullptr;
      if (!store(*step, value, record, slab)) return nullptr;
    }
    p = end;
  }
  return step->matches(p) ? p + step->size : nullptr;
}

/// Any action on a token; false leaves the line to the other readers.
bool TemplateReader::store(const Step& step, const JsonValue& value, abi::Record& record,
                           Slab& slab) {
  switch (step.action) {
    case Action::kSkip:
      return true;
    case Action::kKind:
      return false;
    case Action::kTime:
      return RecordBuilder::read_time(&value, record.ts_ns) == Reject::kCount;
    case Action::kArrival:
      return RecordBuilder::read_time(&value, arrival_ns_) == Reject::kCount;
    case Action::kId:
      if (value.type != JsonType::kString || value.text.empty()) return false;
      record.id = slab.new_text(value.text);
      return true;
    case Action::kSource:
      if (value.type != JsonType::kString || value.text.empty()) return false;
      record.source = symbols_->intern(value.text);
      return true;
    default: {
      const FieldPlan& field = builder_->converter().kinds()[record.kind].fields[step.slot];
      return builder_->converter().convert(field, step.slot, value, record, slab) !=
             Converted::kBad;
    }
  }
}

/// Names, absent slots and the keys that must be there.
bool TemplateReader::finish(const Template& own, abi::Record& record) {
  if ((own.required & ~record.present) != 0) return false;
  for (size_t i = 0; i < name_count_; ++i) {
    const Name& name = names_[i];
    record.slots()[name.slot] = symbols_->intern({name.data, name.size}, name.probe);
  }
  for (uint64_t absent = own.slots & ~record.present; absent != 0; absent &= absent - 1) {
    record.slots()[std::countr_zero(absent)] = 0;
  }
  builder_->settle_time(record, arrival_ns_);
  return true;
}

void TemplateReader::observe(const PredictiveReader& line) {
  Template& own = templates_[line.kind()];
  if (own.misses++ >= own.patience) {
    const unsigned patience = std::clamp(2 * own.patience, 2u, kPatienceMax);
    own = {};
    if (last_ == &own) last_ = nullptr;
    learn(line, own);
    own.patience = patience;
  }
  if (own.prefix != kNoPrefix) last_ = &own;
}

void TemplateReader::learn(const PredictiveReader& line, Template& own) {
  const auto members = line.members();
  uint64_t slots = 0;
  unsigned reserved = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const JsonValue& member = members[i];
    Step step;
    if (!set_literal(line.before(i), member.type == JsonType::kString, step)) return;
    if (!plan_step(line.kind(), member, step)) return;
    // A key that stands twice: the last one counts; the other readers know how.
    const int slot = builder_->slot_of(line.kind(), member.key);
    const uint64_t slot_bit = slot >= 0 ? uint64_t{1} << slot : 0;
    const uint16_t role = builder_->role_of(line.kind(), member.key);
    const unsigned key_bit = role < kFirstFieldKey ? 1u << role & ~1u : 0;
    if ((slots & slot_bit) != 0 || (reserved & key_bit) != 0) return;
    slots |= slot_bit;
    reserved |= key_bit;
    if (slot < 0 && (role == kKeyUnknown || role >= kFirstFieldKey)) ++own.unknown;
    if (member.key == kKeyKind) own.kind_step = i;
    own.steps.push_back(step);
  }
  Step end;
  if ((reserved >> kKeyTs & 1u) == 0 || !set_literal(line.after(), false, end)) return;
  own.steps.push_back(end);
  const KindPlan& plan = builder_->converter().kinds()[builder_->kind_of(line.kind())];
  own.slot_count = static_cast<unsigned>(plan.fields.size());
  for (unsigned slot = 0; slot < own.slot_count; ++slot) own.slots |= uint64_t{1} << slot;
  own.required = plan.required_mask;
  own.prefix = prefix_id(own);
}

bool TemplateReader::set_literal(std::string_view bytes, bool is_string, Step& step) {
  const size_t size = bytes.size() + is_string;
  if (size > kLiteralMax) return false;
  std::copy(bytes.begin(), bytes.end(), step.bytes.begin());
  if (is_string) step.bytes[bytes.size()] = '"';
  step.size = static_cast<uint8_t>(size);
  step.mask = size == 32 ? ~uint32_t{0} : (uint32_t{1} << size) - 1;
  step.is_string = is_string;
  return true;
}

/// False when the member needs the other readers.
bool TemplateReader::plan_step(uint32_t kind, const JsonValue& member, Step& step) const {
  const int slot = builder_->slot_of(kind, member.key);
  if (slot < 0) {
    switch (builder_->role_of(kind, member.key)) {
      case kKeyTs:
        step.action = Action::kTime;
        return true;
      case kKeyArrival:
        step.action = Action::kArrival;
        return true;
      case kKeyKind:
        step.action = Action::kKind;
        return true;
      case kKeyId:
        step.action = Action::kId;
        return step.is_string;
      case kKeySource:
        step.action = Action::kSource;
        return step.is_string;
      default:
        return true;
    }
  }
  if (member.key < kFirstFieldKey) return false;  // an envelope member that is a field too
  step.slot = static_cast<uint8_t>(slot);
  const FieldForm form = builder_->converter().kinds()[builder_->kind_of(kind)].fields[step.slot].form;
  step.action = Action::kConvert;
  if (form == FieldForm::kSkip) step.action = Action::kSkip;
  if (form == FieldForm::kInt && !step.is_string) step.action = Action::kInt;
  if (form == FieldForm::kReal && !step.is_string) step.action = Action::kReal;
  if (form == FieldForm::kName && step.is_string) step.action = Action::kName;
  return true;
}

uint32_t TemplateReader::prefix_id(const Template& own) {
  const auto same = [](const Step& a, const Step& b) {
    // Names are told from other strings, because read_prefix hashes them.
    return a.bytes == b.bytes && a.size == b.size && a.is_string == b.is_string &&
           (a.action == Action::kName) == (b.action == Action::kName);
  };
  const auto end = own.steps.begin() + static_cast<ptrdiff_t>(own.kind_step) + 1;
  for (size_t i = 0; i < prefixes_.size(); ++i) {
    if (std::equal(own.steps.begin(), end, prefixes_[i].begin(), prefixes_[i].end(), same)) {
      return static_cast<uint32_t>(i) + 1;
    }
  }
  if (prefixes_.size() == kPrefixesMax) return kNoPrefix;
  prefixes_.emplace_back(own.steps.begin(), end);
  return static_cast<uint32_t>(prefixes_.size());
}

}  // namespace reflex::stream
