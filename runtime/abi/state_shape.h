// StateShape: what the state of a signal or feature is, so that another compilation's can be held
// against it (state_plan.h). Made by the compiler (compiler/migrate), saved with the state.
#pragma once

#include <cstdint>
#include <string>

namespace reflex::abi {

struct StateShape {
  std::string keys;   // "(node, gpu)"
  std::string form;   // "sequence of 2 step(s)", "count", "condition", "feature"; for the reason
  std::string shape;  // hash of what must be equal for the state to be kept
  std::string exact;  // hash of all that matters; comparable within one SymbolTable only
  int64_t window_ns = 0;
  int64_t samples = 0;  // `last N`
};

}  // namespace reflex::abi
