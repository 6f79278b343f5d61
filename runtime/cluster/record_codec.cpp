// Records and firings as bytes: see record_codec.h.
#include "runtime/cluster/record_codec.h"

#include <algorithm>

namespace reflex::cluster {
namespace {

bool is_name(const abi::Type& type) {
  return type.scalar == abi::Scalar::kEnum ||
         (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
}

void write_value(StateWriter& out, const abi::Value& value) {
  out.flag(value.known != 0);
  if (value.known != 0) out.f64(value.f64());
}

abi::Value read_value(StateReader& in) {
  return in.flag() ? abi::Value::of(in.f64()) : abi::Value::unknown();
}

}  // namespace

RecordCodec::RecordCodec(std::shared_ptr<const abi::CompiledPack> pack) : pack_(std::move(pack)) {
  for (const abi::KindSchema& kind : pack_->kinds) {
    auto& forms = slots_.emplace_back();
    for (const abi::FieldSchema& field : kind.fields) {
      Form form = is_name(field.type) ? Form::kName : Form::kNumber;
      switch (abi::slot_form(field.type)) {
        case abi::SlotForm::kI64:
          break;
        case abi::SlotForm::kF64:
          form = Form::kReal;
          break;
        case abi::SlotForm::kText:
          form = Form::kText;
          break;
        case abi::SlotForm::kArray:
          form = kind.builtin ? Form::kNameArray : Form::kArray;
          break;
      }
      forms.push_back(form);
    }
  }
  // A key is a number only where every way to it is one: that of a GPU.
  for (const abi::EntityKind& kind : pack_->entity_kinds) {
    auto& names = name_keys_.emplace_back();
    for (size_t i = 0; i < kind.keys.size() && i < names.size(); ++i) {
      names[i] = kind.keys[i] != "gpu";
    }
  }
  for (const abi::SignalPlan& signal : pack_->signals) {
    const auto& inputs = signal.count.inputs;
    name_parts_.push_back(std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
      return input.part_slot != abi::CountPlan::kNoPart &&
             is_name(pack_->kinds[input.kind].fields[input.part_slot].type);
    }));
  }
}

void RecordCodec::write_slot(StateWriter& out, Form form, const abi::Record& record,
                             unsigned slot) const {
  switch (form) {
    case Form::kNumber:
      return out.i64(record.i64(slot));
    case Form::kName:
      return out.symbol(static_cast<SymbolId>(record.i64(slot)));
    case Form::kReal:
      return out.f64(record.f64(slot));
    case Form::kText:
      return out.text(record.text(slot)->view());
    case Form::kArray:
    case Form::kNameArray:
      break;
  }
  const abi::IntArray& array = *record.array(slot);
  out.u64(array.count);
  for (uint32_t i = 0; i < array.count; ++i) {
    if (form == Form::kNameArray) {
      out.symbol(static_cast<SymbolId>(array.data()[i]));
    } else {
      out.i64(array.data()[i]);
    }
  }
}

void RecordCodec::read_slot(StateReader& in, Form form, abi::Record& record, unsigned slot,
                            stream::Slab& slab) const {
  uint64_t* to = &record.slots()[slot];
  switch (form) {
    case Form::kNumber:
      *to = static_cast<uint64_t>(in.i64());
      return;
    case Form::kName:
      *to = in.symbol();
      return;
    case Form::kReal: {
      const double value = in.f64();
      std::memcpy(to, &value, sizeof value);
      return;
    }
    case Form::kText:
      *to = reinterpret_cast<uint64_t>(slab.new_text(in.text()));
      return;
    case Form::kArray:
    case Form::kNameArray:
      break;
  }
  std::vector<int64_t> values(in.count());
  for (int64_t& value : values) value = form == Form::kNameArray ? in.symbol() : in.i64();
  *to = reinterpret_cast<uint64_t>(slab.new_array(values));
}

void RecordCodec::write(StateWriter& out, const abi::Record& record) const {
  out.i64(record.ts_ns);
  out.u64(record.seq);
  out.symbol(record.source);
  out.u64(record.kind);
  out.u64(record.repeats);
  out.u64(record.flags);
  out.flag(record.id != nullptr);
  if (record.id != nullptr) out.text(record.id->view());
  out.u64(record.present);
  const auto& forms = slots_[record.kind];
  for (unsigned slot = 0; slot < forms.size(); ++slot) {
    if (record.has(slot)) write_slot(out, forms[slot], record, slot);
  }
}

abi::Record* RecordCodec::read(StateReader& in, stream::Slab& slab) const {
  const int64_t ts_ns = in.i64();
  const uint64_t seq = in.u64();
  const SymbolId source = in.symbol();
  const auto kind = static_cast<uint16_t>(in.bounded(slots_.size() - 1));
  const auto& forms = slots_[kind];
  abi::Record* record = slab.new_record(static_cast<unsigned>(forms.size()));
  record->ts_ns = ts_ns;
  record->seq = seq;
  record->source = source;
  record->kind = kind;
  record->repeats = static_cast<uint32_t>(in.bounded(UINT32_MAX));
  record->flags = static_cast<uint32_t>(in.bounded(UINT32_MAX));
  if (in.flag()) record->id = slab.new_text(in.text());
  const uint64_t present = in.u64();
  for (unsigned slot = 0; slot < forms.size(); ++slot) {
    if ((present >> slot & 1u) != 0) read_slot(in, forms[slot], *record, slot, slab);
  }
  if (forms.size() < 64 && present >> forms.size() != 0) in.fail();
  record->present = present;
  return in.failed() ? nullptr : record;
}

void RecordCodec::write(StateWriter& out, const abi::Firing& firing) const {
  out.i64(firing.ts_ns);
  out.i64(firing.onset_ns);
  out.u64(static_cast<uint64_t>(firing.phase));
  out.u64(firing.signal);
  out.u64(static_cast<uint64_t>(firing.change));
  const auto& names = name_keys_[firing.entity.kind];
  for (uint8_t i = 0; i < firing.entity.count; ++i) {
    if (names[i]) {
      out.symbol(static_cast<SymbolId>(firing.entity.values[i]));
    } else {
      out.u64(firing.entity.values[i]);
    }
  }
  write_value(out, firing.value);
  write_value(out, firing.limit);
  out.flag(firing.approximate);
  out.flag(firing.part != 0);
  if (firing.part != 0) {
    if (name_parts_[firing.signal]) {
      out.symbol(static_cast<SymbolId>(firing.part - 1));
    } else {
      out.u64(firing.part - 1);
    }
  }
  out.u64(firing.events.size());
  for (const abi::EventRef& ref : firing.events) {
    out.symbol(ref.source);
    out.u64(ref.seq);
    out.i64(ref.ts_ns);
    out.text(ref.id);
  }
}

abi::Firing RecordCodec::read_firing(StateReader& in) const {
  abi::Firing firing;
  firing.ts_ns = in.i64();
  firing.onset_ns = in.i64();
  firing.phase = static_cast<abi::FiringPhase>(in.bounded(1));
  firing.signal = static_cast<abi::SignalId>(in.bounded(pack_->signals.size() - 1));
  firing.change = static_cast<abi::FiringChange>(in.bounded(2));
  firing.entity.kind = pack_->signals[firing.signal].entity_kind;
  firing.entity.count = static_cast<uint8_t>(pack_->entity_kinds[firing.entity.kind].keys.size());
  const auto& names = name_keys_[firing.entity.kind];
  for (uint8_t i = 0; i < firing.entity.count; ++i) {
    firing.entity.values[i] = names[i] ? in.symbol() : in.u64();
  }
  firing.value = read_value(in);
  firing.limit = read_value(in);
  firing.approximate = in.flag();
  if (in.flag()) firing.part = 1 + (name_parts_[firing.signal] ? in.symbol() : in.u64());
  firing.events.resize(in.count(4));
  for (abi::EventRef& ref : firing.events) {
    ref.source = in.symbol();
    ref.seq = in.u64();
    ref.ts_ns = in.i64();
    ref.id = in.text();
  }
  return firing;
}

}  // namespace reflex::cluster
