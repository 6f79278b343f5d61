// How much a node's earlier faults say of its next one, from labelled incidents.
//
// Which node of a job failed, given the histories of all of them: a conditional logit with the
// author's law as prior. The histories are those that the engine had at the time, with its own
// mistakes in them, so what was fitted holds for what it will know. Labels of an incident are held
// only against what was known before it. Deterministic.
#pragma once

#include "runtime/abi/past.h"
#include "runtime/learn/recorded_input.h"

namespace reflex::learn {

/// Uses the incidents before `until_ns`; any order.
abi::HistoryLaw fit_history(const abi::CompiledPack& pack, const RecordedInputs& inputs,
                            int64_t until_ns);

}  // namespace reflex::learn
