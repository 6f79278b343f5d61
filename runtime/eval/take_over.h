// Take-over: the state of an engine that runs goes to the engine of the next set as it is.
//
// For sets whose ids mean the same (abi/same_ids.h), so that memory can change hands. A signal or
// feature *stays* when it is what it was, or when what has changed is asked of its states later
// anyway (another window or limit): nobody looks at them now. Conditions stay, too, and those that
// changed are looked at again. What else was kept and has changed (a count that keeps more times, an
// absence of another length) is written and read as a saved state of it alone would be, what begins anew is left out.
// So the result is that of save_engine() and load_engine(), and the cost that of what has changed,
// not of the state. What stays is decided when the new engine is made (the old one may run), since
// its arena then gives what stays the places that it has.
#pragma once

#include <memory>
#include <vector>

#include "runtime/eval/engine_state.h"

namespace reflex::eval {

/// What of an engine stays in another one.
struct Succession {
  StateMatch match;
  std::vector<uint8_t> signals;     // [SignalId] 1: stays
  std::vector<uint8_t> conditions;  // [SignalId] 1: stays, and is looked at again: it has changed
  std::vector<uint8_t> features;    // [FeatureId]
  std::vector<uint8_t> peers;       // [query]
};
/// `near_misses`: as in the options of both engines: then timers run to the end of each match.
Succession find_succession(const Program& before, const Program& after, bool near_misses);

/// Everything but what SignalEngine has of its own. `old` and `engine` as their shards agreed
/// (Shard::can_take_over); `engine` has processed nothing yet.
void take_over_engine(EngineParts& engine, EngineParts& old, const Succession& succession);

}  // namespace reflex::eval
