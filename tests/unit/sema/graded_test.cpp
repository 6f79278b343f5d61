// Graded counts (the count itself is the evidence) and keys that a predicate states.
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;

#define COMPILED(out, text)                        \
  const auto out = compile_pack(text);             \
  ASSERT_NE(out->pack, nullptr) << rendered(*out); \
  const abi::CompiledPack& pack = *out->pack

TEST(Graded, every_event_fires_and_the_count_is_held_for_its_window) {
  COMPILED(out, "signal rise on node { count gpu.xid within 72h graded extra 6 }");
  const abi::SignalPlan& s = signal(pack, "t.rise");
  EXPECT_TRUE(s.count.graded.on);
  EXPECT_FALSE(s.count.graded.votes);
  EXPECT_DOUBLE_EQ(s.count.graded.extra_mean, 6);
  EXPECT_TRUE(s.count.each);
  EXPECT_EQ(s.count.op, abi::CompareOp::kGe);
  EXPECT_EQ(s.count.threshold_constant, 1);
  EXPECT_EQ(s.count.window_ns, 72 * kHourNs);
  EXPECT_EQ(s.holds_ns, 72 * kHourNs);
  EXPECT_DOUBLE_EQ(s.leak_probability, 0.01);
}

TEST(Graded, holds_and_leak_of_the_author_win) {
  COMPILED(out, R"(
    signal rise on node { count gpu.xid within 72h graded  holds 2h } leak 0.03 learn)");
  const abi::SignalPlan& s = signal(pack, "t.rise");
  EXPECT_EQ(s.holds_ns, 2 * kHourNs);
  EXPECT_DOUBLE_EQ(s.leak_probability, 0.03);
}

TEST(Graded, rising_is_the_default_and_steady_is_flat) {
  COMPILED(out, R"(
    signal plain on node { count gpu.xid within 72h graded }
    signal rising_one on node { count gpu.xid within 72h graded rising }
    signal flat on node { count gpu.xid within 72h graded steady })");
  const abi::GradedPlan& plain = signal(pack, "t.plain").count.graded;
  EXPECT_EQ(plain.profile, signal(pack, "t.rising_one").count.graded.profile);
  const abi::GradedPlan& flat = signal(pack, "t.flat").count.graded;
  for (size_t b = 0; b < abi::kLeadBins; ++b) {
    EXPECT_DOUBLE_EQ(flat.profile[b], abi::kLeadBounds[b] - abi::kLeadBounds[b + 1]) << b;
  }
}

TEST(Graded, votes_may_count_distinct_voters) {
  COMPILED(out, R"(
    event blame { key node: node  peer: node }
    signal named on node {
      count distinct node of blame where it.peer == node within 10m graded votes
    })");
  const abi::CountPlan& c = signal(pack, "t.named").count;
  EXPECT_TRUE(c.graded.votes);
  EXPECT_EQ(c.mode, abi::CountMode::kDistinct);
}

TEST(Graded, what_cannot_be_graded) {
  EXPECT_EQ(ids(*compile_pack("signal s on node { count gpu.xid within 72h graded extra 0 }")),
            "R114");
  EXPECT_EQ(ids(*compile_pack(R"(signal s on node {
    count gpu.xid within 72h graded votes extra 4 })")), "R114");
  EXPECT_EQ(ids(*compile_pack(R"(signal s on node {
    count distinct code of gpu.xid within 72h graded })")), "R114");
  EXPECT_EQ(ids(*compile_pack("signal s on node { count gpu.xid within 72h graded } leak 1")),
            "R306");
}

// `it.peer == node` says which node the event is about: the one named, not the one that reports.
TEST(StatedKeys, a_count_joins_by_the_field_that_the_predicate_names) {
  COMPILED(out, R"(
    event blame { key node: node  peer: node  hard: bool }
    signal named on node { count blame where it.peer == node and it.hard >= 3 within 10m }
    signal reports on node { count blame where it.hard >= 3 within 10m })");
  const auto& named = signal(pack, "t.named").count.inputs;
  const auto& reports = signal(pack, "t.reports").count.inputs;
  ASSERT_EQ(named.size(), 1u);
  ASSERT_EQ(named[0].key.parts.size(), 1u);
  EXPECT_EQ(named[0].key.parts[0].slot, 1);    // blame.peer
  EXPECT_EQ(reports[0].key.parts[0].slot, 0);  // blame.node
  // The stated key is gone from the predicate: what remains is the same as without it.
  const auto text = [&](const abi::CountPlan::Input& in) {
    return in.leaf == abi::kNone32 ? std::string() : ir_text(*out, pack.leaves[in.leaf].predicate);
  };
  EXPECT_EQ(text(named[0]).find("peer"), std::string::npos) << text(named[0]);
}

TEST(StatedKeys, a_step_joins_by_the_field_either_way_round) {
  COMPILED(out, R"(
    event blame { key node: node  peer: node }
    signal left on node { e: blame where e.peer == node }
    signal right on node { e: blame where node == e.peer }
    signal own on node { e: blame where e.node == node })");
  EXPECT_EQ(signal(pack, "t.left").sequence.steps[0].key.parts[0].slot, 1);
  EXPECT_EQ(signal(pack, "t.right").sequence.steps[0].key.parts[0].slot, 1);
  EXPECT_EQ(signal(pack, "t.own").sequence.steps[0].key.parts[0].slot, 0);
}

}  // namespace
}  // namespace reflex::test
