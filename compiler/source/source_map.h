// SourceMap: the texts under compilation and where a byte of them is.
//
// Contract: files are added once and never change; a Span is (file, byte range) and stays valid as
// long as the map. BOM is stripped and CRLF accepted (counted as one line end). Columns are
// 1-based and count code points (language.md B3); a tab counts one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace reflex::source {

using FileId = uint32_t;

struct Span {
  FileId file = 0;
  uint32_t begin = 0;  // byte offset
  uint32_t end = 0;    // one past the last byte
};

struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
};

class SourceMap {
 public:
  FileId add(std::string path, std::string text);
  [[nodiscard]] std::string_view path(FileId file) const;
  [[nodiscard]] std::string_view text(FileId file) const;
  [[nodiscard]] LineColumn locate(FileId file, uint32_t offset) const;
  /// The text of a 1-based line, without its end.
  [[nodiscard]] std::string_view line(FileId file, uint32_t line) const;
  [[nodiscard]] size_t file_count() const { return files_.size(); }

 private:
  struct File {
    std::string path;
    std::string text;
    std::vector<uint32_t> line_starts;
  };
  std::deque<File> files_;
};

/// Smallest span that covers both (same file).
Span cover(Span a, Span b);

}  // namespace reflex::source
