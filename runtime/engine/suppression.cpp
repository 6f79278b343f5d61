// Maintenance spans and suppress statements: see suppression.h.
#include "runtime/engine/suppression.h"

#include <algorithm>

#include "runtime/topology/host_services.h"

namespace reflex::engine {
namespace {

// Why: no look-back of a pack reaches further than its newest few maintenance spans.
constexpr size_t kSpansMax = 32;

int64_t after(int64_t ts_ns, int64_t span_ns) {
  int64_t sum;
  return __builtin_add_overflow(ts_ns, span_ns, &sum) ? INT64_MAX : sum;
}

SymbolId field(const abi::CompiledPack& pack, const abi::Record& record, std::string_view name) {
  const auto& fields = pack.kinds[record.kind].fields;
  for (unsigned i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name && record.has(i)) return static_cast<SymbolId>(record.i64(i));
  }
  return kNoSymbol;
}

}  // namespace

Suppression::Suppression(std::shared_ptr<const abi::CompiledPack> pack,
                         std::shared_ptr<const topology::Topology> topology)
    : pack_(std::move(pack)),
      topology_(std::move(topology)),
      wanted_(pack_->kinds.size(), 0),
      maintenance_tells_(pack_->signals.size(), pack_->explained_by_maintenance.empty() ? 1 : 0),
      plans_(pack_->signals.size()) {
  for (const abi::KindId kind : {abi::kMaintStart, abi::kMaintEnd}) {
    if (kind < wanted_.size()) wanted_[kind] = 1;
  }
  for (const auto& plan : pack_->maintenance) wanted_[plan.from] = wanted_[plan.until] = 1;
  for (const auto& plan : pack_->explained_by_maintenance) maintenance_tells_[plan.signal] = 1;
  for (const auto& plan : pack_->suppressions) {
    for (size_t s = 0; s < plans_.size(); ++s) {
      const auto& list = plan.signals;
      if (list.empty() || std::find(list.begin(), list.end(), s) != list.end()) {
        plans_[s].push_back(&plan);
      }
    }
  }
}

void Suppression::apply(const abi::Record& record) {
  if (record.kind == abi::kMaintStart || record.kind == abi::kMaintEnd) builtin(record);
  for (const auto& plan : pack_->maintenance) {
    if (record.kind == plan.from && record.has(plan.from_slot)) {
      start(static_cast<SymbolId>(record.i64(plan.from_slot)), record.ts_ns);
    }
    if (record.kind == plan.until && record.has(plan.until_slot)) {
      end(static_cast<SymbolId>(record.i64(plan.until_slot)), record.ts_ns, plan.grace_ns);
    }
  }
}

void Suppression::builtin(const abi::Record& record) {
  std::vector<SymbolId> nodes;
  if (const SymbolId node = field(*pack_, record, "node"); node != kNoSymbol) nodes.push_back(node);
  for (const char* group : {"rack", "tor"}) {
    const SymbolId value = field(*pack_, record, group);
    if (value == kNoSymbol) continue;
    const auto members = topology_->members(pack_->symbols->find(group), value, record.ts_ns);
    nodes.insert(nodes.end(), members.begin(), members.end());
  }
  for (const SymbolId node : nodes) {
    if (record.kind == abi::kMaintStart) {
      start(node, record.ts_ns);
    } else {
      end(node, record.ts_ns, 0);
    }
  }
}

void Suppression::start(SymbolId node, int64_t ts_ns) {
  auto& spans = spans_[node];
  if (!spans.empty() && !spans.back().ended) {
    if (ts_ns <= spans.back().to_ns) return;  // it goes on
    ++unended_;
  }
  spans.push_back({ts_ns, after(ts_ns, pack_->limits.horizon_ns), false});
  if (spans.size() > kSpansMax) spans.erase(spans.begin());
}

void Suppression::end(SymbolId node, int64_t ts_ns, int64_t grace_ns) {
  const auto it = spans_.find(node);
  if (it == spans_.end() || it->second.back().ended) return;
  Span& span = it->second.back();
  span.to_ns = std::min(span.to_ns, after(ts_ns, grace_ns));
  span.ended = true;
}

bool Suppression::in_maintenance(SymbolId node, int64_t at_ns) const {
  const auto it = spans_.find(node);
  if (it == spans_.end()) return false;
  return std::any_of(it->second.begin(), it->second.end(),
                     [&](const Span& s) { return s.from_ns <= at_ns && at_ns < s.to_ns; });
}

bool Suppression::holds(const abi::SuppressPlan& plan, SymbolId node, int64_t at_ns) const {
  if (at_ns >= plan.until_ns) return false;
  if (plan.where == abi::kNone32) return true;
  if (node == kNoSymbol) return false;
  topology::HostState host{topology_.get(), pack_->symbols.get(), nullptr, nullptr};
  abi::EvalContext context;
  context.now_ns = at_ns;
  context.host = &topology::host_services();
  context.host_state = &host;
  context.entity[0] = node;
  const abi::Record none{};
  uint64_t out = 0;
  const auto hw_class = topology_->hw_class(node, at_ns);
  return pack_->code->expr(plan.where, hw_class)(&none, &context, &out) == abi::kTrue;
}

std::string Suppression::reason(const attribution::Evidence& evidence,
                                const attribution::Evidence::Episode& episode) const {
  const auto& keys = pack_->entity_kinds[evidence.entity.kind].keys;
  const bool on_node = !keys.empty() && keys.front() == "node";
  const SymbolId node = on_node ? static_cast<SymbolId>(evidence.entity.values[0]) : kNoSymbol;
  if (on_node && maintenance_tells_[evidence.signal] != 0 &&
      in_maintenance(node, episode.onset_ns)) {
    return "maintenance";
  }
  for (const abi::SuppressPlan* plan : plans_[evidence.signal]) {
    if (holds(*plan, node, episode.onset_ns)) return "suppress " + plan->name + ": " + plan->reason;
  }
  if (const auto* order = ordered(evidence.signal, node, episode.onset_ns)) {
    return "order " + order->id + ": " + order->reason;
  }
  return "";
}

void Suppression::order(SuppressionOrder order) {
  const auto at = std::lower_bound(orders_.begin(), orders_.end(), order.id,
                                   [](const auto& o, const std::string& id) { return o.id < id; });
  const bool known = at != orders_.end() && at->id == order.id;
  if (order.until_ns <= order.from_ns) {
    if (known) orders_.erase(at);
  } else if (known) {
    *at = std::move(order);
  } else {
    orders_.insert(at, std::move(order));
  }
}

const SuppressionOrder* Suppression::ordered(abi::SignalId signal, SymbolId node,
                                             int64_t at_ns) const {
  for (const SuppressionOrder& order : orders_) {
    if (at_ns < order.from_ns || at_ns >= order.until_ns) continue;
    if (!order.signal.empty() && order.signal != pack_->signals[signal].name) continue;
    if (order.node.empty() || (node != kNoSymbol && order.node == pack_->symbols->name(node))) {
      return &order;
    }
  }
  return nullptr;
}

void Suppression::mark(std::vector<attribution::Evidence>& evidence) const {
  if (spans_.empty() && pack_->suppressions.empty() && orders_.empty()) return;
  for (auto& e : evidence) {
    for (auto& episode : e.episodes) {
      if (episode.suppressed_by.empty()) episode.suppressed_by = reason(e, episode);
    }
  }
}

}  // namespace reflex::engine
