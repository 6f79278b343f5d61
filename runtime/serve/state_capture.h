// The state of a running lane as bytes, with the stream standing still as briefly as can be.
//
// How: between two steps the lane's thread forks; the child writes the state from its copy of the
// memory (copy on write) into memory that both share, the parent goes on at once. A small state is
// written in place: that is quicker than a fork. The child runs only Lane::save() and leaves with
// _exit: no thread of ours holds the lane's locks (SymbolTable::still() sees to that of the names).
// Sanitized builds never fork.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"
#include "runtime/serve/lane_runner.h"

namespace reflex::serve {

struct CapturedState {
  std::string set_sha256, set_key;
  std::vector<abi::PackIdentity> packs;
  uint64_t position = 0;
  std::string bytes;
  double pause_us = 0;  // of the stream
};

/// Blocks until the state is there; seconds for a large one.
Result<CapturedState> capture_state(LaneRunner& runner);

}  // namespace reflex::serve
