// Unit words: what may follow a number, and what it means in the base unit.
//
// Base units: celsius, watt, hertz, byte, bit/s, ratio (1% = 0.01), second for rates.
#include <algorithm>
#include <array>
#include <cctype>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Unit;

struct Row {
  std::string_view word;
  Unit unit;
  double multiply;
  double divide;
};

// Source: SI and IEC 80000-13 prefixes; network rates are decimal as vendors print them. Small b is
// bit, B is byte: B/s, kB/s .. TB/s are not words here but bytes per time, as every X/s.
constexpr std::array<Row, 43> kRows{{
    {"celsius", Unit::kCelsius, 1, 1},
    {"C", Unit::kCelsius, 1, 1},
    {"watt", Unit::kWatt, 1, 1},
    {"W", Unit::kWatt, 1, 1},
    {"kW", Unit::kWatt, 1e3, 1},
    {"mW", Unit::kWatt, 1, 1e3},
    {"hertz", Unit::kHertz, 1, 1},
    {"Hz", Unit::kHertz, 1, 1},
    {"kHz", Unit::kHertz, 1e3, 1},
    {"MHz", Unit::kHertz, 1e6, 1},
    {"GHz", Unit::kHertz, 1e9, 1},
    {"byte", Unit::kByte, 1, 1},
    {"bytes", Unit::kByte, 1, 1},
    {"B", Unit::kByte, 1, 1},
    {"kB", Unit::kByte, 1e3, 1},
    {"KB", Unit::kByte, 1e3, 1},
    {"MB", Unit::kByte, 1e6, 1},
    {"GB", Unit::kByte, 1e9, 1},
    {"TB", Unit::kByte, 1e12, 1},
    {"KiB", Unit::kByte, 1024, 1},
    {"MiB", Unit::kByte, 1048576, 1},
    {"GiB", Unit::kByte, 1073741824, 1},
    {"TiB", Unit::kByte, 1099511627776, 1},
    {"bit/s", Unit::kBitPerSecond, 1, 1},
    {"bps", Unit::kBitPerSecond, 1, 1},
    {"kbit/s", Unit::kBitPerSecond, 1e3, 1},
    {"Mbit/s", Unit::kBitPerSecond, 1e6, 1},
    {"Gbit/s", Unit::kBitPerSecond, 1e9, 1},
    {"Tbit/s", Unit::kBitPerSecond, 1e12, 1},
    {"kb/s", Unit::kBitPerSecond, 1e3, 1},
    {"Mb/s", Unit::kBitPerSecond, 1e6, 1},
    {"Gb/s", Unit::kBitPerSecond, 1e9, 1},
    {"Gbps", Unit::kBitPerSecond, 1e9, 1},
    {"Mbps", Unit::kBitPerSecond, 1e6, 1},
    {"%", Unit::kRatio, 1, 100},
    {"percent", Unit::kRatio, 1, 100},
    {"ratio", Unit::kRatio, 1, 1},
    {"k", Unit::kNone, 1e3, 1},
    {"K", Unit::kNone, 1e3, 1},
    {"M", Unit::kNone, 1e6, 1},
    {"G", Unit::kNone, 1e9, 1},
    {"count", Unit::kCount, 1, 1},
    {"events", Unit::kCount, 1, 1},
}};

std::optional<double> seconds_of(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, double>, 17> kTimes{{{"s", 1},
                                                                               {"sec", 1},
                                                                               {"second", 1},
                                                                               {"seconds", 1},
                                                                               {"m", 60},
                                                                               {"min", 60},
                                                                               {"minute", 60},
                                                                               {"minutes", 60},
                                                                               {"h", 3600},
                                                                               {"hour", 3600},
                                                                               {"hours", 3600},
                                                                               {"d", 86400},
                                                                               {"day", 86400},
                                                                               {"days", 86400},
                                                                               {"w", 604800},
                                                                               {"week", 604800},
                                                                               {"weeks", 604800}}};
  for (const auto& [name, seconds] : kTimes) {
    if (name == word) return seconds;
  }
  return std::nullopt;
}

std::optional<UnitWord> plain_unit(std::string_view word) {
  for (const Row& row : kRows) {
    if (row.word != word) continue;
    UnitWord u;
    u.type = row.unit == Unit::kNone ? int_type() : quantity_type(row.unit);
    u.multiply = row.multiply;
    u.divide = row.divide;
    return u;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> unit_words() {
  std::vector<std::string> words;
  for (const Row& row : kRows) words.emplace_back(row.word);
  words.emplace_back("per hour");
  return words;
}

std::optional<UnitWord> parse_unit(const std::string& text) {
  if (text == "nats" || text == "nat") {
    UnitWord nats;  // a natural logarithm of odds is a plain number
    nats.type = real_type();
    return nats;
  }
  std::string t;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c))) t += c;
  }
  if (const auto plain = plain_unit(t)) return plain;
  // A rate: "X/h", "X per hour", "per<hour>", "/h".
  std::string base;
  std::string time;
  const size_t angle = t.find("per<");
  const size_t slash = t.find('/');
  const size_t per = t.find("per");
  if (angle != std::string::npos && t.back() == '>') {
    base = t.substr(0, angle);
    time = t.substr(angle + 4, t.size() - angle - 5);
  } else if (slash != std::string::npos) {
    base = t.substr(0, slash);
    time = t.substr(slash + 1);
  } else if (per != std::string::npos) {
    base = t.substr(0, per);
    time = t.substr(per + 3);
  } else {
    return std::nullopt;
  }
  const auto seconds = seconds_of(time);
  if (!seconds) return std::nullopt;
  UnitWord u;
  u.type = quantity_type(Unit::kCount, true);
  if (!base.empty()) {
    const auto inner = plain_unit(base);
    if (!inner || inner->type.scalar != Scalar::kQuantity) return std::nullopt;
    u = *inner;
    u.type.per_time = true;
    if (u.type.unit == Unit::kCelsius) u.type.unit = Unit::kCelsiusDelta;
  }
  u.divide *= *seconds;
  return u;
}

}  // namespace reflex::sema
