// Route: which partitions of signal workers a record goes to.
//
// Signals of a node are kept by the worker that owns the node. A record goes to the owners of all
// nodes that its fields name (a line about a peer concerns both ends). What all workers must know
// (topology, repairs, a shared `unless`) goes to all. What no node owns (a job's or a fabric's
// event) goes to one worker by the name of its kind, and on to attribution from there; so do kinds
// whose `dedup` spans nodes, since repeats must meet.
// Home: the one worker that hands a record on to attribution, so that it comes there once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"

namespace reflex::cluster {

class Route {
 public:
  Route(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions);

  [[nodiscard]] bool to_all(abi::KindId kind) const { return kinds_[kind].to_all; }
  /// The partitions of a record that does not go to all; ascending, each once.
  void partitions_of(const abi::Record& record, std::vector<uint32_t>& out);
  [[nodiscard]] uint32_t home(const abi::Record& record);
  [[nodiscard]] uint32_t partition(SymbolId node);

 private:
  struct Kind {
    bool to_all = false;
    bool by_kind = false;         // one partition for all of its records
    uint32_t fixed = 0;           // by_kind, or when a record names no node
    std::vector<unsigned> nodes;  // slots that name nodes; the kind's own node first
  };
  std::shared_ptr<const abi::CompiledPack> pack_;
  uint32_t partitions_;
  std::vector<Kind> kinds_;
  std::vector<uint32_t> by_symbol_;  // 1 + partition; 0: not asked yet
};

}  // namespace reflex::cluster
