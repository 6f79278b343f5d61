// What two versions of a pack set say differently: declarations, edges, values of hardware classes,
// and the signals that change because something that they read does.
//
// Contract: compares meaning (syntax trees and plans), so comments, layout and order of
// declarations are no difference. Entries are ordered by category and name. Not here: state and
// verdicts.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/compile.h"

namespace reflex::app {

struct PackChange {
  enum class How : uint8_t { kAdded, kRemoved, kChanged };
  How how = How::kChanged;
  std::string category;            // "signal", "edge", "profile", ..
  std::string name;                // full name; of an edge "A causes B"
  std::vector<std::string> lines;  // of the change: "- old", "+ new"
  std::string note;                // "through list xid_hw"
};

/// Both compiled with one symbol table.
std::vector<PackChange> pack_changes(const compiler::Compilation& before,
                                     const compiler::Compilation& after);

}  // namespace reflex::app
