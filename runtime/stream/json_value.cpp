// Conversions of JSON scalars; exact where decimal arithmetic allows it.
#include "runtime/stream/json_value.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace reflex::stream {
namespace {

constexpr int64_t kPow10[] = {1,
                              10,
                              100,
                              1'000,
                              10'000,
                              100'000,
                              1'000'000,
                              10'000'000,
                              100'000'000,
                              1'000'000'000,
                              10'000'000'000,
                              100'000'000'000,
                              1'000'000'000'000,
                              10'000'000'000'000,
                              100'000'000'000'000,
                              1'000'000'000'000'000,
                              10'000'000'000'000'000,
                              100'000'000'000'000'000,
                              1'000'000'000'000'000'000};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The full JSON number grammar, for tokens that scan_number leaves.
bool is_json_number(std::string_view t) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t from = i;
    while (i < t.size() && is_digit(t[i])) ++i;
    return i - from;
  };
  if (i < t.size() && t[i] == '-') ++i;
  const size_t first = i;
  const size_t whole = digits();
  if (whole == 0 || (whole > 1 && t[first] == '0')) return false;
  if (i < t.size() && t[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < t.size() && (t[i] | 0x20) == 'e') {
    ++i;
    if (i < t.size() && (t[i] == '+' || t[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == t.size();
}

}  // namespace

bool scan_scalar(std::string_view token, JsonValue& value) {
  if (token.empty()) return false;
  value.text = token;
  if (token == "null") {
    value.type = JsonType::kNull;
    return true;
  }
  if (token == "true" || token == "false") {
    value.type = token == "true" ? JsonType::kTrue : JsonType::kFalse;
    return true;
  }
  const char* end = scan_number(token.data(), value);
  if (end == token.data() + token.size()) return true;
  value.text = token;
  value.type = JsonType::kReal;
  return is_json_number(token);
}

bool to_real(const JsonValue& value, double& out) {
  // Source: Clinger 1990: both operands exact (mantissa < 2^53, power of ten <= 10^22), so that one
  // division rounds correctly.
  constexpr int64_t kExactMax = int64_t{1} << 53;
  switch (value.type) {
    case JsonType::kInt:
      out = static_cast<double>(value.i64);
      return true;
    case JsonType::kDecimal:
      if (value.i64 < kExactMax && value.i64 > -kExactMax) {
        out = static_cast<double>(value.i64) / static_cast<double>(kPow10[value.scale]);
        if (value.i64 == 0 && value.text.front() == '-') out = -0.0;
        return true;
      }
      [[fallthrough]];
    case JsonType::kReal: {
      const char* end = value.text.data() + value.text.size();
      const auto [stop, code] = std::from_chars(value.text.data(), end, out);
      return code == std::errc() && stop == end && std::isfinite(out);
    }
    default:
      return false;
  }
}

bool to_integer(const JsonValue& value, int64_t& out) {
  if (value.type == JsonType::kInt) {
    out = value.i64;
    return true;
  }
  if (value.type == JsonType::kDecimal) {
    if (value.i64 % kPow10[value.scale] != 0) return false;
    out = value.i64 / kPow10[value.scale];
    return true;
  }
  if (value.type != JsonType::kReal) return false;
  // A plain integer of 19 or 20 digits is still exact in 64 bits.
  const char* end = value.text.data() + value.text.size();
  const auto [stop, code] = std::from_chars(value.text.data(), end, out);
  if (code == std::errc() && stop == end) return true;
  double real = 0;
  if (!to_real(value, real) || real != std::trunc(real)) return false;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (real >= kLimit) {
    out = std::numeric_limits<int64_t>::max();
  } else if (real < -kLimit) {
    out = std::numeric_limits<int64_t>::min();
  } else {
    out = static_cast<int64_t>(real);
  }
  return true;
}

bool to_scaled(const JsonValue& value, int64_t unit, int64_t& out) {
  if (value.type == JsonType::kInt) return !__builtin_mul_overflow(value.i64, unit, &out);
  __extension__ using Wide = __int128;
  if (value.type == JsonType::kDecimal) {
    const Wide product = static_cast<Wide>(value.i64) * unit / kPow10[value.scale];
    if (product > std::numeric_limits<int64_t>::max()) return false;
    if (product < std::numeric_limits<int64_t>::min()) return false;
    out = static_cast<int64_t>(product);
    return true;
  }
  double real = 0;
  if (!to_real(value, real)) return false;
  real *= static_cast<double>(unit);
  if (!(std::abs(real) < 9.2e18)) return false;
  out = static_cast<int64_t>(real);
  return true;
}

}  // namespace reflex::stream
