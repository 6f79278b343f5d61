// Inventory files and coverage.
#include "runtime/engine/inventory.h"

#include <gtest/gtest.h>

#include "runtime/base/time.h"
#include "runtime/engine/coverage.h"

namespace reflex::engine {
namespace {

std::shared_ptr<abi::CompiledPack> make_pack() {
  auto pack = std::make_shared<abi::CompiledPack>();
  pack->symbols = std::make_shared<SymbolTable>();
  abi::ClassPlan fallback;
  fallback.name = "default";
  fallback.fallback = true;
  pack->classes = {fallback};
  abi::KindSchema structured;
  structured.name = "gpu.temp";
  abi::KindSchema decoded;
  decoded.name = "gpu.xid";
  pack->kinds = {structured, decoded};
  abi::SignalPlan hot;
  hot.kinds = {0};
  abi::SignalPlan xid;
  xid.kinds = {1};
  pack->signals = {hot, xid};
  abi::DecoderPlan decoder;
  abi::DecoderLine line;
  line.kind = 1;
  decoder.lines = {line};
  pack->decoders = {decoder};
  return pack;
}

TEST(Inventory, NodesLabelsAndJobs) {
  auto pack = make_pack();
  topology::Topology topology(pack);
  auto& symbols = *pack->symbols;
  const auto summary = load_inventory_text(
      R"({"nodes":[{"node":"n1","labels":{"rack":"r1","gpus":8}},{"labels":{}}],
          "jobs":[{"job":"j1","nodes":["n1"],"start":"2026-01-01T00:00:00Z"}]})",
      symbols, topology);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().nodes, 1u);
  EXPECT_EQ(summary.value().jobs, 1u);
  EXPECT_EQ(summary.value().warnings.size(), 1u);
  const SymbolId n1 = symbols.intern("n1");
  EXPECT_EQ(symbols.name(topology.label(n1, symbols.intern("rack"), 0)), "r1");
  EXPECT_EQ(symbols.name(topology.label(n1, symbols.intern("gpus"), 0)), "8");
  const int64_t start = parse_rfc3339("2026-01-01T00:00:00Z")->ns;
  EXPECT_EQ(topology.job_of(n1, start - 1), kNoSymbol);
  EXPECT_EQ(symbols.name(topology.job_of(n1, start)), "j1");
}

TEST(Inventory, BrokenFilesAreErrors) {
  auto pack = make_pack();
  topology::Topology topology(pack);
  const auto error = [&](const std::string& text) {
    const auto loaded = load_inventory_text(text, *pack->symbols, topology);
    return loaded.ok() ? "no error" : loaded.error().message;
  };
  EXPECT_TRUE(error("{").starts_with("the inventory is not JSON: it ends too early; write one"));
  EXPECT_TRUE(error("{\n \"nodes\": n1}").starts_with(
      "the inventory is not JSON: line 2 cannot be read from column "))
      << error("{\n \"nodes\": n1}");
  EXPECT_TRUE(error("node1\n").starts_with(
      "the inventory is not JSON: line 1 cannot be read from column "));
  EXPECT_TRUE(error(" \n").starts_with("the inventory is empty; write {\"nodes\": [{"));
  EXPECT_TRUE(error("[]").starts_with("the inventory is JSON but no object; write {\"nodes\""));
  const auto neither = load_inventory_text("{\"node\": []}", *pack->symbols, topology);
  ASSERT_TRUE(neither.ok());
  ASSERT_EQ(neither.value().warnings.size(), 1u);
  EXPECT_TRUE(neither.value().warnings[0].starts_with("it has neither 'nodes' nor 'jobs'"));
  // The form that is told is one that is read.
  const std::string told = error("[]").substr(error("[]").find('{'));
  const auto read = load_inventory_text(told, *pack->symbols, topology);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().warnings.empty());
  EXPECT_EQ(read.value().nodes + read.value().jobs, 2u);
  EXPECT_FALSE(load_inventory("/nonexistent.json", *pack->symbols, topology).ok());
}

TEST(Coverage, LogsCoverDecodedKindsOfTheirNodeOnly) {
  auto pack = make_pack();
  Coverage coverage(pack);
  const SymbolId n1 = pack->symbols->intern("n1");
  const SymbolId n2 = pack->symbols->intern("n2");
  coverage.add_log(n1);
  EXPECT_TRUE(coverage.observed(1, n1, 0));
  EXPECT_FALSE(coverage.observed(1, n2, 0));
  EXPECT_FALSE(coverage.observed(0, n1, 0));  // temperatures do not come from logs
}

TEST(Coverage, AStructuredStreamCoversAKindOnceItCarriedOne) {
  auto pack = make_pack();
  Coverage coverage(pack);
  const SymbolId n1 = pack->symbols->intern("n1");
  abi::Record record;
  record.kind = 0;
  record.ts_ns = 100;
  coverage.saw(record, /*from_log=*/false);
  EXPECT_FALSE(coverage.observed(0, n1, 99));
  EXPECT_TRUE(coverage.observed(0, n1, 100));
  coverage.add_gap(n1, 200, 300);
  EXPECT_FALSE(coverage.observed(0, n1, 200));
  EXPECT_TRUE(coverage.observed(0, n1, 300));
  // The gap of one source is one of the signals that listen to it.
  coverage.add_gap(n1, 400, 500, {0});
  EXPECT_FALSE(coverage.observed(0, n1, 400));
  coverage.add_gap(n1, 600, 700, {1});
  EXPECT_TRUE(coverage.observed(0, n1, 600));
}

}  // namespace
}  // namespace reflex::engine
