// PatternTable: the constants that builtins need besides numbers: literals, globs, compiled
// regular expressions and large integer sets of one evaluator set.
//
// Ownership: made once per evaluator set, immutable, lives as long as the set; Evaluator::self
// leads to it in both backends. Errors: a regular expression that RE2 refuses or that is too
// large is an Error (the checker has already reported it to the author with its place).
// Threads: all const members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/record.h"
#include "runtime/base/result.h"
#include "runtime/base/symbols.h"

namespace re2 {
class RE2;
}

namespace reflex::builtin {

/// Why: RE2 runs in linear time for any pattern, but its automata grow with repetition counts;
/// 20,000 instructions is far beyond any pattern of a log line and still under 1 MiB.
inline constexpr int kRegexProgramMax = 20'000;

/// What a PatternTable is made of; indices are those of the IR module.
struct PatternSource {
  std::vector<std::string> texts;
  std::vector<std::string> globs;
  std::vector<std::string> regexes;            // RE2 syntax
  std::vector<std::vector<int64_t>> int_sets;  // each sorted and unique
};

class PatternTable {
 public:
  static Result<std::shared_ptr<const PatternTable>> make(
      const PatternSource& source, std::shared_ptr<const SymbolTable> symbols);
  ~PatternTable();
  PatternTable(const PatternTable&) = delete;
  PatternTable& operator=(const PatternTable&) = delete;

  [[nodiscard]] const abi::Text* text(uint32_t index) const noexcept;
  [[nodiscard]] bool glob_matches(uint32_t index, std::string_view text) const noexcept;
  [[nodiscard]] bool regex_matches(uint32_t index, std::string_view text) const noexcept;
  /// False for an id that the symbol table does not have.
  [[nodiscard]] bool symbol_matches(uint32_t glob, int64_t symbol) const noexcept;
  [[nodiscard]] bool set_contains(uint32_t index, int64_t value) const noexcept;

 private:
  PatternTable() = default;
  std::vector<std::vector<uint64_t>> texts_;  // abi::Text header and bytes, 8-byte aligned
  std::vector<std::string> globs_;
  std::vector<std::unique_ptr<re2::RE2>> regexes_;
  std::vector<std::vector<int64_t>> int_sets_;
  std::shared_ptr<const SymbolTable> symbols_;  // null: no symbol matches
};

/// `like`: '*' is any run of bytes, '?' one byte, the rest stands for itself; the whole text.
/// Cost: O(|glob| * |text|) at worst, without recursion or allocation.
bool glob_match(std::string_view glob, std::string_view text) noexcept;

}  // namespace reflex::builtin
