// Times and durations to text and back.
#include "runtime/base/time.h"

#include <gtest/gtest.h>

namespace reflex {
namespace {

int64_t ns_of(std::string_view text) {
  const auto parsed = parse_rfc3339(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? parsed->ns : -1;
}

TEST(Time, Rfc3339_known_instants) {
  EXPECT_EQ(ns_of("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(ns_of("2001-09-09T01:46:40Z"), 1'000'000'000 * kNsPerSecond);
  EXPECT_EQ(ns_of("2026-03-01T12:00:00.250Z"), ns_of("2026-03-01T13:00:00.25+01:00"));
  EXPECT_EQ(ns_of("2026-03-01t12:00:00z"), ns_of("2026-03-01 07:00:00-05:00"));
  EXPECT_EQ(ns_of("2024-02-29T00:00:00Z") + kNsPerDay, ns_of("2024-03-01T00:00:00Z"));
  EXPECT_EQ(ns_of("2026-01-01T00:00:00.123456789Z") % kNsPerSecond, 123456789);
  EXPECT_EQ(ns_of("2026-01-01T00:00:00.1234567899Z") % kNsPerSecond, 123456789);
  EXPECT_EQ(ns_of("2016-12-31T23:59:60Z"), ns_of("2017-01-01T00:00:00Z"));
}

TEST(Time, Rfc3339_malformed_text_is_refused) {
  for (std::string_view text :
       {"", "2026", "2026-03-01", "2026-03-01T12:00:00", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T12:60:00Z",
        "2026-03-01T12:00:00.Z", "2026-03-01T12:00:00Zx", "2026-03-01T12:00:00+1",
        "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "2026-03-00T00:00:00Z"}) {
    EXPECT_FALSE(parse_rfc3339(text).has_value()) << text;
  }
}

TEST(Time, Rfc3339_round_trip_at_every_precision) {
  for (int64_t ns : {int64_t{0}, int64_t{1}, int64_t{999}, kNsPerUs, kNsPerMs, int64_t{-1},
                     int64_t{1'772'366'400'250'000'000}, int64_t{-6'000'000'000'000'000'001}}) {
    EXPECT_EQ(ns_of(to_rfc3339({ns})), ns) << to_rfc3339({ns});
  }
  EXPECT_EQ(to_rfc3339({1'772'366'400'250'000'000}), "2026-03-01T12:00:00.250Z");
  EXPECT_EQ(to_rfc3339({-1}), "1969-12-31T23:59:59.999999999Z");
}

TEST(Time, Civil_days_are_inverse_over_four_centuries) {
  int64_t previous = days_from_civil(1799, 12, 31);
  for (int64_t day = previous + 1; day < previous + 146097; day += 13) {
    const CivilDate date = civil_from_days(day);
    EXPECT_EQ(days_from_civil(date.year, date.month, date.day), day);
  }
}

TEST(Time, Durations_to_text_and_back) {
  const std::pair<int64_t, std::string_view> kCases[] = {
      {0, "0s"},
      {1'500'000'000, "1.5s"},
      {20 * kNsPerMinute, "20m"},
      {3 * kNsPerDay, "3d"},
      {150 * kNsPerMinute, "2h30m"},
      {250 * kNsPerMs, "250ms"},
      {1'500, "1.5us"},
      {7, "7ns"},
      {-90 * kNsPerSecond, "-1m30s"},
      {kNsPerDay + kNsPerSecond, "1d1s"},
  };
  for (const auto& [ns, text] : kCases) {
    EXPECT_EQ(to_text(Duration{ns}), text);
    ASSERT_TRUE(parse_duration(text).has_value()) << text;
    EXPECT_EQ(parse_duration(text)->ns, ns) << text;
  }
  for (std::string_view text :
       {"", "-", "5", "s", "5x", "1.s", "5 s", "1h-3m", "99999999999999w"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace reflex
