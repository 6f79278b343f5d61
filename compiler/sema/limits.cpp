// Pack heads: clock and limits; and the horizon that every window must fit in (A1, A13).
#include <algorithm>

#include "compiler/sema/phases.h"
#include "runtime/base/time.h"

namespace reflex::sema {

namespace {

struct HeadReader {
  State& s;
  PackIndex pack;

  void duration(const ast::Setting& setting, int64_t& into, bool first) {
    const auto ns = constant_duration(s, pack, *setting.value, setting.name.text.c_str());
    if (!ns) return;
    // Several packs: the widest clock holds for all.
    into = first ? *ns : std::max(into, *ns);
  }
  void unknown(const ast::Setting& setting, const std::vector<std::string>& names) {
    auto& d =
        s.report(Id::kUnknownOption, setting.name.span, "no setting '" + setting.name.text + "'");
    suggest(d, setting.name.text, names, setting.name.span);
  }
};

std::optional<double> byte_count(State& s, PackIndex pack, const ast::Expr& e) {
  Env env;
  env.pack = pack;
  env.constant_only = true;
  abi::Type bytes = quantity_type(abi::Unit::kByte);
  const NodePtr n = coerce(s, check_expr(s, env, e), bytes, "the state limit");
  return is_error(n) ? std::nullopt : constant_f64(n);
}

}  // namespace

void check_heads(State& s) {
  abi::ClockPlan& clock = s.pack.clock;
  abi::LimitsPlan& limits = s.pack.limits;
  std::set<std::string> seen;
  for (PackIndex p = 0; p < s.in.packs.packs.size(); ++p) {
    const ast::PackHead* head = s.in.packs.packs[p].head;
    if (head == nullptr) continue;
    HeadReader reader{s, p};
    for (const ast::Setting& setting : head->clock) {
      const std::string& name = setting.name.text;
      const bool first = seen.insert("clock." + name).second;
      if (name == "lateness")
        reader.duration(setting, clock.lateness_ns, first);
      else if (name == "idle_after")
        reader.duration(setting, clock.idle_after_ns, first);
      else if (name == "future_skew")
        reader.duration(setting, clock.future_skew_ns, first);
      else if (name == "settle")
        reader.duration(setting, clock.settle_ns, first);
      else
        reader.unknown(setting, {"future_skew", "idle_after", "lateness", "settle"});
    }
    for (const ast::Setting& setting : head->limits) {
      const std::string& name = setting.name.text;
      const bool first = seen.insert("limits." + name).second;
      if (name == "horizon") {
        reader.duration(setting, limits.horizon_ns, first);
      } else if (name == "keys") {
        const auto n = constant_count(s, p, *setting.value, "keys", 1, 100'000'000);
        if (n) limits.keys_max = std::max(first ? 0 : limits.keys_max, static_cast<uint64_t>(*n));
      } else if (name == "partials") {
        const auto n = constant_count(s, p, *setting.value, "partials", 1, 4096);
        if (n) {
          limits.partials_per_key =
              std::max(first ? 0u : limits.partials_per_key, static_cast<uint32_t>(*n));
        }
      } else if (name == "state") {
        const auto n = byte_count(s, p, *setting.value);
        // Why 1 PiB: above it the number is a slip.
        if (n && (*n < 1 || *n > 0x1p50)) {
          s.report(Id::kBadInterval, setting.value->span, "`state` is from 1 byte to 1 PiB");
        } else if (n) {
          limits.state_bytes_max =
              std::max(first ? uint64_t{0} : limits.state_bytes_max, static_cast<uint64_t>(*n));
        }
      } else {
        reader.unknown(setting, {"horizon", "keys", "partials", "state"});
      }
    }
  }
}

void note_window(State& s, int64_t ns, Span span) { s.windows.emplace_back(ns, span); }

void check_limits(State& s) {
  const ast::Setting* cap = nullptr;
  for (const Pack& pack : s.in.packs.packs) {
    if (pack.head == nullptr) continue;
    for (const ast::Setting& setting : pack.head->limits) {
      if (setting.name.text == "horizon") cap = &setting;
    }
  }
  int64_t longest = 0;
  for (const auto& [ns, span] : s.windows) {
    longest = std::max(longest, ns);
    if (cap == nullptr || ns <= s.pack.limits.horizon_ns) continue;
    auto& d = s.report(Id::kHorizonExceeded, span,
                       "the window of " + reflex::to_text(Duration{ns}) +
                           " is longer than the horizon of " +
                           reflex::to_text(Duration{s.pack.limits.horizon_ns}));
    d.notes.push_back({cap->name.span, "the horizon is stated here"});
  }
  // Stated, it is a cap; otherwise it grows with the longest look-back.
  if (cap == nullptr) s.pack.limits.horizon_ns = std::max(s.pack.limits.horizon_ns, longest);
}

}  // namespace reflex::sema
