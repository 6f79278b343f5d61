// What a site's own events say of a node's habit and state: cohorts (rollouts), repairs,
// maintenance (A11).
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

/// The kind, and its field that names the node; reported when there is none.
struct NodeEvent {
  uint32_t kind = 0;
  uint16_t node_slot = 0;
};

std::optional<NodeEvent> node_event(State& s, PackIndex pack, const ast::Name& kind_name,
                                    const ast::Name& on) {
  const auto kind = resolve(s, s.kind_names, pack, kind_name, Id::kUnknownKind);
  if (!kind) return std::nullopt;
  const KindInfo& info = s.kinds[*kind];
  if (info.is_abstract) {
    s.report(Id::kAbstractUse, kind_name.span,
             "kind '" + kind_name.text + "' is abstract: no event has it");
    return std::nullopt;
  }
  const auto slot = slot_of(info, on.text);
  if (on.text != "node" || !slot) {
    auto& d = s.report(Id::kNotAKey, on.span,
                       "an event of '" + info.schema.name + "' does not name a node");
    d.help = "write: on node; the kind needs a field `node`";
    return std::nullopt;
  }
  s.pack.kinds[info.id].fields[*slot].used = true;
  return NodeEvent{*kind, *slot};
}

void check_baseline(State& s, DeclRef ref, const ast::BaselineDecl& d) {
  const auto event = node_event(s, ref.pack, d.kind, d.on);
  if (!event) return;
  const KindInfo& info = s.kinds[event->kind];
  if (d.repair) {
    s.pack.repairs.push_back({info.id, event->node_slot, s.where(d.kind.span)});
    return;
  }
  const auto value = slot_of(info, d.field.text);
  if (!value) {
    auto& diag = s.report(Id::kUnknownField, d.field.span,
                          "'" + info.schema.name + "' has no field '" + d.field.text + "'");
    suggest(diag, d.field.text, field_names(info), d.field.span);
    return;
  }
  const abi::Scalar scalar = info.schema.fields[*value].type.scalar;
  if (scalar != abi::Scalar::kEntity && scalar != abi::Scalar::kEnum) {
    s.report(Id::kTypeMismatch, d.field.span, "a cohort is named by a word or an entity, this is a " +
                                                  to_text(s, info.schema.fields[*value].type));
    return;
  }
  s.pack.kinds[info.id].fields[*value].used = true;
  s.pack.cohorts.push_back({info.id, event->node_slot, *value, s.where(d.kind.span)});
}

void check_maintenance(State& s, DeclRef ref, const ast::MaintenanceDecl& d) {
  const auto from = node_event(s, ref.pack, d.from, d.on);
  const auto until = node_event(s, ref.pack, d.until, d.on);
  abi::MaintenancePlan plan;
  if (d.grace) {
    const auto ns = constant_duration(s, ref.pack, *d.grace, "the grace");
    if (!ns) return;
    plan.grace_ns = *ns;
  }
  if (!from || !until) return;
  plan.from = s.kinds[from->kind].id;
  plan.from_slot = from->node_slot;
  plan.until = s.kinds[until->kind].id;
  plan.until_slot = until->node_slot;
  plan.where = s.where(d.from.span);
  s.pack.maintenance.push_back(plan);
}

}  // namespace

void check_baselines(State& s) {
  for_each<ast::BaselineDecl>(s, [&](DeclRef ref, const ast::BaselineDecl& d, const ast::Decl&) {
    check_baseline(s, ref, d);
  });
  for_each<ast::MaintenanceDecl>(
      s, [&](DeclRef ref, const ast::MaintenanceDecl& d, const ast::Decl&) {
        check_maintenance(s, ref, d);
      });
}

}  // namespace reflex::sema
