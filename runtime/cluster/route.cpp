// Partitions of records: see route.h.
#include "runtime/cluster/route.h"

#include <algorithm>

#include "runtime/cluster/partition.h"

namespace reflex::cluster {
namespace {

bool names_node(const abi::CompiledPack& pack, const abi::Type& type) {
  return type.scalar == abi::Scalar::kEntity && !type.gpu_index &&
         pack.entity_types[type.entity].name == "node";
}

/// Kinds that a shared `unless` listens to: it has no keys, so every worker must hear of it.
std::vector<bool> heard_by_all(const abi::CompiledPack& pack) {
  std::vector<bool> kinds(pack.kinds.size());
  for (const abi::LeafPlan& leaf : pack.leaves) {
    for (const abi::LeafOwner& owner : leaf.owners) {
      if (owner.kind != abi::OwnerKind::kSequenceUnless) continue;
      if (pack.signals[owner.owner].sequence.unless[owner.sub].shared) kinds[leaf.kind] = true;
    }
  }
  return kinds;
}

}  // namespace

Route::Route(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions)
    : pack_(std::move(pack)), partitions_(std::max(1u, partitions)) {
  const std::vector<bool> heard = heard_by_all(*pack_);
  for (abi::KindId k = 0; k < pack_->kinds.size(); ++k) {
    const abi::KindSchema& schema = pack_->kinds[k];
    Kind& kind = kinds_.emplace_back();
    kind.fixed = partition_of(schema.name, partitions_);
    kind.to_all = k < abi::kBuiltinKindCount || heard[k];
    for (const abi::RepairPlan& repair : pack_->repairs) kind.to_all |= repair.kind == k;
    for (const abi::MaintenancePlan& plan : pack_->maintenance) {
      kind.to_all |= plan.from == k || plan.until == k;
    }
    for (unsigned slot = 0; slot < schema.fields.size(); ++slot) {
      if (!names_node(*pack_, schema.fields[slot].type)) continue;
      const bool own = schema.fields[slot].name == "node";
      kind.nodes.insert(own ? kind.nodes.begin() : kind.nodes.end(), slot);
    }
    const auto& dedup = schema.dedup_slots;
    kind.by_kind = schema.dedup_ns > 0 && std::none_of(dedup.begin(), dedup.end(), [&](auto slot) {
                     return names_node(*pack_, schema.fields[slot].type);
                   });
    // Its repeats meet at one worker; the signals of its nodes are kept by several. Both at once
    // need every worker to see all of them.
    if (kind.by_kind && !kind.nodes.empty()) kind.to_all = true;
  }
}

uint32_t Route::partition(SymbolId node) {
  if (node >= by_symbol_.size()) by_symbol_.resize(size_t{node} * 2 + 64);
  if (by_symbol_[node] == 0) {
    by_symbol_[node] = 1 + partition_of(pack_->symbols->name(node), partitions_);
  }
  return by_symbol_[node] - 1;
}

void Route::partitions_of(const abi::Record& record, std::vector<uint32_t>& out) {
  out.clear();
  const Kind& kind = kinds_[record.kind];
  for (const unsigned slot : kind.nodes) {
    if (!kind.by_kind && record.has(slot)) {
      out.push_back(partition(static_cast<SymbolId>(record.i64(slot))));
    }
  }
  if (out.empty()) out.push_back(kind.fixed);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

uint32_t Route::home(const abi::Record& record) {
  const Kind& kind = kinds_[record.kind];
  if (kind.to_all) return 0;
  for (const unsigned slot : kind.nodes) {
    if (!kind.by_kind && record.has(slot)) {
      return partition(static_cast<SymbolId>(record.i64(slot)));
    }
  }
  return kind.fixed;
}

}  // namespace reflex::cluster
