// Recognisers of time stamps and prefixes. Each one moves `p` past what it knows, or leaves it.
#include "runtime/stream/log_prefix.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/time.h"

namespace reflex::stream {
namespace {

constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::string_view kWeekdays = "MonTueWedThuFriSatSun";
// Source: RFC 5424 6.2.1: priority = facility * 8 + severity, facility 0 is the kernel's.
constexpr int64_t kPrioritiesOfKernel = 8;
// Source: RFC 5424 table 1 as `dmesg --decode` (util-linux) and Talos spell it, without kern.
constexpr std::array<std::string_view, 12> kUserFacilities{
    "user", "mail", "daemon", "auth",     "syslog", "lpr",
    "news", "uucp", "cron",   "authpriv", "ftp",    "clockdaemon"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

/// A reading position; every read is bounds-checked and fails by returning false.
struct Reader {
  std::string_view text;

  [[nodiscard]] char peek(size_t i = 0) const { return i < text.size() ? text[i] : '\0'; }
  bool eat(char c) {
    if (peek() != c) return false;
    text.remove_prefix(1);
    return true;
  }
  bool eat(std::string_view word) {
    if (text.substr(0, word.size()) != word) return false;
    text.remove_prefix(word.size());
    return true;
  }
  void spaces() {
    while (peek() == ' ') text.remove_prefix(1);
  }
  bool number(size_t digits_min, size_t digits_max, int64_t& out) {
    size_t n = 0;
    int64_t value = 0;
    while (n < digits_max && is_digit(peek(n))) value = value * 10 + (peek(n++) - '0');
    if (n < digits_min) return false;
    text.remove_prefix(n);
    out = value;
    return true;
  }
  /// ".123456" or ",123456" -> ns; nothing there is 0.
  int64_t fraction() {
    if ((peek() != '.' && peek() != ',') || !is_digit(peek(1))) return 0;
    text.remove_prefix(1);
    int64_t ns = 0;
    int64_t unit = kNsPerSecond / 10;
    while (is_digit(peek())) {
      ns += (peek() - '0') * unit;
      unit /= 10;
      text.remove_prefix(1);
    }
    return ns;
  }
  /// "13:45:12.123" -> ns of the day.
  bool time_of_day(int64_t& out) {
    Reader r = *this;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    if (!r.number(2, 2, hour) || !r.eat(':') || !r.number(2, 2, minute)) return false;
    if (r.eat(':') && !r.number(2, 2, second)) return false;
    if (hour > 23 || minute > 59 || second > 60) return false;
    out = hour * kNsPerHour + minute * kNsPerMinute + second * kNsPerSecond + r.fraction();
    *this = r;
    return true;
  }
  /// "Nov" -> 11.
  bool month(unsigned& out) {
    if (text.size() < 3) return false;
    const size_t at = kMonths.find(text.substr(0, 3));
    if (at == std::string_view::npos || at % 3 != 0) return false;
    out = static_cast<unsigned>(at / 3 + 1);
    text.remove_prefix(3);
    return true;
  }
};

bool valid_date(int64_t month, int64_t day) {
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/// "2024-08-18T01:19:31.351160+00:00" and relatives.
bool read_iso(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  int64_t time = 0;
  if (!r.number(4, 4, year)) return false;
  const char separator = r.peek();
  if (separator != '-' && separator != '/') return false;
  if (!r.eat(separator) || !r.number(2, 2, month)) return false;
  if (!r.eat(separator) || !r.number(2, 2, day)) return false;
  if (!r.eat('T') && !r.eat(' ') && !r.eat('_')) return false;
  if (!r.time_of_day(time) || !valid_date(month, day) || year < 1970 || year > 2261) return false;
  out.ns =
      days_from_civil(year, static_cast<unsigned>(month), static_cast<unsigned>(day)) * kNsPerDay +
      time;
  out.stamp = StampKind::kNoZone;
  Reader zone = r;
  if (zone.eat('Z') || zone.eat(" UTC")) {
    out.stamp = StampKind::kAbsolute;
    r = zone;
  } else if (zone.peek() == '+' || zone.peek() == '-') {
    const int64_t sign = zone.peek() == '+' ? 1 : -1;
    zone.text.remove_prefix(1);
    int64_t hours = 0;
    int64_t minutes = 0;
    if (zone.number(2, 2, hours)) {
      zone.eat(':');
      if (zone.number(2, 2, minutes) && hours < 24 && minutes < 60) {
        out.ns -= sign * (hours * kNsPerHour + minutes * kNsPerMinute);
        out.stamp = StampKind::kAbsolute;
        r = zone;
      }
    }
  }
  reader = r;
  return true;
}

/// "Nov 28 13:45:12", "Nov  8 2025 13:45:12.1", "2025 Nov 28 13:45:12".
bool read_bsd(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  int64_t year = 0;
  int64_t day = 0;
  int64_t time = 0;
  unsigned month = 0;
  if (is_digit(r.peek()) && (!r.number(4, 4, year) || !r.eat(' '))) return false;
  if (!r.month(month) || !r.eat(' ')) return false;
  r.spaces();
  if (!r.number(1, 2, day) || !r.eat(' ')) return false;
  Reader with_year = r;
  int64_t later_year = 0;
  if (year == 0 && with_year.number(4, 4, later_year) && with_year.eat(' ')) {
    year = later_year;
    r = with_year;
  }
  if (!r.time_of_day(time) || !valid_date(month, day)) return false;
  r.eat(" UTC");
  out.month = month;
  out.day = static_cast<unsigned>(day);
  out.ns = time;
  out.stamp = StampKind::kNoYear;
  if (year >= 1970 && year < 2262) {
    out.ns += days_from_civil(year, month, out.day) * kNsPerDay;
    out.stamp = StampKind::kNoZone;
  }
  reader = r;
  return true;
}

/// After '[': "Sun Feb 23 16:24:18 2025]".
bool read_ctime(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  if (r.text.size() < 24 || kWeekdays.find(r.text.substr(0, 3)) % 3 != 0) return false;
  r.text.remove_prefix(3);
  unsigned month = 0;
  int64_t day = 0;
  int64_t time = 0;
  int64_t year = 0;
  if (!r.eat(' ') || !r.month(month)) return false;
  r.spaces();
  if (!r.number(1, 2, day) || !r.eat(' ') || !r.time_of_day(time) || !r.eat(' ')) return false;
  if (!r.number(4, 4, year) || !valid_date(month, day) || year < 1970 || year > 2261) return false;
  out.ns = days_from_civil(year, month, static_cast<unsigned>(day)) * kNsPerDay + time;
  out.stamp = StampKind::kNoZone;
  reader = r;
  return true;
}

/// "[ 1108.858286]", "[  +0.000316]", "[Jan 2 10:15]", "[Sun Feb 23 ...]", "[2026-04-22T...]".
bool read_bracket(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  if (!r.eat('[')) return false;
  r.spaces();
  const bool delta = r.eat('+');
  LogPrefix found = out;
  if (is_digit(r.peek()) && !(is_digit(r.peek(3)) && r.peek(4) == '-')) {
    int64_t seconds = 0;
    if (!r.number(1, 9, seconds) || r.peek() != '.') return false;
    found.ns = seconds * kNsPerSecond + r.fraction();
    found.stamp = delta ? StampKind::kDelta : StampKind::kBoot;
  } else if (delta) {
    return false;
  } else if (!read_iso(r, found) && !read_ctime(r, found) && !read_bsd(r, found)) {
    return false;
  }
  if (!r.eat(']')) return false;
  r.eat(':');
  out = found;
  reader = r;
  return true;
}

/// "[  T291]" or "[   C12]" of CONFIG_PRINTK_CALLER.
void skip_caller(Reader& reader) {
  Reader r = reader;
  r.spaces();
  if (!r.eat('[')) return;
  r.spaces();
  if (!r.eat('T') && !r.eat('C')) return;
  int64_t id = 0;
  if (r.number(1, 10, id) && r.eat(']')) reader = r;
}

/// "6,3964,206764307,-;" of /dev/kmsg.
bool read_kmsg(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  int64_t priority = 0;
  int64_t number = 0;
  if (!r.number(1, 4, priority) || !r.eat(',')) return false;
  if (!r.number(1, 18, number) || !r.eat(',')) return false;
  int64_t us = 0;
  if (!r.number(1, 15, us) || !r.eat(',')) return false;
  const size_t end = r.text.substr(0, 64).find(';');
  if (end == std::string_view::npos) return false;
  r.text.remove_prefix(end + 1);
  out.ns = us * kNsPerUs;
  out.stamp = StampKind::kBoot;
  out.kmsg = true;
  out.user_space = priority >= kPrioritiesOfKernel;
  reader = r;
  return true;
}

/// "1760000000.123 " (journalctl -o short-unix).
bool read_unix(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  int64_t seconds = 0;
  if (!r.number(10, 10, seconds) || r.peek() != '.') return false;
  const int64_t ns = r.fraction();
  if (!r.eat(' ')) return false;
  out.ns = seconds * kNsPerSecond + ns;
  out.stamp = StampKind::kAbsolute;
  reader = r;
  return true;
}

bool is_user_facility(std::string_view word) {
  return std::find(kUserFacilities.begin(), kUserFacilities.end(), word) != kUserFacilities.end();
}

/// "kern  :warn  : " of dmesg --decode.
void skip_facility(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  bool user_space = false;
  for (int part = 0; part < 2; ++part) {
    size_t letters = 0;
    while (letters < 10 && is_letter(r.peek(letters))) ++letters;
    if (letters < 3) return;
    if (part == 0) user_space = is_user_facility(r.text.substr(0, letters));
    r.text.remove_prefix(letters);
    r.spaces();
    if (!r.eat(':')) return;
  }
  if (!r.eat(' ')) return;
  out.user_space = user_space;
  reader = r;
}

/// "10.0.0.1: kern: warning: [2026-04-22T21:25:20.458998481Z]: " of Talos.
bool read_talos(Reader& reader, LogPrefix& out) {
  const size_t space = reader.text.find(' ');  // the first word is the node's address
  if (space == std::string_view::npos || space == 0 || reader.text[space - 1] != ':') return false;
  const size_t at = reader.text.substr(0, 96).find(": [2");
  if (at == std::string_view::npos) return false;
  const std::string_view head = reader.text.substr(0, at);
  if (std::count(head.begin(), head.end(), ' ') > 6) return false;
  Reader r{reader.text.substr(at + 2)};
  LogPrefix found = out;
  if (!read_bracket(r, found)) return false;
  out = found;
  const size_t facility = head.find(": ");
  if (facility != std::string_view::npos) {
    const std::string_view word = head.substr(facility + 2);
    out.user_space = is_user_facility(word.substr(0, word.find(':')));
  }
  reader = r;
  return true;
}

/// "<34>" and, for RFC 5424, "1 2003-10-11T22:14:15.003Z host app pid msgid [sd] ".
bool read_priority(Reader& reader, LogPrefix& out) {
  Reader r = reader;
  int64_t number = 0;
  if (!r.eat('<') || !r.number(1, 3, number) || !r.eat('>')) return false;
  out.user_space = number >= kPrioritiesOfKernel;
  reader = r;
  if (!r.eat("1 ")) return false;
  if (!r.eat("-") && !read_iso(r, out)) return false;
  for (int field = 0; field < 4; ++field) {  // host, application, process, message id
    if (!r.eat(' ')) return false;
    const size_t end = r.text.find(' ');
    if (end == std::string_view::npos) return false;
    const std::string_view word = r.text.substr(0, end);
    if (field == 1 && word != "kernel" && word != "-") out.user_space = true;
    if (field == 2 && word != "-") out.user_space = true;
    r.text.remove_prefix(end);
  }
  r.eat(' ');
  if (!r.eat('-')) {
    while (r.peek() == '[') {  // structured data; ']' inside values is written "\]"
      size_t end = 1;
      while (end < r.text.size() && (r.text[end] != ']' || r.text[end - 1] == '\\')) ++end;
      r.text.remove_prefix(std::min(end + 1, r.text.size()));
    }
  }
  r.eat(' ');
  r.eat("\xef\xbb\xbf");
  reader = r;
  return true;
}

/// "host kernel: ", "host kernel[123]: ", "host tag[1]: ": removed; the node is known from outside.
/// The kernel has no pid, and every other tag is a process's.
void skip_host_and_tag(Reader& reader, bool only_kernel, LogPrefix& out) {
  Reader r = reader;
  r.spaces();
  const size_t host = r.text.find(' ');
  if (host == std::string_view::npos || host == 0 || host > 255) return;
  if (r.text[host - 1] == ':' && !only_kernel) return;
  r.text.remove_prefix(host + 1);
  const std::string_view tag = r.text.substr(0, r.text.find(' '));
  if (tag.size() < 2 || tag.back() != ':') return;
  if (tag.substr(0, tag.size() - 1).find_first_of(":(") != std::string_view::npos) return;
  if (only_kernel && tag != "kernel:") return;
  if (tag != "kernel:") out.user_space = true;
  r.text.remove_prefix(tag.size());
  r.eat(' ');
  reader = r;
}

/// "host kernel[123]: " at the start of a message without a stamp or behind a kernel stamp. No line of
/// the kernel has a pid in brackets and a colon as its second word.
bool has_process_tag(std::string_view message) {
  const size_t host = message.find(' ');
  if (host == std::string_view::npos || host == 0) return false;
  const std::string_view tag = message.substr(host + 1, message.find(' ', host + 1) - host - 1);
  if (!tag.ends_with("]:")) return false;
  const size_t open = tag.find_first_of(" :([");
  if (open == std::string_view::npos || open == 0 || tag[open] != '[') return false;
  const std::string_view pid = tag.substr(open + 1, tag.size() - open - 3);
  return !pid.empty() && std::all_of(pid.begin(), pid.end(), is_digit);
}

/// "stdout F " after a container runtime's stamp.
bool skip_container(Reader& reader) {
  Reader r = reader;
  if (!r.eat(" stdout ") && !r.eat(" stderr ")) return false;
  if ((!r.eat('F') && !r.eat('P')) || !r.eat(' ')) return false;
  reader = r;
  return true;
}

/// "[1,12]<stdout>:" of MPI launchers.
void skip_launcher(Reader& reader) {
  Reader r = reader;
  int64_t number = 0;
  if (!r.eat('[') || !r.number(1, 9, number) || !r.eat(',') || !r.number(1, 9, number)) return;
  if (!r.eat("]<stdout>:") && !r.eat("]<stderr>:")) return;
  r.spaces();
  reader = r;
}

/// glog's "[E321 02:07:08.414640780 file.cpp:607]" near the start; the text stays in the message.
/// Source: public_cases.md A15: month without padding, two digits of day, no year.
void find_glog(std::string_view message, LogPrefix& out) {
  const std::string_view head = message.substr(0, 80);
  for (size_t i = 0; i + 12 < head.size(); ++i) {
    if (i != 0 && head[i - 1] != '[') continue;
    if (head[i] != 'E' && head[i] != 'W' && head[i] != 'I' && head[i] != 'F') continue;
    Reader r{message.substr(i + 1)};
    size_t digits = 0;
    while (is_digit(r.peek(digits))) ++digits;
    if (digits != 3 && digits != 4) continue;
    int64_t month = 0;
    int64_t day = 0;
    int64_t time = 0;
    if (!r.number(digits - 2, digits - 2, month) || !r.number(2, 2, day) || !r.eat(' ')) continue;
    if (!r.time_of_day(time) || !valid_date(month, day)) continue;
    out.stamp = StampKind::kNoYear;
    out.month = static_cast<unsigned>(month);
    out.day = static_cast<unsigned>(day);
    out.ns = time;
    return;
  }
}

/// Stamp, then what belongs to it. True when a stamp was found.
bool read_stamp(Reader& r, LogPrefix& out) {
  if (r.peek() == '<' && read_priority(r, out)) return true;
  const std::string_view start = r.text;
  if (r.peek() == '[') {
    if (!read_bracket(r, out)) return false;
    skip_caller(r);
    skip_host_and_tag(r, true, out);
    return true;
  }
  if (is_digit(r.peek())) {
    if (read_iso(r, out)) {
      // "2025-01-21T04:41:44,283302+00:00 nvme nvme0: ..": dmesg --time-format=iso writes a comma
      // and neither host nor tag.
      const std::string_view stamp = start.substr(0, start.size() - r.text.size());
      const bool is_dmesg = stamp.size() > 19 && stamp[10] == 'T' && stamp[19] == ',';
      if (!skip_container(r) && !is_dmesg) skip_host_and_tag(r, false, out);
      return true;
    }
    if (read_kmsg(r, out)) return true;
    if (read_unix(r, out) || read_bsd(r, out)) {
      skip_host_and_tag(r, false, out);
      return true;
    }
  } else if (is_letter(r.peek())) {
    if (read_bsd(r, out)) {
      skip_host_and_tag(r, false, out);
      return true;
    }
    const size_t before = r.text.size();
    skip_facility(r, out);
    if (r.text.size() != before) {
      r.spaces();
      return read_iso(r, out) || read_bracket(r, out);
    }
  }
  return read_talos(r, out);
}

}  // namespace

LogPrefix read_prefix(std::string_view line) {
  LogPrefix prefix;
  Reader r{line};
  skip_launcher(r);
  if (read_stamp(r, prefix)) {
    r.spaces();
    // A second stamp inside (container shipper, "kernel: [67890.1]"): the outer one is the time of
    // reception and wins (kernel stamps drift over a suspend); the inner one is only removed.
    skip_launcher(r);
    LogPrefix inner;
    Reader rest = r;
    if (read_stamp(rest, inner)) {
      r = rest;
      const bool outer_is_weak = prefix.stamp == StampKind::kBoot;
      inner.user_space |= prefix.user_space;
      prefix.user_space = inner.user_space;
      if (outer_is_weak) prefix = inner;
      r.spaces();
    }
  } else {
    find_glog(r.text, prefix);
  }
  prefix.user_space |= has_process_tag(r.text);
  prefix.message = r.text;
  return prefix;
}

uint32_t unwrap_repeats(std::string_view& message) {
  Reader r{message};
  const bool last = r.eat("last ");
  int64_t count = 0;
  if (!r.eat("message repeated ") || !r.number(1, 7, count) || !r.eat(" times")) return 1;
  if (last) {
    message = {};
    return static_cast<uint32_t>(std::max<int64_t>(count, 1));
  }
  if (!r.eat(": [")) return 1;
  r.spaces();
  message = r.text;
  if (!message.empty() && message.back() == ']') message.remove_suffix(1);
  while (!message.empty() && message.back() == ' ') message.remove_suffix(1);
  return static_cast<uint32_t>(std::max<int64_t>(count, 1));
}

}  // namespace reflex::stream
