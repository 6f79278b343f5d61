// What graded counts look like before a failure, from labelled culprits: how many extra events,
// when they come, and how often a healthy node shows such an episode.
//
// EM around the current numbers: a culprit's counts belong to an episode with the probability that
// the evidence gives it; what is above the node's benign rate is the extra. Author's values are
// priors. The result changes the ratios of a dossier, so dossiers are made again with it before
// anything else is fitted. Deterministic.
#pragma once

#include "runtime/abi/model.h"
#include "runtime/learn/training_set.h"

namespace reflex::learn {

struct GradedOptions {
  double pseudo_count = 8;            // culprits that the author's shape counts as
  double episode_pseudo_count = 500;  // healthy nodes that the author's leak counts as
};

/// A model that only holds graded_extra, graded_profile and episode_leak; empty vectors when the
/// pack has no graded signal. Uses the first `count` incidents.
abi::Model fit_graded(const TrainingSet& set, size_t count, const GradedOptions& options = {});

}  // namespace reflex::learn
