// LineMatcher: which `line` patterns of all decoders may match a text, without running them.
//
// Idea: RE2's FilteredRE2 derives from each pattern the literals ("atoms") that a match must hold;
// one pass over the text finds atoms by a rare pair of bytes of each. A text without any atom is
// done after that pass (about 1 ns a byte).
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include "runtime/abi/compiled_pack.h"

namespace reflex::stream {

class LineMatcher {
 public:
  struct Line {
    const abi::DecoderLine* plan = nullptr;
    std::unique_ptr<re2::RE2> pattern;
    int guard = -1;   // fold patterns: atom that must stand in one of the lines; -1: none known
  };

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
  void add_atom(size_t atom);
  std::vector<Line> lines_;
  std::vector<int> folds_;
  unsigned fold_max_ = 1;
  re2::FilteredRE2 filter_;
  bool has_filter_ = false;
  size_t filter_atoms_ = 0;            // atoms below it are the filter's, the rest are guards
  std::vector<std::string> atoms_;     // lower case
  std::vector<int> always_;            // lines without any required literal
  struct Anchor {
    uint32_t atom;
    uint32_t offset;  // of the pair in the atom
  };
  std::bitset<65536> pairs_;                       // pairs of bytes that start a check
  std::vector<std::vector<Anchor>> anchors_;       // by index below
  std::vector<uint16_t> anchor_index_;             // [pair] -> index into anchors_
};

}  // namespace reflex::stream
