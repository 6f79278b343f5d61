// LogPrefix: what stands before the message of a log line: stamps, host, tag, shipper prefixes.
//
// Source: domain_reference.md 1.9 (table of prefix forms) and 6.4 traps 6, 7, 12, 13, 24, 25.
// The reader is a chain of recognisers on the start of the line; no regular expressions, no state
// (years, zones and deltas are resolved by LogClock).
#pragma once

#include <cstdint>
#include <string_view>

namespace reflex::stream {

enum class StampKind : uint8_t {
  kNone,
  kAbsolute,  // ns since the epoch
  kNoZone,    // ns since the epoch as if local time were UTC
  kNoYear,    // month, day, time of day; no zone
  kBoot,      // ns since boot
  kDelta,     // ns since the line before
};

struct LogPrefix {
  StampKind stamp = StampKind::kNone;
  int64_t ns = 0;      // by `stamp`; for kNoYear the time of day
  unsigned month = 0;  // kNoYear
  unsigned day = 0;
  bool kmsg = false;  // /dev/kmsg form: continuation lines start with a space
  /// A process wrote the line, by what the transport says: a facility other than the kernel's, a
  /// tag other than `kernel:`, or a pid behind the tag. False: the kernel, or nobody says.
  bool user_space = false;
  std::string_view message;
};

/// Splits one line (without '\n'). A line without any known prefix is all message.
LogPrefix read_prefix(std::string_view line);

/// "message repeated 9 times: [ text ]": sets `message` to the text and returns 9; else 1.
/// "last message repeated 9 times" gives an empty message.
uint32_t unwrap_repeats(std::string_view& message);

}  // namespace reflex::stream
