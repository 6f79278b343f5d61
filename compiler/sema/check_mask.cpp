// Masks (common mode of a group of nodes) and synergies (two signals that say more together).
#include <algorithm>
#include <cmath>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

// Source: abi::SynergyPlan.
constexpr size_t kSynergySignalsMax = 4;
// Why: as for an edge (check_edge.cpp), beyond it sums of weights lose all other evidence.
constexpr double kSynergyNatsMax = 50;

/// `30% of members`, `30%` or `0.3`: a share above 0 and at most 1.
std::optional<double> share_of_members(State& s, PackIndex pack, const ast::Expr& e) {
  const ast::Expr* number = &e;
  double scale = 1;
  if (e.kind == ast::ExprKind::kPercentOf) {
    if (e.args[1]->kind != ast::ExprKind::kName || e.args[1]->text != "members") {
      auto& diag = s.report(Id::kUnknownOption, e.args[1]->span,
                            "the share of a mask is of the group's members");
      diag.help = "write: when at least 30% of members in 60s";
      return std::nullopt;
    }
    number = e.args[0].get();
    scale = 0.01;
  }
  const auto v = constant_number(s, pack, *number, "the share");
  if (!v) return std::nullopt;
  if (!(*v * scale > 0 && *v * scale <= 1)) {
    s.report(Id::kProbabilityRange, e.span, "the share must be above 0% and at most 100%");
    return std::nullopt;
  }
  return *v * scale;
}

/// What masks, when it may: a declared cause whose entity is a group of nodes.
std::optional<abi::CauseId> mask_cause(State& s, PackIndex pack, const ast::Name& name) {
  const auto cause = resolve(s, s.cause_names, pack, name, Id::kUnknownCause);
  if (!cause) return std::nullopt;
  const abi::EntityKindId entity = s.pack.causes[*cause].entity_kind;
  if (!node_keyed(s, entity)) return cause;
  auto& diag = s.report(Id::kMaskWithoutGroup, name.span,
                        "'" + name.text + "' is on " + entity_text(s, entity) +
                            ": a single node has no members that it could mask");
  diag.notes.push_back({s.causes[*cause].decl->name.span, "the cause is declared here"});
  diag.help = "masks belong to an external on tor, rack, pod, zone, job, storage ..";
  return std::nullopt;
}

void check_synergy(State& s, PackIndex pack, const ast::SynergyDecl& d) {
  abi::SynergyPlan plan;
  plan.where = s.where(d.cause.span);
  const auto cause = resolve(s, s.cause_names, pack, d.cause, Id::kUnknownCause);
  const auto weight = constant_number(s, pack, *d.weight_nats, "the weight");
  bool ok = cause && weight;
  if (weight && !(std::abs(*weight) <= kSynergyNatsMax)) {
    s.report(Id::kProbabilityRange, d.weight_nats->span,
             "a weight must be between -50 and 50 nats");
    ok = false;
  }
  for (const ast::Name& name : d.signals) {
    const auto signal = resolve(s, s.signal_names, pack, name, Id::kUnknownSignal);
    if (!signal || s.signals[*signal].broken) {
      ok = false;
      continue;
    }
    if (std::find(plan.signals.begin(), plan.signals.end(), *signal) != plan.signals.end()) {
      s.report(Id::kDuplicateName, name.span, "'" + name.text + "' stands twice in the synergy");
      ok = false;
    }
    plan.signals.push_back(*signal);
    if (!cause) continue;
    const auto& edges = s.pack.edges;
    const bool caused = std::any_of(edges.begin(), edges.end(), [&](const abi::EdgePlan& e) {
      return !e.from_signal && e.cause == *cause && e.to == *signal;
    });
    if (caused) continue;
    auto& diag = s.report(Id::kUnknownSignal, name.span,
                          "'" + d.cause.text + "' does not cause '" + name.text + "'");
    diag.help = "a synergy is on top of edges: " + d.cause.text + " causes " + name.text + " p ..";
    ok = false;
  }
  if (d.signals.size() > kSynergySignalsMax) {
    s.report(Id::kTooManyFields, d.signals[kSynergySignalsMax].span,
             "a synergy has at most 4 signals");
    ok = false;
  }
  if (!ok) return;
  plan.cause = *cause;
  plan.weight_nats = *weight;
  s.pack.synergies.push_back(std::move(plan));
}

}  // namespace

void check_mask(State& s, PackIndex pack, const ast::CausesDecl& d) {
  abi::MaskPlan plan;
  plan.where = s.where(d.cause.span);
  const auto cause = mask_cause(s, pack, d.cause);
  const auto lag = check_lag(s, pack, d);
  bool ok = cause && lag;
  if (d.p || d.weight_nats || !d.scope.empty()) {
    const Span at = d.p ? d.p->span : d.weight_nats ? d.weight_nats->span : d.scope.span;
    auto& diag = s.report(Id::kNotHere, at, "`masks` takes no p, weight or scope");
    diag.help = "the group of '" + d.cause.text + "' says whom it masks; p belongs to `causes`";
    ok = false;
  }
  if (d.when_at_least) {
    const auto share = share_of_members(s, pack, *d.when_at_least);
    const auto within = constant_duration(s, pack, *d.when_in, "the span of the mask");
    ok = ok && share && within;
    plan.at_least = share.value_or(plan.at_least);
    plan.within_ns = within.value_or(plan.within_ns);
  }
  for (const ast::Name& effect : d.effects) {
    const auto signal = resolve(s, s.signal_names, pack, effect, Id::kUnknownSignal);
    if (!signal || s.signals[*signal].broken) {
      ok = false;
      continue;
    }
    plan.signals.push_back(*signal);
    if (node_keyed(s, s.pack.signals[*signal].entity_kind)) continue;
    auto& diag = s.report(Id::kScopeUnreachable, effect.span,
                          "'" + effect.text + "' is on " +
                              entity_text(s, s.pack.signals[*signal].entity_kind) +
                              "; a mask explains signals of nodes");
    diag.notes.push_back({s.signals[*signal].decl->name.span, "the signal is declared here"});
    ok = false;
  }
  if (!ok) return;
  plan.cause = *cause;
  plan.lag_lo_ns = lag->lo_ns;
  plan.lag_hi_ns = lag->hi_ns;
  s.pack.masks.push_back(std::move(plan));
}

void check_synergies(State& s) {
  for_each<ast::SynergyDecl>(s, [&](DeclRef ref, const ast::SynergyDecl& d, const ast::Decl&) {
    check_synergy(s, ref.pack, d);
  });
}

}  // namespace reflex::sema
