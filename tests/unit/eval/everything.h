// Everything: a pack with one of each thing that keeps state; and what tests of saved states say of
// engines: firings as text, where two states differ.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
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

/// One of each thing that keeps state, on events a, b, c of nodes and GPUs.
struct Everything {
  Stream s;
  abi::ExprId value = 0;
  std::vector<std::vector<uint64_t>> ids;

  Everything() {
    value = s.b.field_f64(2);
    pairs();
    absences();
    unlesses();
    counts();
    features();
    peers();
  }

  abi::SignalId sequence(const char* name, abi::StepMode mode, abi::KeepMode keep, int seconds,
                         uint32_t partials = 4) {
    const auto id = s.b.signal(name, s.node, abi::SignalShape::kSequence);
    s.b.step(id, abi::StepMode::kFirst, s.any(0), s.by_node);
    s.b.step(id, mode, s.any(1), s.by_node, seconds * kSec);
    auto& plan = s.plan(id).sequence;
    plan.within_ns = mode == abi::StepMode::kAbsent ? 0 : seconds * kSec;
    plan.keep = keep;
    plan.partials_max = partials;
    return id;
  }

  void guard(abi::SignalId signal, std::vector<abi::NoneGuard>& guards) {
    const auto leaf = s.any(2);
    s.b.own(leaf, abi::OwnerKind::kSignalGuard, signal, static_cast<uint16_t>(guards.size()));
    guards.push_back({leaf, s.kinds[2], s.by_node, 4 * kSec});
  }

  void pairs() {
    sequence("latest", abi::StepMode::kThen, abi::KeepMode::kLatest, 10);
    sequence("strict", abi::StepMode::kThenStrictly, abi::KeepMode::kLatest, 10);
    sequence("earliest", abi::StepMode::kThen, abi::KeepMode::kEarliest, 10);
    sequence("all", abi::StepMode::kThen, abi::KeepMode::kAll, 10, 3);
    sequence("either", abi::StepMode::kThenEither, abi::KeepMode::kEarliest, 4);
    const auto guarded = sequence("guarded", abi::StepMode::kThen, abi::KeepMode::kLatest, 10);
    guard(guarded, s.plan(guarded).sequence.guards);
    const auto joined = s.b.signal("joined", s.node, abi::SignalShape::kSequence);
    s.b.step(joined, abi::StepMode::kFirst, s.any(0), s.by_node, 0, abi::kNone32,
             {{1, 0}, {0, 1}, {2, 2}});
    const auto same =
        s.b.expr(test::bool_type(), [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
          const bool holds = r.i64(1) == c.captures[0].i64() && r.i64(0) == c.captures[1].i64() &&
                             r.f64(2) >= c.captures[2].f64();
          return uint32_t{holds ? abi::kTrue : abi::kFalse};
        });
    s.b.step(joined, abi::StepMode::kThen, s.any(1), s.by_node, 0, same);
    s.b.step(joined, abi::StepMode::kThen, s.any(2), s.by_node);
    s.plan(joined).sequence.within_ns = 30 * kSec;
    s.plan(joined).sequence.capture_count = 3;
  }

  void absences() {
    sequence("absent_all", abi::StepMode::kAbsent, abi::KeepMode::kAll, 8, 16);
    sequence("absent_first", abi::StepMode::kAbsent, abi::KeepMode::kEarliest, 8);
    sequence("absent_latest", abi::StepMode::kAbsent, abi::KeepMode::kLatest, 8);
    const auto guarded =
        sequence("absent_guarded", abi::StepMode::kAbsent, abi::KeepMode::kAll, 8, 5);
    guard(guarded, s.plan(guarded).sequence.guards);
  }

  void unlesses() {
    for (const bool shared : {true, false}) {
      const auto id = sequence(shared ? "unless_shared" : "unless_keyed", abi::StepMode::kThen,
                               shared ? abi::KeepMode::kEarliest : abi::KeepMode::kAll, 10);
      s.b.unless(id, s.any(2), shared ? abi::KeyPlan{} : s.by_node, 0, 1);
      auto& plan = s.plan(id).sequence;
      plan.steps[1].captures = {{1, 0}};
      plan.capture_count = 1;
      abi::UnlessPlan& u = plan.unless[0];
      u.join = s.b.expr(
          test::bool_type(), [](const abi::Record& r, const abi::EvalContext& c, uint64_t&) {
            if (c.captures[0].known == 0) return uint32_t{abi::kUnknown};
            return uint32_t{r.i64(1) == c.captures[0].i64() ? abi::kTrue : abi::kFalse};
          });
      u.deferred = true;
      u.shared = shared;
      u.at_close = true;
      u.check_step = 1;
      u.window_ns = 10 * kSec;
      u.kept_max = 3;
    }
    const auto plain = sequence("unless_now", abi::StepMode::kThen, abi::KeepMode::kAll, 10);
    s.b.unless(plain, s.any(2), s.by_node, 0, 1);
  }

  abi::CountPlan& count(const char* name, abi::CountMode mode, double k, bool each,
                        abi::EntityKindId on, const abi::KeyPlan& key) {
    const auto id = s.b.signal(name, on, abi::SignalShape::kCount);
    auto& plan = s.plan(id).count;
    plan.mode = mode;
    plan.threshold_constant = k;
    plan.window_ns = 12 * kSec;
    plan.gap_ns = 3 * kSec;
    plan.each = each;
    s.b.count_input(id, s.any(0), key, 1);
    return s.plan(id).count;
  }

  void counts() {
    count("ring", abi::CountMode::kEvents, 3, false, s.node, s.by_node);
    count("ring_each", abi::CountMode::kEvents, 2, true, s.node_gpu, s.by_gpu);
    count("ring_rearm", abi::CountMode::kEvents, 4, false, s.node, s.by_node).rearm = 2;
    count("general", abi::CountMode::kEvents, 3, false, s.node, s.by_node).rearm = 0;
    count("merged", abi::CountMode::kEvents, 5, true, s.node, s.by_node).exact_max = 0;
    count("distinct", abi::CountMode::kDistinct, 2, true, s.node, s.by_node);
    count("bursts", abi::CountMode::kBursts, 2, false, s.node, s.by_node);
    auto& few = count("few", abi::CountMode::kEvents, 2, false, s.node, s.by_node);
    few.op = abi::CompareOp::kLe;  // the general form
    few.exact_max = 2;             // and merged buckets
    auto& guarded = count("count_guarded", abi::CountMode::kEvents, 2, false, s.node, s.by_node);
    guard(static_cast<abi::SignalId>(s.b.pack->signals.size() - 1), guarded.guards);
  }

  abi::FeatureId feature(abi::FeaturePlan plan, int kind = 0) {
    plan.entity_kind = s.node;
    const auto f = s.b.feature(plan);
    s.b.feature_input(f, s.any(kind), value, s.by_node);
    return f;
  }

  /// `feature > limit`, looked at when a or b comes.
  abi::ConditionPlan& when(abi::FeatureId f, double limit) {
    const auto id = s.b.signal("when" + std::to_string(f), s.node, abi::SignalShape::kCondition);
    auto& plan = s.plan(id).condition;
    plan.features = {f};
    const bool integer = s.b.pack->features[f].integer_result;
    plan.when = s.b.expr(test::bool_type(),
                         [=](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                           if (c.features[f].known == 0) return uint32_t{abi::kUnknown};
                           const double v = integer ? static_cast<double>(c.features[f].i64())
                                                    : c.features[f].f64();
                           return uint32_t{v > limit ? abi::kTrue : abi::kFalse};
                         },
                         {f});
    plan.shown_value =
        s.b.expr(test::real_type(),
                 [f](const abi::Record&, const abi::EvalContext& c, uint64_t& v) {
                   v = c.features[f].bits;
                   return uint32_t{c.features[f].known != 0 ? abi::kTrue : abi::kUnknown};
                 },
                 {f});
    s.b.trigger(id, s.any(0), s.by_node);
    s.b.trigger(id, s.any(1), s.by_node);
    return s.plan(id).condition;
  }

  void features() {
    using Op = abi::FeatureOp;
    const auto of = [](Op op) {
      abi::FeaturePlan plan;
      plan.op = op;
      return plan;
    };
    const auto in_window = [&](Op op, int seconds) {
      auto plan = of(op);
      plan.window_ns = seconds * kSec;
      return plan;
    };
    const auto last = [&](Op op, uint32_t n) {
      auto plan = of(op);
      plan.last_n = n;
      return plan;
    };
    when(feature(of(Op::kLast)), 10).for_ns = 3 * kSec;
    auto& kept = when(feature(of(Op::kEwma)), 8);
    kept.keep_ns = 5 * kSec;
    auto decayed = of(Op::kDecayed);
    decayed.half_life_ns = 10 * kSec;
    when(feature(decayed), 12).time_driven = true;
    auto since = of(Op::kSince);
    since.integer_result = true;
    auto& silent = when(feature(since), 7.0 * kSec);
    silent.time_driven = true;
    silent.for_ns = 2 * kSec;
    when(feature(in_window(Op::kMean, 10)), 9).for_ns = kSec;
    when(feature(in_window(Op::kMax, 10)), 15);
    when(feature(in_window(Op::kStdDev, 20)), 4);
    when(feature(in_window(Op::kCount, 10)), 2);
    when(feature(in_window(Op::kMedian, 15)), 9);
    for (const uint32_t n : {4u, 2u, 7u}) when(feature(last(Op::kMean, n)), 9);
    auto without = last(Op::kMax, 3);
    without.exclude_current = true;
    when(feature(without), 14);
    when(feature(of(Op::kTrend)), 0.5);
    when(feature(of(Op::kBurstiness)), 1);
    when(feature(of(Op::kStreak)), 3);
    when(feature(of(Op::kStdDev)), 4);
    auto increase = in_window(Op::kIncrease, 20);
    increase.counter_input = true;
    when(feature(increase), 10);
    auto resets = in_window(Op::kResetCount, 20);
    resets.counter_input = true;
    when(feature(resets), 1);
    auto counter_mean = last(Op::kMean, 4);
    counter_mean.counter_input = true;
    when(feature(counter_mean), 5);
    auto distinct = in_window(Op::kDistinct, 12);
    distinct.integer_result = true;
    when(feature(distinct), 2);
    const auto reset = feature(of(Op::kSum));
    const auto leaf = s.any(2);
    s.b.own(leaf, abi::OwnerKind::kFeatureReset, reset);
    s.b.pack->features[reset].resets.push_back({leaf, abi::kNone32, s.by_node, false});
    when(reset, 25);
    auto& cleared = when(feature(of(Op::kMean)), 10);
    cleared.clear =
        s.b.expr(test::bool_type(), [](const abi::Record& r, const abi::EvalContext&, uint64_t&) {
          return uint32_t{r.slot_count != 0 && r.f64(2) < 3 ? abi::kTrue : abi::kFalse};
        });
    auto rarely = last(Op::kMean, 3);
    rarely.min_samples = 3;
    auto& held = when(feature(rarely, 1), 5);
    held.nodata = abi::NoData::kHold;
    held.nodata_hold_ns = 6 * kSec;
  }

  void peers() {
    abi::PeersQuery query;
    query.feature = feature({});
    query.scope = "class";
    query.at_least = 1;
    query.bucket_ns = 5 * kSec;
    s.b.pack->peers.push_back(query);
    const auto id = s.b.signal("peers", s.node, abi::SignalShape::kCondition);
    s.plan(id).global_stage = true;
    auto& plan = s.plan(id).condition;
    plan.features = {query.feature};
    plan.when =
        s.b.expr(test::bool_type(),
                 [f = query.feature](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                   const abi::Value others = c.host->peers(c.host_state, &c, 0);
                   if (others.known == 0 || c.features[f].known == 0) {
                     return uint32_t{abi::kUnknown};
                   }
                   return uint32_t{c.features[f].f64() > others.f64() ? abi::kTrue : abi::kFalse};
                 },
                 {query.feature});
    s.b.pack->exprs[plan.when].reads_peers = true;
    s.b.trigger(id, s.any(0), s.by_node);
  }

  void load(const std::vector<Event>& events) {
    s.load(events);
    ids.reserve(s.records.size());
    for (size_t i = 0; i < s.records.size(); ++i) {
      auto* record = const_cast<abi::Record*>(s.records[i]);
      record->seq = 3 * i;
      if (i % 2 == 0) continue;
      auto& words = ids.emplace_back(2);
      reinterpret_cast<abi::Text*>(words.data())->size = 2;
      std::memcpy(reinterpret_cast<char*>(words.data()) + sizeof(abi::Text), "id", 2);
      record->id = reinterpret_cast<const abi::Text*>(words.data());
    }
    s.topology = std::make_shared<topology::Topology>(s.b.pack);
  }

  [[nodiscard]] std::unique_ptr<SignalEngine> engine(unsigned threads,
                                                     const SignalEngine* before = nullptr) const {
    Options options{threads, s.want_near_misses};
    options.before = before;
    return std::make_unique<SignalEngine>(s.b.pack, s.topology, options);
  }
  [[nodiscard]] std::string saved(const SignalEngine& engine) const {
    StateWriter out(*s.b.pack->symbols);
    engine.save(out);
    return out.take();
  }
  [[nodiscard]] std::unique_ptr<SignalEngine> loaded(const std::string& bytes,
                                                     unsigned threads) const {
    auto next = engine(threads);
    StateReader in(bytes, *s.b.pack->symbols);
    std::vector<StateFate> report;
    if (!next->load(in, &report)) return nullptr;
    for (const StateFate& fate : report) {
      if (fate.fate != abi::Fate::kKept || fate.changed) return nullptr;
    }
    return next;
  }
  void process(SignalEngine& engine, size_t from, size_t to, int64_t ahead_ns,
               std::vector<abi::Firing>& out) const {
    if (from == to) return;
    // The watermark may be ahead of the last event, but not beyond the next one.
    int64_t until = s.records[to - 1]->ts_ns + ahead_ns;
    if (to < s.records.size()) until = std::min(until, s.records[to]->ts_ns);
    engine.process({s.records.data() + from, to - from}, until, out);
  }
};

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
