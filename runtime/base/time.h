// Time, as types that do not mix: EventTime (what a source said), Duration.
//
// Units: nanoseconds in int64 (range 1677..2262). Plain-data structs of the abi store raw int64
// members named *_ns; everything else uses these types.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace reflex {

struct Duration {
  int64_t ns = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
};

struct EventTime {
  int64_t ns = 0;
  friend constexpr auto operator<=>(EventTime, EventTime) = default;
  friend constexpr Duration operator-(EventTime a, EventTime b) { return {a.ns - b.ns}; }
  friend constexpr EventTime operator+(EventTime a, Duration d) { return {a.ns + d.ns}; }
  friend constexpr EventTime operator-(EventTime a, Duration d) { return {a.ns - d.ns}; }
};

inline constexpr int64_t kNsPerUs = 1'000;
inline constexpr int64_t kNsPerMs = 1'000'000;
inline constexpr int64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kNsPerMinute = 60 * kNsPerSecond;
inline constexpr int64_t kNsPerHour = 60 * kNsPerMinute;
inline constexpr int64_t kNsPerDay = 24 * kNsPerHour;
inline constexpr int64_t kNoTimeNs = std::numeric_limits<int64_t>::min();

/// RFC 3339 UTC with at least ms ("2026-03-01T12:00:00.250Z"), more digits only when needed.
std::string to_rfc3339(EventTime t);

/// Parses RFC 3339 with any precision up to ns and any offset. Nothing on malformed text.
std::optional<EventTime> parse_rfc3339(std::string_view text);

/// Days from 1970-01-01 of a proleptic Gregorian date, and back.
int64_t days_from_civil(int64_t year, unsigned month, unsigned day);
struct CivilDate {
  int64_t year = 1970;
  unsigned month = 1;
  unsigned day = 1;
};
CivilDate civil_from_days(int64_t days);

/// Short human form: "1.5s", "20m", "3d", "2h30m".
std::string to_text(Duration d);

/// "10m", "1h30m", "600ms", "1.5s", "-5s": numbers with ns us ms s m h d w. Nothing on anything
/// else, a bare number included.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace reflex
