// What becomes of the state of each signal and feature when one pack set takes the place of another
// (language.md B6, rule 4). The one place where that is decided: `reflex diff` prints it, and
// SignalEngine::load() does it.
//
//   kept     the same shape: literals, thresholds, texts, names may differ; a window that became
//            longer is kept too and marked `incomplete` until it is filled
//   trimmed  a window became shorter: what lies before it is dropped
//   reset    keys, steps, kinds, aggregate or form of storage changed
//   new      not there before;  removed: not there any more, dropped once its firings have ended
// Order: by name, signals before features. Features that the compiler made have no name and are
// not listed: what becomes of them is said by who reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/state_shape.h"

namespace reflex::abi {

struct CompiledPack;

enum class Fate : uint8_t { kKept, kTrimmed, kReset, kNew, kRemoved };
std::string_view word_of(Fate fate);

/// One signal or feature of a set, as the plan pairs them.
struct StateItem {
  std::string name;
  std::string was;  // the name that its state was kept under, when it was renamed
  bool is_feature = false;
  StateShape shape;
  uint64_t bytes_per_key = 0;  // worst case
};

struct StateChange {
  Fate fate = Fate::kKept;
  bool is_feature = false;
  std::string name;            // of the new set; of the old one when removed
  std::string old_name;        // when it was renamed
  uint64_t bytes_per_key = 0;  // worst case, of the new plan; of the old one when removed
  bool changed = false;        // anything but its place in the text
  bool incomplete = false;     // the window became longer
  std::string why;             // "on node -> (node, gpu)", "window 10m -> 1h"; "" when not changed
};

/// The named signals and features of a set.
std::vector<StateItem> state_items(const CompiledPack& pack);
/// What becomes of one state under another shape; names are not looked at.
StateChange judge_state(const StateShape& before, const StateShape& after);
std::vector<StateChange> state_plan(const std::vector<StateItem>& before,
                                    const std::vector<StateItem>& after);

}  // namespace reflex::abi
