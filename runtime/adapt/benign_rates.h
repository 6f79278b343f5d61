// BenignRates: how often each signal fires where nothing is wrong, per node, cohort and class
// (attribution.md sections 2, 5, 6).
//
// What is counted: firings and episodes per (signal, node), as exponentially forgotten sums, with the
// node-hours behind them. A firing counts only after `delay` (what came shortly before a failure must
// not become the habit it is held against); forget() drops what still waits, of a node that turned
// out to be faulty (contamination guard).
// Backing off: node -> cohort -> class -> fleet, each level a Gamma prior worth some node-hours of
// the next. A cohort is (hardware class, last value of a CohortPlan event of the node): a rollout.
// Regime change: when a cohort as a whole fires at least twice (or half) as often as its habit for a
// day, through the day and on as many nodes as that rate makes one expect, its habit and those of its
// nodes are scaled at once and the shift is remembered. One node alone moves nothing.
// Signals of other entities than nodes have no rates: benign() says node_hours = 0. A signal that came
// with a later pack set (load()) is measured from then on: hours before it say nothing of it.
// Time: event time. advance() must be called with growing times; counts take effect at whole epochs
// (kEpochNs), so that results do not depend on how calls are batched.
// Cost: add() O(1); benign() O(1); advance() O(what became due + cohorts x signals) per epoch.
// Memory: one entry per (signal, node) that ever fired, plus what waits: of a node and signal at most
// kEachMax firings of an hour one by one, then one sum a minute, and one sum for the hour when it is over
// (a counter that fires with each sample would cost 48 bytes a sample for three days).
// Not for several threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/same_ids.h"
#include "runtime/abi/table.h"
#include "runtime/adapt/shift.h"
#include "runtime/base/time.h"

namespace reflex::adapt {

inline constexpr int64_t kEpochNs = kNsPerHour;

struct RateOptions {
  // Why: a month of habit, of which the last two weeks weigh more than half.
  double node_half_life_hours = 15 * 24;
  // Why: a class has many nodes, so it can afford to follow the season.
  double class_half_life_hours = 5 * 24;
  // What is counted is so old: the longest look-back of graded signals.
  int64_t delay_ns = 72 * kNsPerHour;
  bool by_class = true;  // false: one rate for all (ablation `class-thresholds`)
  bool by_node = true;
};

class BenignRates {
 public:
  BenignRates(std::shared_ptr<const abi::CompiledPack> pack, const RateOptions& options);

  /// A node exists from `ts_ns` on (its first labels or its first event).
  void see_node(SymbolId node, abi::ClassId hw_class, int64_t ts_ns);
  [[nodiscard]] bool knows(SymbolId node) const { return find(node) != nullptr; }
  /// The node's class changed, or a rollout reached it: its own habit begins anew.
  void set_cohort(SymbolId node, SymbolId value, int64_t ts_ns);
  /// Firings in merged order; only kStart counts.
  void add(const abi::Firing& firing);
  /// What waits of a node does not count (it was faulty, or its part was replaced).
  void forget_waiting(SymbolId node);
  /// What waits of a node from a time on does not count (it became part of an incident). The hours
  /// stay: minutes are nothing beside them. What is summed up goes when its first firing does.
  void forget_waiting(SymbolId node, int64_t from_ns);
  /// Time has come to `now_ns`.
  void advance(int64_t now_ns);

  [[nodiscard]] abi::BenignRate benign(abi::SignalId signal, SymbolId node) const;
  /// Counts up whenever a value may have changed.
  [[nodiscard]] uint64_t version() const { return version_; }
  [[nodiscard]] int64_t valid_from_ns() const { return epoch_ * kEpochNs; }
  /// Cohorts that moved as a whole, by time.
  [[nodiscard]] const std::vector<Shift>& shifts() const { return shifts_; }
  /// "class hw.h100, driver 570.86": for explanations.
  [[nodiscard]] std::string cohort_text(SymbolId node) const;

  void save(StateWriter& writer) const;
  /// Signals by name, but for those that names.is_reset(); `class_of` as in NodeHistory.
  void load(StateReader& reader, const abi::LoadNames& names,
            const std::function<abi::ClassId(SymbolId)>& class_of);
  /// The same, of a set whose ids mean the same; classes are what they were. Cost: O(1), unless
  /// signals begin anew, whose counts are looked for.
  void take_over(BenignRates& old, const abi::SetChange& change);

 private:
  struct Sums {
    double firings = 0;
    double onsets = 0;
    double active_hours = 0;
  };
  static void add_sums(Sums& to, const Sums& more);
  /// What a cohort did today, without delay.
  struct Day {
    std::array<double, 4> quarters{};  // onsets
    double firings = 0;
    uint32_t nodes = 0;  // that fired
  };
  struct Cohort {
    abi::ClassId hw_class = 0;
    SymbolId value = kNoSymbol;
    uint32_t nodes = 0;
    double node_hours = 0;   // forgotten at class_half_life
    std::vector<Sums> sums;  // [signal]
    std::deque<uint32_t> waiting;  // nodes of each epoch whose counts still wait
    std::vector<Day> days;         // [signal] of cohorts only
    int64_t day_epoch = INT64_MIN;  // when the days began
  };
  struct Node {
    uint32_t cohort = 0;
    abi::ClassId hw_class = 0;
    SymbolId value = kNoSymbol;
    int64_t since_epoch = 0;  // its habit is measured from here
    uint32_t generation = 0;  // waiting counts of an older one are void
    struct Own {
      abi::SignalId signal = 0;
      Sums sums;
      int64_t epoch = 0;           // sums are as of this epoch
      int64_t last_ns = kNoTimeNs;  // last firing, waiting ones included
      int64_t day = INT64_MIN;      // the day of the last firing
      // Of what waits, in the newest hour that it fired in:
      int64_t waiting_epoch = INT64_MIN;
      uint32_t waiting = 0;  // entries
      uint32_t newest = 0;   // of them, number + 1
    };
    std::vector<abi::SignalId> signals;  // of `own`, in its order: looked through for every firing
    std::vector<Own> own;
    [[nodiscard]] size_t find(abi::SignalId signal) const {
      return static_cast<size_t>(std::find(signals.begin(), signals.end(), signal) -
                                 signals.begin());
    }
  };
  struct Waiting {
    SymbolId node = 0;
    abi::SignalId signal = 0;
    uint32_t generation = 0;
    uint32_t before = 0;  // the node's one before it in the epoch, + 1; of those that are indexed
    int64_t ts_ns = 0;
    Sums sums;
  };
  /// What was counted in one hour, in the order of firings. forget_waiting() finds a node's part by a
  /// chain through it: an hour of a large cluster is millions, an incident's nodes are hundreds.
  struct Epoch {
    std::vector<Waiting> all;
    std::unordered_map<SymbolId, uint32_t> newest;  // number + 1; only looked up
    size_t indexed = 0;
    bool in_order = true;  // each node's times grow
    void index();
    void compact();
  };
  // Why: signals that mean something fire less often; those keep every time they fired at.
  static constexpr uint32_t kEachMax = 8;
  // Why: no node has had as many lives.
  static constexpr uint32_t kForgotten = UINT32_MAX;

  void save(StateWriter& writer, const Cohort& cohort) const;
  void load(StateReader& reader, const abi::LoadNames& names, Cohort& cohort) const;
  void forget_signals(const std::vector<uint8_t>& signals);
  void load_cohorts(StateReader& reader, const abi::LoadNames& names);
  SymbolId load_node(StateReader& reader, const abi::LoadNames& names);
  std::vector<std::vector<uint32_t>> load_waiting(StateReader& reader, const abi::LoadNames& names);
  void load_times(StateReader& reader, const std::vector<std::vector<uint32_t>>& numbers);
  void rebind(const std::vector<SymbolId>& by_name,
              const std::function<abi::ClassId(SymbolId)>& class_of);
  Node& node_of(SymbolId node);
  [[nodiscard]] const Node* find(SymbolId node) const;
  uint32_t cohort_of(abi::ClassId hw_class, SymbolId value);
  void move(Node& node, uint32_t cohort, int64_t ts_ns);
  void run_epoch();
  void note_day(Node& node, Node::Own& own, const Waiting& w, int64_t epoch);
  void end_day(uint32_t cohort);
  void scale(uint32_t cohort, abi::SignalId signal, double onsets, double firings);
  void apply(const Waiting& w);
  void wait(Node::Own& own, int64_t epoch, const Waiting& w);
  static void note_waiting(Node::Own& own, int64_t epoch, size_t number);
  void forget(int64_t epoch, SymbolId node, int64_t from_ns);
  static Node::Own& own_of(Node& node, abi::SignalId signal);
  [[nodiscard]] double node_hours(const Node& node, abi::SignalId signal) const;
  /// Node-hours of a level that a signal was there for.
  [[nodiscard]] double hours_of(const Cohort& level, abi::SignalId signal) const;
  [[nodiscard]] static double fade(double half_life_hours, double hours);

  std::shared_ptr<const abi::CompiledPack> pack_;
  RateOptions options_;
  std::vector<uint8_t> by_node_key_;  // [signal]
  std::vector<int64_t> signal_since_;  // [signal] epoch; INT64_MIN: from the beginning
  std::vector<std::unique_ptr<Node>> nodes_;  // [SymbolId]
  std::vector<Cohort> cohorts_;
  std::map<std::pair<abi::ClassId, SymbolId>, uint32_t> cohort_ids_;
  std::vector<Cohort> classes_;  // [ClassId]: all cohorts together
  Cohort fleet_;
  std::deque<Epoch> waiting_;  // front: the oldest
  int64_t first_waiting_epoch_ = 0;
  int64_t epoch_ = INT64_MIN;
  uint64_t version_ = 0;
  std::vector<Shift> shifts_;
};

}  // namespace reflex::adapt
