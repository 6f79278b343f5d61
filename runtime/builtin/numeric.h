// Builtins over numbers that are not worth, or not possible, to emit inline.
#pragma once

#include <cstdint>

#include "runtime/builtin/pattern_table.h"

extern "C" {

/// Natural logarithm. For a value <= 0 the caller makes the result unknown.
double rfx_log(double value) noexcept;
/// Membership in integer set `index`. Cost: O(log n).
uint64_t rfx_in_set(const reflex::builtin::PatternTable* patterns, uint32_t index,
                    int64_t value) noexcept;

}  // extern "C"
