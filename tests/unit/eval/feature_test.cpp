// Every feature law (language.md A7) against its definition, computed anew over all past samples.
//
// Kind a feeds, kind b resets, kind c probes: its predicate logs what the feature says at that
// moment (and is false, so nothing fires).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {

using abi::FeatureOp;

struct Seen {
  int t;
  SymbolId node;
  abi::Value value;
};

struct Probed {
  Stream s;
  std::vector<Seen> log;

  abi::FeatureId add(abi::FeaturePlan plan, bool resets = false) {
    plan.entity_kind = s.node;
    const auto f = s.b.feature(plan);
    s.b.feature_input(f, s.any(0), s.b.field_f64(2), s.by_node);
    if (resets) {
      const auto leaf = s.any(1);
      s.b.own(leaf, abi::OwnerKind::kFeatureReset, f);
      s.b.pack->features[f].resets.push_back({leaf, abi::kNone32, s.by_node, false});
    }
    return f;
  }
  void probe(abi::FeatureId f) {
    const auto look = s.b.expr(test::bool_type(),
                               [this, f](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
                                 log.push_back({static_cast<int>(c.now_ns / kSec),
                                                static_cast<SymbolId>(c.entity[0]), c.features[f]});
                                 return uint32_t{abi::kFalse};
                               },
                               {f});
    const auto leaf = s.b.leaf(s.kinds[2], look);
    s.b.pack->leaves[leaf].features = {f};
    s.b.pack->leaves[leaf].entity_kind = s.node;
    const auto id = s.b.signal("probe", s.node, abi::SignalShape::kSequence);
    s.b.step(id, abi::StepMode::kFirst, leaf, s.by_node);
  }
};

struct Sample {
  int t;
  double v;
};
/// What the feature is at time t after these samples of one node (since the last reset).
using Law = std::function<std::optional<double>(const std::vector<Sample>&, int t)>;

void check_law(const abi::FeaturePlan& plan, const Law& law, bool resets = false) {
  EXPECT_TRUE(rc::check([&] {
    Probed p;
    p.probe(p.add(plan, resets));
    const auto events = arbitrary_events();
    p.s.load(events);
    p.s.run();
    std::vector<std::vector<Sample>> past(3);
    size_t at = 0;
    for (const Event& e : events) {
      auto& mine = past[static_cast<size_t>(e.node)];
      if (e.kind == 0) mine.push_back({e.t, static_cast<double>(e.value)});
      if (e.kind == 1 && resets) mine.clear();
      if (e.kind != 2) continue;
      RC_ASSERT(at < p.log.size());
      const Seen& seen = p.log[at++];
      RC_ASSERT(seen.t == e.t);
      RC_ASSERT(seen.node == p.s.names[static_cast<size_t>(e.node)]);
      const auto want = law(mine, e.t);
      RC_ASSERT((seen.value.known != 0) == want.has_value());
      if (want) RC_ASSERT(std::fabs(seen.value.f64() - *want) <= 1e-6 * (1 + std::fabs(*want)));
    }
    RC_ASSERT(at == p.log.size());
  }));
}

std::vector<double> within(const std::vector<Sample>& all, int t, int window) {
  std::vector<double> out;
  for (const Sample& x : all) {
    if (x.t > t - window) out.push_back(x.v);
  }
  return out;
}
double sum(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

std::optional<double> statistic(FeatureOp op, std::vector<double> v) {
  const auto n = static_cast<double>(v.size());
  if (op == FeatureOp::kCount) return n;
  if (v.empty()) return std::nullopt;
  std::sort(v.begin(), v.end());
  const double mean = sum(v) / n;
  double squares = 0;
  for (double x : v) squares += (x - mean) * (x - mean);
  switch (op) {
    case FeatureOp::kSum:
      return sum(v);
    case FeatureOp::kMean:
      return mean;
    case FeatureOp::kMin:
      return v.front();
    case FeatureOp::kMax:
      return v.back();
    case FeatureOp::kStdDev:
      return v.size() < 2 ? 0 : std::sqrt(squares / (n - 1));
    case FeatureOp::kMedian:
      return v[(v.size() - 1) / 2];
    case FeatureOp::kQuantile:
      return v[static_cast<size_t>(std::ceil(0.9 * n)) - 1];
    default:
      return std::nullopt;
  }
}
const FeatureOp kStatistics[] = {FeatureOp::kCount,  FeatureOp::kSum,     FeatureOp::kMean,
                                 FeatureOp::kMin,    FeatureOp::kMax,     FeatureOp::kStdDev,
                                 FeatureOp::kMedian, FeatureOp::kQuantile};

TEST(Features, StatisticsWithinATime) {
  for (FeatureOp op : kStatistics) {
    abi::FeaturePlan plan;
    plan.op = op;
    plan.window_ns = 12 * kSec;
    plan.quantile = 0.9;
    check_law(plan, [op](const auto& all, int t) { return statistic(op, within(all, t, 12)); });
  }
}

TEST(Features, StatisticsOfTheLastN) {
  for (FeatureOp op : kStatistics) {
    abi::FeaturePlan plan;
    plan.op = op;
    plan.last_n = 3;
    plan.quantile = 0.9;
    check_law(plan, [op](const auto& all, int) {
      std::vector<double> v;
      for (size_t i = all.size() > 3 ? all.size() - 3 : 0; i < all.size(); ++i) {
        v.push_back(all[i].v);
      }
      return statistic(op, v);
    });
  }
}

TEST(Features, AtLeastKeepsAStatisticUnknown) {
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kMean;
  plan.window_ns = 12 * kSec;
  plan.min_samples = 3;
  check_law(plan, [](const auto& all, int t) {
    const auto v = within(all, t, 12);
    return v.size() < 3 ? std::nullopt : statistic(FeatureOp::kMean, v);
  });
}

/// The increments of a counter: (time, increment, was a reset); gaps beyond `stale` restart it.
struct Step {
  int t;
  double v;
  bool reset;
};
std::vector<Step> steps(const std::vector<Sample>& all, int stale) {
  std::vector<Step> out;
  std::vector<int> gaps;
  for (size_t i = 1; i < all.size(); ++i) {
    const int gap = all[i].t - all[i - 1].t;
    int limit = stale;
    if (limit == 0 && gaps.size() >= 3) {  // 3 x the lower median of the last five
      std::vector<int> last(
          gaps.end() - static_cast<std::ptrdiff_t>(std::min<size_t>(gaps.size(), 5)), gaps.end());
      std::sort(last.begin(), last.end());
      limit = 3 * last[(last.size() - 1) / 2];
    }
    if (limit > 0 && gap > limit) {
      gaps.clear();
      continue;
    }
    gaps.push_back(gap);
    const bool reset = all[i].v < all[i - 1].v;
    out.push_back({all[i].t, reset ? all[i].v : all[i].v - all[i - 1].v, reset});
  }
  return out;
}

TEST(Features, IncreaseAndRateOfACounterSurviveResetsAndGaps) {
  for (FeatureOp op : {FeatureOp::kIncrease, FeatureOp::kRate}) {
    for (int stale : {0, 7}) {
      abi::FeaturePlan plan;
      plan.op = op;
      plan.counter_input = true;
      plan.window_ns = 15 * kSec;
      plan.stale_after_ns = stale * kSec;
      check_law(plan, [=](const auto& all, int t) -> std::optional<double> {
        const auto inc = steps(all, stale);
        if (inc.empty()) return std::nullopt;
        double total = 0;
        for (const Step& s : inc) total += s.t > t - 15 ? s.v : 0;
        return op == FeatureOp::kRate ? total / 15 : total;
      });
    }
  }
}

TEST(Features, ResetCountCountsFalls) {
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kResetCount;
  plan.counter_input = true;
  plan.window_ns = 15 * kSec;
  plan.stale_after_ns = 1000 * kSec;
  check_law(plan, [](const auto& all, int t) -> std::optional<double> {
    if (all.empty()) return std::nullopt;
    double n = 0;
    for (const Step& s : steps(all, 1000)) n += s.reset && s.t > t - 15 ? 1 : 0;
    return n;
  });
}

TEST(Features, TheLastNOfACounterAreIncrements) {
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kSum;
  plan.counter_input = true;
  plan.last_n = 2;
  plan.stale_after_ns = 9 * kSec;
  check_law(plan, [](const auto& all, int) -> std::optional<double> {
    const auto inc = steps(all, 9);
    if (inc.empty()) return std::nullopt;
    return inc.back().v + (inc.size() > 1 ? inc[inc.size() - 2].v : 0);
  });
}

TEST(Features, TrendIsTheFadedLeastSquaresSlope) {
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kTrend;
  plan.half_life_ns = 20 * kSec;
  check_law(plan, [](const auto& all, int) -> std::optional<double> {
    if (all.size() < 2 || all.front().t == all.back().t) return std::nullopt;
    double w = 0, mean_t = 0, mean_v = 0;
    const auto weight = [&](const Sample& x) { return std::exp2((x.t - all.back().t) / 20.0); };
    for (const Sample& x : all) {
      w += weight(x);
      mean_t += weight(x) * x.t;
      mean_v += weight(x) * x.v;
    }
    mean_t /= w;
    mean_v /= w;
    double top = 0, bottom = 0;
    for (const Sample& x : all) {
      top += weight(x) * (x.t - mean_t) * (x.v - mean_v);
      bottom += weight(x) * (x.t - mean_t) * (x.t - mean_t);
    }
    return top / bottom;
  });
}

TEST(Features, EwmaIsTheWeightedSumOfItsSteps) {
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kEwma;
  plan.half_life_ns = 10 * kSec;
  check_law(plan, [](const auto& all, int) -> std::optional<double> {
    if (all.empty()) return std::nullopt;
    // Unrolled: sample i is worth what the gap before it gave it and the time since left of it.
    double total = all[0].v * std::exp2((all[0].t - all.back().t) / 10.0);
    for (size_t i = 1; i < all.size(); ++i) {
      const double taken = 1 - std::exp2((all[i - 1].t - all[i].t) / 10.0);
      total += all[i].v * taken * std::exp2((all[i].t - all.back().t) / 10.0);
    }
    return total;
  });
}

TEST(Features, CusumIsTheLargestSuffixExcess) {
  EXPECT_TRUE(rc::check([] {
    Probed p;
    abi::FeaturePlan plan;
    plan.op = FeatureOp::kCusum;
    plan.slack = 0.1;
    plan.slack_relative = true;
    plan.target = p.s.b.expr(test::real_type(),
                             [](const abi::Record&, const abi::EvalContext&, uint64_t& out) {
                               out = abi::Value::of(10.0).bits;
                               return uint32_t{abi::kTrue};
                             });
    p.probe(p.add(plan));
    const auto events = arbitrary_events();
    p.s.load(events);
    p.s.run();
    std::vector<std::vector<double>> past(3);
    size_t at = 0;
    for (const Event& e : events) {
      auto& mine = past[static_cast<size_t>(e.node)];
      if (e.kind == 0) mine.push_back(e.value);
      if (e.kind != 2) continue;
      const Seen& seen = p.log.at(at++);
      RC_ASSERT((seen.value.known != 0) == !mine.empty());
      double best = 0, suffix = 0;  // S = max over suffixes of the sum of x - target - slack
      for (size_t i = mine.size(); i-- > 0;) best = std::max(best, suffix += mine[i] - 11);
      if (!mine.empty()) RC_ASSERT(std::fabs(seen.value.f64() - best) < 1e-9);
    }
  }));
}

TEST(Features, BurstinessIsVarianceOverMeanOfGaps) {
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kBurstiness;
  check_law(plan, [](const auto& all, int) -> std::optional<double> {
    if (all.size() < 3 || all.front().t == all.back().t) return std::nullopt;
    std::vector<double> gaps;
    for (size_t i = 1; i < all.size(); ++i) gaps.push_back(all[i].t - all[i - 1].t);
    const double mean = sum(gaps) / static_cast<double>(gaps.size());
    double squares = 0;
    for (double g : gaps) squares += (g - mean) * (g - mean);
    return squares / static_cast<double>(gaps.size() - 1) / mean;
  });
}

TEST(Features, ResetStartsAnew) {
  for (FeatureOp op : {FeatureOp::kSum, FeatureOp::kCount, FeatureOp::kMax, FeatureOp::kMean}) {
    abi::FeaturePlan forever, window, last;
    forever.op = window.op = last.op = op;
    window.window_ns = 12 * kSec;
    last.last_n = 2;
    const auto values = [](const std::vector<Sample>& all) {
      std::vector<double> v;
      for (const Sample& x : all) v.push_back(x.v);
      return v;
    };
    check_law(
        window, [op](const auto& all, int t) { return statistic(op, within(all, t, 12)); }, true);
    check_law(forever, [=](const auto& all, int) { return statistic(op, values(all)); }, true);
    check_law(
        last,
        [=](const auto& all, int) {
          auto v = values(all);
          if (v.size() > 2) v.erase(v.begin(), v.end() - 2);
          return statistic(op, v);
        },
        true);
  }
}

TEST(Features, WindowsBeyondTheirBucketsStayWithinTheDocumentedError) {
  Probed p;
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kCount;
  plan.window_ns = 640 * kSec;
  p.probe(p.add(plan));
  std::vector<Event> events;
  for (int t = 0; t < 3000; ++t) events.push_back({t, t % 10 == 9 ? 2 : 0, 0, 0, 1});
  p.s.load(events);
  p.s.run();
  ASSERT_EQ(p.log.size(), 300u);
  for (const Seen& seen : p.log) {
    double exact = 0, late = 0;  // samples of the last 640 s; of the last 650 s
    for (const Event& e : events) {
      if (e.kind != 0 || e.t > seen.t) continue;
      exact += e.t > seen.t - 640 ? 1 : 0;
      late += e.t > seen.t - 651 ? 1 : 0;
    }
    EXPECT_GE(seen.value.f64(), exact);
    EXPECT_LE(seen.value.f64(), late);
  }
}

TEST(Features, DistinctIsExactThenWithinThreePercent) {
  Probed p;
  abi::FeaturePlan plan;
  plan.op = FeatureOp::kDistinct;
  plan.window_ns = 100'000 * kSec;
  p.probe(p.add(plan));
  std::vector<Event> events;
  for (int i = 0; i < 20'000; ++i) {
    events.push_back({i / 4, 0, 0, 0, i});
    events.push_back({i / 4, 0, 0, 0, i / 2});  // seen before: changes nothing
    if (i < 64 || i % 1000 == 999) events.push_back({i / 4, 2, 0, 0, 0});
  }
  p.s.load(events);
  p.s.run();
  ASSERT_EQ(p.log.size(), 84u);
  for (size_t i = 0; i < p.log.size(); ++i) {
    const double want = i < 64 ? static_cast<double>(i + 1) : static_cast<double>(i - 63) * 1000;
    // Why 5 %: three standard errors of 4096 registers (1.6 % each).
    EXPECT_NEAR(p.log[i].value.f64(), want, i < 64 ? 0 : want * 0.05);
  }
}

}  // namespace
}  // namespace reflex::eval
