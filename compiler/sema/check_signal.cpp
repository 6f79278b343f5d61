// Signals: which of the three shapes, and the clauses that all shapes share.
#include <algorithm>

#include "compiler/sema/phases.h"
#include "runtime/base/time.h"

namespace reflex::sema {

namespace {

using abi::SignalPlan;
using abi::SignalShape;

// Source: language.md A9 and the language reference: a signal without `leak` is benign about
// once in a thousand hours.
constexpr double kDefaultLeakPerHour = 1e-3;
// Why: one healthy node in a hundred goes through an episode of raised counts that means nothing;
// measured between 0.003 and 0.08 on the (synthetic) development set.
constexpr double kDefaultEpisodeLeak = 0.01;
// Source: language.md A5: a firing counts as evidence for an hour unless `holds` says otherwise.
constexpr int64_t kDefaultHoldsNs = kNsPerHour;
// Why: state that is not bounded per key by less than this is a mistake (A13).
constexpr uint32_t kBytesPerKeyMax = 1u << 20;

void check_leak(State& s, const SignalContext& c, SignalPlan& plan) {
  const ast::SignalDecl& d = c.decl;
  if (!d.leak) {
    if (d.count && d.count->graded) {
      plan.leak_probability = kDefaultEpisodeLeak;
    } else {
      plan.leak_per_hour = kDefaultLeakPerHour;
    }
    return;
  }
  const auto leak = constant_number(s, c.pack, *d.leak, "the leak");
  if (!leak) return;
  if (*leak <= 0 || (d.leak_per.empty() && *leak >= 1)) {
    s.report(Id::kProbabilityRange, d.leak->span,
             d.leak_per.empty() ? "a leak without a time is a probability: between 0 and 1"
                                : "a leak must be above 0");
    return;
  }
  if (d.leak_per.empty()) {
    plan.leak_probability = *leak;
  } else if (d.leak_per == "hour" || d.leak_per == "h") {
    plan.leak_per_hour = *leak;
  } else if (d.leak_per == "day" || d.leak_per == "d") {
    plan.leak_per_hour = *leak / 24;
  } else if (d.leak_per == "minute" || d.leak_per == "m") {
    plan.leak_per_hour = *leak * 60;
  } else {
    auto& diag = s.report(Id::kUnknownOption, d.leak->span, "no leak per '" + d.leak_per + "'");
    diag.help = "write: leak 1e-3 per hour";
  }
}

/// `exceptions NAME (node ==, gpu ==)`: which of the signal's keys a site's rows give.
void check_exceptions(State& s, const ast::SignalDecl& d, SignalPlan& plan) {
  if (d.exceptions.empty()) return;
  const auto& keys = s.pack.entity_kinds[plan.entity_kind].keys;
  plan.exceptions.name = d.exceptions.text;
  for (const ast::Name& key : d.exception_keys) {
    const auto at = std::find(keys.begin(), keys.end(), key.text);
    const auto position = static_cast<uint8_t>(at - keys.begin());
    auto& have = plan.exceptions.positions;
    if (at == keys.end()) {
      auto& diag = s.report(Id::kNotAKey, key.span,
                            "'" + key.text + "' is no key of this signal");
      suggest(diag, key.text, keys, key.span);
    } else if (std::find(have.begin(), have.end(), position) != have.end()) {
      s.report(Id::kDuplicateName, key.span, "the key '" + key.text + "' is given twice");
    } else {
      have.push_back(position);
    }
  }
}

/// Clauses that belong to another shape would be ignored silently; say so instead.
void check_stray_clauses(State& s, const ast::SignalDecl& d) {
  auto stray = [&](bool present, Span span, const char* clause, const char* shape) {
    if (!present) return;
    s.report(Id::kNotHere, span, std::string("`") + clause + "` belongs to " + shape);
  };
  auto span_of = [&](const ast::ExprPtr& e) { return e ? e->span : d.name.span; };
  if (!d.when) {
    stray(d.for_span != nullptr, span_of(d.for_span), "for", "a `when` condition");
    stray(d.keep_span != nullptr, span_of(d.keep_span), "keep", "a `when` condition");
    stray(d.clear != nullptr, span_of(d.clear), "clear", "a `when` condition");
    stray(!d.nodata.empty(), span_of(d.nodata_for), "nodata", "a `when` condition");
    stray(d.peers_at_least != nullptr, span_of(d.peers_at_least), "peers at least",
          "a `when` condition");
  }
  if (d.steps.empty()) {
    stray(d.within != nullptr, span_of(d.within), "within", "a sequence of steps");
    stray(!d.keep_mode.empty(), d.name.span, "keep earliest|latest|all", "a sequence of steps");
    stray(!d.unless.empty(), d.unless.empty() ? d.name.span : d.unless[0].span, "unless",
          "a sequence of steps");
  }
}

int64_t horizon_of(const SignalPlan& p) {
  int64_t h = p.horizon_ns;
  for (const auto& g : p.sequence.guards) h = std::max(h, g.window_ns);
  for (const auto& g : p.count.guards) h = std::max(h, g.window_ns);
  if (p.shape == SignalShape::kSequence) {
    int64_t span = p.sequence.within_ns;
    for (const auto& st : p.sequence.steps) span += st.absent_ns;
    h = std::max(h, span);
  } else if (p.shape == SignalShape::kCount) {
    h = std::max(h, p.count.window_ns + p.count.gap_ns);
  } else {
    h = std::max(h, p.condition.for_ns + p.condition.keep_ns);
    h = std::max(h, p.condition.nodata_hold_ns);
  }
  return h;
}

/// Worst case per key. Why the numbers: sizes of the runtime's per-key records, rounded up.
uint32_t bytes_of(const SignalPlan& p) {
  constexpr uint32_t kKeyBytes = 64;
  constexpr uint32_t kTimesExact = 64;
  constexpr uint64_t kKeptBytes = 256;  // a kept event of an unless: a record of some 20 fields
  uint64_t bytes = kKeyBytes;
  bytes += (p.sequence.guards.size() + p.count.guards.size()) * 16;
  if (p.shape == SignalShape::kSequence) {
    const size_t steps = p.sequence.steps.size();
    if (steps > 1) {
      const uint64_t partials =
          p.sequence.keep == abi::KeepMode::kAll ? p.sequence.partials_max : 1;
      bytes += partials * (32 + steps * 24 + p.sequence.capture_count * 16ull);
    }
    for (const auto& u : p.sequence.unless) {
      if (u.deferred && !u.shared) bytes += u.kept_max * kKeptBytes;
    }
  } else if (p.shape == SignalShape::kCount) {
    const uint64_t times = p.count.exact_max > 0 ? p.count.exact_max : kTimesExact * 2;
    bytes += times * (p.count.mode == abi::CountMode::kDistinct ? 16 : 8);
  } else {
    bytes += 48;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

bool lower_shape(State& s, const SignalContext& c, SignalPlan& plan) {
  const ast::SignalDecl& d = c.decl;
  const int shapes = (d.steps.empty() ? 0 : 1) + (d.count ? 1 : 0) + (d.when ? 1 : 0);
  if (shapes != 1) {
    auto& diag =
        s.report(Id::kIncomplete, d.name.span,
                 shapes == 0 ? "signal '" + d.name.text + "' has no pattern"
                             : "signal '" + d.name.text + "' mixes steps, `count` and `when`");
    diag.help = "write either steps (e: KIND where ..), or `count ..`, or `when ..`";
    return false;
  }
  check_stray_clauses(s, d);
  if (!d.steps.empty()) {
    plan.shape = SignalShape::kSequence;
    return lower_sequence(s, c, plan);
  }
  if (d.count) {
    plan.shape = SignalShape::kCount;
    return lower_count(s, c, plan);
  }
  plan.shape = SignalShape::kCondition;
  return lower_condition(s, c, plan);
}

/// Features that the leaves of a signal read may make it global.
void inherit_stage(State& s, SignalPlan& plan) {
  auto from_leaf = [&](abi::LeafId leaf) {
    if (leaf == kNone32) return;
    for (const abi::FeatureId f : s.pack.leaves[leaf].features) {
      const abi::FeaturePlan& feature = s.pack.features[f];
      plan.global_stage = plan.global_stage || feature.global_stage;
      plan.horizon_ns = std::max({plan.horizon_ns, feature.window_ns, feature.half_life_ns});
    }
  };
  for (const auto& st : plan.sequence.steps) from_leaf(st.leaf);
  for (const auto& u : plan.sequence.unless) from_leaf(u.leaf);
  for (const auto& in : plan.count.inputs) from_leaf(in.leaf);
}

void check_signal(State& s, uint32_t index) {
  SignalInfo& info = s.signals[index];
  const ast::SignalDecl& d = *info.decl;
  SignalPlan plan;
  plan.name = s.full_name(info.pack, d.name.text);
  plan.where = s.where(d.name.span);
  plan.doc = d.doc;
  const size_t before = s.sink.error_count();
  const auto entity = resolve_entity(s, info.pack, d.on);
  const SignalContext c{d, info.pack, index, entity.value_or(0), plan.name};
  check_leak(s, c, plan);
  plan.holds_ns = d.when ? 0 : kDefaultHoldsNs;
  if (d.holds) {
    plan.holds_ns = constant_duration(s, info.pack, *d.holds, "`holds`").value_or(0);
  }
  if (!entity) {
    s.signals[index].broken = true;
    return;
  }
  plan.entity_kind = *entity;
  plan.global_stage = !node_keyed(s, *entity);
  check_exceptions(s, d, plan);
  lower_shape(s, c, plan);
  // The counts of the whole window are the evidence.
  if (plan.count.graded.on && !d.holds) plan.holds_ns = plan.count.window_ns;
  inherit_stage(s, plan);
  std::sort(plan.kinds.begin(), plan.kinds.end());
  plan.kinds.erase(std::unique(plan.kinds.begin(), plan.kinds.end()), plan.kinds.end());
  plan.horizon_ns = horizon_of(plan);
  plan.bytes_per_key = bytes_of(plan);
  if (plan.bytes_per_key > kBytesPerKeyMax) {
    s.report(Id::kStateTooLarge, d.name.span,
             "signal '" + d.name.text + "' may need " + std::to_string(plan.bytes_per_key) +
                 " bytes a key; at most 1 MiB is possible");
  }
  s.signals[index].broken = s.sink.error_count() > before;
  s.pack.signals[index] = std::move(plan);
}

}  // namespace

void check_signals(State& s) {
  for (uint32_t i = 0; i < s.signals.size(); ++i) check_signal(s, i);
}

}  // namespace reflex::sema
