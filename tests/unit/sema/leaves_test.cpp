// Leaves: sharing, index constraints, chunks, symbols.
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

using abi::kNone32;

#define COMPILED(out, text)                        \
  const auto out = compile_pack(text);             \
  ASSERT_NE(out->pack, nullptr) << rendered(*out); \
  const abi::CompiledPack& pack = *out->pack

TEST(Leaves, equal_predicates_share_a_leaf_and_an_expression) {
  COMPILED(out, R"(
    signal a on node { e: gpu.xid where e.code == 48 and e.pid > 3 }
    signal b on (node, gpu) { count gpu.xid where it.code == 48 and it.pid > 3 >= 2 within 1h }
    signal c on node { e: gpu.xid where missing(e.pid) }
    signal d on node { e: gpu.xid }
    incident i on node { opens on a or b or c or d })");
  EXPECT_EQ(pack.leaves.size(), 3u);
  EXPECT_EQ(pack.leaves[0].owners.size(), 2u);
  EXPECT_EQ(constraints(pack.leaves[0]), "2:[48..48] 3:[4..max]");
  EXPECT_EQ(pack.leaves[0].residual, kNone32);
  ASSERT_EQ(pack.chunks.size(), 1u);  // only the predicate without constraints
  EXPECT_EQ(pack.chunks[0].leaves, (std::vector<abi::LeafId>{1}));
  EXPECT_EQ(pack.leaves[2].predicate, kNone32);
}

TEST(Leaves, chunks_hold_at_most_64) {
  std::string text;
  std::string opens;
  for (int i = 0; i < 130; ++i) {
    const std::string n = "s" + std::to_string(i);
    text += "signal " + n + " on (node, gpu) { e: gpu.temp where e.value > " + std::to_string(i) +
            " celsius }\n";
    opens += (i ? " or " : "") + n;
  }
  COMPILED(out, text + "incident i on node { opens on " + opens + " }");
  ASSERT_EQ(pack.chunks.size(), 3u);
  EXPECT_EQ(pack.chunks[0].leaves.size(), 64u);
  EXPECT_EQ(pack.chunks[2].leaves.size(), 2u);
}

struct ConstraintCase {
  const char* where;
  const char* constraints;
  bool residual;
};

TEST(Leaves, constraints_of_predicates) {
  const ConstraintCase cases[] = {
      {"e.code == 48", "2:[48..48]", false},
      {"48 < e.code", "2:[49..max]", false},
      {"e.code in [3, 1, 2, 9]", "2:[1..3][9..9]", false},
      {"e.code in 10..20", "2:[10..20]", false},
      {"e.code not in [5]", "2:[min..4][6..max]", false},
      {"e.code == 1 or e.code == 7 or e.code > 90", "2:[1..1][7..7][91..max]", false},
      {"not (e.code >= 10 and e.code < 20)", "2:[min..9][20..max]", false},
      {"e.code > 3 and e.code < 9", "2:[4..8]", false},
      {"e.code == 1 or e.pid == 7", "", true},
      {"e.code == 48 and e.text like \"*bus*\"", "2:[48..48]", true},
      {"e.gpu == 3", "1:[3..3]", false},
      {"e.code + 1 == 4", "", true},
  };
  for (const ConstraintCase& c : cases) {
    const auto out = compile_pack("signal s on node { e: gpu.xid where " + std::string(c.where) +
                                  " } incident i on node { opens on s }");
    ASSERT_NE(out->pack, nullptr) << rendered(*out);
    const abi::LeafPlan& leaf = out->pack->leaves[0];
    EXPECT_EQ(constraints(leaf), c.constraints) << c.where;
    EXPECT_EQ(leaf.residual != kNone32, c.residual) << c.where;
  }
}

TEST(Leaves, enum_words_and_entities_are_symbols) {
  COMPILED(out, R"(
    signal a on (node, gpu) { e: gpu.ecc where e.kind == uncorrected }
    signal b on job { e: job.ended where e.reason == "oom" or e.reason in ["hang", "nccl"] }
    signal c on node { e: node.heartbeat where e.node == "n7" and label(e.node, site) != "lab" }
    incident i on node { opens on a or b or c })");
  const auto symbol = std::to_string(pack.symbols->find("uncorrected"));
  EXPECT_EQ(constraints(pack.leaves[0]), "2:[" + symbol + ".." + symbol + "]");
  EXPECT_EQ(pack.leaves[1].constraints.size(), 1u);
  EXPECT_EQ(pack.leaves[2].constraints.size(), 1u);
}

}  // namespace
}  // namespace reflex::test
