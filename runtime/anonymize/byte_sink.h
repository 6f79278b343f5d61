// ByteSink: writes a file, plain or compressed as the input was.
//
// Errors stick: the first one is what close() reports. Bounded memory: one block of the compressor.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace reflex::anonymize {

enum class Packing : uint8_t { kPlain, kGzip, kZstd };
/// By the first bytes of a file, as stream/byte_source.h tells it.
Packing packing_of(const std::string& path);
std::string_view suffix(Packing packing);  // "", ".gz", ".zst"

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual Status close() = 0;
};

/// Fails when the file exists: an earlier output is not overwritten.
Result<std::unique_ptr<ByteSink>> open_sink(const std::string& path, Packing packing);

}  // namespace reflex::anonymize
