// What tests of saved states say of engines: firings and counters as text, where two states differ.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {

inline std::string print(const std::vector<abi::Firing>& firings) {
  std::ostringstream out;
  for (const auto& f : firings) {
    out << f.ts_ns << ' ' << int(f.phase) << ' ' << f.order << ' ' << f.signal << ' '
        << int(f.change) << ' ' << f.entity.values[0] << '/' << f.entity.values[1] << ' '
        << f.onset_ns << ' ' << f.value.known << f.value.bits << ' ' << f.limit.known
        << f.limit.bits << ' ' << f.approximate << f.incomplete;
    for (const auto& e : f.events) out << " [" << e.seq << ' ' << e.ts_ns << ' ' << e.id << ']';
    out << '\n';
  }
  return out.str();
}

inline std::string counted(const Counters& c) {
  std::ostringstream out;
  out << c.firings << ' ' << c.evictions << ' ' << c.state_evictions << ' ' << c.partials_dropped
      << ' ' << c.unless_dropped << ' ' << c.keys;
  return out.str();
}

/// "" when equal, else what stands around the first difference: the names before it say where.
inline std::string difference(const std::string& a, const std::string& b) {
  if (a == b) return "";
  size_t at = 0;
  at = std::min<size_t>(13, a.size());  // behind the length of the section
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const auto around = [&](const std::string& s) {
    std::ostringstream out;
    for (size_t i = at < 120 ? 0 : at - 120; i < std::min(at + 20, s.size()); ++i) {
      const auto c = static_cast<unsigned char>(s[i]);
      if (i == at) out << " >>> ";
      if (c >= 'a' && c <= 'z') {
        out << s[i];
      } else {
        out << '.' << int(c);
      }
    }
    return out.str();
  };
  return around(a) + "\n" + around(b);
}

inline std::vector<Event> many_events(size_t n) {
  std::vector<Event> events;
  uint32_t random = 7;
  const auto next = [&](uint32_t below) {
    random = random * 1664525u + 1013904223u;
    return static_cast<int>((random >> 8) % below);
  };
  int t = 0;
  for (size_t i = 0; i < n; ++i) {
    t += next(2);
    events.push_back({t, next(3), next(12), next(2), next(20)});
  }
  return events;
}

}  // namespace reflex::eval
