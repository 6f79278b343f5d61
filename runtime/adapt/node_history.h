// NodeHistory: what a node's own past is (attribution.md section 3); what follows from it is
// runtime/attribution/past.
//
// In: verdicts and operators' feedback (confirm), ends of incidents with and without an explanation
// (blame), replaced parts. Out: the facts as abi::Past, with the reason in words.
// Law: exponentially forgotten faults over a Gamma prior, less what repairs and new parts took;
// and what is known of the last fault: a week or a month ago, repaired since or not.
// Point in time: past() looks only at what is older than `at_ns`, so that it does not matter how
// far ahead records were read. confirm() and blame() come in growing event time.
// Memory: kEntriesMax entries a node. Not for several threads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/past.h"

namespace reflex::adapt {

struct HistoryOptions {
  int64_t half_life_ns = 30 * kNsPerDay;  // of a cause whose pack says nothing
  double week_days = 7;                   // abi::AfterFault
  double month_days = 30;
  // What a fault from before a repair still counts. Why: a tenth to a third of repairs miss.
  double kept_after_repair = 0.3;
  double kept_after_replacement = 0.5;  // one part of several is new
  // Source: methods.md 6.1(2): shape .93 of faults per node.
  double shape = 0.93;
};

class NodeHistory {
 public:
  NodeHistory(std::shared_ptr<const abi::CompiledPack> pack, const HistoryOptions& options);

  /// `cause` kNone32: a fault of unknown kind. `weight` in (0, 1]: how sure.
  void confirm(SymbolId node, abi::CauseId cause, int64_t at_ns, double weight = 1);
  /// A job of `nodes` ended in an incident. Unexplained: each node gets its share of the blame;
  /// always: what it could expect of such an incident is taken off.
  void blame(std::span<const SymbolId> nodes, bool unexplained, int64_t at_ns);
  /// One part of the node is new (gpu.replaced).
  void part_replaced(SymbolId node, int64_t at_ns);

  /// `repaired_ns`: the last repair at or before `at_ns`, or kNoTimeNs.
  /// Nothing: the node has no history.
  [[nodiscard]] std::optional<abi::Past> past(SymbolId node, int64_t repaired_ns,
                                              int64_t at_ns) const;

  void save(StateWriter& writer) const;
  /// Faults whose cause is gone stay, as faults of an unknown kind.
  void load(StateReader& reader, const abi::LoadNames& names);
  /// The same, of a set whose ids mean the same.
  void take_over(NodeHistory& old);

 private:
  struct Entry {
    int64_t ts_ns = 0;
    abi::CauseId cause = abi::kNone32;
    double weight = 0;
    bool blame = false;
    int64_t replaced_ns = INT64_MAX;  // when a part was replaced after it
  };
  using Entries = std::deque<Entry>;  // of one node, by time
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

  [[nodiscard]] int64_t half_life(abi::CauseId cause) const;
  [[nodiscard]] double share(abi::CauseId cause, int64_t at_ns) const;
  void add_last(const Entries& entries, int64_t repaired_ns, int64_t at_ns, abi::Past& out) const;
  [[nodiscard]] std::string words(const Entries& entries, int64_t repaired_ns,
                                  int64_t at_ns) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  HistoryOptions options_;
  std::unordered_map<SymbolId, Entries> nodes_;
  std::vector<Fading> by_cause_;  // [CauseId], last: unknown
  Fading incidents_;
  Fading unexplained_;
};

}  // namespace reflex::adapt
