// Years, zones, boot times and deltas.
#include "runtime/stream/log_clock.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/base/time.h"

namespace reflex::stream {

int64_t LogClock::resolve_year(const LogPrefix& prefix) {
  const auto in_year = [&](int64_t year) {
    return days_from_civil(year, prefix.month, prefix.day) * kNsPerDay + prefix.ns -
           options_->utc_offset_ns;
  };
  int64_t year = options_->year;
  if (last_yearless_ns_ == INT64_MIN) {
    if (year == 0) {
      // The file was written after its lines: a date after the file's time is of the year before.
      year = civil_from_days(options_->base_ns / kNsPerDay).year;
      if (in_year(year) > options_->base_ns + kNsPerDay) --year;
    }
    notices_->push_back(fmt::format("year {} assumed for stamps without one", year));
    return last_yearless_ns_ = in_year(year);
  }
  // Nearest to the line before: Jan 1 after Dec 31 is the next year, and a straggler of Dec 31
  // after Jan 1 is the year before.
  year = civil_from_days(last_yearless_ns_ / kNsPerDay).year;
  int64_t best = in_year(year);
  for (const int64_t other : {year - 1, year + 1}) {
    const int64_t candidate = in_year(other);
    if (std::abs(candidate - last_yearless_ns_) < std::abs(best - last_yearless_ns_)) {
      best = candidate;
    }
  }
  return last_yearless_ns_ = best;
}

int64_t LogClock::resolve(const LogPrefix& prefix) {
  const bool needs_zone = prefix.stamp == StampKind::kNoZone || prefix.stamp == StampKind::kNoYear;
  if (needs_zone && !said_zone_) {
    said_zone_ = true;
    const int64_t minutes = options_->utc_offset_ns / kNsPerMinute;
    notices_->push_back(fmt::format("zone {}{:02}:{:02} assumed for stamps without one",
                                   minutes < 0 ? '-' : '+', std::abs(minutes) / 60,
                                   std::abs(minutes) % 60));
  }
  switch (prefix.stamp) {
    case StampKind::kNone:
      break;
    case StampKind::kAbsolute:
      last_ns_ = prefix.ns;
      break;
    case StampKind::kNoZone:
      last_ns_ = prefix.ns - options_->utc_offset_ns;
      break;
    case StampKind::kNoYear:
      last_ns_ = resolve_year(prefix);
      break;
    case StampKind::kDelta:
      last_ns_ += prefix.ns;
      break;
    case StampKind::kBoot:
      if (options_->boot_ns == kNoTimeNs && !said_boot_) {
        said_boot_ = true;
        notices_->push_back(fmt::format("no boot time known: seconds since boot count from {}",
                                       to_rfc3339({options_->base_ns})));
      }
      last_ns_ =
          prefix.ns + (options_->boot_ns == kNoTimeNs ? options_->base_ns : options_->boot_ns);
      break;
  }
  return last_ns_;
}

void LogClock::save(StateWriter& writer) const {
  writer.i64(last_ns_);
  writer.i64(last_yearless_ns_);
  writer.flag(said_zone_);
  writer.flag(said_boot_);
}

void LogClock::load(StateReader& reader) {
  last_ns_ = reader.i64();
  last_yearless_ns_ = reader.i64();
  said_zone_ = reader.flag();
  said_boot_ = reader.flag();
}

}  // namespace reflex::stream
