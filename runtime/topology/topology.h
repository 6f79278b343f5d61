// Topology: which node had which labels, class and job, at every point in event time.
//
// Fed by the builtin kinds (node.labels, job.start, job.nodes, job.end, maint.start/end, ...) in
// total order; answered point-in-time (events.md: "so that it is right at every point in time").
// Threads: apply() only from the engine's sequential stage; all const look-ups are safe from shards
// while no apply() runs. Cost: look-ups are a binary search in the node's own history.
// Bound: history older than the pack set's horizon is dropped whenever a node's history grows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/record.h"

namespace reflex::topology {

using Labels = std::vector<std::pair<SymbolId, SymbolId>>;  // sorted by key id

class Topology {
 public:
  explicit Topology(std::shared_ptr<const abi::CompiledPack> pack);

  /// Applies one builtin record; others are ignored.
  void apply(const abi::Record& record);

  void set_labels(SymbolId node, int64_t ts_ns, Labels labels);
  void start_job(SymbolId job, int64_t ts_ns, std::vector<SymbolId> nodes);
  void end_job(SymbolId job, int64_t ts_ns);
  void set_repaired(SymbolId node, int64_t ts_ns);
  void set_maintenance(SymbolId node, int64_t ts_ns, bool on);

  /// Everything it knows; `names` are those of the state that this is part of.
  void save(StateWriter& writer) const;
  /// Replaces what is known. Another pack set binds the nodes to classes anew, and `names` learns
  /// what became of the old classes.
  void load(StateReader& reader, abi::LoadNames& names);

  /// The same of a set whose ids mean the same (abi/same_ids.h): `old` is empty then.
  void take_over(Topology& old);

  [[nodiscard]] SymbolId label(SymbolId node, SymbolId key, int64_t ts_ns) const;  // or kNoSymbol
  [[nodiscard]] abi::ClassId hw_class(SymbolId node, int64_t ts_ns) const;
  [[nodiscard]] SymbolId job_of(SymbolId node, int64_t ts_ns) const;  // or kNoSymbol
  /// The nodes of a job at (or last before) a time; empty when the job is unknown.
  [[nodiscard]] const std::vector<SymbolId>& nodes_of(SymbolId job, int64_t ts_ns) const;
  [[nodiscard]] bool in_maintenance(SymbolId node, int64_t ts_ns) const;
  /// Every node ever seen in topology events, by name.
  [[nodiscard]] std::vector<SymbolId> nodes() const;
  /// Nodes whose label `key` has `value` at a time, by name.
  [[nodiscard]] std::vector<SymbolId> members(SymbolId key, SymbolId value, int64_t ts_ns) const;
  [[nodiscard]] const std::vector<std::string>& ambiguous_nodes() const;
  /// Every concrete class whose `matches` holds for the labels of the node at a time, by id.
  [[nodiscard]] std::vector<abi::ClassId> matching_classes(SymbolId node, int64_t ts_ns) const;
  /// The index of the gpu at a PCI identity (abi/gpu_address.h), from labels `pci.gpu<N>`.
  [[nodiscard]] std::optional<int64_t> gpu_index_at(SymbolId node, int64_t pci,
                                                    int64_t ts_ns) const;
  /// Confirmed faults and repairs of a node (hazard, attribution.md section 3).
  [[nodiscard]] int64_t last_repair_ns(SymbolId node, int64_t ts_ns) const;  // kNoTimeNs: never

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace reflex::topology
