// Faults, external causes and incidents (A9, A10 first line).
#include <algorithm>
#include <array>

#include "compiler/sema/overlay.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::CausePlan;

void check_prior(State& s, const CauseInfo& info, CausePlan& plan) {
  const ast::FaultDecl& d = *info.decl;
  if (!d.prior) return;
  const auto prior = constant_number(s, info.pack, *d.prior, "the prior");
  if (!prior) return;
  if (*prior <= 0 || *prior >= 1) {
    auto& diag = s.report(Id::kProbabilityRange, d.prior->span, "a prior must be between 0 and 1");
    diag.help = "how often it is the cause: prior 2e-4 per job";
    return;
  }
  plan.prior = *prior;
  if (d.prior_per == "job" || d.prior_per.empty()) {
    plan.prior_unit = abi::RateUnit::kPerJob;
  } else if (d.prior_per == "hour" || d.prior_per == "h") {
    plan.prior_unit = abi::RateUnit::kPerHour;
  } else if (d.prior_per == "day" || d.prior_per == "d") {
    plan.prior_unit = abi::RateUnit::kPerHour;
    plan.prior /= 24;
  } else if (d.prior_per == "incident") {
    plan.prior_unit = abi::RateUnit::kPerIncident;
  } else {
    auto& diag = s.report(Id::kUnknownOption, d.prior->span, "no prior per '" + d.prior_per + "'");
    diag.help = "there are: per job, per hour, per day, per incident";
  }
}

void check_cause(State& s, uint32_t index) {
  const CauseInfo& info = s.causes[index];
  const ast::FaultDecl& d = *info.decl;
  CausePlan plan;
  plan.name = s.full_name(info.pack, d.name.text);
  plan.kind = d.external ? abi::CauseKind::kExternal : abi::CauseKind::kFault;
  plan.where = s.where(d.name.span);
  if (const auto entity = resolve_entity(s, info.pack, d.on)) {
    plan.entity_kind = *entity;
    if (!d.external && !node_keyed(s, *entity)) {
      auto& diag = s.report(Id::kScopeUnreachable, d.name.span,
                            "a fault belongs to a node: its first key must be node");
      diag.help = "a cause that is no node's fault is an `external`";
    }
  }
  check_prior(s, info, plan);
  if (d.half_life) {
    const auto ns = constant_duration(s, info.pack, *d.half_life, "half_life");
    plan.half_life_ns = ns.value_or(0);
    if (ns && *ns == 0) report_no_half_life(s, d.half_life->span);
  }
  static constexpr std::array<std::string_view, 3> kSeverities{"info", "warning", "critical"};
  const bool known =
      std::find(kSeverities.begin(), kSeverities.end(), d.severity.text) != kSeverities.end();
  if (!d.severity.empty() && !known) {
    auto& diag =
        s.report(Id::kUnknownOption, d.severity.span, "no severity '" + d.severity.text + "'");
    suggest(diag, d.severity.text, {"critical", "info", "warning"}, d.severity.span);
  }
  plan.severity = d.severity.text;
  plan.remedy = d.remedy.text;
  for (const Symbol& symbol : s.signal_names.symbols) {
    if (symbol.pack != info.pack || symbol.name != d.name.text) continue;
    auto& diag =
        s.report(Id::kDuplicateName, d.name.span, "'" + d.name.text + "' is a cause and a signal");
    diag.notes.push_back({symbol.span, "the signal is declared here"});
  }
  s.pack.causes[index] = std::move(plan);
}

using Scales = std::map<uint32_t, std::map<abi::ClassId, double>>;  // [CauseId]

/// True when it names a fault that is loaded and the number is good.
bool read_prior_scale(State& s, const ast::ProfileDecl::PriorScale& scale, abi::ClassId c,
                      Scales& stated, bool must_exist = false) {
  // Profiles are visible everywhere and name faults of any pack.
  std::vector<uint32_t> named;
  std::vector<std::string> names;
  for (const Symbol& symbol : s.cause_names.symbols) {
    names.push_back(symbol.name);
    const bool full = s.full_name(symbol.pack, symbol.name) == scale.fault.text;
    if (symbol.name == scale.fault.text || full) named.push_back(symbol.index);
  }
  const auto v = constant_number(s, 0, *scale.value, "the scale");
  // Hardware profiles are used with any choice of packs: a fault may simply not be loaded.
  // An overlay is about packs that are: what it does not find would be changed silently by nobody.
  const auto near = named.empty() ? diag::did_you_mean(scale.fault.text, names) : std::nullopt;
  if (near || (named.empty() && must_exist)) {
    auto& diag =
        s.report(Id::kUnknownCause, scale.fault.span, "no fault '" + scale.fault.text + "'");
    if (near) diag.help = "did you mean '" + *near + "'?";
  }
  if (v && *v <= 0) {
    s.report(Id::kBadInterval, scale.value->span, "the scale must be above 0");
  } else if (v) {
    for (const uint32_t cause : named) stated[cause][c] = *v;
  }
  return v && *v > 0 && !named.empty();
}

void read_overlay_scales(State& s, Scales& stated) {
  for_each_entry(
      s, ast::OverlayEntry::Verb::kSetProfile,
      [&](const OverlayUse& use, const ast::OverlayEntry& e) {
        const auto c = find(s, s.profile_names, use.target, e.target.text);
        if (!c || !e.scale) return;  // an unknown profile is reported with the parameters
        const std::string what = "profile " + e.target.text + " prior_scale " + e.scale->fault.text;
        if (!claim(s, what, e.scale->fault.span)) return;
        const auto profile = static_cast<abi::ClassId>(*c);
        if (!read_prior_scale(s, *e.scale, profile, stated, /*must_exist=*/true)) return;
        const Span v = e.scale->value->span;
        note_change(
            s, use, e.scale->fault.span,
            what + " = " + std::string(s.in.sources.text(v.file).substr(v.begin, v.end - v.begin)));
      });
}

/// `prior_scale FAULT = x` of the profiles, inherited like parameters.
void check_prior_scales(State& s) {
  Scales stated;
  for (abi::ClassId c = 0; c < s.profiles.size(); ++c) {
    if (s.profiles[c] == nullptr) continue;
    for (const auto& scale : s.profiles[c]->prior_scales) read_prior_scale(s, scale, c, stated);
  }
  read_overlay_scales(s, stated);
  for (const auto& [cause, values] : stated) {
    std::vector<double> scales(s.pack.classes.size(), 1.0);
    for (abi::ClassId c = 0; c < scales.size(); ++c) {
      for (abi::ClassId up = c;; up = s.pack.classes[up].parent) {
        const auto found = values.find(up);
        if (found != values.end()) {
          scales[c] = found->second;
          break;
        }
        if (s.pack.classes[up].parent == up) break;
      }
    }
    s.pack.causes[cause].class_prior_scale = std::move(scales);
  }
}

void check_opens(State& s, const ast::IncidentDecl& d, PackIndex pack, abi::IncidentPlan& plan) {
  for (const ast::KindPattern& p : d.opens_on) {
    if (find(s, s.signal_names, pack, p.kind.text)) {
      const auto signal = resolve(s, s.signal_names, pack, p.kind, Id::kUnknownSignal);
      if (signal && p.where) {
        s.report(Id::kNotHere, p.where->span, "`where` belongs to a kind, not to a signal");
      }
      if (signal) plan.open_signals.push_back(*signal);
      continue;
    }
    if (!find(s, s.kind_names, pack, p.kind.text)) {
      if (declared_in_broken_text(s, s.signal_names, p.kind.text)) continue;
      auto& diag = s.report(Id::kUnknownSignal, p.kind.span,
                            "no signal or event kind '" + p.kind.text + "'");
      auto names = visible_names(s, s.signal_names, pack);
      const auto kinds = visible_names(s, s.kind_names, pack);
      names.insert(names.end(), kinds.begin(), kinds.end());
      suggest(diag, p.kind.text, names, p.kind.span);
      continue;
    }
    const auto kind = resolve(s, s.kind_names, pack, p.kind, Id::kUnknownKind);
    if (!kind) continue;
    for (const uint32_t concrete : concrete_kinds(s, *kind)) {
      if (!derive_key(s, concrete, plan.entity_kind, p.kind.span)) continue;
      abi::ExprId predicate = kNone32;
      if (p.where) {
        Env env;
        env.pack = pack;
        env.record_kind = concrete;
        env.record_names = {"it"};
        const NodePtr n = check_predicate(s, env, *p.where);
        if (is_error(n)) continue;
        predicate = emit(s, n, plan.name + ".opens");
      }
      plan.open_kinds.push_back(s.kinds[concrete].id);
      plan.open_predicates.push_back(predicate);
    }
  }
}

void check_incident(State& s, uint32_t index, PackIndex pack, const ast::IncidentDecl& d) {
  abi::IncidentPlan plan;
  plan.name = s.full_name(pack, d.name.text);
  plan.where = s.where(d.name.span);
  plan.settle_ns = s.pack.clock.settle_ns;
  if (const auto entity = resolve_entity(s, pack, d.on)) plan.entity_kind = *entity;
  if (d.opens_on.empty()) {
    auto& diag =
        s.report(Id::kIncomplete, d.name.span, "incident '" + d.name.text + "' never opens");
    diag.help = "write: opens on SIGNAL or KIND";
  }
  check_opens(s, d, pack, plan);
  auto span = [&](const ast::ExprPtr& e, const char* what, int64_t& into) {
    if (!e) return;
    if (const auto ns = constant_duration(s, pack, *e, what)) into = *ns;
  };
  span(d.settle, "`settle`", plan.settle_ns);
  span(d.merge_for, "`merge for`", plan.merge_ns);
  auto level = [&](const ast::ExprPtr& e, const char* what, double& into) {
    if (!e) return;
    const auto v = constant_number(s, pack, *e, what);
    if (v && (*v <= 0 || *v >= 1)) {
      s.report(Id::kProbabilityRange, e->span, std::string(what) + " must be between 0 and 1");
    } else if (v) {
      into = *v;
    }
  };
  level(d.confirm, "`confirm`", plan.confirm);
  level(d.suspect, "`suspect`", plan.suspect);
  level(d.unexplained, "`unexplained`", plan.unexplained_prior);
  if (plan.suspect > plan.confirm) {
    s.report(Id::kBadInterval, d.suspect ? d.suspect->span : d.name.span,
             "`suspect` must not be above `confirm`");
  }
  s.pack.incidents[index] = std::move(plan);
}

}  // namespace

void check_causes(State& s) {
  for (uint32_t i = 0; i < s.causes.size(); ++i) check_cause(s, i);
  check_prior_scales(s);
}

void check_incidents(State& s) {
  uint32_t index = 0;
  for_each<ast::IncidentDecl>(s, [&](DeclRef ref, const ast::IncidentDecl& d, const ast::Decl&) {
    check_incident(s, index++, ref.pack, d);
  });
}

}  // namespace reflex::sema
