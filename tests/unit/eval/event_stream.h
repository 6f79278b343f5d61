// Small streams of three kinds over few nodes, and the firings of an engine on them; for tests.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/eval/signal_engine.h"
#include "tests/support/pack_builder.h"

namespace reflex::eval {

using test::PackBuilder;
inline constexpr int64_t kSec = kNsPerSecond;

// Kinds a, b, c carry (node, gpu, value).
struct Event {
  int t;     // seconds
  int kind;  // 0 a, 1 b, 2 c
  int node;
  int gpu;
  int value;
};

struct Stream {
  PackBuilder b;
  abi::KindId kinds[3];
  abi::EntityKindId node, node_gpu;
  abi::KeyPlan by_node = PackBuilder::key({0});
  abi::KeyPlan by_gpu = PackBuilder::key({0, 1});
  std::vector<SymbolId> names;
  std::vector<uint64_t> memory;
  std::vector<const abi::Record*> records;
  std::shared_ptr<topology::Topology> topology;  // made by the first run, or before
  std::vector<NearMiss> near_misses;             // of the last run
  bool want_near_misses = false;

  Stream() {
    abi::Type gpu = test::entity_type();
    gpu.gpu_index = true;
    const char* kind_names[3] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) {
      kinds[i] =
          b.kind(kind_names[i],
                 {{"node", test::entity_type()}, {"gpu", gpu}, {"value", test::real_type()}});
    }
    node = b.entity_kind({"node"});
    node_gpu = b.entity_kind({"node", "gpu"});
    for (int i = 0; i < 12; ++i) names.push_back(b.pack->symbols->intern("n" + std::to_string(i)));
  }
  abi::LeafId any(int kind) { return b.leaf(kinds[kind], abi::kNone32); }
  abi::SignalPlan& plan(abi::SignalId s) { return b.pack->signals[s]; }
  void load(const std::vector<Event>& events) {
    constexpr size_t kWords = sizeof(abi::Record) / 8 + 3;
    memory.assign(events.size() * kWords, 0);
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& e = events[i];
      auto* r = new (&memory[i * kWords]) abi::Record{};
      r->ts_ns = e.t * kSec;
      r->order = i;
      r->kind = kinds[e.kind];
      r->slot_count = 3;
      r->set_i64(0, names[static_cast<size_t>(e.node)]);
      r->set_i64(1, e.gpu);
      r->set_f64(2, e.value);
      records.push_back(r);
    }
  }
  std::vector<abi::Firing> run(unsigned threads = 1, size_t batch = 4096,
                               Counters* counters = nullptr) {
    if (topology == nullptr) topology = std::make_shared<topology::Topology>(b.pack);
    SignalEngine engine(b.pack, topology, {threads, want_near_misses});
    std::vector<abi::Firing> out;
    for (size_t at = 0; at < records.size(); at += batch) {
      const size_t n = std::min(batch, records.size() - at);
      engine.process({records.data() + at, n}, records[at + n - 1]->ts_ns, out);
    }
    engine.finish(1'000'000 * kSec, out);
    near_misses = engine.near_misses();
    if (counters != nullptr) *counters = engine.counters();
    return out;
  }
};

inline std::vector<Event> arbitrary_events(int nodes = 3) {
  auto raw = *rc::gen::container<std::vector<std::tuple<int, int, int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 6), rc::gen::inRange(0, 3), rc::gen::inRange(0, nodes),
                     rc::gen::inRange(0, 2), rc::gen::inRange(0, 20)));
  std::vector<Event> events;
  int t = 0;
  for (auto [dt, kind, node, gpu, value] : raw) {
    t += dt;
    events.push_back({t, kind, node, gpu, value});
  }
  return events;
}

using Fired = std::multiset<std::pair<int64_t, SymbolId>>;  // (second, node)
inline Fired fired(const std::vector<abi::Firing>& firings, abi::SignalId s,
                   abi::FiringChange change = abi::FiringChange::kStart) {
  Fired out;
  for (const auto& f : firings) {
    if (f.signal == s && f.change == change) {
      out.emplace(f.ts_ns / kSec, static_cast<SymbolId>(f.entity.values[0]));
    }
  }
  return out;
}

}  // namespace reflex::eval
