// Shift: a hardware class moved as a whole (regime change); what explanations tell of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/load_names.h"
#include "runtime/abi/plan_ids.h"

namespace reflex::adapt {

struct Shift {
  abi::ClassId hw_class = 0;
  std::string what;  // signal or parameter
  int64_t at_ns = 0;
  double factor = 1;
};

void save_shifts(StateWriter& writer, const std::vector<Shift>& shifts);
/// Those of classes that are gone are left out.
[[nodiscard]] std::vector<Shift> load_shifts(StateReader& reader, const abi::LoadNames& names);

}  // namespace reflex::adapt
