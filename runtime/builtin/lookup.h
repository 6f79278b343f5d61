// Builtins that ask the engine: HostServices behind a null-safe, normalising shell.
//
// Contract: `known` says whether the operands are known; an unknown operand, a missing service or
// a symbol outside of SymbolId answers unknown. Answers are normalised: `known` is 0 or 1, an
// unknown answer has bits 0, booleans are 0 or 1, a f64 that is NaN or infinite is unknown.
#pragma once

#include <cstdint>

#include "runtime/abi/evaluator.h"

extern "C" {

reflex::abi::Value rfx_job_of(const reflex::abi::EvalContext* context, int64_t node,
                              uint64_t known) noexcept;
reflex::abi::Value rfx_node_label(const reflex::abi::EvalContext* context, int64_t node,
                                  uint64_t known, uint32_t label) noexcept;
reflex::abi::Value rfx_nodes_in_job(const reflex::abi::EvalContext* context, int64_t job,
                                    uint64_t known) noexcept;
reflex::abi::Value rfx_gpu_at(const reflex::abi::EvalContext* context, int64_t node,
                              const reflex::abi::Text* pci, uint64_t known) noexcept;
reflex::abi::Value rfx_in_maintenance(const reflex::abi::EvalContext* context, int64_t node,
                                      uint64_t known) noexcept;
reflex::abi::Value rfx_peers(const reflex::abi::EvalContext* context, uint32_t query) noexcept;

}  // extern "C"
