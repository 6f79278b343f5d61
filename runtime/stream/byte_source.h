// ByteSource: the decompressed bytes of a file or of standard input.
//
// Compression is told by the first bytes (gzip, zstd, else plain), never by the name. Concatenated
// gzip members and zstd frames are read as one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/result.h"

namespace reflex::stream {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills up to `size` bytes; 0 = end. A pipe may give fewer bytes than asked for.
  virtual Result<size_t> read(char* out, size_t size) = 0;
  [[nodiscard]] virtual uint64_t bytes_read() const = 0;  // of the file, compressed
  [[nodiscard]] virtual uint64_t bytes_total() const = 0;
  [[nodiscard]] virtual int64_t modified_ns() const = 0;
};

/// "-" is standard input.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);

}  // namespace reflex::stream
