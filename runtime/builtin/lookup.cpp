// Builtins that ask the engine through EvalContext::host.
#include "runtime/builtin/lookup.h"

#include <cmath>
#include <limits>

using reflex::SymbolId;
using reflex::abi::EvalContext;
using reflex::abi::HostServices;
using reflex::abi::Text;
using reflex::abi::Value;

namespace {

bool is_symbol(int64_t value) {
  return value >= 0 && value <= int64_t{std::numeric_limits<SymbolId>::max()};
}

Value normalised(Value v) { return v.known != 0 ? Value{v.bits, 1} : Value::unknown(); }

}  // namespace

extern "C" {

Value rfx_job_of(const EvalContext* context, int64_t node, uint64_t known) noexcept {
  const HostServices* host = context->host;
  if (known == 0 || host == nullptr || host->job_of == nullptr || !is_symbol(node)) return {};
  return normalised(
      host->job_of(context->host_state, context->now_ns, static_cast<SymbolId>(node)));
}

Value rfx_node_label(const EvalContext* context, int64_t node, uint64_t known,
                     uint32_t label) noexcept {
  const HostServices* host = context->host;
  if (known == 0 || host == nullptr || host->node_label == nullptr || !is_symbol(node)) return {};
  return normalised(
      host->node_label(context->host_state, context->now_ns, static_cast<SymbolId>(node), label));
}

Value rfx_nodes_in_job(const EvalContext* context, int64_t job, uint64_t known) noexcept {
  const HostServices* host = context->host;
  if (known == 0 || host == nullptr || host->nodes_in_job == nullptr || !is_symbol(job)) return {};
  return normalised(
      host->nodes_in_job(context->host_state, context->now_ns, static_cast<SymbolId>(job)));
}

Value rfx_gpu_at(const EvalContext* context, int64_t node, const Text* pci,
                 uint64_t known) noexcept {
  const HostServices* host = context->host;
  if (known == 0 || pci == nullptr || host == nullptr || host->gpu_at == nullptr) return {};
  if (!is_symbol(node)) return {};
  return normalised(
      host->gpu_at(context->host_state, context->now_ns, static_cast<SymbolId>(node), pci));
}

Value rfx_in_maintenance(const EvalContext* context, int64_t node, uint64_t known) noexcept {
  const HostServices* host = context->host;
  if (known == 0 || host == nullptr || host->in_maintenance == nullptr || !is_symbol(node)) {
    return {};
  }
  const Value v = normalised(
      host->in_maintenance(context->host_state, context->now_ns, static_cast<SymbolId>(node)));
  return {v.bits != 0 ? 1u : 0u, v.known};
}

Value rfx_peers(const EvalContext* context, uint32_t query) noexcept {
  const HostServices* host = context->host;
  if (host == nullptr || host->peers == nullptr) return {};
  const Value v = normalised(host->peers(context->host_state, context, query));
  return std::isfinite(v.f64()) ? v : Value::unknown();
}

}  // extern "C"
