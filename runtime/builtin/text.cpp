// Builtins over free text and names.
#include "runtime/builtin/text.h"

using reflex::abi::Text;
using reflex::builtin::PatternTable;

extern "C" {

const Text* rfx_const_text(const PatternTable* patterns, uint32_t index) noexcept {
  return patterns->text(index);
}

uint64_t rfx_text_eq(const PatternTable* patterns, uint32_t index, const Text* text) noexcept {
  return text != nullptr && text->view() == patterns->text(index)->view();
}

uint64_t rfx_text_like(const PatternTable* patterns, uint32_t index, const Text* text) noexcept {
  return text != nullptr && patterns->glob_matches(index, text->view());
}

uint64_t rfx_text_matches(const PatternTable* patterns, uint32_t index, const Text* text) noexcept {
  return text != nullptr && patterns->regex_matches(index, text->view());
}

uint64_t rfx_text_same(const Text* a, const Text* b) noexcept {
  return a != nullptr && b != nullptr && a->view() == b->view();
}

uint64_t rfx_symbol_like(const PatternTable* patterns, uint32_t index, int64_t symbol) noexcept {
  return patterns->symbol_matches(index, symbol);
}

}  // extern "C"
