// `limits { state }` at run time: keys go in total order, whatever the threads and batches are.
#include <gtest/gtest.h>

#include "runtime/eval/signal_engine.h"
#include "runtime/topology/topology.h"
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Outcome {
  std::vector<std::pair<int64_t, std::string>> firings;  // (second, node)
  eval::Counters counters;
};

/// Heartbeats of n0, n1, .. in turn; `s` needs two of one node within the window.
Outcome run(const std::string& limits, int nodes, unsigned threads, size_t batch) {
  const auto compiled = compile_files(
      {{"t/pack.rfx", "pack t 1.0.0 " + limits +
                          " event node.heartbeat { key node: node } event nic.state { key node: "
                          "node key nic: nic }"
                          " signal s on node { count node.heartbeat >= 2 within 1h each }"
                          " signal d on node { when rate(node.heartbeat, 6h) > 1000 per hour }"
                          " signal p on (node, nic) { count nic.state >= 2 within 1h }"
                          " incident i on node { opens on s or d or p }"}});
  Outcome out;
  EXPECT_TRUE(compiled->pack) << rendered(*compiled);
  if (!compiled->pack) return out;
  const auto pack = compiled->pack;
  std::vector<std::vector<uint64_t>> memory;
  memory.reserve(static_cast<size_t>(nodes) * 3);
  std::vector<const abi::Record*> records;
  abi::KindId kind = 0;
  while (pack->kinds[kind].name != "node.heartbeat") ++kind;
  // Every second node comes again soon, all others only after the whole fleet was seen.
  for (int i = 0; i < nodes * 3; ++i) {
    const int node = i % 2 == 0 ? i / 2 % 7 : i / 2 % nodes;
    memory.emplace_back(sizeof(abi::Record) / 8 + 1);
    auto* r = new (memory.back().data()) abi::Record{};
    r->ts_ns = i * kSecond;
    r->order = static_cast<uint64_t>(i);
    r->kind = kind;
    r->slot_count = 1;
    r->set_i64(0, pack->symbols->intern("n" + std::to_string(node)));
    records.push_back(r);
  }
  const auto topology = std::make_shared<topology::Topology>(pack);
  eval::SignalEngine engine(pack, topology, {threads, false});
  std::vector<abi::Firing> firings;
  for (size_t at = 0; at < records.size(); at += batch) {
    const size_t count = std::min(batch, records.size() - at);
    engine.process({records.data() + at, count}, records[at + count - 1]->ts_ns, firings);
  }
  engine.finish(records.back()->ts_ns, firings);
  for (const auto& f : firings) {
    out.firings.emplace_back(
        f.ts_ns / kSecond, pack->symbols->name(static_cast<SymbolId>(f.entity.values[0])));
  }
  out.counters = engine.counters();
  return out;
}

TEST(StateLimit, Keys_go_when_their_states_do_not_fit) {
  const Outcome free = run("", 600, 1, 64);
  EXPECT_EQ(free.counters.state_evictions, 0u);
  EXPECT_EQ(free.counters.keys, 600u);
  const Outcome tight = run("limits { state 20kB }", 600, 1, 64);
  EXPECT_GT(tight.counters.state_evictions, 500u);
  EXPECT_EQ(tight.counters.evictions, 0u);
  EXPECT_LT(tight.counters.keys, 300u);
  EXPECT_GT(tight.counters.keys, 20u);
  // What was touched lately stays: the seven busy nodes fire as if there were no limit.
  const auto busy = [](const Outcome& o) {
    return std::count_if(o.firings.begin(), o.firings.end(),
                         [](const auto& f) { return f.second.size() == 2 && f.second < "n7"; });
  };
  EXPECT_EQ(busy(tight), busy(free));
  EXPECT_LT(tight.firings.size(), free.firings.size());
}

TEST(StateLimit, Threads_and_batches_change_nothing) {
  const Outcome base = run("limits { state 20kB }", 500, 1, 64);
  ASSERT_FALSE(base.firings.empty());
  for (const unsigned threads : {1u, 2u, 3u}) {
    for (const size_t batch : {size_t{1}, size_t{17}, size_t{5000}}) {
      const Outcome other = run("limits { state 20kB }", 500, threads, batch);
      EXPECT_EQ(other.firings, base.firings) << threads << " " << batch;
      EXPECT_EQ(other.counters.state_evictions, base.counters.state_evictions);
      EXPECT_EQ(other.counters.keys, base.counters.keys);
    }
  }
}

TEST(StateLimit, A_limit_below_one_key_still_evaluates) {
  const Outcome tiny = run("limits { state 1B }", 50, 2, 8);
  EXPECT_EQ(tiny.counters.keys, 1u);
  EXPECT_GT(tiny.counters.state_evictions, 50u);
}

}  // namespace
}  // namespace reflex::test
