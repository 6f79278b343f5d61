// Typed aliases of indexes into CompiledPack, and where a declaration stands.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/time.h"

namespace reflex::abi {

using KindId = uint16_t;
using SignalId = uint32_t;
using FeatureId = uint32_t;
using LeafId = uint32_t;
using ExprId = uint32_t;
using ClassId = uint16_t;  // hardware class (profile); 0 is the fallback
using ParamId = uint32_t;
using EntityKindId = uint16_t;  // (node), (node, gpu), (job), ...
using CauseId = uint32_t;       // fault or external cause
using AdaptiveId = uint32_t;    // adaptive profile parameter; its slot in versioned tables
inline constexpr uint32_t kNone32 = 0xffffffffu;

/// Where a declaration stands, for explanations and test output. Line and column are 1-based.
struct SourceRef {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
};

}  // namespace reflex::abi
