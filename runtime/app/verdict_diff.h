// What two pack sets say of the same events: firings of each signal, and the final verdicts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/base/result.h"

namespace reflex::app {

struct ReplayInput {
  std::vector<std::string> events;
  std::vector<std::string> inventories;
};

struct VerdictChange {
  std::string incident;  // kind, job and the time at which it opened
  std::string before;    // "confirmed n3 gpu_memory 0.97", "" = no such incident
  std::string after;
};

struct ReplayDifference {
  uint64_t events = 0;
  size_t incidents_before = 0;
  size_t incidents_after = 0;
  std::vector<VerdictChange> answers;  // another answer, or an incident on one side only
  std::vector<VerdictChange> shifts;   // the same answer, another probability (by 0.05 or more)
  /// Signal -> firings before and after, where they differ; by name.
  std::map<std::string, std::pair<uint64_t, uint64_t>> firings;
};

Result<ReplayDifference> replay_difference(const compiler::Compilation& before,
                                           const compiler::Compilation& after,
                                           const ReplayInput& input);

}  // namespace reflex::app
