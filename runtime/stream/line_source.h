// LineSource: a file, .gz, .zst or standard input as chunks of whole lines.
//
// A line longer than kLineBytesMax is skipped and reported (never held). A last line without '\n'
// is delivered. The text stays valid while Chunk::memory is held; 64 readable bytes follow it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace reflex::stream {

struct Chunk {
  std::string_view text;  // whole lines; empty at the end of the source
  uint64_t first_line = 1;
  uint64_t lines_too_long = 0;  // skipped since the last chunk: the lines just before first_line
  std::shared_ptr<const void> memory;  // of the text
};

class LineSource {
 public:
  virtual ~LineSource() = default;
  /// Errors: read or decompression failures, with the path.
  virtual Result<Chunk> next(size_t bytes_wanted) = 0;
  [[nodiscard]] virtual uint64_t bytes_read() const = 0;   // of the file, compressed
  [[nodiscard]] virtual uint64_t bytes_total() const = 0;  // 0 = unknown (stdin)
  [[nodiscard]] virtual int64_t modified_ns() const = 0;   // the file's time
};

/// Lines that end in `text`. Cost: about 0.1 ns a byte.
uint64_t count_newlines(std::string_view text);

/// "-" is standard input; compression is told by content, not by name.
Result<std::unique_ptr<LineSource>> open_lines(const std::string& path);

}  // namespace reflex::stream
