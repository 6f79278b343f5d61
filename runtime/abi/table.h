// Versioned run-time values: thresholds that follow the hardware, and benign rates of signals.
//
// A TableSnapshot is immutable. The engine makes a new one at fixed event times (runtime/adapt)
// and hands it to evaluation (Op::kTable reads a row) and to attribution (benign rates). A verdict
// records `version`, so that a replay is exact. Times are event time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/evaluator.h"
#include "runtime/abi/plan.h"

namespace reflex::abi {

/// Where a value of a table comes from, for explanations.
struct TableOrigin {
  enum class From : uint8_t {
    kStatic,  // the profile's default: too few samples
    kNode,    // back-off, from the most specific that has samples
    kClass,
    kModel,  // a parent profile
    kFleet,
  };
  From from = From::kStatic;
  double quantile = 0;
  uint64_t samples = 0;
  bool from_tail = false;          // beyond the sketch: generalized-Pareto tail
  bool clamped = false;            // floor or ceiling decided
  int64_t shifted_ns = kNoTimeNs;  // when the class last moved as a whole (regime change)
};

/// How often a signal fires where nothing is wrong.
struct BenignRate {
  double onsets_per_hour = 0;   // episodes that begin, per entity-hour of one node
  double mean_hours = 0;        // how long one lasts
  double firings_per_hour = 0;  // refirings included: the event rate of a `graded` count
  /// Gamma shape of the rate that is left uncertain after this node's own exposure: the benign
  /// count in a window is negative binomial with this shape. 0 = no dispersion known (Poisson).
  double shape = 0;
  double node_hours = 0;  // exposure behind it; 0 = nothing measured
  TableOrigin::From from = TableOrigin::From::kStatic;
};

class TableSnapshot {
 public:
  virtual ~TableSnapshot() = default;
  /// 0 is the table of the authors' defaults; counts up by one with each change.
  [[nodiscard]] virtual uint64_t version() const = 0;
  [[nodiscard]] virtual int64_t valid_from_ns() const = 0;
  /// The adaptive values of a hardware class, [AdaptiveId]; what EvalContext::table points to.
  [[nodiscard]] virtual const Value* row(ClassId hw_class) const = 0;
  /// The row of one node: its own when it has enough samples, else that of its class.
  [[nodiscard]] virtual const Value* row_of_node(ClassId hw_class, SymbolId node) const {
    (void)node;
    return row(hw_class);
  }
  [[nodiscard]] virtual TableOrigin origin(AdaptiveId slot, ClassId hw_class,
                                           SymbolId node) const = 0;
  /// The benign rate of a signal on one node: its own habit, shrunk towards its class.
  [[nodiscard]] virtual BenignRate benign(SignalId signal, ClassId hw_class,
                                          SymbolId node) const = 0;
};

}  // namespace reflex::abi
