// Take-over: an engine that took over the state of another set's engine is the one that loaded what
// that one had saved, to the byte, whatever has changed between the sets; and goes on as it does.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/eval/everything.h"

namespace reflex::eval {
namespace {

/// What a compiler would say of the plans, so that changes of theirs are seen.
void describe(Everything& e, const std::vector<int>& signal_edits,
              const std::vector<int>& feature_edits) {
  abi::CompiledPack& pack = *e.s.b.pack;
  for (size_t i = 0; i < pack.signals.size(); ++i) {
    abi::SignalPlan& plan = pack.signals[i];
    const std::string number = std::to_string(i);
    plan.state = {"k", "f", "s" + number, "e" + number + "." + std::to_string(signal_edits[i]), 0,
                  0};
    plan.state.window_ns =
        plan.shape == abi::SignalShape::kCount ? plan.count.window_ns : plan.sequence.within_ns;
  }
  for (size_t i = 0; i < pack.features.size(); ++i) {
    abi::FeaturePlan& plan = pack.features[i];
    const std::string number = std::to_string(i);
    if (i % 2 == 0) plan.name = "feature" + number;
    plan.state = {"k", "feature", "s" + number,
                  "e" + number + "." + std::to_string(feature_edits[i]), plan.window_ns,
                  plan.last_n};
  }
}

// An edit is a number: 0 is the plan as it was written; others change what an author may change.
void edit(abi::SignalPlan& plan, int number) {
  if (number == 0) return;
  switch (plan.shape) {
    case abi::SignalShape::kCount:
      plan.count.threshold_constant += number % 5 == 4 ? 70 : number % 5;  // 70: no ring any more
      plan.count.window_ns += (number % 3 - 1) * 4 * kSec;
      break;
    case abi::SignalShape::kSequence:
      if (plan.sequence.within_ns > 0) plan.sequence.within_ns += (number % 3 - 1) * 3 * kSec;
      for (auto& step : plan.sequence.steps) {
        if (step.absent_ns > 0) step.absent_ns += (number % 4 - 1) * kSec;
      }
      plan.sequence.partials_max += static_cast<uint32_t>(number % 2);
      break;
    case abi::SignalShape::kCondition:
      plan.condition.for_ns += (number % 3) * kSec;
      plan.condition.keep_ns += (number % 2) * kSec;
      break;
  }
}

void edit(abi::FeaturePlan& plan, int number) {
  if (number == 0) return;
  if (plan.window_ns > 0) plan.window_ns += (number % 3 - 1) * 3 * kSec;
  if (plan.last_n > 0) plan.last_n += static_cast<uint32_t>(number % 6);
  if (plan.half_life_ns > 0) plan.half_life_ns += number * kSec;
}

struct Edits {
  std::vector<int> signals;
  std::vector<int> features;
};

/// A version of the pack; ids and names are those of all others.
std::unique_ptr<Everything> version(const Edits& edits, const std::shared_ptr<SymbolTable>& names,
                                    bool near_misses) {
  auto e = std::make_unique<Everything>();
  e->s.b.pack->symbols = names;
  e->s.want_near_misses = near_misses;
  abi::CompiledPack& pack = *e->s.b.pack;
  for (size_t i = 0; i < pack.signals.size(); ++i) edit(pack.signals[i], edits.signals[i]);
  for (size_t i = 0; i < pack.features.size(); ++i) edit(pack.features[i], edits.features[i]);
  describe(*e, edits.signals, edits.features);
  // Another set unless nothing has changed at all.
  for (const auto* list : {&edits.signals, &edits.features}) {
    for (const int number : *list) pack.set_sha256 += std::to_string(number) + ".";
  }
  // Steps that mean something else: such states begin anew.
  for (size_t i = 0; i < pack.signals.size(); ++i) {
    if (edits.signals[i] >= 20) pack.signals[i].state.shape += "!";
  }
  for (size_t i = 0; i < pack.features.size(); ++i) {
    if (edits.features[i] >= 20) pack.features[i].state.shape += "!";
  }
  e->s.topology = std::make_shared<topology::Topology>(e->s.b.pack);
  return e;
}

/// A few plans change, as an author would do it.
Edits edited(Edits edits) {
  const int changes = *rc::gen::inRange(0, 4);
  for (int i = 0; i < changes; ++i) {
    const size_t s = *rc::gen::inRange<size_t>(0, edits.signals.size());
    const size_t f = *rc::gen::inRange<size_t>(0, edits.features.size());
    if (*rc::gen::arbitrary<bool>()) edits.signals[s] = *rc::gen::inRange(0, 24);
    if (*rc::gen::inRange(0, 3) == 0) edits.features[f] = *rc::gen::inRange(0, 24);
  }
  return edits;
}

TEST(TakeOver, IsWhatSavingAndLoadingGives) {
  size_t done = 0;
  size_t refused = 0;
  EXPECT_TRUE(rc::check([&] {
    Everything first;
    first.s.b.pack->limits.keys_max = 1000;
    auto events = arbitrary_events(*rc::gen::element(2, 6, 12));
    first.load(events);
    const size_t n = events.size();
    const bool near_misses = *rc::gen::element(false, false, true);
    const unsigned threads = *rc::gen::element(1u, 2u, 3u);
    const int64_t ahead_ns = *rc::gen::element<int64_t>(0, kSec, 100 * kSec);
    std::vector<size_t> cuts =
        *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, n + 1));
    cuts.push_back(n);
    std::sort(cuts.begin(), cuts.end());

    Edits edits{std::vector<int>(first.s.b.pack->signals.size()),
                std::vector<int>(first.s.b.pack->features.size())};
    std::vector<std::unique_ptr<Everything>> versions;
    versions.push_back(version(edits, first.s.b.pack->symbols, near_misses));
    auto moved = versions.back()->engine(threads);
    auto restored = versions.back()->engine(threads);
    std::vector<abi::Firing> want;
    std::vector<abi::Firing> got;
    size_t from = 0;
    for (const size_t to : cuts) {
      const auto feed = [&](SignalEngine& engine, std::vector<abi::Firing>& out) {
        first.process(engine, from, to, ahead_ns, out);
      };
      feed(*moved, got);
      feed(*restored, want);
      from = to;
      edits = edited(edits);
      versions.push_back(version(edits, first.s.b.pack->symbols, near_misses));
      Everything& next = *versions.back();
      const std::string bytes = next.saved(*restored);
      RC_ASSERT(difference(next.saved(*moved), bytes) == "");
      auto loaded = next.engine(threads);
      StateReader in(bytes, *next.s.b.pack->symbols);
      std::vector<StateFate> report;
      RC_ASSERT(loaded->load(in, &report));
      restored = std::move(loaded);
      auto taker = next.engine(threads, moved.get());
      if (taker->can_take_over(*moved)) {
        ++done;
        RC_ASSERT(taker->fates().size() == report.size());
        for (size_t i = 0; i < report.size(); ++i) {
          const StateFate& fate = taker->fates()[i];
          RC_ASSERT(fate.name == report[i].name && fate.fate == report[i].fate &&
                    fate.why == report[i].why);
        }
        taker->take_over(*moved);
      } else {  // the arena is full of holes
        ++refused;
        taker = next.engine(threads);
        StateReader again(bytes, *next.s.b.pack->symbols);
        RC_ASSERT(taker->load(again, nullptr));
      }
      moved = std::move(taker);
      RC_ASSERT(difference(next.saved(*moved), next.saved(*restored)) == "");
    }
    restored->finish(1'000'000 * kSec, want);
    moved->finish(1'000'000 * kSec, got);
    const bool same = print(got) == print(want);
    RC_ASSERT(same);
    RC_ASSERT(counted(moved->counters()) == counted(restored->counters()));
    RC_ASSERT(moved->near_misses().size() == restored->near_misses().size());
  }));
  EXPECT_GT(done, 10 * refused);
}

// One plan after the other, again and again: memory stays within what holes may take.
TEST(TakeOver, ManyTakeOversKeepTheMemoryFlat) {
  Everything first;
  first.load(many_events(3000));
  Edits edits{std::vector<int>(first.s.b.pack->signals.size()),
              std::vector<int>(first.s.b.pack->features.size())};
  auto pack = version(edits, first.s.b.pack->symbols, false);
  auto engine = pack->engine(1);
  std::vector<abi::Firing> out;
  first.process(*engine, 0, 1000, 0, out);
  const uint64_t bytes = engine->counters().state_bytes;
  size_t refused = 0;
  std::vector<std::unique_ptr<Everything>> versions;
  for (size_t i = 0; i < 400; ++i) {
    edits.signals[i * 7 % edits.signals.size()] = static_cast<int>(i % 19);
    edits.features[i * 5 % edits.features.size()] = static_cast<int>(i % 17);
    versions.push_back(version(edits, first.s.b.pack->symbols, false));
    auto next = versions.back()->engine(1, engine.get());
    if (next->can_take_over(*engine)) {
      next->take_over(*engine);
    } else {
      ++refused;
      next = versions.back()->engine(1);
      const std::string saved = versions.back()->saved(*engine);
      StateReader in(saved, *first.s.b.pack->symbols);
      ASSERT_TRUE(next->load(in, nullptr));
    }
    engine = std::move(next);
    first.process(*engine, 1000 + i * 5, 1005 + i * 5, 0, out);
    EXPECT_LT(engine->counters().state_bytes, 4 * bytes) << i;
  }
  EXPECT_LT(refused, 40u);
}

}  // namespace
}  // namespace reflex::eval
