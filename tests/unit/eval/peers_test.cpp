// Peers: the median of the other nodes of the job, and of those of the same role, against a plain
// computation over arbitrary events.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {
constexpr uint16_t kValue = 2;

/// Against a plain computation from the events; with `by` only nodes of the same role are peers:
/// nodes 0 and 1 have one, 2 and 3 state none.
void check_medians(bool by) {
  EXPECT_TRUE(rc::check([by] {
    Stream s;
    abi::FeaturePlan last;
    last.entity_kind = s.node;
    const auto f = s.b.feature(last);
    s.b.feature_input(f, s.any(0), s.b.field_f64(kValue), s.by_node);
    abi::PeersQuery query;
    query.feature = f;
    query.scope = "job";
    query.at_least = by ? 1 : 2;
    query.bucket_ns = 6 * kSec;
    const SymbolId role = s.b.pack->symbols->intern("role");
    if (by) query.by = {{abi::kNone32, role}};
    s.b.pack->peers.push_back(query);
    struct Seen {
      int t, node;
      abi::Value value;
    };
    std::vector<Seen> log;
    const auto look =
        s.b.expr(test::bool_type(), [&](const abi::Record&, const abi::EvalContext& c, uint64_t&) {
          const auto at = std::find(s.names.begin(), s.names.end(), c.entity[0]);
          log.push_back({static_cast<int>(c.now_ns / kSec), static_cast<int>(at - s.names.begin()),
                         c.host->peers(c.host_state, &c, 0)});
          return uint32_t{abi::kFalse};
        });
    s.b.pack->exprs[look].reads_peers = true;
    const auto id = s.b.signal("probe", s.node, abi::SignalShape::kSequence);
    s.plan(id).global_stage = true;
    s.b.step(id, abi::StepMode::kFirst, s.b.leaf(s.kinds[2], look), s.by_node);
    s.topology = std::make_shared<topology::Topology>(s.b.pack);
    s.topology->start_job(s.b.pack->symbols->intern("job"), 0,
                          {s.names[0], s.names[1], s.names[2], s.names[3]});
    const SymbolId stage = s.b.pack->symbols->intern("stage0");
    s.topology->set_labels(s.names[0], 0, {{role, stage}});
    s.topology->set_labels(s.names[1], 0, {{role, stage}});
    const auto events = arbitrary_events(5);  // node 4 has no job
    s.load(events);
    s.run();
    size_t at = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != 2) continue;
      const Seen seen = log.at(at++);
      RC_ASSERT(seen.node == events[i].node);
      std::map<int, double> newest;  // the others' newest values of closed buckets, at most 4 old
      const int bucket = events[i].t / 6;
      for (size_t j = 0; j < i; ++j) {
        const Event& e = events[j];
        if (e.kind != 0 || e.node == 4 || e.node == seen.node) continue;
        if (by && (e.node < 2) != (seen.node < 2)) continue;
        if (e.t / 6 < bucket && e.t / 6 >= bucket - 4) newest[e.node] = e.value;
      }
      std::vector<double> values;
      for (const auto& [node, v] : newest) values.push_back(v);
      std::sort(values.begin(), values.end());
      const bool known = values.size() >= query.at_least && seen.node != 4;
      RC_ASSERT((seen.value.known != 0) == known);
      if (known) RC_ASSERT(seen.value.f64() == values[(values.size() - 1) / 2]);
    }
  }));
}

TEST(Peers, MedianOfTheOthersInClosedBuckets) { check_medians(false); }

TEST(Peers, OnlyThoseOfTheSameRole) { check_medians(true); }

}  // namespace
}  // namespace reflex::eval
