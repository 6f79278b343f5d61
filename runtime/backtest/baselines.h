// Baselines: other ways to name a node, on the same evidence and in the same harness.
//
// Each sees what attribution sees (the firings of every node of the job at the final revision) and
// no more. Methods that have a free number learn it on incidents before the tested ones; without
// such incidents they are left out. Deterministic.
#pragma once

#include <string>
#include <vector>

#include "runtime/attribution/attribution.h"
#include "runtime/backtest/metrics.h"

namespace reflex::backtest {

struct SignalCount {
  abi::SignalId signal = 0;
  uint32_t firings = 0;
  int64_t onset_ns = 0;
};
struct NodeFeatures {
  std::string node;
  std::string hw_class;
  std::vector<SignalCount> signals;  // by signal; several gpus of a node are summed
};
struct IncidentFeatures {
  learn::Label label;
  std::vector<NodeFeatures> nodes;  // by name
};

/// What the nodes of the job show. Nodes outside of the job are left out.
IncidentFeatures features_of(const abi::CompiledPack& pack, const attribution::Input& input,
                             const learn::Label& label);

struct Baseline {
  std::string name;
  std::vector<Case> cases;  // one for each tested incident
};

/// `train` may be empty.
std::vector<Baseline> run_baselines(const abi::CompiledPack& pack,
                                    const std::vector<IncidentFeatures>& train,
                                    const std::vector<IncidentFeatures>& test);

/// Gradient boosting over dense rows: probability for each test row. Empty: this build has no
/// libxgboost, or it failed.
std::vector<float> boosted_probabilities(const std::vector<float>& train, size_t columns,
                                         const std::vector<float>& truth,
                                         const std::vector<float>& test);
/// Whether this build has it.
bool has_boosting();

}  // namespace reflex::backtest
