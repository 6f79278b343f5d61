// "Same gpu": the term against a sum over the unknown part, written out (README 16).
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/attribution/graded.h"
#include "world.h"

namespace reflex::attribution {
namespace {

constexpr double kP = 0.6;
constexpr double kEpisodeLeak = 0.01;

/// A fault with graded signals a, b, c on one node; each shows the same counts.
class Wear : public World {
 public:
  explicit Wear(const std::string& part_key = "gpu") {
    const auto f = fault("f", {"node"}, 1e-3);
    for (const char* name : {"a", "b", "c"}) {
      signals.push_back(signal(name, {"node"}, 0.02));
      auto& s = pack->signals[signals.back()];
      s.shape = abi::SignalShape::kCount;
      s.count.window_ns = 72 * 3600 * kS;
      s.count.graded.on = true;
      s.count.part_key = part_key;
      s.leak_probability = kEpisodeLeak;
      edge(f, signals.back(), kP, -72 * 3600, 3600, abi::Scope::kSelf);
    }
    node("n0"), node("n1");
  }
  void show(size_t at, uint64_t part) {
    auto& episode = fire(signals[at], {"n0"}, -600 - 7200 * static_cast<int64_t>(at)).episodes[0];
    episode.lead_counts = {0, 0, 2, 3, 2, 0};
    episode.part = part;
  }
  double agreement() {
    const abi::Verdict v = run();
    const auto* h = find_hypothesis(v, "f", "n0");
    for (const auto& c : h->contributions) {
      if (c.signal == "same gpu") return c.nats;
    }
    return 0;
  }
  /// log 1/8 sum_g prod_i P(d_i | g), against 1/8 for each.
  double by_hand(const std::vector<int>& parts) {
    const LeadCounts counts{0, 0, 2, 3, 2, 0};
    GradedLaw law;
    law.profile = abi::GradedPlan{}.profile;
    law.window_hours = law.seen_hours = 72;
    const double a = std::exp(graded_log_ratio(law, counts, 0.02));
    const double ratio = a / (1 - kEpisodeLeak + kEpisodeLeak * a);
    const double own = 0.8 * kP * ratio / (1 - kP + kP * ratio);
    double sum = 0;
    for (int g = 0; g < 8; ++g) {
      double product = 1.0 / 8;
      for (const int d : parts) product *= (d == g ? own : 0) + (1 - own) / 8;
      sum += product;
    }
    const double lr = sum / std::pow(1.0 / 8, static_cast<double>(parts.size()));
    return std::log(lr / (0.9 + 0.1 * lr));
  }
  std::vector<abi::SignalId> signals;
};

TEST(Agreement, IsTheSumOverTheUnknownPart) {
  for (const std::vector<int>& parts :
       {std::vector{3, 3}, {3, 3, 3}, {3, 3, 5}, {3, 5}, {1, 2, 3}}) {
    Wear w;
    for (size_t i = 0; i < parts.size(); ++i) w.show(i, static_cast<uint64_t>(parts[i]) + 1);
    EXPECT_NEAR(w.agreement(), w.by_hand(parts), 1e-8) << parts.size();
  }
}

TEST(Agreement, SpeaksForTheSameAndAgainstDifferentParts) {
  Wear same, different;
  same.show(0, 4), same.show(1, 4), same.show(2, 4);
  different.show(0, 4), different.show(1, 5), different.show(2, 6);
  EXPECT_GT(same.agreement(), 1.5);
  EXPECT_LT(different.agreement(), -1);
}

TEST(Agreement, SaysNothingOfOneSignalOrWithoutParts) {
  Wear one, unstated, off;
  one.show(0, 4);
  unstated.show(0, 0), unstated.show(1, 0);
  off.show(0, 4), off.show(1, 4);
  off.input.switches.agreement = false;
  EXPECT_EQ(one.agreement(), 0);
  EXPECT_EQ(unstated.agreement(), 0);
  EXPECT_EQ(off.agreement(), 0);
}

TEST(Agreement, OneMomentIsOneEventHoweverManySignalsShowIt) {
  Wear flap;
  for (size_t i = 0; i < 3; ++i) {
    flap.show(i, 4);
    flap.input.evidence.back().episodes[0].onset_ns = -600 * kS + static_cast<int64_t>(i) * kS;
    flap.input.evidence.back().episodes[0].end_ns = 0;
  }
  EXPECT_EQ(flap.agreement(), 0);
}

TEST(Agreement, StandsInTheSum) {
  Wear w;
  w.show(0, 4), w.show(1, 4);
  const abi::Verdict v = w.run();
  const auto* h = find_hypothesis(v, "f", "n0");
  double sum = h->prior_nats;
  for (const auto& c : h->contributions) sum += c.nats;
  EXPECT_NEAR(sum, h->log_odds_nats, 1e-9);
}

}  // namespace
}  // namespace reflex::attribution
