// StateFate: what SignalEngine::load() did with the saved state of one signal or feature.
//
// Contract: the fates are those of abi::state_plan(), which `reflex diff` prints; a test holds the
// two against each other.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/abi/state_plan.h"

namespace reflex::eval {

struct StateFate {
  std::string name;  // of the new set; of the old one when removed
  bool is_feature = false;
  abi::Fate fate = abi::Fate::kKept;
  std::string why;          // as StateChange::why
  std::string old_name;     // when it was renamed
  bool changed = false;     // anything but its place in the text
  bool incomplete = false;  // the window became longer: see SignalEngine::incomplete_until()
  uint64_t bytes = 0;       // of the saved state that it had
};

}  // namespace reflex::eval
