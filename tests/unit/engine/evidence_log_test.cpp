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
