// LineMatcher: which `line` patterns of all decoders may match a text, without running them.
//
// Idea: RE2's FilteredRE2 derives from each pattern the literals ("atoms") that a match must hold;
// one pass over the text finds atoms by four rare bytes of each. A text without any atom is
// done after that pass (about 1 ns a byte).
#pragma once

#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <array>
#include <bitset>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"

namespace reflex::stream {

class LineMatcher {
 public:
  struct Line {
    const abi::DecoderLine* plan = nullptr;
    std::unique_ptr<re2::RE2> pattern;
    bool kernel_only = false;  // of a decoder with `prefix kernel`
    int guard = -1;            // fold patterns: atom that must stand in one of the lines; -1: none known
  };

  /// Keeps a copy of the plans: it serves every set with the same decoders.
  explicit LineMatcher(const abi::CompiledPack& pack);
  /// In precedence order: decoders in order, lines in declaration order.
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  [[nodiscard]] unsigned fold_max() const { return fold_max_; }
  /// Lines with fold_lines > 1.
  [[nodiscard]] const std::vector<int>& folds() const { return folds_; }

  /// Numbers of the atoms in `text`, sorted and unique.
  void find_atoms(std::string_view text, std::vector<int>& atoms) const;
  /// Lines that may match a text with these atoms, sorted.
  void potentials(const std::vector<int>& atoms, std::vector<int>& lines) const;

 private:
  /// The filter over literals of at least so many bytes, its atoms, and `always_`.
  void make_filter(size_t atom_bytes, std::vector<std::string>& atoms);
  void add_atom(size_t atom);
  std::deque<abi::DecoderLine> plans_;
  std::vector<Line> lines_;
  std::vector<int> folds_;
  unsigned fold_max_ = 1;
  std::unique_ptr<re2::FilteredRE2> filter_;  // null without patterns
  size_t filter_atoms_ = 0;         // atoms below it are the filter's, the rest are guards
  std::vector<std::string> atoms_;  // lower case
  std::vector<int> always_;         // lines without any required literal
  /// An atom and where its rarest four bytes (all of a shorter atom) stand in it. `word` are up to 8
  /// bytes of it that are compared at once: (text | fold) & mask == word, where `fold` has the
  /// lower-case bit of letters.
  struct Anchor {
    uint64_t word = 0;
    uint64_t fold = 0;
    uint64_t mask = 0;
    uint32_t atom = 0;
    uint32_t offset = 0;  // of the rarest bytes in the atom
    uint32_t window = 0;  // of `word` in the atom
    uint32_t size = 0;    // of the atom
  };
  /// Anchors by the hash of the bytes at them, whatever their case.
  struct Index {
    std::bitset<65536> starts;
    std::vector<uint16_t> anchors;  // [hash] -> index into anchors_
  };
  static constexpr uint32_t kFold = 0x20202020u;  // lower case of letters
  static uint32_t hash_of(uint32_t four_bytes) { return (four_bytes | kFold) * 0x9E3779B1u >> 16; }
  static uint32_t hash_of_three(uint32_t bytes) { return hash_of(bytes & 0xFFFFFFu); }
  [[nodiscard]] bool stands_at(const Anchor& anchor, std::string_view text, size_t at) const;
  void check(uint16_t anchors, std::string_view text, size_t at, std::vector<int>& atoms) const;
  void find_short_atoms(std::string_view text, std::vector<int>& atoms) const;
  Index four_;   // atoms of four bytes and more
  Index three_;  // the others; most pack sets have none
  bool has_short_ = false;
  std::vector<std::vector<Anchor>> anchors_;
  // [anchors] the folded bytes that all of them stand at; 0: they differ, or are three. Most hits of
  // `starts` are chance, and end here.
  std::vector<uint32_t> bytes_;
};

}  // namespace reflex::stream
