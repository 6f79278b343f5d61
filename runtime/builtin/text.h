// Builtins over free text and names.
//
// Contract: `patterns` is the PatternTable of the evaluator set, indices are in bounds (the IR
// verifier checked them). Null: a null text (its value is unknown) answers 0; the caller keeps the
// knownness. Never throw, never allocate except inside RE2's per-pattern cache.
#pragma once

#include <cstdint>

#include "runtime/abi/record.h"
#include "runtime/builtin/pattern_table.h"

extern "C" {

const reflex::abi::Text* rfx_const_text(const reflex::builtin::PatternTable* patterns,
                                        uint32_t index) noexcept;
/// text == literal `index`.
uint64_t rfx_text_eq(const reflex::builtin::PatternTable* patterns, uint32_t index,
                     const reflex::abi::Text* text) noexcept;
/// text like glob `index`.
uint64_t rfx_text_like(const reflex::builtin::PatternTable* patterns, uint32_t index,
                       const reflex::abi::Text* text) noexcept;
/// text contains a match of regular expression `index`.
uint64_t rfx_text_matches(const reflex::builtin::PatternTable* patterns, uint32_t index,
                          const reflex::abi::Text* text) noexcept;
uint64_t rfx_text_same(const reflex::abi::Text* a, const reflex::abi::Text* b) noexcept;
/// The name of a symbol like glob `index`.
uint64_t rfx_symbol_like(const reflex::builtin::PatternTable* patterns, uint32_t index,
                         int64_t symbol) noexcept;

}  // extern "C"
