// LoadReport: what became of a saved state when it was loaded (language.md B6, rules 4 and 5).
//
// Rows tell the fate of each signal and feature: kept | trimmed | reset | new | removed. Notes tell
// what else was left behind or bound anew, one sentence each. Into the same pack set every row is
// `kept` and there are no notes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reflex {

struct StateFate {
  std::string kind;  // "signal" | "feature"
  std::string name;  // of the new set; of the old one when removed
  std::string fate;
  std::string why;     // "on node -> (node, gpu)"; "" when nothing changed
  uint64_t bytes = 0;  // of the state
};

struct LoadReport {
  std::vector<StateFate> rows;  // signals before features, by name
  std::vector<std::string> notes;
};

}  // namespace reflex
