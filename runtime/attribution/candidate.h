// Candidate: one hypothesis that is weighed, the value of one of its edges, and the onsets it may have.
//
// Plain data; made by hypotheses() (ranking.h), weighed by Scorer.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/attribution/evidence_field.h"

namespace reflex::attribution {

/// One hypothesis other than "none". `alike` > 0: stands for so many further nodes without own
/// evidence, which all have the same weight.
struct Candidate {
  abi::CauseId cause = 0;
  uint32_t row = kNoNode;  // kNoNode: an external cause
  abi::EntityKey entity;   // count may be short of its kind: "some gpu of the node"
  std::vector<uint32_t> alike;
  double prior_nats = 0;
  double log_odds = 0;
  int64_t onset_ns = 0;
  uint32_t id = 0;  // place in hypotheses(): by cause, node and entity
  /// An earlier candidate that weighs the same but for "ailing for another reason"; kNoNode: none.
  uint32_t like = kNoNode;
};

/// The part of a node that a graded signal names; see agreement.cpp.
struct NamedPart {
  uint64_t part = 0;
  double share = 0;  // the chance that the fault made the signal name it
};

/// The onset of a cause that shows `s` as early as the edge allows, nearest to lag 0.
int64_t shifted_onset(const Span& s, const abi::EdgePlan& e);

/// Of the onsets from `first` on, which are those of one edge of one entity: the first and the last.
void keep_own_onsets(std::vector<int64_t>& onsets, size_t first);

/// One edge's weight over the entities that it reaches.
struct TermValue {
  double nats = 0;
  uint32_t members = 0;  // fired or observed
  uint32_t fired = 0;
  uint32_t unobserved = 0;
  double log_ratio = 0;     // mean over the fired members
  double silent_ratio = 0;  // of a silent member
  double background = 0;    // part of nats: what a benign storm takes off (groups)
};

}  // namespace reflex::attribution
