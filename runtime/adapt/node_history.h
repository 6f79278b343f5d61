// NodeHistory: what a node's own past says of its next failure (attribution.md section 3).
//
// In: confirmed verdicts and operators' feedback (confirm), ends of incidents with and without an
// explanation (blame), replaced parts. Out: a factor on the prior of every fault of the node, and
// one for each fault that it has had before, with the reason in words.
// Law: Gamma-Poisson over exponentially forgotten faults against what its class shows, times a
// piecewise factor for the days after the last fault or repair (recurrence). Bounded.
// Point in time: hazard() looks only at what is older than `at_ns`, so that it does not matter how
// far ahead records were read. confirm() and blame() come in growing event time.
// Memory: kEntriesMax entries a node. Not for several threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/load_names.h"

namespace reflex::adapt {

struct HazardOptions {
  int64_t half_life_ns = 30 * kNsPerDay;  // of a cause whose pack says nothing
  // How much likelier a failure is after the last fault or repair, by days.
  // Source: methods.md 6.1(3): 4.8 from day 1 to 7, 2.1 to day 30, 1 later. Its 60 of the first
  // day is failed restarts of the same job, which are one incident here: the second step is used.
  double first_days = 7;
  double first_factor = 4.8;
  double later_days = 30;
  double later_factor = 2.1;
  // What a fault from before a repair still counts. Why: a tenth to a third of repairs miss.
  double kept_after_repair = 0.3;
  double kept_after_replacement = 0.5;  // one part of several is new
  // Source: methods.md 6.1(2): shape .93 of faults per node.
  double shape = 0.93;
  // Share of repeats that are the same cause. Why .6: 55 to 65 % in the (synthetic)
  // development sets; no published figure is known.
  double same_cause = 0.6;
  double factor_min = 0.2;
  double factor_max = 50;
};

struct Hazard {
  double factor = 1;
  std::string origin;  // "2 confirmed faults in 9 days, repaired 2 days ago"; "" = no history
  std::vector<std::pair<abi::CauseId, double>> causes;  // that it has had, by id, in place of factor
};

class NodeHistory {
 public:
  NodeHistory(std::shared_ptr<const abi::CompiledPack> pack, const HazardOptions& options);

  /// A node of a class is in service; again when its class changes.
  void see_node(SymbolId node, abi::ClassId hw_class);
  /// `cause` kNone32: a fault of unknown kind. `weight` in (0, 1]: how sure.
  void confirm(SymbolId node, abi::CauseId cause, int64_t at_ns, double weight = 1);
  /// A job of `nodes` ended in an incident. Unexplained: each node gets its share of the blame;
  /// always: what it could expect of such an incident is taken off.
  void blame(std::span<const SymbolId> nodes, bool unexplained, int64_t at_ns);
  /// One part of the node is new (gpu.replaced).
  void part_replaced(SymbolId node, int64_t at_ns);

  /// `repaired_ns`: the last repair at or before `at_ns`, or kNoTimeNs.
  [[nodiscard]] Hazard hazard(SymbolId node, int64_t repaired_ns, int64_t at_ns) const;

  void save(StateWriter& writer) const;
  /// Faults whose cause is gone stay, as faults of an unknown kind. `class_of` tells the class of a
  /// node when the pack set has changed.
  void load(StateReader& reader, const abi::LoadNames& names,
            const std::function<abi::ClassId(SymbolId)>& class_of);

 private:
  struct Entry {
    int64_t ts_ns = 0;
    abi::CauseId cause = abi::kNone32;
    double weight = 0;
    bool blame = false;
    int64_t replaced_ns = INT64_MAX;  // when a part was replaced after it
  };
  struct Node {
    abi::ClassId hw_class = 0;
    std::deque<Entry> entries;  // by time
  };
  /// A sum that fades.
  struct Fading {
    double value = 0;
    int64_t ts_ns = kNoTimeNs;
    void add(double x, int64_t at_ns, int64_t half_life_ns);
    [[nodiscard]] double at(int64_t at_ns, int64_t half_life_ns) const;
    void save(StateWriter& writer) const;
    void load(StateReader& reader);
  };
  static void save(StateWriter& writer, const Entry& entry);
  [[nodiscard]] static Entry load_entry(StateReader& reader, const abi::LoadNames& names);

  void add(SymbolId node, const Entry& entry);
  [[nodiscard]] int64_t half_life(abi::CauseId cause) const;
  [[nodiscard]] double expected(abi::ClassId hw_class, int64_t at_ns) const;
  [[nodiscard]] double share(abi::CauseId cause, int64_t at_ns) const;
  [[nodiscard]] double recurrence(int64_t since_ns, int64_t at_ns) const;
  [[nodiscard]] std::string words(const Node& node, int64_t repaired_ns, int64_t at_ns) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  HazardOptions options_;
  std::unordered_map<SymbolId, Node> nodes_;
  std::vector<double> class_nodes_;  // [ClassId]
  std::vector<Fading> by_class_;     // [ClassId] faults and blame
  std::vector<Fading> by_cause_;     // [CauseId], last: unknown
  Fading incidents_;
  Fading unexplained_;
};

}  // namespace reflex::adapt
