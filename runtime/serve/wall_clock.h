// The wall clock, read at the edge of the daemon only: lanes get it with the entries.
#pragma once

#include <chrono>
#include <cstdint>

namespace reflex::serve {

inline int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace reflex::serve
