// Fields by name and form: see record_state.h.
#include "runtime/abi/record_state.h"

#include <bit>

namespace reflex::abi {

RecordReader::Form RecordReader::form_of(const KindSchema& schema, const FieldSchema& field) {
  const Type& type = field.type;
  switch (slot_form(type)) {
    case SlotForm::kF64:
      return Form::kReal;
    case SlotForm::kText:
      return Form::kText;
    case SlotForm::kArray:
      return schema.builtin ? Form::kNameArray : Form::kArray;
    case SlotForm::kI64:
      break;
  }
  const bool named =
      type.scalar == Scalar::kEnum || (type.scalar == Scalar::kEntity && !type.gpu_index);
  return named ? Form::kName : Form::kNumber;
}

void RecordWriter::write(const Record& record, const KindSchema& schema) {
  const auto [it, is_new] = numbers_.try_emplace(&schema, numbers_.size());
  writer_.u64(it->second);
  if (is_new) {
    writer_.text(schema.name);
    writer_.u64(schema.fields.size());
    for (const FieldSchema& field : schema.fields) {
      writer_.text(field.name);
      writer_.u64(static_cast<uint64_t>(RecordReader::form_of(schema, field)));
    }
  }
  writer_.i64(record.ts_ns);
  writer_.u64(record.seq);
  writer_.symbol(record.source);
  writer_.u64(record.repeats);
  writer_.u64(record.flags);
  writer_.u64(record.order);
  writer_.flag(record.id != nullptr);
  if (record.id != nullptr) writer_.text(record.id->view());
  writer_.u64(record.present);
  for (unsigned slot = 0; slot < schema.fields.size(); ++slot) {
    if (record.has(slot)) write_slot(record, schema, slot);
  }
}

void RecordWriter::write_slot(const Record& record, const KindSchema& schema, unsigned slot) {
  using Form = RecordReader::Form;
  const Form form = RecordReader::form_of(schema, schema.fields[slot]);
  switch (form) {
    case Form::kNumber:
      return writer_.i64(record.i64(slot));
    case Form::kName:
      return writer_.symbol(static_cast<SymbolId>(record.i64(slot)));
    case Form::kReal:
      return writer_.f64(record.f64(slot));
    case Form::kText:
      return writer_.text(record.text(slot)->view());
    default:
      break;
  }
  const IntArray& array = *record.array(slot);
  writer_.u64(array.count);
  for (uint32_t i = 0; i < array.count; ++i) {
    if (form == Form::kNameArray) {
      writer_.symbol(static_cast<SymbolId>(array.data()[i]));
    } else {
      writer_.i64(array.data()[i]);
    }
  }
}

void RecordReader::read_kind() {
  Kind& kind = kinds_.emplace_back();
  kind.schema = find_(reader_.text(), kind.id);
  const uint64_t count = reader_.bounded(kFieldsMax);
  for (uint64_t i = 0; i < count && !reader_.failed(); ++i) {
    Field& field = kind.fields.emplace_back();
    const std::string_view name = reader_.text();
    field.form = static_cast<Form>(reader_.bounded(static_cast<uint64_t>(Form::kCount) - 1));
    if (kind.schema == nullptr) continue;
    for (size_t slot = 0; slot < kind.schema->fields.size(); ++slot) {
      const FieldSchema& now = kind.schema->fields[slot];
      if (now.name != name || form_of(*kind.schema, now) != field.form) continue;
      field.slot = static_cast<int>(slot);
    }
  }
}

void RecordReader::read_slot(const Field& field, RecordParts& out) {
  const bool wanted = field.slot >= 0;
  RecordParts::Slot& slot = wanted ? out.slots[static_cast<size_t>(field.slot)] : unused_;
  switch (field.form) {
    case Form::kNumber:
      slot.bits = static_cast<uint64_t>(reader_.i64());
      break;
    case Form::kName:
      slot.bits = reader_.symbol();
      break;
    case Form::kReal:
      slot.bits = std::bit_cast<uint64_t>(reader_.f64());
      break;
    case Form::kText:
      slot.text = reader_.text();
      break;
    default:
      slot.items.clear();
      for (size_t left = reader_.count(); left > 0 && !reader_.failed(); --left) {
        slot.items.push_back(field.form == Form::kNameArray ? reader_.symbol() : reader_.i64());
      }
      break;
  }
  if (wanted) out.head.present |= uint64_t{1} << field.slot;
}

bool RecordReader::read(RecordParts& out) {
  const uint64_t number = reader_.bounded(kinds_.size());
  if (reader_.failed()) return false;
  if (number == kinds_.size()) read_kind();
  const Kind& kind = kinds_[number];
  out.head = {};
  out.schema = kind.schema;
  out.slots.resize(kind.schema == nullptr ? 0 : kind.schema->fields.size());
  out.head.kind = kind.id;
  out.head.slot_count = static_cast<uint16_t>(out.slots.size());
  out.head.ts_ns = reader_.i64();
  out.head.seq = reader_.u64();
  out.head.source = reader_.symbol();
  out.head.repeats = static_cast<uint32_t>(reader_.bounded(UINT32_MAX));
  out.head.flags = static_cast<uint32_t>(reader_.bounded(UINT32_MAX));
  out.head.order = reader_.u64();
  out.has_id = reader_.flag();
  if (out.has_id) out.id = reader_.text();
  const uint64_t present = reader_.u64();
  for (unsigned slot = 0; slot < kFieldsMax && !reader_.failed(); ++slot) {
    if ((present >> slot & 1u) == 0) continue;
    if (slot >= kind.fields.size()) {
      reader_.fail();
      break;
    }
    read_slot(kind.fields[slot], out);
  }
  if (reader_.failed()) return false;
  bool usable = kind.schema != nullptr;
  for (unsigned slot = 0; usable && slot < out.slots.size(); ++slot) {
    const FieldSchema& field = kind.schema->fields[slot];
    if (field.is_key && !field.type.optional && !out.head.has(slot)) usable = false;
  }
  dropped_ += !usable;
  return usable;
}

}  // namespace reflex::abi
