// InventoryNames: addresses become indices, dotted names become the inventory's, nothing is guessed.
#include "runtime/engine/inventory_names.h"

#include <gtest/gtest.h>

#include "runtime/abi/gpu_address.h"
#include "runtime/base/time.h"
#include "tests/unit/stream/pack_fixture.h"

namespace reflex::engine {
namespace {

using stream::testing::kXid;

struct World {
  std::shared_ptr<abi::CompiledPack> pack = stream::testing::make_pack();
  topology::Topology topology{with_class(pack)};
  stream::RecordBatch batch;

  static std::shared_ptr<abi::CompiledPack> with_class(std::shared_ptr<abi::CompiledPack> pack) {
    abi::ClassPlan fallback;
    fallback.name = "default";
    fallback.fallback = true;
    pack->classes = {fallback};
    return pack;
  }
  SymbolId name(std::string_view text) { return pack->symbols->intern(text); }
  void know(std::string_view node, topology::Labels labels = {}) {
    topology.set_labels(name(node), kNoTimeNs + 1, std::move(labels));
  }
  abi::Record* xid(std::string_view node, int64_t gpu) {
    abi::Record* record = batch.slab->new_record(6);
    record->kind = kXid;
    record->set_i64(0, name(node));
    record->set_i64(1, gpu);
    batch.records.push_back(record);
    return record;
  }
  /// What the node of a record is called in the end.
  std::string_view renamed(std::string_view node) {
    InventoryNames names(pack, topology);
    const abi::Record* record = xid(node, 0);
    names.rename(batch);
    return pack->symbols->name(static_cast<SymbolId>(record->i64(0)));
  }
};

TEST(InventoryNames, AnAddressBecomesTheIndexOfItsLabel) {
  World w;
  w.know("n1", {{w.name("pci.gpu3"), w.name("00000000:9B:00.0")}});
  w.know("n2");
  const int64_t pci = *abi::gpu_from_pci("0000:9b:00");
  const abi::Record* labelled = w.xid("n1", pci);
  const abi::Record* other = w.xid("n1", *abi::gpu_from_pci("0000:3b:00"));
  const abi::Record* unlabelled = w.xid("n2", pci);
  const abi::Record* index = w.xid("n1", 5);
  const int64_t other_pci = other->i64(1);
  InventoryNames names(w.pack, w.topology);
  names.rename(w.batch);
  EXPECT_EQ(labelled->i64(1), 3);
  EXPECT_EQ(other->i64(1), other_pci);
  EXPECT_EQ(unlabelled->i64(1), pci);
  EXPECT_EQ(index->i64(1), 5);
}

TEST(InventoryNames, ADottedNameIsTheKnownShortOne) {
  World w;
  w.know("n3");
  w.know("10");
  EXPECT_EQ(w.renamed("n3.dc1.example.com"), "n3");
  EXPECT_EQ(w.renamed("n3"), "n3");
  EXPECT_EQ(w.renamed("n4.dc1.example.com"), "n4.dc1.example.com");
  EXPECT_EQ(w.renamed("10.0.0.3"), "10.0.0.3");
  EXPECT_EQ(w.renamed(".n3"), ".n3");
}

TEST(InventoryNames, BothNamesAreTwoNodes) {
  World w;
  w.know("n3");
  w.know("n3.dc1.example.com");
  EXPECT_EQ(w.renamed("n3.dc1.example.com"), "n3.dc1.example.com");
  EXPECT_EQ(w.renamed("n3.dc2.example.com"), "n3");
}

TEST(InventoryNames, NothingIsKnownWithoutAnInventory) {
  World w;
  EXPECT_EQ(w.renamed("n3.dc1.example.com"), "n3.dc1.example.com");
}

TEST(InventoryNames, PlacementsAreRenamedAndLabelsAreNot) {
  World w;
  w.know("n3");
  const int64_t full = w.name("n3.dc1");
  abi::Record* start = w.batch.slab->new_record(2);
  start->kind = abi::kJobStart;
  start->set_i64(0, w.name("j"));
  start->slots()[1] = reinterpret_cast<uint64_t>(w.batch.slab->new_array({{full, w.name("n4")}}));
  start->present |= 2;
  abi::Record* labels = w.batch.slab->new_record(2);
  labels->kind = abi::kNodeLabels;
  labels->set_i64(0, full);
  w.batch.records = {start, labels};
  InventoryNames(w.pack, w.topology).rename(w.batch);
  ASSERT_EQ(start->array(1)->count, 2u);
  EXPECT_EQ(start->array(1)->data()[0], w.name("n3"));
  EXPECT_EQ(start->array(1)->data()[1], w.name("n4"));
  EXPECT_EQ(labels->i64(0), full);
}

TEST(InventoryNames, AnAddressBecomesTheNodeThatHasIt) {
  World w;
  w.know("n1", {{w.name("ip"), w.name("10.0.0.1")}, {w.name("ip.ib0"), w.name("fe80::a0:1")}});
  w.know("n2", {{w.name("ip.eth0"), w.name("10.0.0.2/24")}});
  EXPECT_EQ(w.renamed("10.0.0.1"), "n1");
  EXPECT_EQ(w.renamed("10.0.0.2<37948>"), "n2");
  EXPECT_EQ(w.renamed("10.0.0.2:29500"), "n2");
  EXPECT_EQ(w.renamed("::ffff:10.0.0.2"), "n2");
  EXPECT_EQ(w.renamed("[fe80::00a0:0001%ib0]:4791"), "n1");
  EXPECT_EQ(w.renamed("10.0.0.3"), "10.0.0.3");
}

TEST(InventoryNames, AnAddressOfTwoNodesIsNobodys) {
  World w;
  w.know("n1", {{w.name("ip.docker0"), w.name("172.17.0.1")}});
  w.know("n2", {{w.name("ip.docker0"), w.name("172.17.0.1")}});
  EXPECT_EQ(w.renamed("172.17.0.1"), "172.17.0.1");
}

TEST(InventoryNames, ANodeThatIsCalledByItsAddressKeepsItsName) {
  World w;
  w.know("10.0.0.7");
  w.know("n1", {{w.name("ip"), w.name("10.0.0.7")}});
  EXPECT_EQ(w.renamed("10.0.0.7"), "10.0.0.7");
}

TEST(InventoryNames, AnUnknownPeerIsMissingAndCounted) {
  for (const bool inventory : {true, false}) {
    World w;
    const auto peer = static_cast<abi::KindId>(w.pack->kinds.size());
    w.pack->kinds.push_back(stream::testing::kind(
        "lost", {stream::testing::key("node"), stream::testing::key("peer", /*optional=*/true)}));
    if (inventory) w.know("n1", {{w.name("ip"), w.name("10.0.0.1")}});
    const auto lost = [&](std::string_view node, std::string_view other) {
      abi::Record* record = w.batch.slab->new_record(2);
      record->kind = peer;
      record->set_i64(0, w.name(node));
      record->set_i64(1, w.name(other));
      w.batch.records.push_back(record);
      return record;
    };
    const abi::Record* unknown = lost("n2", "10.9.9.9<1>");
    const abi::Record* own = lost("10.9.9.9", "n3");
    const abi::Record* known = lost("n2", "10.0.0.1");
    InventoryNames names(w.pack, w.topology);
    names.rename(w.batch);
    EXPECT_FALSE(unknown->has(1));
    EXPECT_EQ(unknown->i64(0), w.name("n2"));
    EXPECT_EQ(own->i64(0), w.name("10.9.9.9"));  // what a source calls its own node is its name
    EXPECT_TRUE(own->has(1));
    EXPECT_EQ(known->has(1), inventory);
    EXPECT_EQ(names.unknown_peers(), inventory ? 1u : 2u);
  }
}

}  // namespace
}  // namespace reflex::engine
