// FieldConverter: JSON values and log texts -> record slots, by the schema of the field.
//
// Shared by the NDJSON record builder and the log decoder, so that one field type has one meaning.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/stream/json_value.h"
#include "runtime/stream/slab.h"

namespace reflex::stream {

/// How a slot is filled; worked out once per field from its Type.
enum class FieldForm : uint8_t {
  kSkip,
  kBool,
  kInt,
  kReal,
  kText,
  kWord,
  kDeclaredWord,
  kName,
  kIndex,
  kDuration,
  kInstant,
  kArray,
  kNameArray,
};

struct FieldPlan {
  FieldForm form = FieldForm::kSkip;
  bool is_key = false;
  uint16_t bound = 0;    // arrays; 0 = no bound
  uint16_t enum_id = 0;  // kDeclaredWord
};

struct KindPlan {
  std::vector<FieldPlan> fields;
  uint64_t key_mask = 0;
  uint64_t required_mask = 0;  // keys that are not optional
};

enum class Converted : uint8_t { kOk, kMissing, kBad };

class FieldConverter {
 public:
  explicit FieldConverter(std::shared_ptr<const abi::CompiledPack> pack);
  /// Another set whose ids mean the same and that reads the same fields.
  void use(std::shared_ptr<const abi::CompiledPack> pack) { pack_ = std::move(pack); }
  [[nodiscard]] const std::vector<KindPlan>& kinds() const { return kinds_; }
  LocalSymbols& symbols() { return symbols_; }
  [[nodiscard]] const LocalSymbols& symbols() const { return symbols_; }

  /// Sets `slot` of the record and its present bit, when the value fits the field.
  Converted convert(const FieldPlan& field, unsigned slot, const JsonValue& value,
                    abi::Record& record, Slab& slab);
  /// The symbol of a word of a declared enum, or that of "other".
  SymbolId declared_word(uint16_t enum_id, std::string_view word);

 private:
  Converted convert_name(const JsonValue& value, int64_t& out);
  Converted convert_index(const JsonValue& value, int64_t& out);
  Converted convert_array(const FieldPlan& field, unsigned slot, const JsonValue& value,
                          abi::Record& record, Slab& slab);
  bool array_item(const JsonValue& item, bool names, int64_t& out);

  std::shared_ptr<const abi::CompiledPack> pack_;
  LocalSymbols symbols_;
  SymbolId other_;
  std::vector<KindPlan> kinds_;
  std::vector<int64_t> items_;  // scratch
};

/// Plain decimal digits, with an optional sign, as an integer.
bool parse_integer(std::string_view text, int base, int64_t& out);

}  // namespace reflex::stream
