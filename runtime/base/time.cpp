// Conversions of time to and from text; no locale, no time zone database.
//
// Source: RFC 3339 sections 5.6 and 5.7; the civil-day arithmetic is Hinnant's
// "chrono-Compatible Low-Level Date Algorithms" (eras of 400 years).
#include "runtime/base/time.h"

#include <fmt/format.h>

#include <array>

namespace reflex {
namespace {

// The whole years that int64 nanoseconds can hold.
constexpr int kYearMin = 1678;
constexpr int kYearMax = 2261;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

unsigned days_in_month(int64_t year, unsigned month) {
  constexpr unsigned char kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29u : kDays[month - 1];
}

/// A reader of fixed-width decimal fields; `ok` turns false at the first mismatch.
struct Cursor {
  std::string_view text;
  size_t at = 0;
  bool ok = true;

  unsigned digits(unsigned count) {
    unsigned value = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (at >= text.size() || !is_digit(text[at])) {
        ok = false;
        return 0;
      }
      value = value * 10 + static_cast<unsigned>(text[at++] - '0');
    }
    return value;
  }
  char next() { return at < text.size() ? text[at++] : '\0'; }
  [[nodiscard]] char peek() const { return at < text.size() ? text[at] : '\0'; }
  void expect(char c) { ok = ok && next() == c; }
};

/// Digits after the decimal point as nanoseconds; what is finer than 1 ns is cut off.
int64_t read_fraction_ns(Cursor& c) {
  int64_t ns = 0;
  int64_t unit = kNsPerSecond / 10;
  if (!is_digit(c.peek())) c.ok = false;
  while (is_digit(c.peek())) {
    ns += (c.next() - '0') * unit;
    unit /= 10;
  }
  return ns;
}

/// "Z", "+02:00", "-0500": seconds to subtract from the local time.
int64_t read_offset_s(Cursor& c) {
  const char sign = c.next();
  if (sign == 'Z' || sign == 'z') return 0;
  if (sign != '+' && sign != '-') {
    c.ok = false;
    return 0;
  }
  const unsigned hours = c.digits(2);
  if (c.peek() == ':') c.next();
  const unsigned minutes = c.digits(2);
  if (hours > 23 || minutes > 59) c.ok = false;
  const int64_t seconds = int64_t{hours} * 3600 + int64_t{minutes} * 60;
  return sign == '+' ? seconds : -seconds;
}

}  // namespace

int64_t days_from_civil(int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t shifted = month > 2 ? int64_t{month} - 3 : int64_t{month} + 9;
  const int64_t day_of_year = (153 * shifted + 2) / 5 + int64_t{day} - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

CivilDate civil_from_days(int64_t days) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  CivilDate date;
  date.day = static_cast<unsigned>(day_of_year - (153 * shifted + 2) / 5 + 1);
  date.month = static_cast<unsigned>(shifted < 10 ? shifted + 3 : shifted - 9);
  date.year = year_of_era + era * 400 + (date.month <= 2 ? 1 : 0);
  return date;
}

std::string to_rfc3339(EventTime t) {
  int64_t days = t.ns / kNsPerDay;
  int64_t rest = t.ns % kNsPerDay;
  if (rest < 0) {
    rest += kNsPerDay;
    --days;
  }
  const CivilDate date = civil_from_days(days);
  const int64_t second = rest / kNsPerSecond;
  const int64_t ns = rest % kNsPerSecond;
  // By hand: a verdict has hundreds of instants, and a format string is read for each.
  std::array<char, 32> text;
  char* end = text.data();
  const auto digits = [&end](int64_t value, int count) {
    for (int i = count; i-- > 0; value /= 10) end[i] = static_cast<char>('0' + value % 10);
    end += count;
  };
  digits(date.year, 4);  // 64 bits of nanoseconds end in the year 2262
  *end++ = '-', digits(date.month, 2);
  *end++ = '-', digits(date.day, 2);
  *end++ = 'T', digits(second / 3600, 2);
  *end++ = ':', digits(second / 60 % 60, 2);
  *end++ = ':', digits(second % 60, 2);
  *end++ = '.';
  if (ns % kNsPerMs == 0)
    digits(ns / kNsPerMs, 3);
  else if (ns % kNsPerUs == 0)
    digits(ns / kNsPerUs, 6);
  else
    digits(ns, 9);
  *end++ = 'Z';
  return {text.data(), end};
}

std::optional<EventTime> parse_rfc3339(std::string_view text) {
  Cursor c{text};
  const unsigned year = c.digits(4);
  c.expect('-');
  const unsigned month = c.digits(2);
  c.expect('-');
  const unsigned day = c.digits(2);
  const char separator = c.next();
  if (separator != 'T' && separator != 't' && separator != ' ') return std::nullopt;
  const unsigned hour = c.digits(2);
  c.expect(':');
  const unsigned minute = c.digits(2);
  c.expect(':');
  const unsigned second = c.digits(2);
  int64_t fraction_ns = 0;
  if (c.ok && c.peek() == '.') {
    c.next();
    fraction_ns = read_fraction_ns(c);
  }
  const int64_t offset_s = read_offset_s(c);
  if (!c.ok || c.at != text.size()) return std::nullopt;
  if (year < kYearMin || year > kYearMax || month < 1 || month > 12 || day < 1) return std::nullopt;
  if (day > days_in_month(year, month) || hour > 23 || minute > 59) return std::nullopt;
  if (second > 60) return std::nullopt;  // 60 is a leap second: read as the second after
  const int64_t seconds = days_from_civil(year, month, day) * 86400 + int64_t{hour} * 3600 +
                          int64_t{minute} * 60 + int64_t{second} - offset_s;
  return EventTime{seconds * kNsPerSecond + fraction_ns};
}

std::string to_text(Duration d) {
  if (d.ns == 0) return "0s";
  std::string out = d.ns < 0 ? "-" : "";
  // The negation in unsigned arithmetic holds for INT64_MIN too.
  uint64_t left = d.ns < 0 ? 0 - static_cast<uint64_t>(d.ns) : static_cast<uint64_t>(d.ns);
  const auto with_fraction = [&out](uint64_t value, uint64_t unit, const char* name) {
    std::string digits = fmt::format("{}", value % unit + unit).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    out += fmt::format("{}{}{}{}", value / unit, digits.empty() ? "" : ".", digits, name);
  };
  if (left < static_cast<uint64_t>(kNsPerUs)) return out + fmt::format("{}ns", left);
  if (left < static_cast<uint64_t>(kNsPerMs)) {
    with_fraction(left, kNsPerUs, "us");
    return out;
  }
  if (left < static_cast<uint64_t>(kNsPerSecond)) {
    with_fraction(left, kNsPerMs, "ms");
    return out;
  }
  constexpr struct {
    int64_t ns;
    char name;
  } kUnits[] = {{kNsPerDay, 'd'}, {kNsPerHour, 'h'}, {kNsPerMinute, 'm'}};
  for (const auto& unit : kUnits) {
    const uint64_t count = left / static_cast<uint64_t>(unit.ns);
    if (count != 0) out += fmt::format("{}{}", count, unit.name);
    left %= static_cast<uint64_t>(unit.ns);
  }
  if (left != 0) with_fraction(left, kNsPerSecond, "s");
  return out;
}

std::optional<Duration> parse_duration(std::string_view text) {
  constexpr struct {
    std::string_view name;
    int64_t ns;
  } kUnits[] = {{"ns", 1},           {"us", kNsPerUs},  {"ms", kNsPerMs}, {"s", kNsPerSecond},
                {"m", kNsPerMinute}, {"h", kNsPerHour}, {"d", kNsPerDay}, {"w", 7 * kNsPerDay}};
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  __extension__ using Wide = __int128;
  Wide total = 0;
  while (!text.empty()) {
    Wide mantissa = 0;
    int64_t divisor = 1;
    size_t i = 0;
    bool point = false;
    // Why 15: digits that int64 nanoseconds of a week still hold without overflow in 128 bits.
    for (; i < text.size() && i < 15 && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
      if (text[i] == '.') {
        point = true;
        continue;
      }
      mantissa = mantissa * 10 + (text[i] - '0');
      if (point) divisor *= 10;
    }
    if (i == 0 || text[i - 1] == '.') return std::nullopt;
    size_t end = i;
    while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
    int64_t unit_ns = 0;
    for (const auto& unit : kUnits) {
      if (unit.name == text.substr(i, end - i)) unit_ns = unit.ns;
    }
    if (unit_ns == 0) return std::nullopt;
    total += mantissa * unit_ns / divisor;
    if (total > std::numeric_limits<int64_t>::max()) return std::nullopt;
    text.remove_prefix(end);
  }
  return Duration{static_cast<int64_t>(negative ? -total : total)};
}

}  // namespace reflex
