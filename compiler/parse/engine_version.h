// The versions that `pack .. requires engine >= X dsl N` is held against.
#pragma once

#include <cstdint>

namespace reflex::parse {

inline constexpr int64_t kEngineMajor = 1;
inline constexpr int64_t kEngineMinor = 0;
inline constexpr int64_t kEnginePatch = 0;
inline constexpr int64_t kDslVersion = 1;

}  // namespace reflex::parse
