// Program: key slots, entity tables, evaluators and stages; see program.h.
#include "runtime/eval/program.h"

#include <algorithm>
#include <set>

#include "runtime/base/check.h"

namespace reflex::eval {
namespace {

bool same(const abi::KeyPlan& a, const abi::KeyPlan& b) {
  return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const abi::KeyPart& x, const abi::KeyPart& y) {
                      return x.from == y.from && x.slot == y.slot && x.label == y.label &&
                             x.expr == y.expr;
                    });
}

bool is_symbol_type(const abi::Type& type) {
  return type.scalar == abi::Scalar::kEnum ||
         (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
}

}  // namespace

Program::Program(std::shared_ptr<const abi::CompiledPack> pack,
                 std::shared_ptr<const topology::Topology> topology, unsigned shards)
    : pack_(std::move(pack)), topology_(std::move(topology)) {
  RFX_CHECK(pack_ != nullptr && topology_ != nullptr);
  for (const auto& kind : pack_->entity_kinds) {
    const auto at = std::find(kind.keys.begin(), kind.keys.end(), "node");
    node_position_.push_back(at == kind.keys.end() ? -1 : static_cast<int>(at - kind.keys.begin()));
  }
  build_keys();
  build_tables(shards);
  build_code();
  build_stages();
}

Program::OwnerKey Program::owner_key(abi::LeafId leaf, const abi::LeafOwner& owner) const {
  const auto by_leaf = [&](const auto& inputs) {
    if (owner.sub < inputs.size() && inputs[owner.sub].leaf == leaf) return owner.sub;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].leaf == leaf) return static_cast<uint16_t>(i);
    }
    RFX_CHECK(false && "leaf owner without input");
    return uint16_t{0};
  };
  switch (owner.kind) {
    case abi::OwnerKind::kSequenceStep: {
      const auto& s = pack_->signals[owner.owner];
      return {s.entity_kind, &s.sequence.steps[owner.sub].key, owner.sub};
    }
    case abi::OwnerKind::kSequenceUnless: {
      const auto& s = pack_->signals[owner.owner];
      return {s.entity_kind, &s.sequence.unless[owner.sub].key, owner.sub};
    }
    case abi::OwnerKind::kSignalGuard: {
      const auto& s = pack_->signals[owner.owner];
      const auto& guards = s.shape == abi::SignalShape::kCount ? s.count.guards : s.sequence.guards;
      return {s.entity_kind, &guards[owner.sub].key, owner.sub};
    }
    case abi::OwnerKind::kCount: {
      const auto& s = pack_->signals[owner.owner];
      const uint16_t i = by_leaf(s.count.inputs);
      return {s.entity_kind, &s.count.inputs[i].key, i};
    }
    case abi::OwnerKind::kCondition: {
      const auto& s = pack_->signals[owner.owner];
      const auto& triggers = s.condition.triggers;
      const auto at = std::find(triggers.begin(), triggers.end(), leaf);
      RFX_CHECK(at != triggers.end());
      const auto i = static_cast<uint16_t>(at - triggers.begin());
      return {s.entity_kind, &s.condition.trigger_keys[i], i};
    }
    case abi::OwnerKind::kFeatureInput: {
      const auto& f = pack_->features[owner.owner];
      const uint16_t i = by_leaf(f.inputs);
      return {f.entity_kind, &f.inputs[i].key, i};
    }
    case abi::OwnerKind::kFeatureReset: {
      const auto& f = pack_->features[owner.owner];
      const uint16_t i = by_leaf(f.resets);
      return {f.entity_kind, &f.resets[i].key, i};
    }
  }
  return {};
}

uint8_t Program::key_slot(abi::KindId kind, const OwnerKey& key) const {
  const auto& slots = keys_[kind].slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].entity_kind == key.entity_kind && same(slots[i].plan, *key.plan)) {
      return static_cast<uint8_t>(i);
    }
  }
  RFX_CHECK(false && "owner key without slot");
  return 0;
}

void Program::build_keys() {
  keys_.resize(pack_->kinds.size());
  for (size_t k = 0; k < pack_->kinds.size(); ++k) {
    const auto& fields = pack_->kinds[k].fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].name == "node" && fields[i].type.scalar == abi::Scalar::kEntity) {
        keys_[k].node_field = static_cast<int>(i);
      }
    }
  }
  signal_leaves_.resize(pack_->signals.size());
  for (size_t l = 0; l < pack_->leaves.size(); ++l) {
    const auto& leaf = pack_->leaves[l];
    auto& slots = keys_[leaf.kind].slots;
    for (const auto& owner : leaf.owners) {
      const OwnerKey key = owner_key(static_cast<abi::LeafId>(l), owner);
      const auto known = std::find_if(slots.begin(), slots.end(), [&](const KeySlot& s) {
        return s.entity_kind == key.entity_kind && same(s.plan, *key.plan);
      });
      if (known == slots.end()) {
        const auto& parts = key.plan->parts;
        const bool plain = parts.size() == 1 && parts[0].from == abi::KeyPart::From::kSlot;
        slots.push_back({key.entity_kind, *key.plan, plain, plain ? parts[0].slot : uint16_t{0}});
        RFX_CHECK(slots.size() <= 255);
      }
      if (owner.kind != abi::OwnerKind::kFeatureInput &&
          owner.kind != abi::OwnerKind::kFeatureReset) {
        signal_leaves_[owner.owner].push_back(static_cast<abi::LeafId>(l));
      }
    }
  }
}

void Program::build_tables(unsigned shards) {
  std::vector<std::array<bool, 3>> symbols(pack_->entity_kinds.size());
  for (size_t k = 0; k < keys_.size(); ++k) {
    for (const auto& slot : keys_[k].slots) {
      for (size_t i = 0; i < slot.plan.parts.size() && i < 3; ++i) {
        const auto& part = slot.plan.parts[i];
        bool symbol = true;
        if (part.from == abi::KeyPart::From::kSlot) {
          symbol = is_symbol_type(pack_->kinds[k].fields[part.slot].type);
        } else if (part.from == abi::KeyPart::From::kExpr) {
          symbol = is_symbol_type(pack_->exprs[part.expr].type);
        }
        symbols[slot.entity_kind][i] = symbol;
      }
    }
  }
  for (size_t k = 0; k < pack_->entity_kinds.size(); ++k) {
    EntityTable::Config config;
    config.kind = static_cast<abi::EntityKindId>(k);
    config.key_count = static_cast<uint8_t>(pack_->entity_kinds[k].keys.size());
    config.is_symbol = symbols[k];
    config.by_node = node_position_[k] == 0;
    config.keys_max = std::max<uint64_t>(pack_->limits.keys_max, 1);
    config.shards = shards;
    tables_.emplace_back(config, *pack_->symbols);
  }
}

void Program::build_code() {
  class_count_ = std::max<size_t>(pack_->classes.size(), 1);
  code_.resize(pack_->exprs.size() * class_count_);
  for (size_t e = 0; e < pack_->exprs.size(); ++e) {
    for (size_t c = 0; c < class_count_; ++c) {
      code_[e * class_count_ + c] =
          pack_->code->expr(static_cast<abi::ExprId>(e), static_cast<abi::ClassId>(c));
    }
  }
  params_.resize(class_count_);
  for (size_t c = 0; c < class_count_; ++c) {
    params_[c].resize(pack_->params.size() + 1);
    if (c >= pack_->classes.size()) continue;
    const auto& plan = pack_->classes[c];
    for (size_t p = 0; p < plan.params.size() && p < pack_->params.size(); ++p) {
      const bool known = p < plan.params_known.size() && plan.params_known[p] != 0;
      params_[c][p] = {plan.params[p], known ? 1u : 0u};
    }
  }
}

std::vector<abi::FeatureId> Program::needs_of(abi::SignalId signal) const {
  std::set<abi::FeatureId> needs;
  bool peers = false;
  const auto take_expr = [&](abi::ExprId e) {
    if (e == abi::kNone32) return;
    needs.insert(pack_->exprs[e].features.begin(), pack_->exprs[e].features.end());
    peers = peers || pack_->exprs[e].reads_peers;
  };
  const auto& plan = pack_->signals[signal];
  for (abi::LeafId l : signal_leaves_[signal]) {
    const auto& leaf = pack_->leaves[l];
    needs.insert(leaf.features.begin(), leaf.features.end());
    take_expr(leaf.predicate);
    take_expr(leaf.residual);
  }
  for (const auto& step : plan.sequence.steps) take_expr(step.join);
  for (const auto& unless : plan.sequence.unless) take_expr(unless.join);
  take_expr(plan.count.threshold);
  const auto& c = plan.condition;
  needs.insert(c.features.begin(), c.features.end());
  for (abi::ExprId e : {c.when, c.clear, c.shown_value, c.shown_limit}) take_expr(e);
  close_needs(needs, peers);
  return {needs.begin(), needs.end()};
}

std::vector<abi::FeatureId> Program::needs_of_sampled(abi::FeatureId feature) const {
  std::set<abi::FeatureId> needs{feature};
  close_needs(needs, false);
  return {needs.begin(), needs.end()};
}

void Program::close_needs(std::set<abi::FeatureId>& needs, bool peers) const {
  for (bool grew = true; grew;) {
    const size_t before = needs.size();
    for (abi::FeatureId f : std::vector<abi::FeatureId>(needs.begin(), needs.end())) {
      const abi::ExprId target = pack_->features[f].target;
      if (target == abi::kNone32) continue;
      const abi::ExprInfo& info = pack_->exprs[target];
      needs.insert(info.features.begin(), info.features.end());
      peers = peers || info.reads_peers;
    }
    // Which query an expression reads is not in ExprInfo: take the features of all of them.
    if (peers) {
      for (const auto& query : pack_->peers) {
        needs.insert(query.feature);
        for (const abi::PeersKey& key : query.by) {
          if (key.feature != abi::kNone32) needs.insert(key.feature);
        }
      }
    }
    grew = needs.size() != before;
  }
}

void Program::build_stages() {
  global_feature_.assign(pack_->features.size(), 0);
  global_signal_.assign(pack_->signals.size(), 0);
  for (size_t f = 0; f < pack_->features.size(); ++f) {
    const auto& plan = pack_->features[f];
    const bool target_peers = plan.target != abi::kNone32 && pack_->exprs[plan.target].reads_peers;
    global_feature_[f] = plan.global_stage || target_peers || node_position_[plan.entity_kind] != 0;
  }
  for (size_t s = 0; s < pack_->signals.size(); ++s) {
    const auto& plan = pack_->signals[s];
    bool global = plan.global_stage || node_position_[plan.entity_kind] != 0;
    for (abi::FeatureId f : needs_of(static_cast<abi::SignalId>(s))) {
      global = global || global_feature_[f] != 0;
    }
    for (abi::LeafId l : signal_leaves_[s]) {
      const abi::ExprId e = pack_->leaves[l].predicate;
      global = global || (e != abi::kNone32 && pack_->exprs[e].reads_peers);
    }
    for (abi::ExprId e : {plan.condition.when, plan.condition.clear, plan.count.threshold}) {
      global = global || (e != abi::kNone32 && pack_->exprs[e].reads_peers);
    }
    global_signal_[s] = global ? 1 : 0;
    for (const auto& unless : plan.sequence.unless) {
      if (unless.shared && !global) keys_[unless.kind].to_all_shards = true;
    }
  }
}

bool Program::resolve(const KeySlot& slot, const abi::Record& record, SymbolId node,
                      topology::HostState& host, std::array<uint64_t, 3>& out) const {
  out = {};
  if (slot.plan.parts.empty()) return false;
  for (size_t i = 0; i < slot.plan.parts.size() && i < 3; ++i) {
    const auto& part = slot.plan.parts[i];
    uint64_t value = 0;
    if (part.from == abi::KeyPart::From::kExpr) {
      abi::EvalContext context;
      const abi::ClassId hw_class = class_of(node, record.ts_ns);
      context.class_params = class_params(hw_class);
      context.table = table_row(hw_class, node);
      context.host = &topology::host_services();
      context.host_state = &host;
      context.now_ns = record.ts_ns;
      if (code(part.expr, hw_class)(&record, &context, &value) != abi::kTrue) return false;
    } else {
      if (!record.has(part.slot)) return false;
      value = record.slots()[part.slot];
      const auto from_node = static_cast<SymbolId>(value);
      if (part.from == abi::KeyPart::From::kJobOfNode) {
        value = topology_->job_of(from_node, record.ts_ns);
      } else if (part.from == abi::KeyPart::From::kNodeLabel) {
        const SymbolId label = pack_->symbols->find(part.label);
        value = label == kNoSymbol ? kNoSymbol : topology_->label(from_node, label, record.ts_ns);
      }
    }
    const bool symbol = tables_[slot.entity_kind].config().is_symbol[i];
    if (symbol && value == kNoSymbol) return false;
    out[i] = value;
  }
  return true;
}

}  // namespace reflex::eval
