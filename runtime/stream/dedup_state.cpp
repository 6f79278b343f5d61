// What both dedups remember, as a saved state.
//
// Fingerprints are of names, so they are the same in every process. Keys of kinds hold symbols and
// are written as values, with the fields that they are of.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "runtime/stream/dedup.h"

namespace reflex::stream {
namespace {

// Why: a table at its largest (dedup.cpp) is half full.
constexpr size_t kSlotsMax = 1u << 22;

bool is_named(const abi::Type& type) {
  return type.scalar == abi::Scalar::kEnum ||
         (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
}

/// What the bytes of a key field mean; equal forms are written and read alike.
enum KeyForm : int { kText, kArray, kNameArray, kName, kNumber };

KeyForm form_of(const abi::KindSchema& kind, uint16_t slot) {
  const abi::Type& type = kind.fields[slot].type;
  switch (abi::slot_form(type)) {
    case abi::SlotForm::kText:
      return kText;
    case abi::SlotForm::kArray:
      return kind.builtin ? kNameArray : kArray;
    default:
      return is_named(type) ? kName : kNumber;
  }
}

template <typename T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void IdDedup::save(StateWriter& writer, const Generation& generation) {
  std::vector<const Slot*> slots;
  for (const Slot& slot : generation.slots) {
    if (slot.high != 0) slots.push_back(&slot);
  }
  std::sort(slots.begin(), slots.end(), [](const Slot* a, const Slot* b) {
    return a->low != b->low ? a->low < b->low : a->high < b->high;
  });
  writer.i64(generation.first_ns);
  writer.u64(generation.used);
  writer.u64(slots.size());
  for (const Slot* slot : slots) {
    writer.raw({reinterpret_cast<const char*>(&slot->low), sizeof slot->low});
    writer.raw({reinterpret_cast<const char*>(&slot->high), sizeof slot->high});
    writer.i64(slot->ts_ns);
  }
}

void IdDedup::load(StateReader& reader, Generation& generation) {
  generation.first_ns = reader.i64();
  const uint64_t used = reader.bounded(kSlotsMax);
  const size_t count = reader.count(2 * sizeof(uint64_t) + 1);
  if (count > used || reader.failed()) return reader.fail();
  size_t size = generation.slots.size();
  while (used * 2 > size && size < kSlotsMax) size *= 2;
  generation.slots.assign(size, {});
  generation.used = used;
  for (size_t i = 0; i < count; ++i) {
    std::string_view bytes = reader.raw(2 * sizeof(uint64_t));
    if (reader.failed()) return;
    const auto low = take<uint64_t>(bytes);
    const uint64_t high = take<uint64_t>(bytes) | 1;
    *find(generation, low, high) = {low, high, reader.i64()};
  }
}

void IdDedup::save(StateWriter& writer) const {
  save(writer, current_);
  save(writer, previous_);
}

void IdDedup::load(StateReader& reader) {
  load(reader, current_);
  load(reader, previous_);
}

void KindDedup::save_key(StateWriter& writer, uint16_t kind, std::string_view key) const {
  const abi::KindSchema& schema = pack_->kinds[kind];
  key.remove_prefix(sizeof(uint16_t));
  for (const uint16_t slot : schema.dedup_slots) {
    const bool present = take<char>(key) != 0;
    writer.flag(present);
    if (!present) continue;
    switch (form_of(schema, slot)) {
      case kText: {
        const auto size = take<size_t>(key);
        writer.text(key.substr(0, size));
        key.remove_prefix(size);
        break;
      }
      case kArray:
      case kNameArray: {
        const auto count = take<uint32_t>(key);
        writer.u64(count);
        for (uint32_t i = 0; i < count; ++i) {
          const auto item = take<int64_t>(key);
          if (form_of(schema, slot) == kArray) {
            writer.i64(item);
          } else {
            writer.symbol(static_cast<SymbolId>(item));
          }
        }
        break;
      }
      case kName:
        writer.symbol(static_cast<SymbolId>(take<uint64_t>(key)));
        break;
      case kNumber:
        writer.i64(static_cast<int64_t>(take<uint64_t>(key)));
        break;
    }
  }
}

std::string KindDedup::load_key(StateReader& reader, const std::vector<int>& forms,
                                uint16_t kind) const {
  std::string key;
  put(key, kind);
  for (const int form : forms) {
    const bool present = reader.flag();
    key += present ? '\1' : '\0';
    if (!present) continue;
    switch (form) {
      case kText: {
        const std::string_view text = reader.text();
        put(key, text.size());
        key += text;
        break;
      }
      case kArray:
      case kNameArray: {
        const size_t count = reader.count();
        put(key, static_cast<uint32_t>(count));
        for (size_t i = 0; i < count; ++i) {
          put(key, form == kArray ? reader.i64() : int64_t{reader.symbol()});
        }
        break;
      }
      case kName:
        put(key, uint64_t{reader.symbol()});
        break;
      default:
        put(key, static_cast<uint64_t>(reader.i64()));
        break;
    }
  }
  return key;
}

void KindDedup::save(StateWriter& writer, const NumberOf& number_of) const {
  uint64_t kinds = 0;
  for (const auto& expiry : expiry_) kinds += !expiry.empty();
  writer.u64(kinds);
  for (uint16_t kind = 0; kind < expiry_.size(); ++kind) {
    if (expiry_[kind].empty()) continue;
    const abi::KindSchema& schema = pack_->kinds[kind];
    writer.text(schema.name);
    writer.u64(schema.dedup_slots.size());
    for (const uint16_t slot : schema.dedup_slots) {
      writer.text(schema.fields[slot].name);
      writer.u64(static_cast<uint64_t>(form_of(schema, slot)));
    }
    writer.u64(expiry_[kind].size());
    for (const auto& [end_ns, key] : expiry_[kind]) {
      const auto first = firsts_.find(key);
      const bool owns = first != firsts_.end() && first->second.ts_ns + windows_[kind] == end_ns;
      writer.i64(end_ns - windows_[kind]);
      writer.flag(owns);
      if (owns) writer.u64(number_of(first->second.record));
      save_key(writer, kind, key);
    }
  }
}

void KindDedup::load(StateReader& reader, const RecordOf& record_of) {
  std::unordered_map<std::string_view, uint16_t> by_name;
  for (uint16_t kind = 0; kind < windows_.size(); ++kind) by_name[pack_->kinds[kind].name] = kind;
  for (size_t kinds = reader.count(); kinds > 0 && !reader.failed(); --kinds) {
    const auto it = by_name.find(reader.text());
    bool same = it != by_name.end() && windows_[it->second] > 0;
    const uint16_t kind = same ? it->second : uint16_t{0};
    const abi::KindSchema& schema = pack_->kinds[kind];
    std::vector<int> forms;
    const size_t slots = reader.count(2);
    same = same && slots == schema.dedup_slots.size();
    for (size_t i = 0; i < slots && !reader.failed(); ++i) {
      const std::string_view field = reader.text();
      forms.push_back(static_cast<int>(reader.bounded(kNumber)));
      if (!same) continue;
      const uint16_t slot = schema.dedup_slots[i];
      same = schema.fields[slot].name == field && form_of(schema, slot) == forms.back();
    }
    for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
      const int64_t ts_ns = reader.i64();
      const bool owns = reader.flag();
      const uint64_t number = owns ? reader.u64() : 0;
      std::string key = load_key(reader, forms, kind);
      if (reader.failed() || !same) continue;
      if (ts_ns < 0 || ts_ns > INT64_MAX - windows_[kind]) return reader.fail();
      if (owns) firsts_[key] = {record_of(number), ts_ns};
      expiry_[kind].emplace_back(ts_ns + windows_[kind], std::move(key));
    }
  }
}

}  // namespace reflex::stream
