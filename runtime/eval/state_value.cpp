// PlanWriter, PlanReader: see state_value.h.
#include "runtime/eval/state_value.h"

#include <cstring>

namespace reflex::eval {
namespace {
// Why: Firing::events and RefRing hold at most 8.
constexpr uint64_t kRefsMax = 8;
}  // namespace

ValueForm form_of(const abi::Type& type) {
  if (type.scalar == abi::Scalar::kEnum) return ValueForm::kSymbol;
  if (type.scalar == abi::Scalar::kEntity && !type.gpu_index) return ValueForm::kSymbol;
  switch (abi::slot_form(type)) {
    case abi::SlotForm::kF64:
      return ValueForm::kReal;
    case abi::SlotForm::kText:
      return ValueForm::kText;
    case abi::SlotForm::kArray:
      return ValueForm::kArray;
    default:
      return ValueForm::kInteger;
  }
}

bool is_symbol(const abi::CompiledPack& pack, const abi::FeaturePlan& feature) {
  if (feature.op != abi::FeatureOp::kLast || feature.inputs.empty()) return false;
  const abi::ExprId value = feature.inputs.front().value;
  return value != abi::kNone32 && is_symbol(pack.exprs[value].type);
}

void PlanWriter::value(ValueForm form, uint64_t bits) {
  if (form == ValueForm::kSymbol) {
    out.symbol(static_cast<SymbolId>(bits));
  } else if (form == ValueForm::kReal) {
    out.f64(abi::Value{bits, 1}.f64());
  } else {
    out.i64(static_cast<int64_t>(bits));
  }
}

void PlanWriter::refs(const std::vector<abi::EventRef>& refs) {
  out.u64(refs.size());
  for (const abi::EventRef& ref : refs) {
    out.symbol(ref.source);
    out.u64(ref.seq);
    out.i64(ref.ts_ns);
    out.text(ref.id);
  }
}

void PlanWriter::record(const abi::Record& record) {
  const abi::KindSchema& schema = pack_->kinds[record.kind];
  const auto [at, is_new] = kinds_.try_emplace(record.kind, kinds_.size());
  out.u64(at->second);
  if (is_new) {
    out.text(schema.name);
    out.u64(schema.fields.size());
    for (const abi::FieldSchema& field : schema.fields) {
      out.text(field.name);
      out.u64(static_cast<uint64_t>(form_of(field.type)));
    }
  }
  out.i64(record.ts_ns);
  out.u64(record.seq);
  out.flag(record.id != nullptr);
  if (record.id != nullptr) out.text(record.id->view());
  out.symbol(record.source);
  out.u64(record.repeats);
  out.u64(record.flags);
  out.u64(record.order);
  uint64_t present = 0;
  for (size_t i = 0; i < schema.fields.size() && i < record.slot_count; ++i) {
    if (record.has(static_cast<unsigned>(i))) present |= uint64_t{1} << i;
  }
  out.u64(present);
  for (unsigned i = 0; i < schema.fields.size(); ++i) {
    if ((present >> i & 1) == 0) continue;
    const ValueForm form = form_of(schema.fields[i].type);
    if (form == ValueForm::kText) {
      out.text(record.text(i)->view());
    } else if (form == ValueForm::kArray) {
      const abi::IntArray* array = record.array(i);
      out.u64(array->count);
      for (uint32_t k = 0; k < array->count; ++k) out.i64(array->data()[k]);
    } else {
      value(form, record.slots()[i]);
    }
  }
}

bool PlanReader::entity(uint64_t end, uint64_t& number) {
  const uint64_t step = in.u64();
  if (step == 0 || in.failed()) {
    next_ = 0;
    return false;
  }
  if (step > end - next_) {
    in.fail();
    return false;
  }
  next_ += step;
  number = next_ - 1;
  return true;
}

uint64_t PlanReader::value(ValueForm form) {
  if (form == ValueForm::kSymbol) return in.symbol();
  if (form == ValueForm::kReal) return abi::Value::of(in.f64()).bits;
  return static_cast<uint64_t>(in.i64());
}

void PlanReader::refs(std::vector<abi::EventRef>& refs) {
  const uint64_t n = in.bounded(kRefsMax);
  refs.resize(n);
  for (abi::EventRef& ref : refs) {
    ref.source = in.symbol();
    ref.seq = in.u64();
    ref.ts_ns = in.i64();
    ref.id = in.text();
  }
}

bool PlanReader::read_kind() {
  Kind kind;
  const std::string_view name = in.text();
  const abi::KindSchema* schema = nullptr;
  for (size_t k = 0; k < pack_->kinds.size(); ++k) {
    if (pack_->kinds[k].name != name) continue;
    kind.known = true;
    kind.id = static_cast<abi::KindId>(k);
    schema = &pack_->kinds[k];
  }
  kind.fields.resize(in.bounded(abi::kFieldsMax));
  for (Field& field : kind.fields) {
    const std::string_view field_name = in.text();
    field.form = static_cast<ValueForm>(in.bounded(kValueFormLast));
    for (size_t i = 0; schema != nullptr && i < schema->fields.size(); ++i) {
      if (schema->fields[i].name != field_name) continue;
      field.known = form_of(schema->fields[i].type) == field.form;
      field.slot = static_cast<uint16_t>(i);
    }
  }
  kinds_.push_back(std::move(kind));
  return !in.failed();
}

void PlanReader::read_fields(const Kind& kind, abi::Record& record,
                             std::vector<std::vector<uint64_t>>& memory) {
  const uint64_t present = in.u64();
  for (size_t i = 0; i < kind.fields.size(); ++i) {
    if ((present >> i & 1) == 0) continue;
    const Field& field = kind.fields[i];
    uint64_t bits = 0;
    if (field.form == ValueForm::kText) {
      const std::string_view text = in.text();
      auto& words = memory.emplace_back((sizeof(abi::Text) + text.size() + 7) / 8);
      auto* copy = reinterpret_cast<abi::Text*>(words.data());
      copy->size = static_cast<uint32_t>(text.size());
      std::memcpy(copy + 1, text.data(), text.size());
      bits = reinterpret_cast<uint64_t>(copy);
    } else if (field.form == ValueForm::kArray) {
      const size_t count = in.count();
      auto& words = memory.emplace_back(sizeof(abi::IntArray) / 8 + count);
      auto* copy = reinterpret_cast<abi::IntArray*>(words.data());
      copy->count = static_cast<uint32_t>(count);
      auto* values = reinterpret_cast<int64_t*>(copy + 1);
      for (size_t k = 0; k < count; ++k) values[k] = in.i64();
      bits = reinterpret_cast<uint64_t>(copy);
    } else {
      bits = value(field.form);
    }
    if (!kind.known || !field.known || in.failed()) continue;
    record.slots()[field.slot] = bits;
    record.present |= uint64_t{1} << field.slot;
  }
}

RecordCopy PlanReader::record() {
  const uint64_t number = in.bounded(kinds_.size());
  if (in.failed() || (number == kinds_.size() && !read_kind())) return {};
  const Kind& kind = kinds_[number];
  std::vector<uint64_t> words(sizeof(abi::Record) / 8 + abi::kFieldsMax);
  std::vector<std::vector<uint64_t>> memory;  // of texts and arrays
  auto* record = new (words.data()) abi::Record{};
  record->kind = kind.id;
  if (kind.known) record->slot_count = static_cast<uint16_t>(pack_->kinds[kind.id].fields.size());
  record->ts_ns = in.i64();
  record->seq = in.u64();
  if (in.flag()) {
    const std::string_view id = in.text();
    auto& id_words = memory.emplace_back((sizeof(abi::Text) + id.size() + 7) / 8);
    auto* copy = reinterpret_cast<abi::Text*>(id_words.data());
    copy->size = static_cast<uint32_t>(id.size());
    std::memcpy(copy + 1, id.data(), id.size());
    record->id = copy;
  }
  record->source = in.symbol();
  record->repeats = static_cast<uint32_t>(in.bounded(UINT32_MAX));
  record->flags = static_cast<uint32_t>(in.bounded(UINT32_MAX));
  record->order = in.u64();
  read_fields(kind, *record, memory);
  if (in.failed() || !kind.known) return {};
  return {*record, pack_->kinds[kind.id]};
}

}  // namespace reflex::eval
