// Decision levels: from which probability on a node is named, by hardware class.
//
// The level maximises node-micro F1 on predictions for incidents that the numbers were not fitted
// on. A class gets its own, shrunk to the fleet's by its number of incidents. Of the levels
// within a standard error of the best the highest is taken: as many right, fewer healthy nodes
// evicted.
#pragma once

#include <vector>

#include "runtime/abi/model.h"
#include "runtime/abi/plan_ids.h"

namespace reflex::learn {

/// One node of one incident, with what was predicted and what is true.
struct Prediction {
  abi::ClassId hw_class = 0;
  double p = 0;
  bool culprit = false;
};

struct Levels {
  double fleet = 0;
  std::vector<double> by_class;  // [ClassId]; 0: too few, the fleet's
  double f1_before = 0;          // at `before`
  double f1_after = 0;
  size_t wrong_before = 0;  // healthy nodes that are named
  size_t wrong_after = 0;
};

/// `missed`: culprits that were no candidate at all (false negatives at any level).
/// `before`: the level in force without learning.
Levels fit_levels(const std::vector<Prediction>& predictions, size_t missed, size_t classes,
                  double before);

}  // namespace reflex::learn
