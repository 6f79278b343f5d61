// Program: what a CompiledPack means for evaluation, prepared once and shared by all shards.
//
// KeySlot = one way in which events of a kind yield the key of an entity kind; all owners of a
// kind's leaves with the same way share it, so a key is resolved once per event. A shared `unless`
// has a slot without parts, at which there is never an entity. Resolving happens
// in the sequential stage; shards get dense entity indices by slot number.
// Also here: constant parts of the calling contract (class parameters, evaluators by class).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/table.h"
#include "runtime/eval/entity_table.h"
#include "runtime/topology/host_services.h"

namespace reflex::eval {

struct KeySlot {
  abi::EntityKindId entity_kind = 0;
  abi::KeyPlan plan;
  bool plain = false;  // one part, straight from a field
  uint16_t field = 0;  // of the plain part
};

struct KindKeys {
  std::vector<KeySlot> slots;
  int node_field = -1;         // the field that names the record's node
  bool to_all_shards = false;  // a shared `unless` of a node-keyed signal listens to the kind
};

class Program {
 public:
  Program(std::shared_ptr<const abi::CompiledPack> pack,
          std::shared_ptr<const topology::Topology> topology, unsigned shards);

  [[nodiscard]] const abi::CompiledPack& pack() const { return *pack_; }
  [[nodiscard]] const topology::Topology& topology() const { return *topology_; }
  [[nodiscard]] const std::vector<KindKeys>& keys() const { return keys_; }
  [[nodiscard]] std::vector<EntityTable>& tables() { return tables_; }
  [[nodiscard]] const std::vector<EntityTable>& tables() const { return tables_; }

  /// The entity kind and key plan of an owner of `leaf`; null when the owner has none.
  struct OwnerKey {
    abi::EntityKindId entity_kind = 0;
    const abi::KeyPlan* plan = nullptr;
    uint16_t sub = 0;  // input, trigger or step number within the owner
  };
  [[nodiscard]] OwnerKey owner_key(abi::LeafId leaf, const abi::LeafOwner& owner) const;
  [[nodiscard]] uint8_t key_slot(abi::KindId kind, const OwnerKey& key) const;

  /// The key values of a slot for a record; false when one of them cannot be had.
  bool resolve(const KeySlot& slot, const abi::Record& record, SymbolId node,
               topology::HostState& host, std::array<uint64_t, 3>& out) const;
  [[nodiscard]] SymbolId node_of(const abi::Record& record) const {
    const int field = keys_[record.kind].node_field;
    return field >= 0 && record.has(static_cast<unsigned>(field))
               ? static_cast<SymbolId>(record.i64(static_cast<unsigned>(field)))
               : kNoSymbol;
  }
  [[nodiscard]] abi::ClassId class_of(SymbolId node, int64_t ts_ns) const {
    return class_count_ <= 1 || node == kNoSymbol ? abi::ClassId{0}
                                                  : topology_->hw_class(node, ts_ns);
  }
  [[nodiscard]] const abi::Evaluator& code(abi::ExprId expr, abi::ClassId hw_class) const {
    return code_[size_t{expr} * class_count_ + hw_class];
  }
  [[nodiscard]] bool reads_class(abi::ExprId expr) const { return pack_->exprs[expr].reads_class; }
  [[nodiscard]] const abi::Value* class_params(abi::ClassId hw_class) const {
    return params_[hw_class].data();
  }
  /// Run-time values (EvalContext::table); null until set_tables(). Between batches only.
  void set_tables(std::shared_ptr<const abi::TableSnapshot> tables) {
    run_time_values_ = std::move(tables);
  }
  /// The row for an expression that reads the class (ExprInfo::reads_class): its node's, else its
  /// class's.
  [[nodiscard]] const abi::Value* table_row(abi::ClassId hw_class, SymbolId node) const {
    if (run_time_values_ == nullptr) return nullptr;
    return node == kNoSymbol ? run_time_values_->row(hw_class)
                             : run_time_values_->row_of_node(hw_class, node);
  }
  /// Position of the key "node" in an entity kind, or -1.
  [[nodiscard]] int node_position(abi::EntityKindId kind) const { return node_position_[kind]; }
  /// Whether the plan must run in the global shard (transitively).
  [[nodiscard]] bool global_signal(abi::SignalId signal) const { return global_signal_[signal]; }
  [[nodiscard]] bool global_feature(abi::FeatureId f) const { return global_feature_[f]; }
  /// Features read by an expression; peers' features are not in it.
  [[nodiscard]] const std::vector<abi::FeatureId>& features_of(abi::ExprId expr) const {
    return pack_->exprs[expr].features;
  }
  /// All features that a signal reads, directly, through cusum targets, or through peers.
  [[nodiscard]] std::vector<abi::FeatureId> needs_of(abi::SignalId signal) const;
  /// A feature that is sampled (AdaptivePlan), and all that it reads.
  [[nodiscard]] std::vector<abi::FeatureId> needs_of_sampled(abi::FeatureId feature) const;

 private:
  /// Adds what the targets of these features read, transitively; all queried ones with `peers`.
  void close_needs(std::set<abi::FeatureId>& needs, bool peers) const;
  void build_keys();
  void build_tables(unsigned shards);
  void build_code();
  void build_stages();

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const topology::Topology> topology_;
  std::shared_ptr<const abi::TableSnapshot> run_time_values_;
  std::vector<KindKeys> keys_;
  std::vector<EntityTable> tables_;
  std::vector<abi::Evaluator> code_;
  size_t class_count_ = 1;
  std::vector<std::vector<abi::Value>> params_;
  std::vector<int> node_position_;
  std::vector<uint8_t> global_signal_;
  std::vector<uint8_t> global_feature_;
  std::vector<std::vector<abi::LeafId>> signal_leaves_;
};

}  // namespace reflex::eval
