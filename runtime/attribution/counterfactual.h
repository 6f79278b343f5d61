// Counterfactual: the smallest sets of fired contributions without which the answer changes.
//
// The contributions are those of the top hypothesis; a set is tried by leaving its evidence out of
// the input and ranking again, so nothing is estimated. Exact for sets of 1, 2 and 3 as long as
// the budget lasts, else a prefix by weight.
#pragma once

#include <vector>

#include "runtime/attribution/ranking.h"

namespace reflex::attribution {

std::vector<abi::Counterfactual> counterfactuals(const CauseGraph& graph,
                                                 const EvidenceField& field, Scorer& scorer,
                                                 const Ranking& ranking);

}  // namespace reflex::attribution
