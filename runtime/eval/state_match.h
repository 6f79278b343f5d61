// StateMatch: which signal and feature of another set the state of each one comes from.
//
// As abi::state_plan() pairs them, and what the compiler made without a name. Made from the two sets
// alone: loading saved bytes (engine_state.h) and taking over an engine that runs (take_over.h) ask
// the same.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/abi/state_plan.h"
#include "runtime/eval/program.h"
#include "runtime/eval/state_fate.h"

namespace reflex::eval {

struct StateOrigin {
  size_t saved = SIZE_MAX;  // its number there; SIZE_MAX: it begins anew
  bool changed = true;      // it is not what it was; see StateMatch::spread_changes()
  int64_t missing_ns = 0;   // by so much its window became longer
};

struct StateMatch {
  std::vector<StateOrigin> signals;   // [SignalId]
  std::vector<StateOrigin> features;  // [FeatureId]
  std::vector<StateFate> report;      // bytes: 0
  std::vector<size_t> report_saved;   // parallel: the number there; SIZE_MAX: it is new

  /// A signal that reads a changed feature counts as changed from now on.
  void spread_changes(const Program& program);
};

struct StateItems {  // of a set, by number
  std::vector<abi::StateItem> signals;
  std::vector<abi::StateItem> features;  // those without a name, too
};
StateItems items_of(const abi::CompiledPack& pack);

StateMatch match_states(const StateItems& before, const abi::CompiledPack& pack);

/// Until when each is incomplete, for a state of time `at_ns`. `before`: by the numbers there.
std::vector<int64_t> incomplete_until(const std::vector<StateOrigin>& origins,
                                      const std::vector<int64_t>& before, int64_t at_ns);
/// What a signal's features lack, the signal lacks.
void spread_incomplete(const Program& program, const std::vector<int64_t>& features,
                       std::vector<int64_t>& signals);

}  // namespace reflex::eval
