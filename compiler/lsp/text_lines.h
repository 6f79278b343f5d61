// TextLines: places of a text as LSP counts them and as the compiler does.
//
// Contract: LSP places are (line from 0, UTF-16 code unit from 0); ours are byte offsets. A line
// ends at \n, \r\n or \r. Places outside of the text or inside of a character are moved to the
// nearest one before: a client's mistake never leads outside of the text. Broken UTF-8 counts a
// byte a unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reflex::lsp {

struct Position {
  uint32_t line = 0;
  uint32_t character = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};
struct Range {
  Position start;
  Position end;
  friend bool operator==(const Range&, const Range&) = default;
};

class TextLines {
 public:
  explicit TextLines(std::string_view text);
  [[nodiscard]] Position position(uint32_t offset) const;
  [[nodiscard]] uint32_t offset(Position position) const;
  [[nodiscard]] Range range(uint32_t begin, uint32_t end) const {
    return {position(begin), position(end)};
  }
  [[nodiscard]] size_t line_count() const { return starts_.size(); }
  /// Where a line begins, and where its text ends (before the line end).
  [[nodiscard]] uint32_t line_begin(uint32_t line) const;
  [[nodiscard]] uint32_t line_end(uint32_t line) const;

 private:
  std::string text_;
  std::vector<uint32_t> starts_;
};

/// UTF-16 code units of a UTF-8 text.
uint32_t utf16_length(std::string_view text);

}  // namespace reflex::lsp
