// RecordCopy: one allocation, record first, then its texts and arrays; see record_copy.h.
#include "runtime/eval/record_copy.h"

#include <cstring>

namespace reflex::eval {
namespace {
size_t words(size_t bytes) { return (bytes + 7) / 8; }
size_t text_words(const abi::Text* t) { return words(sizeof(abi::Text) + t->size); }
size_t array_words(const abi::IntArray* a) {
  return words(sizeof(abi::IntArray) + size_t{a->count} * 8);
}
}  // namespace

RecordCopy::RecordCopy(const abi::Record& record, const abi::KindSchema& schema) {
  const auto form = [&](size_t i) {
    return i < schema.fields.size() ? abi::slot_form(schema.fields[i].type) : abi::SlotForm::kI64;
  };
  const size_t head = words(sizeof(abi::Record)) + record.slot_count;
  size_t total = head + (record.id != nullptr ? text_words(record.id) : 0);
  for (unsigned i = 0; i < record.slot_count; ++i) {
    if (!record.has(i)) continue;
    if (form(i) == abi::SlotForm::kText) total += text_words(record.text(i));
    if (form(i) == abi::SlotForm::kArray) total += array_words(record.array(i));
  }
  bytes_ = std::make_unique<uint64_t[]>(total);
  size_ = total * sizeof(uint64_t);
  std::memcpy(bytes_.get(), &record, sizeof(abi::Record) + size_t{record.slot_count} * 8);
  auto* copy = reinterpret_cast<abi::Record*>(bytes_.get());
  uint64_t* next = bytes_.get() + head;
  const auto place = [&](const void* from, size_t bytes, size_t used) {
    std::memcpy(next, from, bytes);
    uint64_t* at = next;
    next += used;
    return at;
  };
  if (record.id != nullptr) {
    copy->id = reinterpret_cast<const abi::Text*>(
        place(record.id, sizeof(abi::Text) + record.id->size, text_words(record.id)));
  }
  for (unsigned i = 0; i < record.slot_count; ++i) {
    if (!record.has(i)) continue;
    if (form(i) == abi::SlotForm::kText) {
      const abi::Text* t = record.text(i);
      copy->slots()[i] =
          reinterpret_cast<uint64_t>(place(t, sizeof(abi::Text) + t->size, text_words(t)));
    } else if (form(i) == abi::SlotForm::kArray) {
      const abi::IntArray* a = record.array(i);
      copy->slots()[i] = reinterpret_cast<uint64_t>(
          place(a, sizeof(abi::IntArray) + size_t{a->count} * 8, array_words(a)));
    }
  }
}

}  // namespace reflex::eval
