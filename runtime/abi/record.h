// Record: one event in memory, as the stream decodes it and evaluators read it.
//
// Shape: a fixed header, then `slot_count` 8-byte slots in the order of the kind's schema
// (KindSchema::fields[i] lives in slot i). `present` bit i says that field i is known; an absent
// slot holds 0. At most 64 fields a kind.
// Ownership: records, their Text and IntArray live in a slab of the stream; they are valid until
// the slab is released, which is after the batch that evaluates them. State that outlives a batch
// copies what it needs.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/base/symbols.h"

namespace reflex::abi {

inline constexpr unsigned kFieldsMax = 64;

struct Text {
  uint32_t size = 0;
  // `size` bytes follow the header
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(this + 1), size};
  }
};

struct IntArray {
  uint32_t count = 0;
  uint32_t padding = 0;
  // `count` int64_t follow the header
  [[nodiscard]] const int64_t* data() const { return reinterpret_cast<const int64_t*>(this + 1); }
};

struct Record {
  int64_t ts_ns = 0;
  uint64_t seq = 0;          // position in its source (line number), or 0
  uint64_t present = 0;      // bit i: slot i is known
  const Text* id = nullptr;  // the event's own id, when it has one
  SymbolId source = kNoSymbol;
  uint16_t kind = 0;  // index into CompiledPack::kinds
  uint16_t slot_count = 0;
  uint32_t repeats = 0;  // duplicates folded into this one by `dedup`
  uint32_t flags = 0;    // RecordFlag bits
  uint64_t order = 0;    // position in the total order; set when released to rules

  [[nodiscard]] const uint64_t* slots() const {
    return reinterpret_cast<const uint64_t*>(this + 1);
  }
  [[nodiscard]] uint64_t* slots() { return reinterpret_cast<uint64_t*>(this + 1); }
  [[nodiscard]] bool has(unsigned slot) const { return (present >> slot) & 1u; }
  [[nodiscard]] int64_t i64(unsigned slot) const { return static_cast<int64_t>(slots()[slot]); }
  [[nodiscard]] double f64(unsigned slot) const {
    double v;
    std::memcpy(&v, &slots()[slot], sizeof v);
    return v;
  }
  [[nodiscard]] const Text* text(unsigned slot) const {
    return reinterpret_cast<const Text*>(slots()[slot]);
  }
  [[nodiscard]] const IntArray* array(unsigned slot) const {
    return reinterpret_cast<const IntArray*>(slots()[slot]);
  }
  void set_i64(unsigned slot, int64_t v) {
    slots()[slot] = static_cast<uint64_t>(v);
    present |= uint64_t{1} << slot;
  }
  void set_f64(unsigned slot, double v) {
    std::memcpy(&slots()[slot], &v, sizeof v);
    present |= uint64_t{1} << slot;
  }
};
static_assert(sizeof(Record) == 56, "JIT code addresses slots at offset 56");

enum RecordFlag : uint32_t {
  kRecordLate = 1u << 0,
};

}  // namespace reflex::abi
