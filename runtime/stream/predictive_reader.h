// PredictiveReader: the fast path of NDJSON. Guesses that a line has the keys of the previous line
// of its kind, in that order and with the same bytes between the values, and compares instead of
// parsing; a key that differs is parsed and learned.
//
// Takes: a flat object of ASCII keys, strings without escapes, numbers without exponent, true,
// false, null. Gives up on everything else (the caller then uses DocumentReader). Whatever it
// takes, DocumentReader reads the same way: property test fast_path_equals_document_reader.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/stream/json_scan.h"
#include "runtime/stream/record_builder.h"

namespace reflex::stream {

class PredictiveReader {
 public:
  explicit PredictiveReader(const RecordBuilder& builder)
      : builder_(&builder), templates_(builder.wire_kind_count()) {}

  /// Reads the line at `p`; the text must hold a '\n' and 64 readable bytes after that. Returns the
  /// byte after the '\n', or null when the line is not for this reader.
  const char* read(const char* p);
  [[nodiscard]] std::span<const JsonValue> members() const { return {members_.data(), count_}; }
  /// The wire kind.
  [[nodiscard]] uint32_t kind() const { return kind_; }
  /// The bytes of the line between the value before `member` and its own.
  [[nodiscard]] std::string_view before(size_t member) const { return between_[member]; }
  /// The bytes after the last value, with the '\n'.
  [[nodiscard]] std::string_view after() const { return after_; }

  static constexpr size_t kMembersMax = 64;

 private:
  static constexpr size_t kLiteralMax = 48;  // Why: a compare never reads past the 64 spare bytes

  /// The bytes between two values: `,"node":`.
  struct Literal {
    std::array<char, kLiteralMax> bytes{};
    uint64_t mask_low = 0;   // of the first 8 bytes
    uint64_t mask_high = 0;  // of the second 8
    uint32_t size = 0;
    uint16_t key = 0;
    [[nodiscard]] bool matches(const char* p) const {
      const uint64_t low = (load8(p) ^ load8(bytes.data())) & mask_low;
      const uint64_t high = (load8(p + 8) ^ load8(bytes.data() + 8)) & mask_high;
      if ((low | high) != 0) return false;
      return size <= 16 || std::memcmp(p + 16, bytes.data() + 16, size - 16) == 0;
    }
  };
  struct Template {
    std::vector<Literal> literals;
    size_t kind_position = SIZE_MAX;
    unsigned misses = 0;
  };
  const char* read_key(const char* p, uint16_t& key) const;
  void learn();

  const RecordBuilder* builder_;
  std::vector<Template> templates_;  // [wire kind]
  const Template* last_ = nullptr;   // of the previous line
  std::array<JsonValue, kMembersMax> members_;
  std::array<std::string_view, kMembersMax> between_;  // literal bytes before each value
  std::string_view after_;
  size_t count_ = 0;
  size_t kind_position_ = 0;
  uint32_t kind_ = 0;
};

}  // namespace reflex::stream
