// GroupTable: one edge summed over a group of nodes, as a step function of the hypothesis' onset.
//
// Idea: a member's term is "fired" while the onset t lies in [onset - lag_hi, last - lag_lo] of one
// of its spans, else silent. Sorted ends of these intervals with running sums answer any t in
// O(log n). Running sums are exact because nats are multiples of 2^-32 (scorer.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/attribution/scorer.h"

namespace reflex::attribution {

struct Scorer::GroupTable {
  struct Step {
    int64_t t_ns;
    double nats;
    double lost;
    int32_t fired;
    int32_t fired_observed;
    uint32_t class_at;  // index into classes
  };
  std::vector<Step> deltas;
  std::vector<abi::ClassId> classes;        // of the members
  std::vector<uint32_t> observed_of_class;  // members whose source reports
  uint32_t observed_total = 0;
  uint32_t member_total = 0;
  int64_t earliest_onset_ns = kNoTimeNs;

  // Running sums: state after all deltas with t <= times[i].
  std::vector<int64_t> times;
  struct Sum {
    double nats = 0;
    double lost = 0;
    int32_t fired = 0;
    int32_t fired_observed = 0;
  };
  std::vector<Sum> sums;
  std::vector<int32_t> fired_observed_of_class;  // [time * classes + class]

  struct Cached {
    int64_t t_ns = kNoTimeNs;
    TermValue value;
  };
  std::array<Cached, 8> cache;

  uint32_t class_index(abi::ClassId c) {
    const auto it = std::find(classes.begin(), classes.end(), c);
    if (it != classes.end()) return static_cast<uint32_t>(it - classes.begin());
    classes.push_back(c);
    observed_of_class.push_back(0);
    return static_cast<uint32_t>(classes.size() - 1);
  }

  void finish() {
    std::sort(deltas.begin(), deltas.end(),
              [](const Step& a, const Step& b) { return a.t_ns < b.t_ns; });
    Sum sum;
    std::vector<int32_t> by_class(classes.size(), 0);
    for (size_t i = 0; i < deltas.size(); ++i) {
      const Step& d = deltas[i];
      sum.nats += d.nats;
      sum.lost += d.lost;
      sum.fired += d.fired;
      sum.fired_observed += d.fired_observed;
      by_class[d.class_at] += d.fired_observed;
      if (i + 1 < deltas.size() && deltas[i + 1].t_ns == d.t_ns) continue;
      times.push_back(d.t_ns);
      sums.push_back(sum);
      fired_observed_of_class.insert(fired_observed_of_class.end(), by_class.begin(),
                                     by_class.end());
    }
    deltas.clear();
  }
};

}  // namespace reflex::attribution
