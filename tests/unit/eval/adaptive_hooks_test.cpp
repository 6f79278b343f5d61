// What adaptive thresholds ask of evaluation: run-time values (set_tables) and samples of features.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {

/// One value: by node where it has one of its own, else the same for every class.
struct OneValue final : abi::TableSnapshot {
  abi::Value everywhere;
  std::map<SymbolId, abi::Value> own;
  OneValue(double v, std::map<SymbolId, abi::Value> nodes = {})
      : everywhere(abi::Value::of(v)), own(std::move(nodes)) {}
  [[nodiscard]] uint64_t version() const override { return 1; }
  [[nodiscard]] int64_t valid_from_ns() const override { return 0; }
  [[nodiscard]] const abi::Value* row(abi::ClassId) const override { return &everywhere; }
  [[nodiscard]] const abi::Value* row_of_node(abi::ClassId, SymbolId node) const override {
    const auto at = own.find(node);
    return at == own.end() ? &everywhere : &at->second;
  }
  [[nodiscard]] abi::TableOrigin origin(uint32_t, abi::ClassId, SymbolId) const override {
    return {};
  }
  [[nodiscard]] abi::BenignRate benign(abi::SignalId, abi::ClassId, SymbolId) const override {
    return {};
  }
};

/// `value > table[0]` as a step of a, and as a condition on the last value of b.
struct Limited {
  Stream s;
  abi::SignalId step, condition;
  Limited() {
    const auto above = [](double v, const abi::EvalContext& c) -> uint32_t {
      if (c.table == nullptr || c.table[0].known == 0) return abi::kUnknown;
      return v > c.table[0].f64() ? abi::kTrue : abi::kFalse;
    };
    const auto by_record =
        s.b.expr(test::bool_type(), [=](const abi::Record& r, const abi::EvalContext& c,
                                        uint64_t&) { return above(r.f64(2), c); });
    step = s.b.signal("step", s.node, abi::SignalShape::kSequence);
    s.b.step(step, abi::StepMode::kFirst, s.b.leaf(s.kinds[0], by_record), s.by_node);

    abi::FeaturePlan last;
    last.entity_kind = s.node;
    const auto feature = s.b.feature(last);
    s.b.feature_input(feature, s.any(1), s.b.field_f64(2), s.by_node);
    const auto by_feature = s.b.expr(test::bool_type(),
                                     [=](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                                       return above(c.features[feature].f64(), c);
                                     },
                                     {feature});
    condition = s.b.signal("condition", s.node, abi::SignalShape::kCondition);
    s.plan(condition).condition.when = by_feature;
    s.plan(condition).condition.features = {feature};
    s.b.trigger(condition, s.any(1), s.by_node);
    for (abi::ExprId e : {by_record, by_feature}) s.b.pack->exprs[e].reads_class = true;
  }
};

TEST(RunTimeValues, ANewTableHoldsFromTheNextEvaluationOn) {
  for (unsigned threads : {1u, 2u}) {
    Limited l;
    Stream& s = l.s;
    // Values 5 at each time: above 4, not above 7; node 1 has a limit of its own.
    s.load({{0, 0, 0, 0, 5},
            {0, 1, 0, 0, 5},
            {10, 0, 0, 0, 5},
            {10, 0, 1, 0, 5},
            {10, 1, 0, 0, 5},
            {10, 1, 1, 0, 5},
            {20, 0, 0, 0, 5},
            {20, 0, 1, 0, 5},
            {20, 1, 0, 0, 5},
            {20, 1, 1, 0, 5}});
    SignalEngine engine(s.b.pack, std::make_shared<topology::Topology>(s.b.pack), {threads, false});
    std::vector<abi::Firing> out;
    const std::span<const abi::Record* const> all(s.records);
    engine.process(all.subspan(0, 2), 0, out);
    EXPECT_TRUE(out.empty());  // no table: unknown
    engine.set_tables(std::make_shared<OneValue>(
        4.0, std::map<SymbolId, abi::Value>{{s.names[1], abi::Value::of(9.0)}}));
    engine.process({}, 5 * kSec, out);
    EXPECT_TRUE(out.empty());  // a change evaluates nothing by itself
    engine.process(all.subspan(2, 4), 10 * kSec, out);
    EXPECT_EQ(fired(out, l.step), (Fired{{10, s.names[0]}}));
    EXPECT_EQ(fired(out, l.condition), (Fired{{10, s.names[0]}}));
    engine.set_tables(std::make_shared<OneValue>(
        7.0, std::map<SymbolId, abi::Value>{{s.names[1], abi::Value::of(1.0)}}));
    out.clear();
    engine.process(all.subspan(6, 4), 20 * kSec, out);
    EXPECT_EQ(fired(out, l.step), (Fired{{20, s.names[1]}}));
    EXPECT_EQ(fired(out, l.condition), (Fired{{20, s.names[1]}}));
    EXPECT_EQ(fired(out, l.condition, abi::FiringChange::kEnd), (Fired{{20, s.names[0]}}));
  }
}

/// (feature, key values) -> value.
using Samples = std::map<std::tuple<abi::FeatureId, uint64_t, uint64_t>, double>;

struct Sampled {
  Stream s;
  std::vector<abi::FeatureId> features;
  abi::SignalId any_b = 0;

  abi::FeatureId add(abi::FeaturePlan plan, abi::EntityKindId kind, const abi::KeyPlan& key,
                     bool resets = false) {
    plan.entity_kind = kind;
    const auto f = s.b.feature(plan);
    s.b.feature_input(f, s.any(0), s.b.field_f64(2), key);
    if (resets) {
      const auto leaf = s.any(1);
      s.b.own(leaf, abi::OwnerKind::kFeatureReset, f);
      s.b.pack->features[f].resets.push_back({leaf, abi::kNone32, key, false});
    }
    s.b.pack->adaptives.push_back({});  // no signal reads it
    s.b.pack->adaptives.back().feature = f;
    features.push_back(f);
    return f;
  }
  Sampled() {
    abi::FeaturePlan sum;
    sum.op = abi::FeatureOp::kSum;
    add(sum, s.node, s.by_node, true);
    abi::FeaturePlan window = sum;
    window.window_ns = 20 * kSec;
    add(window, s.node_gpu, s.by_gpu);
    abi::FeaturePlan ring;
    ring.op = abi::FeatureOp::kMean;
    ring.last_n = 4;
    ring.min_samples = 2;
    add(ring, s.node, s.by_node, true);
    // A kind without a node: kept by the global shard only.
    const auto gpu = s.b.entity_kind({"gpu"});
    abi::FeaturePlan last;
    add(last, gpu, PackBuilder::key({1}));
    any_b = s.b.signal("any_b", s.node, abi::SignalShape::kSequence);
    s.b.step(any_b, abi::StepMode::kFirst, s.any(1), s.by_node);
  }
  Samples run(unsigned threads, size_t batch, size_t* firings = nullptr) {
    SignalEngine engine(s.b.pack, std::make_shared<topology::Topology>(s.b.pack), {threads, false});
    std::vector<abi::Firing> out;
    Samples samples;
    int64_t now_ns = 0;
    for (size_t at = 0; at < s.records.size(); at += batch) {
      const size_t n = std::min(batch, s.records.size() - at);
      now_ns = s.records[at + n - 1]->ts_ns;
      engine.process({s.records.data() + at, n}, now_ns, out);
      samples.clear();
      engine.sample_features(features, now_ns, [&](auto f, const auto& key, auto, double v) {
        const auto [where, fresh] = samples.emplace(std::tuple{f, key.values[0], key.values[1]}, v);
        EXPECT_TRUE(fresh) << "visited twice";
      });
    }
    counts.clear();
    for (const auto f : features) counts.push_back(engine.entity_count(f));
    if (firings != nullptr) *firings = out.size();
    return samples;
  }
  std::vector<size_t> counts;  // of the last run
};

TEST(SampleFeatures, AreTheLawsOfThePastForEveryThreadCountAndBatch) {
  EXPECT_TRUE(rc::check([] {
    Sampled p;
    Stream& s = p.s;
    const auto events = arbitrary_events(4);
    s.load(events);
    Samples want;
    std::map<int, std::vector<double>> since_reset;
    std::map<std::pair<int, int>, std::vector<std::pair<int, double>>> by_gpu;
    size_t b_count = 0;
    for (const Event& e : events) {
      if (e.kind == 0) {
        since_reset[e.node].push_back(e.value);
        by_gpu[{e.node, e.gpu}].emplace_back(e.t, e.value);
        want[{p.features[3], static_cast<uint64_t>(e.gpu), 0}] = e.value;
      } else if (e.kind == 1) {
        ++b_count;
        since_reset[e.node].clear();
      }
    }
    std::vector<size_t> counts{0, by_gpu.size(), 0, want.size()};
    for (const auto& [node, values] : since_reset) {
      if (values.empty()) continue;
      ++counts[0], ++counts[2];
      double sum = 0;
      for (double v : values) sum += v;
      const uint64_t key = s.names[static_cast<size_t>(node)];
      want[{p.features[0], key, 0}] = sum;
      if (values.size() < 2) continue;  // fewer than min_samples: unknown, not visited
      const size_t n = std::min<size_t>(4, values.size());
      double last = 0;
      for (size_t i = 0; i < n; ++i) last += values[values.size() - 1 - i];
      want[{p.features[2], key, 0}] = last / static_cast<double>(n);
    }
    for (const auto& [key, samples] : by_gpu) {
      double sum = 0;
      for (const auto& [t, v] : samples) sum += t > events.back().t - 20 ? v : 0;
      if (samples.back().first <= events.back().t - 20) continue;  // an empty sum is unknown
      want[{p.features[1], s.names[static_cast<size_t>(key.first)],
            static_cast<uint64_t>(key.second)}] = sum;
    }
    for (unsigned threads : {1u, 2u, 4u}) {
      for (size_t batch : {size_t{1}, size_t{7}, size_t{4096}}) {
        size_t firings = 0;
        const Samples got = p.run(threads, batch, &firings);
        RC_ASSERT(got.size() == want.size());
        for (const auto& [key, value] : want) {
          RC_ASSERT(got.contains(key));
          RC_ASSERT(std::fabs(got.at(key) - value) < 1e-9);
        }
        RC_ASSERT(firings == b_count);
        if (!events.empty()) RC_ASSERT(p.counts == counts);
      }
    }
  }));
}

TEST(SampleFeatures, EvictedKeysAreNotVisited) {
  Sampled p;
  p.s.b.pack->limits.keys_max = 2;
  p.s.load({{0, 0, 0, 0, 1}, {1, 0, 1, 0, 2}, {2, 0, 2, 0, 3}});
  const Samples got = p.run(1, 1);
  EXPECT_FALSE(got.contains({p.features[0], p.s.names[0], 0}));
  EXPECT_EQ(got.at({p.features[0], p.s.names[2], 0}), 3.0);
  EXPECT_EQ(p.counts[0], 2u);
}

}  // namespace
}  // namespace reflex::eval
