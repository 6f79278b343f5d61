// JsonValue: one member of an event object, as both readers (predictive and simdjson) hand it to
// the record builder, and the number scanner that both use, so that they cannot differ.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace reflex::stream {

enum class JsonType : uint8_t {
  kNull,
  kFalse,
  kTrue,
  kInt,      // i64 holds it
  kDecimal,  // i64 / 10^scale, exactly
  kReal,     // any other JSON number: only `text` holds it
  kString,   // `text`, unescaped
  kArray,
  kObject,
};

struct JsonValue {
  JsonType type = JsonType::kNull;
  uint8_t scale = 0;
  uint16_t key = 0;  // KeyTable id; 0 = unknown
  int64_t i64 = 0;
  std::string_view text;                    // strings; the raw token of numbers
  std::vector<JsonValue>* items = nullptr;  // arrays; objects as key text, value, key text, ...
};

/// Eight ASCII digits at `p` as a number, or false.
inline bool eight_digits(const char* p, uint64_t& value) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  const uint64_t low = word - 0x3030303030303030ull;
  if (((low + 0x7676767676767676ull) | low) & 0x8080808080808080ull) return false;
  // Source: D. Lemire, "Quickly parsing eight digits" (little-endian pairwise multiply).
  word = low * 10 + (low >> 8);
  value = (((word & 0x000000FF000000FFull) * 0x000F424000000064ull) +
           (((word >> 16) & 0x000000FF000000FFull) * 0x0000271000000001ull)) >>
          32;
  return true;
}

/// Scans a JSON number without exponent and with at most 18 digits at `p` (16 bytes readable).
/// Returns the end, or null when it is not such a number.
inline const char* scan_number(const char* p, JsonValue& value) {
  const char* start = p;
  const bool negative = *p == '-';
  p += negative;
  const char* first = p;
  uint64_t mantissa = 0;
  uint64_t eight;
  if (static_cast<unsigned char>(p[4]) - unsigned{'0'} < 10 && eight_digits(p, eight)) {
    mantissa = eight;
    p += 8;
  }
  unsigned digit;
  while ((digit = static_cast<unsigned char>(*p) - unsigned{'0'}) < 10) {
    mantissa = mantissa * 10 + digit;
    if (++p - first > 18) return nullptr;
  }
  if (p == first || (*first == '0' && p - first > 1)) return nullptr;
  unsigned scale = 0;
  if (*p == '.') {
    const char* fraction = ++p;
    while ((digit = static_cast<unsigned char>(*p) - unsigned{'0'}) < 10) {
      mantissa = mantissa * 10 + digit;
      if (++p - first > 19) return nullptr;
    }
    scale = static_cast<unsigned>(p - fraction);
    if (scale == 0) return nullptr;
  }
  if ((*p | 0x20) == 'e') return nullptr;
  value.type = scale == 0 ? JsonType::kInt : JsonType::kDecimal;
  value.scale = static_cast<uint8_t>(scale);
  value.i64 = negative ? -static_cast<int64_t>(mantissa) : static_cast<int64_t>(mantissa);
  value.text = {start, static_cast<size_t>(p - start)};
  return p;
}

/// A scalar token that is not a string: number, true, false, null. False: not JSON.
/// `token` needs 16 readable bytes after its end that do not continue it.
bool scan_scalar(std::string_view token, JsonValue& value);

/// The value as a double, correctly rounded; false when it is not a finite number.
bool to_real(const JsonValue& value, double& out);
/// The value as an integer: 3, 3.0, 3e2; saturates beyond 64 bits. False: has a fraction, or is no
/// number.
bool to_integer(const JsonValue& value, int64_t& out);
/// value * unit as an integer (rounded toward zero), for times; false when it overflows.
bool to_scaled(const JsonValue& value, int64_t unit, int64_t& out);

}  // namespace reflex::stream
