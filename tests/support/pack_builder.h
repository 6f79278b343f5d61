// PackBuilder: CompiledPacks made by hand, expressions being C++ functions.
//
// For tests of the runtime that must not depend on the compiler. Not a second compiler: it fills
// the plain structs of runtime/abi and keeps the functions alive behind an EvaluatorSet.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"

namespace reflex::test {

using ExprFunction =
    std::function<uint32_t(const abi::Record&, const abi::EvalContext&, uint64_t&)>;

struct FunctionSet final : abi::EvaluatorSet {
  std::deque<ExprFunction> functions;
  std::vector<abi::ChunkEvaluator> chunks;
  static uint32_t call(const void* self, const abi::Record* r, const abi::EvalContext* c,
                       uint64_t* out) {
    return (*static_cast<const ExprFunction*>(self))(*r, *c, *out);
  }
  [[nodiscard]] abi::Evaluator expr(abi::ExprId e, abi::ClassId) const override {
    return {call, &functions[e]};
  }
  [[nodiscard]] abi::ChunkEvaluator chunk(uint32_t c, abi::ClassId) const override {
    return chunks[c];
  }
  [[nodiscard]] std::string_view backend() const override { return "test"; }
};

inline abi::Type entity_type() {
  abi::Type t;
  t.scalar = abi::Scalar::kEntity;
  return t;
}
inline abi::Type int_type() {
  abi::Type t;
  t.scalar = abi::Scalar::kInt;
  return t;
}
inline abi::Type real_type() {
  abi::Type t;
  t.scalar = abi::Scalar::kReal;
  return t;
}
inline abi::Type bool_type() {
  abi::Type t;
  t.scalar = abi::Scalar::kBool;
  return t;
}

class PackBuilder {
 public:
  PackBuilder()
      : pack(std::make_shared<abi::CompiledPack>()), code(std::make_shared<FunctionSet>()) {
    pack->symbols = std::make_shared<SymbolTable>();
    pack->code = code;
    pack->classes.emplace_back();
    pack->classes[0].name = "fallback";
    pack->classes[0].fallback = true;
    for (const char* name : {"node.labels", "job.start", "job.nodes", "job.end", "node.repaired",
                             "gpu.replaced", "maint.start", "maint.end", "incident.open"}) {
      abi::KindSchema k;
      k.name = name;
      k.builtin = true;
      pack->kinds.push_back(k);
    }
  }
  abi::KindId kind(std::string name, const std::vector<std::pair<std::string, abi::Type>>& fields) {
    abi::KindSchema k;
    k.name = std::move(name);
    for (const auto& [field, type] : fields) {
      abi::FieldSchema f;
      f.name = field;
      f.type = type;
      k.fields.push_back(f);
    }
    pack->kinds.push_back(k);
    return static_cast<abi::KindId>(pack->kinds.size() - 1);
  }
  abi::EntityKindId entity_kind(std::vector<std::string> keys) {
    pack->entity_kinds.push_back({std::move(keys)});
    return static_cast<abi::EntityKindId>(pack->entity_kinds.size() - 1);
  }
  abi::ExprId expr(abi::Type type, ExprFunction f, std::vector<abi::FeatureId> features = {}) {
    abi::ExprInfo info;
    info.type = type;
    info.features = std::move(features);
    pack->exprs.push_back(info);
    code->functions.push_back(std::move(f));
    return static_cast<abi::ExprId>(pack->exprs.size() - 1);
  }
  abi::ExprId predicate(std::function<bool(const abi::Record&)> f) {
    return expr(
        bool_type(),
        [f = std::move(f)](const abi::Record& r, const abi::EvalContext&, uint64_t&) -> uint32_t {
          return f(r) ? abi::kTrue : abi::kFalse;
        });
  }
  abi::ExprId field_f64(unsigned slot) {
    return expr(real_type(), [slot](const abi::Record& r, const abi::EvalContext&, uint64_t& out) {
      if (!r.has(slot)) return uint32_t{abi::kUnknown};
      out = r.slots()[slot];
      return uint32_t{abi::kTrue};
    });
  }
  abi::LeafId leaf(abi::KindId kind_id, abi::ExprId predicate_id,
                   std::vector<abi::IndexConstraint> constraints = {},
                   abi::ExprId residual = abi::kNone32) {
    abi::LeafPlan l;
    l.kind = kind_id;
    l.predicate = predicate_id;
    l.residual = residual;
    l.constraints = std::move(constraints);
    pack->leaves.push_back(l);
    return static_cast<abi::LeafId>(pack->leaves.size() - 1);
  }
  void own(abi::LeafId l, abi::OwnerKind k, uint32_t owner, uint16_t sub = 0) {
    pack->leaves[l].owners.push_back({k, owner, sub});
  }
  static abi::KeyPlan key(std::vector<uint16_t> slots) {
    abi::KeyPlan plan;
    for (uint16_t s : slots) {
      abi::KeyPart part;
      part.slot = s;
      plan.parts.push_back(part);
    }
    return plan;
  }
  abi::SignalId signal(std::string name, abi::EntityKindId entity, abi::SignalShape shape) {
    abi::SignalPlan s;
    s.name = std::move(name);
    s.entity_kind = entity;
    s.shape = shape;
    pack->signals.push_back(s);
    return static_cast<abi::SignalId>(pack->signals.size() - 1);
  }
  /// Adds a step with its leaf and owner.
  void step(abi::SignalId s, abi::StepMode mode, abi::LeafId l, abi::KeyPlan k,
            int64_t absent_ns = 0, abi::ExprId join = abi::kNone32,
            std::vector<abi::Capture> captures = {}) {
    auto& steps = pack->signals[s].sequence.steps;
    abi::StepPlan p;
    p.mode = mode;
    p.leaf = l;
    p.kind = pack->leaves[l].kind;
    p.key = std::move(k);
    p.absent_ns = absent_ns;
    p.tolerance_ns = mode == abi::StepMode::kThenEither ? absent_ns : 0;
    p.join = join;
    p.captures = std::move(captures);
    own(l, abi::OwnerKind::kSequenceStep, s, static_cast<uint16_t>(steps.size()));
    steps.push_back(p);
  }
  void unless(abi::SignalId s, abi::LeafId l, abi::KeyPlan k, uint16_t after, uint16_t before) {
    auto& list = pack->signals[s].sequence.unless;
    abi::UnlessPlan u;
    u.leaf = l;
    u.kind = pack->leaves[l].kind;
    u.key = std::move(k);
    u.after_step = after;
    u.before_step = before;
    own(l, abi::OwnerKind::kSequenceUnless, s, static_cast<uint16_t>(list.size()));
    list.push_back(u);
  }
  void count_input(abi::SignalId s, abi::LeafId l, abi::KeyPlan k, uint16_t distinct_slot = 0) {
    auto& inputs = pack->signals[s].count.inputs;
    own(l, abi::OwnerKind::kCount, s, static_cast<uint16_t>(inputs.size()));
    inputs.push_back({l, pack->leaves[l].kind, std::move(k), distinct_slot});
  }
  abi::FeatureId feature(abi::FeaturePlan plan) {
    pack->features.push_back(std::move(plan));
    return static_cast<abi::FeatureId>(pack->features.size() - 1);
  }
  void feature_input(abi::FeatureId f, abi::LeafId l, abi::ExprId value, abi::KeyPlan k,
                     bool streak_break = false) {
    auto& inputs = pack->features[f].inputs;
    own(l, abi::OwnerKind::kFeatureInput, f, static_cast<uint16_t>(inputs.size()));
    inputs.push_back({l, value, std::move(k), streak_break});
  }
  void trigger(abi::SignalId s, abi::LeafId l, abi::KeyPlan k) {
    pack->signals[s].condition.triggers.push_back(l);
    pack->signals[s].condition.trigger_keys.push_back(std::move(k));
    own(l, abi::OwnerKind::kCondition, s);
  }

  std::shared_ptr<abi::CompiledPack> pack;
  std::shared_ptr<FunctionSet> code;
};

}  // namespace reflex::test
