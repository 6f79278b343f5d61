// Shift: a hardware class moved as a whole (regime change); what explanations tell of it.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/abi/plan_ids.h"

namespace reflex::adapt {

struct Shift {
  abi::ClassId hw_class = 0;
  std::string what;  // signal or parameter
  int64_t at_ns = 0;
  double factor = 1;
};

}  // namespace reflex::adapt
