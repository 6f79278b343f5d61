// RFX_CHECK: our own bugs abort loudly, with place and condition.
//
// RFX_CHECK is always on (layer borders); RFX_DCHECK only in debug builds (inner loops).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reflex::base {
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "reflex: internal error at %s:%d: %s does not hold (please report)\n", file,
               line, condition);
  std::abort();
}
}  // namespace reflex::base

#define RFX_CHECK(condition) \
  ((condition) ? void(0) : ::reflex::base::check_failed(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define RFX_DCHECK(condition) void(0)
#else
#define RFX_DCHECK(condition) RFX_CHECK(condition)
#endif
