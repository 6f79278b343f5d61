// Text form of records for comparisons.
#include "tests/unit/stream/pack_fixture.h"

#include <fmt/format.h>

#include "runtime/base/time.h"

namespace reflex::stream::testing {

std::string show(const abi::Record& record, const abi::CompiledPack& pack) {
  const abi::KindSchema& kind = pack.kinds[record.kind];
  std::string out = fmt::format("{} {} src={} seq={} rep={}", to_rfc3339({record.ts_ns}), kind.name,
                                pack.symbols->name(record.source), record.seq, record.repeats);
  if (record.id != nullptr) out += fmt::format(" id={}", record.id->view());
  for (unsigned slot = 0; slot < kind.fields.size(); ++slot) {
    const abi::FieldSchema& field = kind.fields[slot];
    if (!record.has(slot)) {
      if (record.slots()[slot] != 0) out += fmt::format(" DIRTY {}", field.name);
      continue;
    }
    out += fmt::format(" {}=", field.name);
    const bool named = (field.type.scalar == abi::Scalar::kEntity && !field.type.gpu_index) ||
                       field.type.scalar == abi::Scalar::kEnum;
    switch (abi::slot_form(field.type)) {
      case abi::SlotForm::kI64:
        if (named) {
          out += pack.symbols->name(static_cast<SymbolId>(record.i64(slot)));
        } else {
          out += fmt::format("{}", record.i64(slot));
        }
        break;
      case abi::SlotForm::kF64:
        out += fmt::format("{:a}", record.f64(slot));
        break;
      case abi::SlotForm::kText:
        out += fmt::format("'{}'", record.text(slot)->view());
        break;
      case abi::SlotForm::kArray:
        for (uint32_t i = 0; i < record.array(slot)->count; ++i) {
          const int64_t item = record.array(slot)->data()[i];
          if (kind.builtin) {
            out += fmt::format("[{}]", pack.symbols->name(static_cast<SymbolId>(item)));
          } else {
            out += fmt::format("[{}]", item);
          }
        }
        break;
    }
  }
  return out;
}

}  // namespace reflex::stream::testing
