// One graph, several threads: what the ranking crew of the engine does (run it under `tsan`).
#include <gtest/gtest.h>

#include <thread>

#include "runtime/explain/explain.h"
#include "tests/unit/attribution/world.h"

namespace reflex::attribution {
namespace {

constexpr int kNodes = 24;
constexpr size_t kThreads = 4;

/// A job with self edges, peers, a place and an external cause; node `bad` is at fault.
void fill(World& w, int bad) {
  const auto hot = w.signal("hot", {"node"}, 1e-4);
  const auto lost = w.signal("lost", {"node", "gpu"}, 1e-6);
  const auto waits = w.signal("waits", {"node"}, 1e-2);
  const auto crash = w.signal("crash", {"job"}, 1e-3);
  const auto gpu = w.fault("gpu", {"node", "gpu"});
  const auto host = w.fault("host", {"node"});
  const auto fabric = w.external("fabric", {"tor"});
  w.edge(gpu, lost, 0.8, -600, 60, abi::Scope::kSelf);
  w.edge(gpu, hot, 0.3, -600, 60, abi::Scope::kSelf);
  w.edge(gpu, waits, 0.7, 0, 600, abi::Scope::kPeers);
  w.edge(host, hot, 0.6, -600, 60, abi::Scope::kSelf);
  w.edge(host, crash, 0.9, -60, 60, abi::Scope::kJob);
  w.edge(fabric, waits, 0.6, 0, 600, abi::Scope::kTor);
  for (int i = 0; i < kNodes; ++i) {
    w.node("n" + std::to_string(10 + i), "r" + std::to_string(i / 4), "t" + std::to_string(i / 12));
  }
  const std::string name = "n" + std::to_string(10 + bad);
  w.fire(lost, {name, "1"}, -20);
  if (bad % 2 == 0) w.fire(hot, {name}, -100);
  for (int i = 0; i < kNodes; i += 3) {
    if (i != bad) w.fire(waits, {"n" + std::to_string(10 + i)}, 5);
  }
}

TEST(SideBySide, ThreadsOnOneGraphSayWhatOneSays) {
  std::vector<std::unique_ptr<World>> worlds;
  std::vector<std::string> alone;
  for (int bad = 0; bad < 12; ++bad) {
    worlds.push_back(std::make_unique<World>());
    fill(*worlds.back(), bad);
    alone.push_back(explain::to_json(worlds.back()->run(), false));
  }
  const std::unique_ptr<Graph> graph = worlds.front()->graph();
  // Every world has the same pack, symbols in the same order: one graph serves them all.
  std::vector<std::string> together(worlds.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < worlds.size(); i += kThreads) {
        together[i] = explain::to_json(graph->attribute(worlds[i]->input), false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace reflex::attribution
