// Builtins over numbers.
#include "runtime/builtin/numeric.h"

#include <cmath>

extern "C" {

double rfx_log(double value) noexcept { return std::log(value); }

uint64_t rfx_in_set(const reflex::builtin::PatternTable* patterns, uint32_t index,
                    int64_t value) noexcept {
  return patterns->set_contains(index, value);
}

}  // extern "C"
