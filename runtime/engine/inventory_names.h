// InventoryNames: what sources call a node or a GPU -> what the inventory calls it.
//
// Sources differ (domain_reference.md 6.4, traps 15 and 23): a log names a GPU by PCI address where a
// monitor counts, a peer is `n3.dc1.example.com` where the inventory says `n3`. Records are renamed
// before they are ordered, so that repeats fold and signals of one thing join.
// Rules: a PCI address becomes N by the label `pci.gpuN` of its node, else it stays. A dotted name
// that the inventory does not know becomes its first part when the inventory knows that one; when it
// knows both they are two nodes, and without an inventory nothing is renamed.
// A network address (node_address.h) becomes the node whose label `ip` or `ip.NAME` it is; one that
// two nodes have (a bridge of containers) is nobody's. An optional node field (`peer`) with an address
// that is nobody's is an unknown peer: taken as missing and counted, so that no node is ever called by
// an address that the inventory does not know. With or without an inventory.
// It is a picture of the topology when it was made: label events that come later change nothing
// here, so the result does not depend on batches. node.labels itself is never renamed.
// Threads: one thread. Cost: one look-up a node or GPU field.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"
#include "runtime/base/state_stream.h"
#include "runtime/stream/slab.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

class InventoryNames {
 public:
  InventoryNames(std::shared_ptr<const abi::CompiledPack> pack,
                 const topology::Topology& topology);
  void rename(stream::RecordBatch& batch);
  /// The inventory's name of a node.
  SymbolId node(SymbolId name);
  /// The inventory's index of a GPU that is named by its PCI identity, else what is given.
  [[nodiscard]] int64_t gpu(SymbolId node, int64_t gpu) const;
  /// Fields that named another node by an address of nobody.
  [[nodiscard]] uint64_t unknown_peers() const { return unknown_peers_; }

  /// The picture itself: it must outlive a restart, for the topology has moved on.
  void save(StateWriter& writer) const;
  /// Replaces the picture; false: the state is damaged.
  bool load(StateReader& reader);
  /// The same, of a set whose ids mean the same.
  void take_over(InventoryNames& old);

 private:
  struct NodeSlot {
    unsigned slot = 0;
    bool optional = false;  // a record is one without it: an unknown peer leaves it out
  };
  struct Slots {
    std::vector<NodeSlot> nodes;
    std::vector<unsigned> gpus;
    int own_node = -1;   // whose GPUs they are
    int node_list = -1;  // of placements
  };
  using GpuIndices = std::unordered_map<int64_t, int64_t>;  // PCI identity -> index

  [[nodiscard]] bool is_known(SymbolId name) const;
  [[nodiscard]] SymbolId known_name_of(SymbolId name) const;
  void find_slots();
  void read_gpus(SymbolId node, const topology::Topology& topology);
  void read_addresses(const topology::Topology& topology);
  void rename_nodes(const Slots& slots, abi::Record& record, stream::Slab& slab);
  void rename_gpus(const Slots& slots, abi::Record& record) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::vector<Slots> slots_;       // [kind]
  std::vector<uint8_t> known_;     // [symbol]
  std::vector<SymbolId> renamed_;  // [symbol] kNoSymbol: not asked yet
  std::vector<uint8_t> nobody_;    // [symbol] an address that no node has; beside renamed_
  std::unordered_map<std::string, SymbolId> addresses_;  // kNoSymbol: two nodes have it
  uint64_t unknown_peers_ = 0;
  std::unordered_map<SymbolId, GpuIndices> gpus_;
};

}  // namespace reflex::engine
