// What a part of the model is worth: answers with it against answers without it, on all incidents
// and on the part's own stratum, where it should matter most.
//
// The same incidents are compared in pairs (paired bootstrap, fixed seed), so the interval is that
// of the difference. A stratum whose incidents have no culprit is judged by the share on which
// nobody was named. Pure and deterministic.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/backtest/metrics.h"

namespace reflex::backtest {

/// A figure with and without the part; the difference is without minus with.
struct Difference {
  size_t incidents = 0;
  bool of_none = false;  // the figure is the share of incidents on which nobody was named, not F1
  double with = 0;
  double without = 0;
  double low = 0;  // 95 % interval of the difference
  double high = 0;
};

/// How much more the truth surprises without the part, in nats: the mean over incidents. Worth of the
/// probabilities, also where the names stay the same.
struct MoreSurprise {
  double mean_nats = 0;
  double low_nats = 0;  // 95 % interval
  double high_nats = 0;
};

struct Worth {
  std::string part;
  std::string stratum;  // in words
  Difference all;
  Difference there;
  MoreSurprise more;
  MoreSurprise more_there;
};

/// When each node was at fault before: of all labels, by time.
class FaultTimes {
 public:
  void add(const learn::Label& label);
  /// Whether the node was at fault within `within_ns` before `at_ns`.
  [[nodiscard]] bool any(const std::string& node, int64_t at_ns, int64_t within_ns) const;

 private:
  std::map<std::string, std::vector<int64_t>> of_node_;
};

/// "" for an unknown part.
std::string stratum_of(const std::string& part);
/// `with` and `without` hold the same incidents in the same order.
Worth worth_of(const std::string& part, const std::vector<Case>& with,
               const std::vector<Case>& without, const FaultTimes& faults);

}  // namespace reflex::backtest
