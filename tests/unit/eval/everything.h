// Everything: a pack with one of each thing that keeps state, and engines of it.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/eval/sequences.h"
#include "tests/unit/eval/state_text.h"

namespace reflex::eval {

/// One of each thing that keeps state, on events a, b, c of nodes and GPUs.
struct Everything : Sequences {
  abi::ExprId value = 0;
  std::vector<std::vector<uint64_t>> ids;

  Everything() {
    value = s.b.field_f64(2);
    counts();
    features();
    peers();
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

}  // namespace reflex::eval
