// VerdictRecord: a verdict as the one record that expressions of rules read (A10).
//
// Contract: fills the slots of CompiledPack::verdict_fields by name; a field that no rule reads is
// left out, so that its names are not interned. What a verdict does not have is missing.
// `top` is the first culprit, else the best hypothesis; its p is that of the node when it is one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"
#include "runtime/abi/record_state.h"
#include "runtime/abi/verdict.h"

namespace reflex::policy {

class VerdictRecord {
 public:
  explicit VerdictRecord(std::shared_ptr<const abi::CompiledPack> pack);
  /// The record of a verdict; valid until the next call.
  const abi::Record& fill(const abi::Verdict& verdict);
  /// The record that was filled last, as a state.
  [[nodiscard]] std::string encode();
  /// Fills from a state that this or another pack set made. Null: it is damaged. What the set that
  /// made it did not read is missing.
  const abi::Record* decode(std::string_view state);
  /// The first culprit's hypothesis, else the best one; null when there is none.
  static const abi::Hypothesis* top(const abi::Verdict& verdict);

 private:
  void set_word(std::string_view field, std::string_view text);
  void set_int(std::string_view field, int64_t value);
  void set_real(std::string_view field, double value);
  void set_nodes(std::string_view field, const std::vector<std::string>& nodes);
  void set_items(size_t slot, const std::vector<int64_t>& items);
  void fill_top(const abi::Verdict& verdict);
  [[nodiscard]] int used_slot(std::string_view field) const;
  [[nodiscard]] std::string short_cause(const std::string& full) const;
  abi::Record& record() { return *reinterpret_cast<abi::Record*>(memory_.data()); }

  std::shared_ptr<const abi::CompiledPack> pack_;
  abi::KindSchema schema_;                     // verdict_fields as a kind
  std::vector<uint64_t> memory_;               // the header and the slots
  std::vector<std::vector<uint64_t>> arrays_;  // [slot] header and items
};

}  // namespace reflex::policy
