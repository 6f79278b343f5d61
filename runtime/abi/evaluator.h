// The calling contract of compiled expressions, the same for the interpreter and the JIT.
//
// An expression is called through Evaluator{fn, self}. The interpreter finds its IR function in
// `self`, JIT code its text patterns. So the runtime never knows which backend it runs.
// Errors: evaluators never throw and never fail; anything that cannot be computed is kUnknown.
// Threads: evaluators are pure apart from EvalContext; one context a thread.
#pragma once

#include <cstdint>

#include "runtime/abi/record.h"
#include "runtime/abi/types.h"

namespace reflex::abi {

/// A 64-bit payload with its Kleene knownness; what captures and features hand to expressions.
struct Value {
  uint64_t bits = 0;
  uint64_t known = 0;  // 0 or 1; 64 bits so that JIT code loads it plainly
  [[nodiscard]] double f64() const {
    double v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  [[nodiscard]] int64_t i64() const { return static_cast<int64_t>(bits); }
  static Value of(double v) {
    Value r{0, v == v ? 1u : 0u};
    std::memcpy(&r.bits, &v, sizeof v);
    return r;
  }
  static Value of_i64(int64_t v) { return {static_cast<uint64_t>(v), 1}; }
  static Value unknown() { return {}; }
};

/// What an expression may read besides the record. Offsets are part of the abi (JIT loads them).
struct EvalContext {
  const Value* features = nullptr;      // [FeatureId] of the entity under evaluation, already read;
                                        // only the ids listed in ExprInfo::features are valid
  const Value* captures = nullptr;      // fields of earlier steps, by capture index
  const Value* class_params = nullptr;  // [ParamId] of the entity's hardware class
  const Value* table = nullptr;         // [TableSlot] versioned run-time values (thresholds, leaks)
  const struct HostServices* host = nullptr;  // look-ups answered by the engine
  void* host_state = nullptr;
  int64_t now_ns = 0;              // event time of the evaluation
  uint64_t entity[3] = {0, 0, 0};  // key values of the entity under evaluation
};

/// Point-in-time look-ups behind builtins that need topology or peers. `now_ns` is the time.
/// All are noexcept and answer Value::unknown() when they do not know.
struct HostServices {
  Value (*job_of)(void* state, int64_t now_ns, SymbolId node) noexcept;
  Value (*node_label)(void* state, int64_t now_ns, SymbolId node, SymbolId label) noexcept;
  Value (*nodes_in_job)(void* state, int64_t now_ns, SymbolId job) noexcept;  // a count (i64)
  Value (*gpu_at)(void* state, int64_t now_ns, SymbolId node, const Text* pci) noexcept;
  Value (*in_maintenance)(void* state, int64_t now_ns, SymbolId node) noexcept;  // a bool
  /// PeersQuery `query` of the pack for the entity in EvalContext::entity.
  Value (*peers)(void* state, const EvalContext* context, uint32_t query) noexcept;
};

/// Predicate: returns Truth. Value expression: returns kTrue and *out, or kUnknown.
using EvalFn = uint32_t (*)(const void* self, const Record* record, const EvalContext* context,
                            uint64_t* out);

struct Evaluator {
  EvalFn fn = nullptr;
  const void* self = nullptr;
  uint32_t operator()(const Record* r, const EvalContext* c, uint64_t* out) const {
    return fn(self, r, c, out);
  }
};

/// A fused chunk of predicates: appends the chunk-relative index of each one that is true, in
/// ascending order. `hits` needs room for as many entries as the chunk has leaves: code without
/// branches also writes entries that do not count.
using ChunkFn = uint32_t (*)(const void* self, const Record* record, const EvalContext* context,
                             uint32_t* hits);

struct ChunkEvaluator {
  ChunkFn fn = nullptr;
  const void* self = nullptr;
};

}  // namespace reflex::abi
