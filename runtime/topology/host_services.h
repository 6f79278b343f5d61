// HostServices over a Topology: the look-ups that compiled expressions make at run time.
//
// Contract: host_services() is one constant table; its `state` argument is a HostState that the
// caller keeps alive. `peers` is answered by the evaluation engine through a hook, as only it has
// the features; without a hook peers are unknown.
// Threads: read-only; safe from any shard while no Topology::apply() runs.
#pragma once

#include "runtime/abi/evaluator.h"
#include "runtime/topology/topology.h"

namespace reflex::topology {

using PeersHook = abi::Value (*)(void* state, const abi::EvalContext* context,
                                 uint32_t query) noexcept;

struct HostState {
  const Topology* topology = nullptr;
  const SymbolTable* symbols = nullptr;
  PeersHook peers = nullptr;
  void* peers_state = nullptr;
};

const abi::HostServices& host_services();

}  // namespace reflex::topology
