// PackShape: what is the same for every incident of one pack set, worked out once.
//
// Contract: plain tables made by pack_shape_of(); read only, so any number of threads may share one.
// Bit sets of signals have `words` words; signal s is bit s % 64 of word s / 64.
// Not here: anything that depends on an incident, a model or a measured table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/abi/compiled_pack.h"

namespace reflex::attribution {

using SignalBits = std::vector<uint64_t>;

inline void set_bit(uint64_t* bits, abi::SignalId s) { bits[s / 64] |= uint64_t{1} << (s % 64); }
inline bool has_bit(const uint64_t* bits, abi::SignalId s) {
  return (bits[s / 64] >> (s % 64) & 1) != 0;
}
inline bool meet(const uint64_t* a, const uint64_t* b, size_t words) {
  for (size_t w = 0; w < words; ++w) {
    if ((a[w] & b[w]) != 0) return true;
  }
  return false;
}

inline int shared_bits(const uint64_t* a, const uint64_t* b, size_t words) {
  int n = 0;
  for (size_t w = 0; w < words; ++w) n += std::popcount(a[w] & b[w]);
  return n;
}

struct PackShape {
  struct Kind {
    int8_t node_at = -1;  // place of the key "node"; -1: none
    int8_t job_at = -1;
    uint8_t keys = 0;
    std::array<char, 3> place{};  // place_letter() of each key
  };
  std::vector<Kind> kinds;  // [EntityKindId]
  /// [a * kinds + b]: where key i of kind a stands in kind b; -1: nowhere, or the key is "node".
  std::vector<std::array<int8_t, 3>> same_key;

  size_t words = 1;
  std::vector<uint8_t> by_node;     // [SignalId] its entities are on nodes
  std::vector<uint8_t> is_parent;   // [SignalId] an edge to another signal begins here
  std::vector<uint8_t> spreads;     // [SignalId] some edge says how it shows on many nodes
  std::vector<uint8_t> votes;       // [SignalId] graded votes
  std::vector<uint32_t> part_key;   // [SignalId] equal numbers: parts under the same key; 0: none
  std::vector<uint8_t> shares_key;  // [edge] cause and signal have a key in common
  // [edge] the first edge whose terms see a group in the same way: its signal and window are the same.
  // Itself where maintenance counts and where a weight is stated.
  std::vector<uint32_t> window_of;
  SignalBits graded;
  SignalBits masked;  // some common-mode rule lists it
  struct Cause {
    bool on_node = false;
    bool fault = false;
    bool has_synergy = false;
    bool plain = false;        // on a node, and every edge is to its own node or to no node
    // Plain, and what it reads of no node is the same for all its nodes and parts: no synergy, no
    // key in common, no place.
    bool calm = false;
    SignalBits children;       // keyed by node
    SignalBits own;            // of these, on the own node
    SignalBits wide;           // read beyond the own node: groups, other entities, votes, spreading
    SignalBits naming;         // of a fault: own graded children that may name a part
    SignalBits habits;         // of a plain cause: own graded children, no votes, no weights
    SignalBits own_spread;     // of `own`, those that some edge lets spread over nodes
  };
  std::vector<Cause> causes;  // [CauseId]
  /// For each fault that wears, its graded edges to its own node; by name of the fault.
  std::vector<std::vector<uint32_t>> wear_edges;
  std::vector<SignalBits> wear_signals;  // the signals of wear_edges
};

/// `cause_edges` and `cause_order` are those of the CauseGraph.
PackShape pack_shape_of(const abi::CompiledPack& pack,
                        const std::vector<std::vector<uint32_t>>& cause_edges,
                        const std::vector<abi::CauseId>& cause_order);

}  // namespace reflex::attribution
