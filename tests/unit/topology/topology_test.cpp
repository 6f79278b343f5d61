// Topology: point-in-time placement, labels, class binding, maintenance.
#include "runtime/topology/topology.h"

#include <gtest/gtest.h>

#include "runtime/base/time.h"
#include "runtime/topology/host_services.h"
#include "tests/support/pack_builder.h"

namespace reflex::topology {
namespace {

struct Fixture {
  test::PackBuilder b;
  SymbolTable& names = *b.pack->symbols;
  SymbolId id(std::string_view n) { return names.intern(n); }
  /// A class that matches when label `product` is `word`.
  abi::ClassId hw_class(std::string name, abi::ClassId parent, std::string_view word) {
    const SymbolId key = id("product");
    const SymbolId want = id(word);
    abi::ClassPlan c;
    c.name = std::move(name);
    c.parent = parent;
    c.matches = b.expr(
        test::bool_type(), [key, want](const abi::Record&, const abi::EvalContext& x, uint64_t&) {
          const auto v =
              x.host->node_label(x.host_state, x.now_ns, static_cast<SymbolId>(x.entity[0]), key);
          if (v.known == 0) return uint32_t{abi::kUnknown};
          return uint32_t{v.bits == want ? abi::kTrue : abi::kFalse};
        });
    b.pack->classes.push_back(c);
    return static_cast<abi::ClassId>(b.pack->classes.size() - 1);
  }
};

TEST(Topology, JobOfIsPointInTimeAndEndsExactly) {
  Fixture f;
  Topology t(f.b.pack);
  const SymbolId n1 = f.id("n1"), n2 = f.id("n2"), j = f.id("j"), k = f.id("k");
  t.start_job(j, 100, {n1, n2});
  t.end_job(j, 200);
  t.start_job(k, 200, {n1});
  EXPECT_EQ(t.job_of(n1, 99), kNoSymbol);
  EXPECT_EQ(t.job_of(n1, 100), j);
  EXPECT_EQ(t.job_of(n1, 199), j);
  EXPECT_EQ(t.job_of(n1, 200), k);
  EXPECT_EQ(t.job_of(n2, 200), kNoSymbol);
  EXPECT_EQ(t.nodes_of(j, 500).size(), 2u);
  EXPECT_TRUE(t.nodes_of(j, 99).empty());
}

TEST(Topology, JobNodesReplacesThePlacement) {
  Fixture f;
  Topology t(f.b.pack);
  const SymbolId n1 = f.id("n1"), n2 = f.id("n2"), j = f.id("j");
  t.start_job(j, 100, {n1});
  t.start_job(j, 150, {n2});
  EXPECT_EQ(t.job_of(n1, 149), j);
  EXPECT_EQ(t.job_of(n1, 150), kNoSymbol);
  EXPECT_EQ(t.job_of(n2, 150), j);
}

TEST(Topology, DeepestMatchBindsAndUnknownFallsBack) {
  Fixture f;
  const auto base = f.hw_class("base", 0, "h100");
  const auto deep = f.hw_class("deep", base, "h100");
  Topology t(f.b.pack);
  const SymbolId n = f.id("n");
  t.set_labels(n, 10, {{f.id("product"), f.id("h100")}});
  t.set_labels(n, 20, {{f.id("product"), f.id("other")}});
  EXPECT_EQ(t.hw_class(n, 9), 0);
  EXPECT_EQ(t.hw_class(n, 10), deep);
  EXPECT_EQ(t.hw_class(n, 20), 0);
  EXPECT_TRUE(t.ambiguous_nodes().empty());
}

TEST(Topology, TwoLinesMeetAtTheirCommonAncestorAndAreListed) {
  Fixture f;
  const auto base = f.hw_class("base", 0, "none");
  f.hw_class("left", base, "h100");
  f.hw_class("right", base, "h100");
  Topology t(f.b.pack);
  t.set_labels(f.id("n"), 10, {{f.id("product"), f.id("h100")}});
  EXPECT_EQ(t.hw_class(f.id("n"), 10), base);
  EXPECT_EQ(t.ambiguous_nodes(), std::vector<std::string>{"n"});
}

TEST(Topology, MembersAreInNameOrderAndMaintenanceCoversThem) {
  Fixture f;
  Topology t(f.b.pack);
  const SymbolId rack = f.id("rack"), r1 = f.id("r1");
  for (const char* n : {"b", "c", "a"}) t.set_labels(f.id(n), 1, {{rack, r1}});
  EXPECT_EQ(t.members(rack, r1, 1), (std::vector<SymbolId>{f.id("a"), f.id("b"), f.id("c")}));
  EXPECT_TRUE(t.members(rack, r1, 0).empty());
  t.set_maintenance(f.id("a"), 5, true);
  t.set_maintenance(f.id("a"), 9, false);
  EXPECT_FALSE(t.in_maintenance(f.id("a"), 4));
  EXPECT_TRUE(t.in_maintenance(f.id("a"), 8));
  EXPECT_FALSE(t.in_maintenance(f.id("a"), 9));
  // An end that is still to come (its grace) does not end a maintenance that begins before it.
  t.set_maintenance(f.id("a"), 20, true);
  t.set_maintenance(f.id("a"), 40, false);
  t.set_maintenance(f.id("a"), 30, true);
  EXPECT_TRUE(t.in_maintenance(f.id("a"), 50));
  EXPECT_EQ(t.last_repair_ns(f.id("a"), 9), kNoTimeNs);
}

// Places are indexed, other labels are searched for: both answer for the time that is asked.
TEST(Topology, MembersFollowLabelsOverTime) {
  Fixture f;
  Topology t(f.b.pack);
  const SymbolId here = f.id("x1"), there = f.id("x2");
  for (const char* key : {"rack", "row"}) {
    const SymbolId k = f.id(key);
    t.set_labels(f.id("a"), 1, {{k, here}});
    t.set_labels(f.id("b"), 1, {{k, here}});
    t.set_labels(f.id("a"), 5, {{k, there}});
    t.set_labels(f.id("a"), 9, {{k, here}});
    using Nodes = std::vector<SymbolId>;
    EXPECT_EQ(t.members(k, here, 4), (Nodes{f.id("a"), f.id("b")})) << key;
    EXPECT_EQ(t.members(k, here, 5), Nodes{f.id("b")}) << key;
    EXPECT_EQ(t.members(k, there, 5), Nodes{f.id("a")}) << key;
    EXPECT_TRUE(t.members(k, there, 9).empty()) << key;
    EXPECT_EQ(t.members(k, here, 9), (Nodes{f.id("a"), f.id("b")})) << key;
  }
}

}  // namespace
}  // namespace reflex::topology
