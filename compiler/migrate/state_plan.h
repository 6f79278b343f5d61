// The migration plan: what becomes of the state of each signal and feature when one pack set takes
// the place of another (language.md B6, rule 4). Shown by `reflex diff`; a reload that keeps state
// must do what it says.
//
//   kept     the same shape: literals, thresholds, texts, names may differ; a window that became
//            longer is kept too and marked `incomplete` until it is filled
//   trimmed  a window became shorter: what lies before it is dropped
//   reset    keys, steps, kinds, aggregate or form of storage changed
//   new      not there before;  removed: not there any more, dropped once its firings have ended
// Order: by name, signals before features.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/migrate/signature.h"

namespace reflex::migrate {

enum class Fate : uint8_t { kKept, kTrimmed, kReset, kNew, kRemoved };
std::string_view word_of(Fate fate);

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

/// `renamed`: new full name -> old full name (`was` of the declarations).
std::vector<StateChange> state_plan(const Side& before, const Side& after,
                                    const std::map<std::string, std::string>& renamed);

}  // namespace reflex::migrate
