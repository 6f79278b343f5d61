// Suppression: spans of maintenance with grace, and suppress statements.
#include "runtime/engine/suppression.h"

#include <gtest/gtest.h>

#include "runtime/base/time.h"

namespace reflex::engine {
namespace {

constexpr int64_t kS = kNsPerSecond;
constexpr abi::KindId kFrom = abi::kBuiltinKindCount;
constexpr abi::KindId kUntil = abi::kBuiltinKindCount + 1;

struct Row {  // a record with one slot
  abi::Record record;
  uint64_t slot = 0;
};

struct Site {
  std::shared_ptr<abi::CompiledPack> pack = std::make_shared<abi::CompiledPack>();
  std::unique_ptr<Suppression> suppression;
  SymbolId n1, n2;
  explicit Site(void (*change)(abi::CompiledPack&) = nullptr) {
    pack->symbols = std::make_shared<SymbolTable>();
    n1 = pack->symbols->intern("n1");
    n2 = pack->symbols->intern("n2");
    pack->entity_kinds = {{{"node"}}, {{"job"}}};
    pack->kinds.resize(abi::kBuiltinKindCount + 2);
    pack->signals.resize(2);
    pack->limits.horizon_ns = 1000 * kS;
    pack->maintenance.push_back({kFrom, kUntil, 0, 0, 10 * kS, {}});
    if (change != nullptr) change(*pack);
    suppression =
        std::make_unique<Suppression>(pack, std::make_shared<topology::Topology>(pack));
  }
  void at(int64_t ts_s, abi::KindId kind, SymbolId node) {
    Row row;
    row.record.ts_ns = ts_s * kS;
    row.record.kind = kind;
    row.record.slot_count = 1;
    row.record.set_i64(0, node);
    suppression->apply(row.record);
  }
  [[nodiscard]] std::string reason(int64_t onset_s, SymbolId node, abi::SignalId signal = 0,
                                   abi::EntityKindId kind = 0) const {
    std::vector<attribution::Evidence> evidence(1);
    evidence[0].signal = signal;
    evidence[0].entity.kind = kind;
    evidence[0].entity.count = 1;
    evidence[0].entity.values[0] = node;
    evidence[0].episodes.resize(1);
    evidence[0].episodes[0].onset_ns = onset_s * kS;
    suppression->mark(evidence);
    return evidence[0].episodes[0].suppressed_by;
  }
};

TEST(Suppression, MaintenanceHoldsFromItsStartToTheEndOfItsGrace) {
  Site s;
  s.at(100, kFrom, s.n1);
  s.at(200, kUntil, s.n1);
  EXPECT_EQ(s.reason(99, s.n1), "");
  EXPECT_EQ(s.reason(100, s.n1), "maintenance");
  EXPECT_EQ(s.reason(209, s.n1), "maintenance");
  EXPECT_EQ(s.reason(210, s.n1), "");
  EXPECT_EQ(s.reason(150, s.n2), "");
  EXPECT_EQ(s.reason(150, s.n1, 0, 1), "") << "not a node";
}

TEST(Suppression, ASecondSpanDoesNotCloseTheFirst) {
  Site s;
  s.at(100, kFrom, s.n1);
  s.at(200, kUntil, s.n1);
  s.at(205, kFrom, s.n1);
  EXPECT_TRUE(s.suppression->in_maintenance(s.n1, 300 * kS));
  EXPECT_TRUE(s.suppression->in_maintenance(s.n1, 150 * kS));
}

TEST(Suppression, AnOrderHoldsForItsNodeSignalAndTime) {
  Site s([](abi::CompiledPack& pack) { pack.signals[1].name = "p.nic_flap"; });
  s.suppression->order({"s1", "n1", "", 100 * kS, 200 * kS, "burn-in"});
  s.suppression->order({"s2", "", "p.nic_flap", 0, 50 * kS, "new switch"});
  EXPECT_EQ(s.reason(99, s.n1), "");
  EXPECT_EQ(s.reason(100, s.n1), "order s1: burn-in");
  EXPECT_EQ(s.reason(200, s.n1), "");
  EXPECT_EQ(s.reason(150, s.n2), "");
  EXPECT_EQ(s.reason(150, s.n1, 0, 1), "") << "not a node";
  EXPECT_EQ(s.reason(49, s.n2, 1), "order s2: new switch");
  EXPECT_EQ(s.reason(49, s.n2, 0), "");
  s.suppression->order({"s1", "n1", "", 100 * kS, 150 * kS, "burn-in"});  // ends earlier
  EXPECT_EQ(s.reason(160, s.n1), "");
  s.suppression->order({"s1", "", "", 0, 0, ""});
  EXPECT_EQ(s.reason(120, s.n1), "");
}

TEST(Suppression, AnEndThatNeverComesIsTheHorizon) {
  Site s;
  s.at(100, kFrom, s.n1);
  EXPECT_TRUE(s.suppression->in_maintenance(s.n1, 1099 * kS));
  EXPECT_FALSE(s.suppression->in_maintenance(s.n1, 1100 * kS));
  s.at(500, kFrom, s.n1);
  EXPECT_EQ(s.suppression->unended(), 0u);
  s.at(2000, kFrom, s.n1);
  EXPECT_EQ(s.suppression->unended(), 1u);
  s.at(3000, kUntil, s.n2);  // of nothing
  EXPECT_FALSE(s.suppression->in_maintenance(s.n2, 3000 * kS));
}

TEST(Suppression, OnlySignalsThatPacksNameWhenTheyNameAny) {
  Site s(+[](abi::CompiledPack& pack) { pack.explained_by_maintenance.push_back({1, {}}); });
  s.at(100, kFrom, s.n1);
  EXPECT_EQ(s.reason(150, s.n1, 0), "");
  EXPECT_EQ(s.reason(150, s.n1, 1), "maintenance");
}

TEST(Suppression, SuppressStatementsUntilTheirDate) {
  Site s(+[](abi::CompiledPack& pack) {
    abi::SuppressPlan plan;
    plan.name = "lab";
    plan.signals = {1};
    plan.until_ns = 500 * kS;
    plan.reason = "burn-in";
    pack.suppressions.push_back(plan);
  });
  EXPECT_EQ(s.reason(499, s.n1, 1), "suppress lab: burn-in");
  EXPECT_EQ(s.reason(500, s.n1, 1), "");
  EXPECT_EQ(s.reason(499, s.n1, 0), "");
  EXPECT_EQ(s.reason(499, s.n1, 1, 1), "suppress lab: burn-in") << "of any entity without `where`";
}

}  // namespace
}  // namespace reflex::engine
