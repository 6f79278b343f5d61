// Learning: dossiers of labelled incidents -> a Model, with a record of what was tried.
//
// Time-ordered folds: fitted on what came before, measured on what came next, never the other way.
// Each layer (strengths and priors; calibration; levels) is kept only when it improves the
// held-out log-loss (levels: F1), so that a model from few incidents is the author's numbers with
// few changes. Deterministic. No files and no engine here.
#pragma once

#include <string>
#include <vector>

#include "runtime/abi/model.h"
#include "runtime/base/result.h"
#include "runtime/learn/calibration.h"
#include "runtime/learn/strengths.h"
#include "runtime/learn/training_set.h"

namespace reflex::learn {

struct FitOptions {
  StrengthOptions strengths;
  unsigned threads = 2;
  double suspect = 0.5;  // the level in force, for the comparison
  size_t incidents_min = 20;
};

/// Held-out log-loss in nats for each incident, by layer.
struct HeldOut {
  size_t incidents = 0;
  double author = 0;
  double strengths = 0;
  double calibrated = 0;  // at the best strength of the pull
  double l2 = 0;          // that strength
};

struct FitReport {
  size_t incidents = 0;
  size_t unreachable = 0;  // labels that no hypothesis can meet
  HeldOut held_out;
  bool strengths_kept = false;
  bool calibration_kept = false;
  bool levels_kept = false;
  double level_f1_before = 0;  // on held-out predictions
  double level_f1_after = 0;
  std::vector<std::string> changes;  // "gpu_lost -> xid_79 on self: p 0.900 -> 0.953 (212 cases)"
};

struct Fit {
  abi::Model model;
  FitReport report;
};

Result<Fit> fit_model(const TrainingSet& set, const FitOptions& options);

/// The report as text lines for people.
std::string to_text(const FitReport& report);

}  // namespace reflex::learn
