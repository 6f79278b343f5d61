// DocumentReader: any JSON object through simdjson on demand; the slow and complete path.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "runtime/stream/json_value.h"
#include "runtime/stream/record_builder.h"

namespace reflex::stream {

class DocumentReader {
 public:
  DocumentReader();
  ~DocumentReader();
  /// `line` is not empty and has 64 readable bytes after its end. Reject::kCount means success;
  /// the members are valid until the next call.
  Reject read(std::string_view line, const RecordBuilder& keys);
  /// The same for members that any key is kept of: name, value, name, value, ... (log envelopes).
  Reject read_pairs(std::string_view line);
  [[nodiscard]] std::span<const JsonValue> members() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reflex::stream
