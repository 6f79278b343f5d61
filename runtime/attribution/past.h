// Past -> hazards: the factors that a node's earlier faults put on its priors (attribution.md 3).
//
// Law: a recent fault gives the law's `again`; what is older counts by the Gamma-Poisson ratio.
// What recurs is the same cause for the most part, else the mix of the fleet. Pure; bounded to
// [0.2, 50] in steps of a quarter octave. Not here: what is remembered (runtime/adapt).
#pragma once

#include "runtime/abi/past.h"
#include "runtime/attribution/attribution.h"

namespace reflex::attribution {

/// On every fault of the node, not yet held to the job's mean and not rounded to steps.
double raw_hazard(const abi::Past& past, const abi::HistoryLaw& law);
/// The same in steps, and for one cause that the node has had before.
double hazard(const abi::Past& past, const abi::HistoryLaw& law);
double hazard(const abi::Past& past, const abi::HistoryLaw& law, const abi::Past::Cause& cause);

/// Fills the hazards of `input` from `input.pasts`.
void apply_history(Input& input, const abi::HistoryLaw& law);

}  // namespace reflex::attribution
