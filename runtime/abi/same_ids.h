// Whether the ids of one pack set mean in another what they mean there: then what a running lane
// holds in memory can change hands as it is (runtime/eval/take_over.h), and need not be saved and
// loaded by names.
//
// The same: the SymbolTable, kinds with their fields, enums, keys of entities, and the names of
// signals, features, causes, classes, parameters, incidents and peers at the same numbers;
// decoders, clock and limits, and what binds nodes to classes. What rules *say* may differ in any way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"

namespace reflex::abi {

/// "" when they do; else what differs, in words.
std::string ids_differ(const CompiledPack& a, const CompiledPack& b);

/// What has to be left behind when one of two such sets takes the place of the other.
struct SetChange {
  bool same_set = false;              // other files beside the packs, but the same packs
  std::vector<uint8_t> new_signals;   // [SignalId] 1: its state begins anew
  std::vector<uint8_t> new_adaptives;  // [AdaptiveId] 1: the feature that it follows does
  std::vector<std::string> notes;     // out: sentences about what was left behind

  [[nodiscard]] bool any_signal() const;
  [[nodiscard]] bool any_adaptive() const;
};

}  // namespace reflex::abi
