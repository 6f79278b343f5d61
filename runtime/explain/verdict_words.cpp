// Words, headlines and short numbers shared by the renderings.
#include "runtime/explain/verdict_words.h"

#include <array>
#include <cstdio>

namespace reflex::explain {
namespace {

constexpr std::array<std::string_view, 4> kStates{"fired", "silent", "unobserved", "suppressed"};
constexpr std::array<std::string_view, 3> kWhats{"none", "external", "node"};
constexpr std::array<std::string_view, 4> kAnswers{"nodes", "external", "none", "undetermined"};

template <typename E, size_t N>
std::optional<E> find_word(const std::array<std::string_view, N>& words, std::string_view word) {
  for (size_t i = 0; i < N; ++i) {
    if (words[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view word(abi::SignalState state) { return kStates[static_cast<size_t>(state)]; }
std::string_view word(abi::Hypothesis::What what) { return kWhats[static_cast<size_t>(what)]; }
std::string_view word(abi::Answer answer) { return kAnswers[static_cast<size_t>(answer)]; }
std::optional<abi::SignalState> signal_state(std::string_view w) {
  return find_word<abi::SignalState>(kStates, w);
}
std::optional<abi::Hypothesis::What> what(std::string_view w) {
  return find_word<abi::Hypothesis::What>(kWhats, w);
}
std::optional<abi::Answer> answer(std::string_view w) {
  return find_word<abi::Answer>(kAnswers, w);
}

std::string headline(const abi::Verdict& v) {
  if (v.answer == abi::Answer::kExternal) return "external " + v.external;
  if (v.answer == abi::Answer::kNone) return "none: no faulty node";
  if (v.answer == abi::Answer::kUndetermined) return "undetermined";
  std::string text;
  for (const std::string& c : v.culprits) text += (text.empty() ? "" : ", ") + c;
  text += " " + v.level;
  if (!v.external.empty()) text += "; external " + v.external;
  return text;
}

std::string title(const abi::Hypothesis& h) {
  if (h.what == abi::Hypothesis::What::kNone) return "no faulty node";
  return h.cause + " on " + h.entity;
}

std::string number_text(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", v);
  return buffer;
}

std::string offset_text(int64_t ts_ns, int64_t opened_ns) {
  if (ts_ns == kNoTimeNs) return "-";
  // Why: people compare offsets in seconds; JSON keeps the full precision.
  const int64_t d = (ts_ns - opened_ns) / kNsPerMs * kNsPerMs;
  return d < 0 ? "-" + to_text(Duration{-d}) : "+" + to_text(Duration{d});
}

std::string value_text(const abi::Contribution& c) {
  if (!c.value) return "";
  std::string text = number_text(*c.value);
  if (c.limit) text += " against " + number_text(*c.limit);
  if (!c.limit_origin.empty()) text += " (" + c.limit_origin + ")";
  return text;
}

}  // namespace reflex::explain
