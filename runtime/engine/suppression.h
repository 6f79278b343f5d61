// Suppression: which evidence counts for nothing, and why (attribution.md section 6).
//
// Maintenance spans of nodes (builtin maint.start/end and MaintenancePlans, with their grace) and
// SuppressPlans of packs. Evidence is marked, never deleted: explanations list it with the reason.
// An episode is in maintenance when it began there. A span whose end never came ends `horizon`
// after its start (counted).
// Records come in total order, but possibly ahead of the time that is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"
#include "runtime/base/state_stream.h"
#include "runtime/attribution/attribution.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

/// An operator's word while the engine runs: episodes that begin in [from, until) count for nothing.
struct SuppressionOrder {
  std::string id;
  std::string node, signal;  // names; empty: every one
  int64_t from_ns = 0, until_ns = 0;
  std::string reason;
};

class Suppression {
 public:
  Suppression(std::shared_ptr<const abi::CompiledPack> pack,
              std::shared_ptr<const topology::Topology> topology);

  /// Whether records of a kind matter here.
  [[nodiscard]] bool wants(abi::KindId kind) const { return wanted_[kind] != 0; }
  void apply(const abi::Record& record);
  [[nodiscard]] bool in_maintenance(SymbolId node, int64_t at_ns) const;
  /// Replaces the order of the same id; one with until_ns <= from_ns ends it.
  void order(SuppressionOrder order);
  /// Sets Episode::suppressed_by where it applies.
  void mark(std::vector<attribution::Evidence>& evidence) const;
  /// Maintenance that began anew while the last was never ended.
  [[nodiscard]] uint64_t unended() const { return unended_; }

  void save(StateWriter& writer) const;
  void load(StateReader& reader);
  /// The same, of a set whose ids mean the same; with the orders.
  void take_over(Suppression& old);

 private:
  struct Span {
    int64_t from_ns;
    int64_t to_ns;
    bool ended;
  };
  void start(SymbolId node, int64_t ts_ns);
  void end(SymbolId node, int64_t ts_ns, int64_t grace_ns);
  void builtin(const abi::Record& record);
  [[nodiscard]] std::string reason(const attribution::Evidence& evidence,
                                   const attribution::Evidence::Episode& episode) const;
  [[nodiscard]] const SuppressionOrder* ordered(abi::SignalId signal, SymbolId node,
                                                int64_t at_ns) const;
  [[nodiscard]] bool holds(const abi::SuppressPlan& plan, SymbolId node, int64_t at_ns) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const topology::Topology> topology_;
  std::vector<uint8_t> wanted_;             // [KindId]
  std::vector<uint8_t> maintenance_tells_;  // [SignalId] maintenance explains it
  std::vector<std::vector<const abi::SuppressPlan*>> plans_;  // [SignalId]
  std::unordered_map<SymbolId, std::vector<Span>> spans_;     // by start
  std::vector<SuppressionOrder> orders_;  // by id
  uint64_t unended_ = 0;
};

}  // namespace reflex::engine
