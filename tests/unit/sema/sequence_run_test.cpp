// Sequences from text to firings: the first example of language.md A5 as it is written there.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "runtime/eval/signal_engine.h"
#include "runtime/topology/topology.h"
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Source: language.md A5, after the macro of A4.
constexpr const char* kExample = R"(
list xid_hw: set<u16> = [48, 63, 64, 74, 79, 94, 95]
macro hw_xid(e: gpu.xid) = e.code in xid_hw and not in_maintenance(e.node)
signal nvlink_hang on node within 90s {
  a: gpu.xid       where hw_xid(a) and a.code == 74
  then b: nccl.timeout where b.job == job_of(a.node) and b.node == a.node
  unless c: job.ended where c.job == b.job between a and b
  keep earliest  after match skip past last
  holds 10m
}
signal nic_down_stuck on (node, nic) {
  d: nic.state where not d.up
  then absent u: nic.state where u.up for 30s
}
incident i on node { opens on nvlink_hang or nic_down_stuck }
)";

enum class What : uint8_t { kXid, kTimeout, kEnded };
struct Event {
  int t;  // seconds
  What what;
  int subject;  // node, or of kEnded the job
};

/// Nodes n0, n1 are in job j0, n2, n3 in j1, and so on.
struct World {
  std::unique_ptr<compiler::Compilation> compiled = compile_pack(kExample);
  std::shared_ptr<const abi::CompiledPack> pack = compiled->pack;
  std::shared_ptr<topology::Topology> topology;
  std::vector<std::vector<uint64_t>> memory;

  explicit World(int jobs) {
    if (pack == nullptr) return;
    topology = std::make_shared<topology::Topology>(pack);
    for (int j = 0; j < jobs; ++j) topology->start_job(job(j), 0, {node(2 * j), node(2 * j + 1)});
  }
  [[nodiscard]] SymbolId node(int n) const {
    return pack->symbols->intern("n" + std::to_string(n));
  }
  [[nodiscard]] SymbolId job(int j) const { return pack->symbols->intern("j" + std::to_string(j)); }
  [[nodiscard]] abi::KindId kind(const std::string& name) const {
    for (size_t k = 0; k < pack->kinds.size(); ++k) {
      if (pack->kinds[k].name == name) return static_cast<abi::KindId>(k);
    }
    ADD_FAILURE() << name;
    return 0;
  }
  const abi::Record* record(const Event& e, uint64_t order) {
    const bool ended = e.what == What::kEnded;
    const auto id = kind(ended ? "job.ended" : e.what == What::kXid ? "gpu.xid" : "nccl.timeout");
    const auto& fields = pack->kinds[id].fields;
    memory.emplace_back(sizeof(abi::Record) / 8 + fields.size());
    auto* r = new (memory.back().data()) abi::Record{};
    r->ts_ns = e.t * kSecond;
    r->order = order;
    r->kind = id;
    r->slot_count = static_cast<uint16_t>(fields.size());
    for (unsigned i = 0; i < fields.size(); ++i) {
      if (fields[i].name == "node") r->set_i64(i, node(e.subject));
      if (fields[i].name == "job") r->set_i64(i, job(ended ? e.subject : e.subject / 2));
      if (fields[i].name == "code") r->set_i64(i, 74);
    }
    return r;
  }
  /// (second, node) of every firing of nvlink_hang.
  std::multiset<std::pair<int64_t, std::string>> run(const std::vector<Event>& events,
                                                     unsigned threads = 1, size_t batch = 4096) {
    memory.clear();
    memory.reserve(events.size());
    std::vector<const abi::Record*> records;
    for (const Event& e : events) records.push_back(record(e, records.size()));
    eval::SignalEngine engine(pack, topology, {threads, false});
    std::vector<abi::Firing> firings;
    for (size_t at = 0; at < records.size(); at += batch) {
      const size_t n = std::min(batch, records.size() - at);
      engine.process({records.data() + at, n}, records[at + n - 1]->ts_ns, firings);
    }
    engine.finish(1'000'000 * kSecond, firings);
    std::multiset<std::pair<int64_t, std::string>> out;
    for (const abi::Firing& f : firings) {
      if (pack->signals[f.signal].name != "t.nvlink_hang") continue;
      out.emplace(f.ts_ns / kSecond,
                  pack->symbols->name(static_cast<SymbolId>(f.entity.values[0])));
    }
    return out;
  }
};

using Fired = std::multiset<std::pair<int64_t, std::string>>;

TEST(SequenceRun, partial_matches_that_wait_are_counted) {
  World w(2);
  ASSERT_NE(w.pack, nullptr);
  eval::SignalEngine engine(w.pack, w.topology, {});
  const auto waiting = [&](const eval::SignalEngine& of) {
    for (size_t s = 0; s < w.pack->signals.size(); ++s) {
      if (w.pack->signals[s].name == "t.nvlink_hang") return of.partials_by_signal()[s];
    }
    return UINT64_MAX;
  };
  uint64_t order = 0;
  std::vector<abi::Firing> firings;
  const auto give = [&](const Event& event) {
    const abi::Record* record = w.record(event, order++);
    engine.process({&record, 1}, record->ts_ns, firings);
  };
  give({10, What::kXid, 0});
  give({11, What::kXid, 2});
  EXPECT_EQ(waiting(engine), 2u);
  StateWriter state(*w.pack->symbols);
  engine.save(state);
  const std::string bytes = state.take();
  StateReader reader(bytes, *w.pack->symbols);
  eval::SignalEngine again(w.pack, w.topology, {});
  ASSERT_TRUE(again.load(reader, nullptr));
  EXPECT_EQ(waiting(again), 2u);
  give({20, What::kTimeout, 0});
  EXPECT_EQ(waiting(engine), 1u);  // complete: consumed
  EXPECT_EQ(firings.size(), 1u);
  const auto keys = engine.keys_by_kind();
  EXPECT_EQ(std::accumulate(keys.begin(), keys.end(), uint64_t{0}), engine.counters().keys);
  EXPECT_GE(engine.counters().keys, 2u);
}

TEST(SequenceRun, the_first_example_compiles) {
  const World w(0);
  ASSERT_NE(w.pack, nullptr) << rendered(*w.compiled);
  EXPECT_EQ(ids(*w.compiled, true), "");
  const abi::SignalPlan& s = signal(*w.pack, "t.nvlink_hang");
  ASSERT_EQ(s.sequence.unless.size(), 1u);
  const abi::UnlessPlan& u = s.sequence.unless[0];
  EXPECT_TRUE(u.deferred && u.shared && u.at_close);
  EXPECT_EQ(u.check_step, 1);
  EXPECT_EQ(u.window_ns, 90 * kSecond);
  EXPECT_TRUE(u.key.parts.empty());
  EXPECT_EQ(w.pack->leaves[u.leaf].predicate, abi::kNone32);
  EXPECT_FALSE(s.global_stage);
  // Coverage: a node without a source of job.ended is observed all the same.
  EXPECT_EQ(std::count(s.kinds.begin(), s.kinds.end(), u.kind), 0);
}

// Judged at once only when it has the key and reads no later step.
TEST(SequenceRun, unless_that_must_wait) {
  const auto out = compile_pack(R"(
    signal later on node within 1m {
      a: gpu.xid then b: gpu.ecc then d: gpu.temp
      unless c: gpu.throttle where c.gpu == d.gpu between a and b
    }
    signal middle on node within 1m {
      a: gpu.xid then b: gpu.ecc then d: gpu.temp
      unless c: gpu.throttle where c.gpu == b.gpu between a and d
    }
    signal either on node within 1m {
      a: gpu.xid then ~2s b: gpu.ecc
      unless c: gpu.throttle where c.gpu == a.gpu between a and b
    }
    signal no_key on node {
      a: nccl.timeout then absent b: node.heartbeat for 30s
      unless c: job.ended where c.job == a.job between a and b
    }
    signal own_job on job within 1m {
      a: nccl.timeout then b: nccl.timeout where b.rank == a.rank
      unless c: job.ended where c.reason == "done" between a and b
    } incident i on node { opens on later or middle or either or no_key or own_job })");
  ASSERT_NE(out->pack, nullptr) << rendered(*out);
  const auto unless = [&](const char* name) {
    return signal(*out->pack, name).sequence.unless.at(0);
  };
  const abi::UnlessPlan later = unless("t.later");
  EXPECT_TRUE(later.deferred && later.at_close && !later.shared);
  EXPECT_EQ(later.before_step, 1);
  EXPECT_EQ(later.check_step, 2);
  EXPECT_EQ(later.window_ns, 60 * kSecond);
  EXPECT_EQ(unless("t.middle").check_step, 2);
  EXPECT_TRUE(unless("t.middle").at_close);
  EXPECT_TRUE(unless("t.either").at_close);
  const abi::UnlessPlan no_key = unless("t.no_key");
  EXPECT_TRUE(no_key.deferred && no_key.shared && !no_key.at_close);
  EXPECT_EQ(no_key.window_ns, 30 * kSecond);
  EXPECT_FALSE(unless("t.own_job").deferred);
  EXPECT_EQ(unless("t.own_job").window_ns, 0);
}

TEST(SequenceRun, unless_cancels_strictly_between) {
  using enum What;
  World w(2);
  ASSERT_NE(w.pack, nullptr) << rendered(*w.compiled);
  const Fired fires{{20, "n0"}};
  const Fired none;
  EXPECT_EQ(w.run({{0, kXid, 0}, {20, kTimeout, 0}}), fires);
  EXPECT_EQ(w.run({{0, kXid, 0}, {10, kEnded, 0}, {20, kTimeout, 0}}), none);
  EXPECT_EQ(w.run({{0, kEnded, 0}, {5, kXid, 0}, {20, kTimeout, 0}}), fires);   // before a
  EXPECT_EQ(w.run({{0, kXid, 0}, {20, kTimeout, 0}, {30, kEnded, 0}}), fires);  // after b
  EXPECT_EQ(w.run({{0, kXid, 0}, {10, kEnded, 1}, {20, kTimeout, 0}}), fires);  // another job
  // At a's or b's time the order decides.
  EXPECT_EQ(w.run({{0, kEnded, 0}, {0, kXid, 0}, {20, kTimeout, 0}}), fires);
  EXPECT_EQ(w.run({{0, kXid, 0}, {0, kEnded, 0}, {20, kTimeout, 0}}), none);
  EXPECT_EQ(w.run({{0, kXid, 0}, {20, kEnded, 0}, {20, kTimeout, 0}}), none);
  EXPECT_EQ(w.run({{0, kXid, 0}, {20, kTimeout, 0}, {20, kEnded, 0}}), fires);
  // The cancelled match is gone; a later one completes.
  EXPECT_EQ(w.run({{0, kXid, 0}, {1, kEnded, 0}, {2, kXid, 0}, {20, kTimeout, 0}}), fires);
}

/// By the definition: partial matches a, oldest first, at b without an end of b's job in between.
Fired expected(const std::vector<Event>& events, int nodes) {
  Fired want;
  for (int n = 0; n < nodes; ++n) {
    std::vector<size_t> open;
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& e = events[i];
      if (e.what == What::kEnded || e.subject != n) continue;
      std::erase_if(open, [&](size_t a) { return e.t - events[a].t > 90; });
      if (e.what == What::kXid) {
        if (open.size() < 4) open.push_back(i);  // limits { partials 4 per key }
        continue;
      }
      for (; !open.empty(); open.erase(open.begin())) {
        bool cancelled = false;
        for (size_t k = open.front() + 1; k < i; ++k) {
          cancelled = cancelled || (events[k].what == What::kEnded && events[k].subject == n / 2);
        }
        if (cancelled) continue;
        want.emplace(e.t, "n" + std::to_string(n));
        open.clear();
        break;
      }
    }
  }
  return want;
}

TEST(SequenceRun, random_streams_match_the_definition) {
  size_t fired = 0;
  size_t cancelled = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    World w(3);
    ASSERT_NE(w.pack, nullptr);
    std::vector<Event> events;
    std::vector<Event> without_ends;
    for (int i = 0, t = 0; i < 60; ++i) {
      t += static_cast<int>(random() % 25);
      const auto what = static_cast<What>(random() % 3);
      events.push_back({t, what, static_cast<int>(random() % (what == What::kEnded ? 3 : 6))});
      if (what != What::kEnded) without_ends.push_back(events.back());
    }
    const Fired want = expected(events, 6);
    EXPECT_EQ(w.run(events), want) << "seed " << seed;
    EXPECT_EQ(w.run(events, 1 + seed % 4, 1 + seed % 9), want) << "seed " << seed;
    fired += want.size();
    cancelled += want != expected(without_ends, 6);
  }
  EXPECT_GT(fired, 100u);
  EXPECT_GT(cancelled, 50u);
}

}  // namespace
}  // namespace reflex::test
