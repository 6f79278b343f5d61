// Model: what `reflex learn` puts in place of the author's numbers (attribution.md section 7).
//
// Plain data by the ids of one pack set; read from and written to a model file (JSON, names in
// place of ids) by runtime/learn. Without a model every number is the author's. NaN in a vector
// means "the author's number stands"; an empty vector means that for all of it.
// A model belongs to one pack set: `pack_sha256` must equal CompiledPack::set_sha256.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/past.h"
#include "runtime/abi/plan.h"

namespace reflex::abi {

struct DecisionLevels {
  double confirm = 0;  // 0: that of the incident's plan
  double suspect = 0;
};

struct Model {
  std::string sha256;       // of the model file
  std::string pack_sha256;  // CompiledPack::set_sha256
  uint64_t incidents = 0;   // labelled incidents behind it
  int64_t from_ns = 0;      // their time
  int64_t to_ns = 0;

  std::vector<double> edge_p;                          // [edge] strength
  std::vector<double> leak_per_hour;                   // [SignalId] when nothing is measured
  std::vector<double> cause_prior;                     // [CauseId] in the unit of the CausePlan
  std::vector<std::vector<double>> cause_class_scale;  // [CauseId][ClassId]
  std::vector<double> signal_multiplier;               // [SignalId] >= 0; calibration layer
  double ailing_multiplier = 1;                        // of "ailing for another reason"; >= 0
  double history_multiplier = 1;                       // of the log of a node's hazard; >= 0
  HistoryLaw history;                                  // the default where nothing was learned
  double agreement_multiplier = 1;                     // of "same gpu", "same nic"; >= 0
  double temperature = 1;                              // log-odds are divided by it
  double none_shift_nats = 0;                          // added to the odds of every culprit
  std::vector<double> graded_extra;                    // [SignalId] of graded counts
  std::vector<std::array<double, kLeadBins>> graded_profile;  // [SignalId]; sum 0: the author's
  std::vector<double> episode_leak;  // [SignalId] of graded counts; chance on a healthy node
  double co_culprit_odds = 0;        // 0: the default; see attribution/README 10
  double degrading_elsewhere = 0;    // 0: the default; chance that a node ails for another reason
  std::vector<double> synergy_nats;                    // [CompiledPack::synergies]
  DecisionLevels levels;                               // all classes
  std::vector<DecisionLevels> class_levels;            // [ClassId]; 0 = `levels`
};

}  // namespace reflex::abi
