// Places in a text; see text_lines.h.
#include "compiler/lsp/text_lines.h"

#include <algorithm>

namespace reflex::lsp {
namespace {

/// Bytes of the character at `i`, and its UTF-16 units.
struct Character {
  uint32_t bytes = 1;
  uint32_t units = 1;
};

Character character_at(std::string_view text, size_t i) {
  const auto first = static_cast<unsigned char>(text[i]);
  uint32_t bytes = 1;
  if (first >= 0xF0) {
    bytes = 4;
  } else if (first >= 0xE0) {
    bytes = 3;
  } else if (first >= 0xC0) {
    bytes = 2;
  }
  for (uint32_t k = 1; k < bytes; ++k) {
    const bool tail =
        i + k < text.size() && (static_cast<unsigned char>(text[i + k]) & 0xC0u) == 0x80u;
    if (!tail) return {};
  }
  return {bytes, bytes == 4 ? 2u : 1u};
}

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text), starts_{0} {
  for (size_t i = 0; i < text_.size(); ++i) {
    const bool ends =
        text_[i] == '\n' || (text_[i] == '\r' && (i + 1 == text_.size() || text_[i + 1] != '\n'));
    if (ends) starts_.push_back(static_cast<uint32_t>(i + 1));
  }
}

uint32_t TextLines::line_begin(uint32_t line) const {
  return line < starts_.size() ? starts_[line] : static_cast<uint32_t>(text_.size());
}

uint32_t TextLines::line_end(uint32_t line) const {
  const uint32_t begin = line_begin(line);
  uint32_t end =
      line + 1 < starts_.size() ? starts_[line + 1] : static_cast<uint32_t>(text_.size());
  while (end > begin && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  return end;
}

Position TextLines::position(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  Position place;
  place.line = static_cast<uint32_t>(after - starts_.begin()) - 1;
  for (uint32_t i = *(after - 1); i < offset;) {
    const Character c = character_at(text_, i);
    if (i + c.bytes > offset) break;
    place.character += c.units;
    i += c.bytes;
  }
  return place;
}

uint32_t TextLines::offset(Position position) const {
  if (position.line >= starts_.size()) return static_cast<uint32_t>(text_.size());
  const uint32_t end = line_end(position.line);
  uint32_t at = starts_[position.line];
  uint32_t units = 0;
  while (at < end) {
    const Character c = character_at(text_, at);
    if (units + c.units > position.character) break;
    units += c.units;
    at += c.bytes;
  }
  return at;
}

uint32_t utf16_length(std::string_view text) {
  uint32_t units = 0;
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    units += c.units;
    i += c.bytes;
  }
  return units;
}

}  // namespace reflex::lsp
