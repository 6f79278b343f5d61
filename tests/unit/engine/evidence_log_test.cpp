// EvidenceLog: episodes, refirings, ends, trimming.
#include "runtime/engine/evidence_log.h"

#include <gtest/gtest.h>

#include "runtime/base/time.h"

namespace reflex::engine {
namespace {

constexpr int64_t kS = kNsPerSecond;

std::shared_ptr<abi::CompiledPack> make_pack() {
  auto pack = std::make_shared<abi::CompiledPack>();
  pack->symbols = std::make_shared<SymbolTable>();
  pack->entity_kinds = {{{"node"}}, {{"job"}}, {{"node", "gpu"}}};
  abi::SignalPlan event;
  event.name = "event";
  event.holds_ns = 10 * kS;
  abi::SignalPlan condition;
  condition.name = "condition";
  condition.shape = abi::SignalShape::kCondition;
  abi::SignalPlan repairs = event;
  repairs.name = "repairs";
  repairs.kinds = {abi::kNodeRepaired};
  pack->signals = {event, condition, repairs};
  return pack;
}

abi::Firing firing(abi::SignalId signal, int64_t ts_s, uint64_t node,
                   abi::FiringChange change = abi::FiringChange::kStart) {
  abi::Firing f;
  f.signal = signal;
  f.ts_ns = ts_s * kS;
  f.onset_ns = ts_s * kS;
  f.change = change;
  f.entity.kind = 0;
  f.entity.count = 1;
  f.entity.values[0] = node;
  return f;
}

std::vector<attribution::Evidence> collect(const EvidenceLog& log, uint64_t node, int64_t now_s) {
  std::vector<attribution::Evidence> out;
  log.collect("node", node, {now_s * kS, now_s * kS, kNoTimeNs}, out);
  return out;
}

TEST(EvidenceLog, RefiringWhileItHoldsExtendsTheEpisode) {
  EvidenceLog log(make_pack(), {100 * kS, 100 * kS, 100 * kS});
  log.add(firing(0, 1, 7));
  log.add(firing(0, 8, 7));
  log.add(firing(0, 30, 7));
  const auto evidence = collect(log, 7, 30);
  ASSERT_EQ(evidence.size(), 1u);
  ASSERT_EQ(evidence[0].episodes.size(), 2u);
  EXPECT_EQ(evidence[0].episodes[0].firings, 2u);
  EXPECT_EQ(evidence[0].episodes[0].onset_ns, 1 * kS);
  EXPECT_EQ(evidence[0].episodes[0].end_ns, 18 * kS);
  EXPECT_EQ(evidence[0].episodes[1].onset_ns, 30 * kS);
}

TEST(EvidenceLog, ConditionLastsUntilItEnds) {
  EvidenceLog log(make_pack(), {100 * kS, 100 * kS, 100 * kS});
  log.add(firing(1, 5, 7));
  EXPECT_GT(collect(log, 7, 60).at(0).episodes.at(0).end_ns, 1000 * kS);
  log.add(firing(1, 50, 7, abi::FiringChange::kEnd));
  EXPECT_EQ(collect(log, 7, 60).at(0).episodes.at(0).end_ns, 50 * kS);
}

TEST(EvidenceLog, OtherNodesAndOldEpisodesAreLeftOut) {
  EvidenceLog log(make_pack(), {20 * kS, 20 * kS, 20 * kS});
  log.add(firing(0, 1, 7));
  EXPECT_TRUE(collect(log, 8, 2).empty());
  EXPECT_EQ(collect(log, 7, 31).size(), 1u);  // ended at 11, look-back 20
  EXPECT_TRUE(collect(log, 7, 32).empty());
}

TEST(EvidenceLog, TrimForgetsWhatCannotMatter) {
  EvidenceLog log(make_pack(), {20 * kS, 20 * kS, 20 * kS});
  log.add(firing(0, 1, 7));
  log.add(firing(0, 100, 8));
  log.trim(100 * kS);
  EXPECT_EQ(log.series_count(), 1u);
  EXPECT_EQ(collect(log, 8, 100).size(), 1u);
}

TEST(EvidenceLog, EpisodesAreBounded) {
  EvidenceLog log(make_pack(), {100000 * kS, 100000 * kS, 100000 * kS});
  for (int i = 0; i < 1000; ++i) log.add(firing(0, i * 60, 7));
  EXPECT_LE(collect(log, 7, 60000).at(0).episodes.size(), 64u);
}

// Memory of a look that is over: nothing of what it held is seen again.
TEST(EvidenceLog, SpareEvidenceLeavesNothingBehind) {
  auto pack = make_pack();
  abi::SignalPlan wear;
  wear.name = "wear";
  wear.shape = abi::SignalShape::kCount;
  wear.count.window_ns = 100 * kS;
  wear.count.graded.on = true;
  pack->signals.push_back(wear);
  EvidenceLog log(pack, std::vector<int64_t>(4, 1000 * kS));
  for (int i = 0; i < 5; ++i) log.add(firing(0, 100 * i, 7));
  abi::Firing limited = firing(0, 450, 7);
  limited.value = limited.limit = abi::Value::of(3.0);
  limited.events = {{}, {}};
  log.add(limited);
  log.add(firing(3, 400, 8));
  log.add(firing(0, 400, 9));
  SpareEvidence spare;
  const EvidenceLog::Look look{450 * kS, 450 * kS, kNoTimeNs};
  const auto look_at = [&](uint64_t node) {
    std::vector<attribution::Evidence> out;
    log.collect("node", node, look, out, spare);
    return out;
  };
  for (auto& evidence : look_at(7)) {
    for (auto& episode : evidence.episodes) {
      episode.suppressed_by = "maintenance";
      episode.lead_counts.fill(9);
      episode.part = 5;
    }
    spare.take_back(std::move(evidence));
  }
  for (const uint64_t node : {8, 9}) {
    auto again = look_at(node);
    const auto fresh = collect(log, node, 450);
    ASSERT_EQ(again.size(), 1u);
    ASSERT_EQ(again[0].episodes.size(), 1u);
    const auto& a = again[0].episodes[0];
    const auto& b = fresh.at(0).episodes.at(0);
    EXPECT_EQ(again[0].signal, fresh[0].signal);
    EXPECT_TRUE(again[0].entity == fresh[0].entity);
    EXPECT_EQ(a.onset_ns, b.onset_ns);
    EXPECT_EQ(a.end_ns, b.end_ns);
    EXPECT_EQ(a.firings, 1u);
    EXPECT_EQ(a.limit.known, b.limit.known);
    EXPECT_EQ(a.events.size(), b.events.size());
    EXPECT_EQ(a.lead_counts, b.lead_counts);
    EXPECT_EQ(a.part, 0u);
    EXPECT_TRUE(a.suppressed_by.empty());
    spare.take_back(std::move(again[0]));
  }
}

TEST(EvidenceLog, ARepairEndsWhatCameBeforeIt) {
  EvidenceLog log(make_pack(), {100 * kS, 100 * kS, 100 * kS});
  log.add(firing(0, 5, 7));
  log.add(firing(1, 5, 7));  // goes on after the repair
  log.add(firing(0, 5, 8));
  log.add(firing(2, 5, 7));
  log.repaired(7, std::nullopt, 10 * kS);
  const auto after = collect(log, 7, 12);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].signal, 1u);
  EXPECT_EQ(after[0].episodes.at(0).onset_ns, 10 * kS);
  EXPECT_EQ(after[1].signal, 2u);
  EXPECT_EQ(collect(log, 8, 12).size(), 1u);
  // An incident that opened before the repair keeps what it was shown.
  std::vector<attribution::Evidence> before;
  log.collect("node", 7, {9 * kS, 12 * kS, kNoTimeNs}, before);
  EXPECT_EQ(before.size(), 3u);
  // The same fault again is an episode of its own, however soon it comes.
  log.add(firing(0, 13, 7));
  const auto again = collect(log, 7, 13);
  ASSERT_EQ(again.size(), 3u);
  ASSERT_EQ(again[0].episodes.size(), 1u);
  EXPECT_EQ(again[0].episodes[0].firings, 1u);
  EXPECT_EQ(again[0].episodes[0].onset_ns, 13 * kS);
}

TEST(EvidenceLog, ANewGpuEndsOnlyItsOwnEpisodes) {
  EvidenceLog log(make_pack(), {100 * kS, 100 * kS, 100 * kS});
  for (const uint64_t gpu : {3u, 4u}) {
    abi::Firing f = firing(0, 5, 7);
    f.entity.kind = 2;
    f.entity.count = 2;
    f.entity.values[1] = gpu;
    log.add(f);
  }
  log.add(firing(0, 5, 7));
  log.repaired(7, 3, 10 * kS);
  const auto after = collect(log, 7, 12);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].entity.values[1], 4u);
  EXPECT_EQ(after[1].entity.count, 1);
}

}  // namespace
}  // namespace reflex::engine
