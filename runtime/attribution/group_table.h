// GroupTable: one edge over a group of nodes, as a step function of the hypothesis' onset.
//
// Idea: a member is "fired" while the onset t lies in [onset - lag_hi, last - lag_lo] of one of its
// spans, else silent. Sorted ends of these intervals with running sums answer any t in O(log n).
// The sums are exact because every addend is a multiple of 2^-32 nats (numbers.h): by level of the
// hidden strength (latent.h), and plainly for edges with a weight.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/attribution/scorer.h"

namespace reflex::attribution {

/// Everything that a hypothesis at onset t sees of a group, silent members included.
struct Scorer::GroupState {
  Levels levels{};
  double nats = 0;
  double log_ratio = 0;
  double silent_ratio = 0;
  uint32_t fired = 0;
  uint32_t members = 0;
};

struct Scorer::GroupTable {
  struct Step {
    int64_t t_ns;
    double ratio;
    double nats;
    int8_t fired;  // +1: a stretch begins, -1: it ends
    int8_t fired_observed;
    uint16_t class_at;  // index into classes
  };
  std::vector<Step> deltas;
  std::vector<abi::ClassId> classes;        // of the members
  std::vector<uint32_t> observed_of_class;  // members whose source reports
  uint32_t observed_total = 0;
  uint32_t member_total = 0;
  int64_t earliest_onset_ns = kNoTimeNs;
  // Running sums: state after all deltas with t <= times[i].
  struct Sum {
    double nats = 0;
    double log_ratio = 0;
    int32_t fired = 0;
    int32_t fired_observed = 0;
  };
  std::vector<int64_t> times;
  std::vector<Sum> sums;
  std::vector<Levels> levels;  // parallel to times; empty: all fired members have ratio `common`
  Levels common{};             // level_nats of the ratio that all share
  std::vector<int32_t> fired_observed_of_class;  // [time * classes + class]

  struct CachedState {
    int64_t t_ns = kNoTimeNs;
    GroupState state;
  };
  std::array<CachedState, 8> states;
  static size_t slot(int64_t t_ns, size_t bits) {
    return static_cast<uint64_t>(t_ns) * 0x9E3779B97F4A7C15ull >> (64 - bits);
  }

  uint16_t class_index(abi::ClassId c) {
    if (!classes.empty() && classes.back() == c) return static_cast<uint16_t>(classes.size() - 1);
    const auto it = std::find(classes.begin(), classes.end(), c);
    if (it != classes.end()) return static_cast<uint16_t>(it - classes.begin());
    classes.push_back(c);
    observed_of_class.push_back(0);
    return static_cast<uint16_t>(classes.size() - 1);
  }

  void finish() {
    const auto earlier = [](const Step& a, const Step& b) { return a.t_ns < b.t_ns; };
    std::sort(deltas.begin(), deltas.end(), earlier);
    const bool alike = std::all_of(deltas.begin(), deltas.end(),
                                   [&](const Step& d) { return d.ratio == deltas.front().ratio; });
    if (!deltas.empty()) common = level_nats(deltas.front().ratio);
    Sum sum;
    Levels at{};
    Levels last = common;
    double last_ratio = deltas.empty() ? 1 : deltas.front().ratio;
    double last_log = round_nats(std::log(last_ratio));
    times.reserve(deltas.size());
    sums.reserve(deltas.size());
    std::vector<int32_t> by_class(classes.size(), 0);
    for (size_t i = 0; i < deltas.size(); ++i) {
      const Step& d = deltas[i];
      sum.nats += d.fired * d.nats;
      if (d.ratio != last_ratio) {
        last = level_nats(d.ratio);
        last_log = round_nats(std::log(d.ratio));
        last_ratio = d.ratio;
      }
      sum.log_ratio += d.fired * last_log;
      sum.fired += d.fired;
      sum.fired_observed += d.fired * d.fired_observed;
      by_class[d.class_at] += d.fired * d.fired_observed;
      if (!alike) at += d.fired * last;
      if (i + 1 < deltas.size() && deltas[i + 1].t_ns == d.t_ns) continue;
      times.push_back(d.t_ns);
      sums.push_back(sum);
      if (!alike) levels.push_back(at);
      fired_observed_of_class.insert(fired_observed_of_class.end(), by_class.begin(),
                                     by_class.end());
    }
    deltas.clear();
    deltas.shrink_to_fit();
  }
};

/// One edge towards a group: its strength on top of the table that edges of the same window share.
struct Scorer::EdgeGroup {
  GroupTable* table = nullptr;
  double p = 0;  // mean strength of the observed members
  const Levels* weights = nullptr;
  // The finished value, by onset and by what the own node shows, which is taken out of it.
  struct CachedValue {
    int64_t t_ns = kNoTimeNs;
    double own_ratio = 0;
    double claimed_nats = 0;
    uint32_t own_kind = 0;
    TermValue value;
  };
  std::array<CachedValue, 16> values;
};

/// Weights and look-ups that depend on the pack, the numbers and the time alone.
struct Scorer::Plain {
  std::vector<uint32_t> window_of;   // [edge] the first edge with its signal and window
  std::vector<uint16_t> class_slot;  // [hw_class] -> dense index of those in use
  size_t class_count = 1;
  // Terms of causes whose edges go to the own node or to no node; empty until asked for.
  std::vector<std::vector<Term>> terms;  // [cause]
  // Weights without parents and open windows, which is nearly all of them: NaN until asked.
  std::vector<Weight> fired;  // [edge * classes + class]
  std::vector<Weight> silent;
  // [cause * classes] sum of `silent` over Cause::habits; NaN: not asked
  std::vector<double> habits;
  // Of a node that shows nothing: 1 - p + p R of each wear edge of a fault, and their product.
  // NaN or not there: not asked.
  struct Wear {
    std::vector<double> factors;
    double product = std::nan("");
  };
  std::vector<Wear> wear;  // [fault that wears * classes]
  // The same for windows that are still open, which ask for few onsets again and again.
  struct OpenSilent {
    size_t at = SIZE_MAX;
    int64_t t_ns = kNoTimeNs;
    Weight weight;
  };
  std::array<OpenSilent, 256> open_silent;
};

/// What the nodes of a calm cause have in common: those of a class that show nothing weigh alike.
struct Scorer::Calm {
  struct Own {  // a term (Plain::terms) on the own node
    uint32_t term = 0;
    bool dated = false;  // its silence depends on the onset
  };
  std::vector<Own> own;
  int64_t closed_ns = 0;  // for onsets up to this one it does not: all windows have passed
  // Terms on entities without a node: their spans in turn, and where each list of spans ends.
  struct Entity {
    uint32_t term = 0;
    uint32_t first = 0, last = 0;  // of pieces
    bool observed = false;
  };
  std::vector<Entity> entities;
  std::vector<Piece> pieces;
  std::vector<int64_t> onsets;  // the earliest of each entity term
  struct OfClass {
    double fixed = std::nan("");   // silence of what has no date; NaN: not asked
    double closed = std::nan("");  // and of what has one, once its windows have passed
    struct At {
      int64_t t_ns = kNoTimeNs;
      double nats = 0;
    };
    std::array<At, 8> at;
  };
  std::vector<OfClass> classes;  // [class slot]
};

}  // namespace reflex::attribution
