// Scans of JSON tokens in a text with 64 readable bytes after its end; shared by the predictive
// and the template reader, so that they cannot differ. All scans stop at '\n' at the latest.
#pragma once

#include <emmintrin.h>
#include <simdjson.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/stream/json_value.h"

namespace reflex::stream {

inline uint64_t load8(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

/// One bit for each of 16 bytes that is no plain content of a string: quote, backslash, control
/// characters, bytes from 0x80.
inline unsigned string_stops(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  // Signed compare: control characters and bytes >= 0x80 at once.
  const __m128i stop = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                 _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
                                    _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')));
  return static_cast<unsigned>(_mm_movemask_epi8(stop));
}

/// The first byte at or after `p` that is no plain content of a string.
inline const char* find_string_stop(const char* p) {
  unsigned mask = string_stops(p);
  while (mask == 0) {
    p += 16;
    mask = string_stops(p) | string_stops(p + 16) << 16;
    if (mask == 0) p += 16;
  }
  return p + std::countr_zero(mask);
}

/// The closing quote of a string without escapes whose content starts at `p`; null when it has
/// escapes, control characters or broken UTF-8.
inline const char* find_string_end(const char* p) {
  const char* start = p;
  bool has_high_bytes = false;
  for (;;) {
    p = find_string_stop(p);
    if (*p == '"') break;
    if (static_cast<unsigned char>(*p) < 0x80) return nullptr;
    has_high_bytes = true;
    ++p;
  }
  if (has_high_bytes && !simdjson::validate_utf8(start, static_cast<size_t>(p - start))) {
    return nullptr;
  }
  return p;
}

/// `p` is after the opening quote; returns the byte after the closing one.
inline const char* scan_string(const char* p, JsonValue& value) {
  const char* end = find_string_end(p);
  if (end == nullptr) return nullptr;
  value.type = JsonType::kString;
  value.text = {p, static_cast<size_t>(end - p)};
  return end + 1;
}

/// A string without escapes, a number without exponent, true, false or null; null for all else.
inline const char* scan_value(const char* p, JsonValue& value) {
  const auto word = [&](std::string_view text, JsonType type) -> const char* {
    if (std::memcmp(p, text.data(), text.size()) != 0) return nullptr;
    value.type = type;
    value.text = text;
    return p + text.size();
  };
  switch (*p) {
    case '"':
      return scan_string(p + 1, value);
    case 't':
      return word("true", JsonType::kTrue);
    case 'f':
      return word("false", JsonType::kFalse);
    case 'n':
      return word("null", JsonType::kNull);
    default:
      return scan_number(p, value);  // refuses what is no number
  }
}

/// The number of ASCII digits at `p` (0 to 8; 8 also when more follow) and their value, without a
/// branch on the count: numbers of changing length would be mispredicted.
inline unsigned scan_digits(const char* p, uint64_t& value) {
  uint64_t word = load8(p) ^ 0x3030303030303030ull;  // digits become 0..9
  const uint64_t others =
      (word | ((word & 0x7F7F7F7F7F7F7F7Full) + 0x7676767676767676ull)) & 0x8080808080808080ull;
  const auto bits = static_cast<unsigned>(std::countr_zero(others)) & ~7u;  // 64 when all are
  // Missing digits become leading zeros. Two shifts: one by 64 would be undefined.
  word = word << (32 - bits / 2) << (32 - bits / 2);
  // Source: D. Lemire, "Quickly parsing eight digits" (little-endian pairwise multiply).
  word = word * 10 + (word >> 8);
  value = (((word & 0x000000FF000000FFull) * 0x000F424000000064ull) +
           (((word >> 16) & 0x000000FF000000FFull) * 0x0000271000000001ull)) >>
          32;
  return bits / 8;
}

/// A non-negative integer of at most 16 digits; null for all other tokens. A fraction or exponent
/// stays behind, where no literal of a template fits it.
inline const char* scan_integer(const char* p, int64_t& out) {
  uint64_t value;
  unsigned digits = scan_digits(p, value);
  if (digits == 0 || (*p == '0' && digits > 1)) return nullptr;
  if (digits == 8) {
    constexpr uint64_t kPow10[] = {1,       10,        100,        1'000,      10'000,
                                   100'000, 1'000'000, 10'000'000, 100'000'000};
    uint64_t rest;
    const unsigned more = scan_digits(p + 8, rest);
    if (more == 8) return nullptr;  // perhaps longer
    value = value * kPow10[more] + rest;
    digits += more;
  }
  out = static_cast<int64_t>(value);
  return p + digits;
}

/// A non-negative decimal with at most 7 digits before and after the point, correctly rounded;
/// null for all other tokens.
inline const char* scan_real(const char* p, double& out) {
  uint64_t whole;
  const unsigned digits = scan_digits(p, whole);
  if (digits == 0 || digits == 8 || (*p == '0' && digits > 1)) return nullptr;
  p += digits;
  if (*p != '.') {
    out = static_cast<double>(static_cast<int64_t>(whole));
    return p;
  }
  constexpr int64_t kPow10[] = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};
  uint64_t part;
  const unsigned places = scan_digits(p + 1, part);
  if (places == 0 || places == 8) return nullptr;
  // Both operands are exact, so that one division rounds correctly (see to_real).
  const int64_t scale = kPow10[places];
  out = static_cast<double>(static_cast<int64_t>(whole) * scale + static_cast<int64_t>(part)) /
        static_cast<double>(scale);
  return p + 1 + places;
}

}  // namespace reflex::stream
