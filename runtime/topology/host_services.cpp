// HostServices over a Topology; see host_services.h.
#include "runtime/topology/host_services.h"

#include <optional>

#include "runtime/abi/gpu_address.h"

namespace reflex::topology {
namespace {

const HostState& state_of(void* state) { return *static_cast<const HostState*>(state); }

abi::Value known_symbol(SymbolId id) {
  return id == kNoSymbol ? abi::Value::unknown() : abi::Value::of_i64(id);
}

abi::Value job_of(void* state, int64_t now_ns, SymbolId node) noexcept {
  return known_symbol(state_of(state).topology->job_of(node, now_ns));
}

abi::Value node_label(void* state, int64_t now_ns, SymbolId node, SymbolId label) noexcept {
  return known_symbol(state_of(state).topology->label(node, label, now_ns));
}

abi::Value nodes_in_job(void* state, int64_t now_ns, SymbolId job) noexcept {
  const auto& nodes = state_of(state).topology->nodes_of(job, now_ns);
  if (nodes.empty()) return abi::Value::unknown();
  return abi::Value::of_i64(static_cast<int64_t>(nodes.size()));
}

abi::Value gpu_at(void* state, int64_t now_ns, SymbolId node, const abi::Text* pci) noexcept {
  if (pci == nullptr) return abi::Value::unknown();
  const std::optional<int64_t> address = abi::gpu_from_pci(pci->view());
  if (!address) return abi::Value::unknown();
  const std::optional<int64_t> index =
      state_of(state).topology->gpu_index_at(node, *address, now_ns);
  return abi::Value::of_i64(index.value_or(*address));
}

abi::Value in_maintenance(void* state, int64_t now_ns, SymbolId node) noexcept {
  return abi::Value::of_i64(state_of(state).topology->in_maintenance(node, now_ns) ? 1 : 0);
}

abi::Value peers(void* state, const abi::EvalContext* context, uint32_t query) noexcept {
  const HostState& host = state_of(state);
  if (host.peers == nullptr) return abi::Value::unknown();
  return host.peers(host.peers_state, context, query);
}

}  // namespace

const abi::HostServices& host_services() {
  static constexpr abi::HostServices kTable{job_of, node_label,     nodes_in_job,
                                            gpu_at, in_maintenance, peers};
  return kTable;
}

}  // namespace reflex::topology
