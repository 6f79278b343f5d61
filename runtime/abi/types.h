// Value types as compiler and runtime agree on them.
//
// A language type (language.md A2) is a Type; its physical form in a record slot is a SlotForm.
// Quantities are stored in their base unit (see Unit): celsius in K-less degrees, byte, bit/s, Hz.
#pragma once

#include <cstdint>
#include <string_view>

namespace reflex::abi {

enum class Scalar : uint8_t {
  kError,     // poisoned: silences follow-up diagnostics
  kBool,      // three-valued (Kleene) at run time
  kInt,       // i8..i64, u8..u64, enum-free integers; saturating 64-bit signed arithmetic
  kReal,      // f64 without a unit
  kString,    // free text
  kEnum,      // one word of a declared set; SymbolId of the word
  kDuration,  // nanoseconds
  kInstant,   // nanoseconds since the epoch
  kQuantity,  // f64 in the base unit of `unit`
  kEntity,    // node, gpu, nic, job, rack, tor, pod, zone, storage, ...: SymbolId or small integer
  kArray,     // array of integers with a fixed bound
};

/// Dimension of a quantity. kPerTime(x) is a rate: the base unit per second.
enum class Unit : uint8_t {
  kNone,
  kCelsius,  // an absolute temperature; celsius - celsius is kCelsiusDelta
  kCelsiusDelta,
  kWatt,
  kHertz,
  kByte,
  kBitPerSecond,
  kRatio,  // 1% == 0.01
  kCount,
};

/// What a field, literal or expression is.
struct Type {
  Scalar scalar = Scalar::kError;
  Unit unit = Unit::kNone;
  bool per_time = false;   // per<duration>: base unit per second
  bool optional = false;   // may be unknown at run time
  bool counter = false;    // only increase, rate and reset_count accept it
  bool gpu_index = false;  // kEntity held as an integer (gpu 3), not as a name
  uint16_t entity = 0;     // for kEntity: index into CompiledPack::entity_types
  uint16_t enum_id = 0;    // for kEnum: index into CompiledPack::enums
  uint16_t array_bound = 0;
  friend bool operator==(const Type&, const Type&) = default;
};

/// Physical form of a record slot or IR value.
enum class SlotForm : uint8_t {
  kI64,    // kBool, kInt, kEnum (SymbolId), kDuration, kInstant, kEntity (SymbolId or integer)
  kF64,    // kReal, kQuantity; NaN never appears: it is stored as missing
  kText,   // const Text*
  kArray,  // const IntArray*
};

constexpr SlotForm slot_form(const Type& t) {
  switch (t.scalar) {
    case Scalar::kReal:
    case Scalar::kQuantity:
      return SlotForm::kF64;
    case Scalar::kString:
      return SlotForm::kText;
    case Scalar::kArray:
      return SlotForm::kArray;
    default:
      return SlotForm::kI64;
  }
}

/// Kleene truth values as evaluators return them. For value expressions: kTrue = value known.
enum Truth : uint32_t { kFalse = 0, kTrue = 1, kUnknown = 2 };

}  // namespace reflex::abi
