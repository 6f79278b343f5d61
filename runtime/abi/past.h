// Past: what is known of a node's earlier faults, and the law that makes a hazard of it
// (attribution.md section 3).
//
// Plain data. The facts are kept by runtime/adapt/node_history, the law is the default below or a
// model's, and runtime/attribution/past turns both into factors on priors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/plan_ids.h"

namespace reflex::abi {

/// How long ago the last fault was (7 and 30 days), and whether the node was repaired since.
enum class AfterFault : uint8_t {
  kUnrepairedWeek,
  kUnrepairedMonth,
  kRepairedWeek,
  kRepairedMonth,
};
inline constexpr size_t kAfterFault = 4;
/// As model files name them.
inline constexpr std::array<const char*, kAfterFault> kAfterFaultNames{
    "unrepaired_week", "unrepaired_month", "repaired_week", "repaired_month"};

struct HistoryLaw {
  /// [AfterFault] how much likelier than that of others the node's next fault is.
  /// Source: methods.md 6.1(3), after repairs: 4.8 from day 1 to 7, 2.1 to day 30. Its 60 of the
  /// first day is failed restarts of the same job, which are one incident here.
  /// Why 13.7 and 4.7: the excess of the repaired ones, without the 70 % that a repair takes away
  /// (node_history.h, kept_after_repair).
  std::array<double, kAfterFault> again{13.7, 4.7, 4.8, 2.1};
  /// Share of what recurs that is the same cause. Why .6: half and more in the (synthetic)
  /// development sets; no published figure is known.
  double same_cause = 0.6;
  /// Exponent of Past::usual: 0 = a node's older faults say nothing.
  double usual = 1;
};

/// A node without history: all at their defaults, hazard 1.
struct Past {
  /// Gamma-Poisson: its expected faults against those of a node of its class without any.
  double usual = 1;
  std::array<double, kAfterFault> last{};  // chance that its last fault is such; sum <= 1
  struct Cause {
    CauseId cause = 0;
    double own = 0;    // share among the node's faults
    double fleet = 1;  // share among all faults of the fleet
  };
  std::vector<Cause> causes;  // by id
  std::string origin;         // "2 confirmed faults in 9 days, repaired 2 days ago"
};

}  // namespace reflex::abi
