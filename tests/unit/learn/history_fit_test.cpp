// Histories drawn from a known law are recovered; what nobody saw stays the author's.
#include "runtime/learn/history_fit.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/attribution/past.h"
#include "tests/unit/learn/learn_world.h"

namespace reflex::learn {
namespace {

constexpr int kNodes = 30;

bool always(const void*, abi::SignalId, SymbolId) { return true; }

/// Jobs of 30 nodes, some with a fault behind them; one fails, by `law`.
RecordedInputs jobs(const LearnWorld& w, int count, const abi::HistoryLaw& law, bool with_past) {
  std::mt19937_64 random(7);
  RecordedInputs out;
  for (int i = 0; i < count; ++i) {
    attribution::Input input;
    input.observed = always;
    std::vector<double> hazards;
    double total = 0;
    for (int n = 0; n < kNodes; ++n) {
      attribution::NodeView view;
      view.node = w.pack->symbols->intern("n" + std::to_string(100 + n));
      input.nodes.push_back(view);
      abi::Past past;
      const uint64_t state = random() % 20;
      if (with_past && state < abi::kAfterFault) past.last[state] = 1;
      if (with_past && state < 10) {
        past.usual = 2;
        input.pasts.push_back({view.node, past});
      }
      hazards.push_back(attribution::raw_hazard(past, law));
      total += hazards.back();
    }
    double u = LearnWorld::uniform(random) * total;
    size_t culprit = 0;
    while (culprit + 1 < kNodes && u >= hazards[culprit]) u -= hazards[culprit++];
    Label label;
    label.incident = "i" + std::to_string(10000 + i);
    label.ts_ns = i * kNsPerHour;
    label.culprits = {"n" + std::to_string(100 + culprit)};
    label.category = "x";
    out.push_back(std::make_unique<RecordedInput>(*w.pack, input, label));
  }
  return out;
}

TEST(HistoryFit, RecoversTheLawThatTheWorldFollows) {
  const LearnWorld w = LearnWorld::two_faults();
  abi::HistoryLaw truth;
  truth.again = {12, 1, 3, 0.5};
  truth.usual = 0;
  const auto law = fit_history(*w.pack, jobs(w, 3000, truth, true), INT64_MAX);
  for (size_t s = 0; s < abi::kAfterFault; ++s) {
    EXPECT_NEAR(law.again[s] / truth.again[s], 1, 0.25) << s;
  }
  EXPECT_NEAR(law.usual, 0, 0.15);
}

TEST(HistoryFit, WithoutHistoriesTheAuthorsLawStands) {
  const LearnWorld w = LearnWorld::two_faults();
  const abi::HistoryLaw author;
  const auto law = fit_history(*w.pack, jobs(w, 200, author, false), INT64_MAX);
  for (size_t s = 0; s < abi::kAfterFault; ++s) EXPECT_NEAR(law.again[s], author.again[s], 1e-3);
  EXPECT_NEAR(law.usual, author.usual, 1e-3);
}

TEST(HistoryFit, LaterIncidentsAreNotLookedAt) {
  const LearnWorld w = LearnWorld::two_faults();
  abi::HistoryLaw truth;
  truth.again = {1, 1, 1, 1};
  const auto inputs = jobs(w, 400, truth, true);
  const auto none = fit_history(*w.pack, inputs, 0);
  EXPECT_NEAR(none.again[0], abi::HistoryLaw{}.again[0], 1e-3);
  EXPECT_LT(fit_history(*w.pack, inputs, INT64_MAX).again[0], 4);
}

}  // namespace
}  // namespace reflex::learn
