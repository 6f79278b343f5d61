// Builder: faults, external causes, edges, incidents; and the choice of declaration.
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {

ast::FaultDecl Builder::fault(Parser::FaultDeclContext* ctx) {
  ast::FaultDecl f;
  f.external = ctx->K_EXTERNAL() != nullptr;
  f.name = name(ctx->dottedName());
  f.on = keys(ctx->keys());
  for (auto* item : ctx->faultItem()) {
    if (item->K_PRIOR() != nullptr) {
      once(f.prior != nullptr, item, "prior");
      f.prior = bare_number(item->bareNumber());
      f.prior_per = item->rateWord() != nullptr ? text(item->rateWord()) : "";
    } else if (item->K_HALF_LIFE() != nullptr) {
      once(f.half_life != nullptr, item, "half_life");
      f.half_life = sum(item->sum());
    } else if (item->K_SEVERITY() != nullptr) {
      once(!f.severity.empty(), item, "severity");
      f.severity = name(item->identifier());
    } else {
      once(!f.remedy.empty(), item, "remedy");
      f.remedy = name(item->identifier());
    }
  }
  return f;
}

void Builder::edge_option(ast::CausesDecl& c, Parser::EdgeOptionContext* ctx) {
  if (ctx->K_P() != nullptr) {
    once(c.p != nullptr, ctx, "p");
    c.p = bare_number(ctx->bareNumber());
  } else if (ctx->K_WEIGHT() != nullptr) {
    once(c.weight_nats != nullptr, ctx, "weight");
    c.weight_nats = sum(ctx->sum(0));
  } else if (ctx->K_LAG() != nullptr) {
    once(c.lag_lo != nullptr, ctx, "lag");
    c.lag_lo = sum(ctx->sum(0));
    c.lag_hi = sum(ctx->sum(1));
  } else if (ctx->K_SCOPE() != nullptr) {
    once(!c.scope.empty(), ctx, "scope");
    c.scope = name(ctx->identifier());
  } else if (ctx->K_WHEN() != nullptr) {
    once(c.when_at_least != nullptr, ctx, "when at least");
    c.when_at_least = sum(ctx->sum(0));
    c.when_in = sum(ctx->sum(1));
  } else {
    c.learn = true;
  }
}

ast::CausesDecl Builder::edge(Parser::EdgeDeclContext* ctx) {
  ast::CausesDecl c;
  auto dotted = names(ctx->dottedName());
  if (ctx->K_EXPLAINED() != nullptr) {
    // Written from the effect: `nic_flap explained by maintenance on node`.
    c.verb = ast::CausesDecl::Verb::kExplainedBy;
    c.effects.push_back(dotted[0]);
    c.cause = dotted[1];
    if (ctx->identifier() != nullptr) {
      c.on = name(ctx->identifier());
    }
  } else {
    c.verb =
        ctx->K_MASKS() != nullptr ? ast::CausesDecl::Verb::kMasks : ast::CausesDecl::Verb::kCauses;
    c.cause = dotted[0];
    c.effects.assign(dotted.begin() + 1, dotted.end());
  }
  for (auto* option : ctx->edgeOption()) {
    edge_option(c, option);
  }
  return c;
}

ast::IncidentDecl Builder::incident(Parser::IncidentDeclContext* ctx) {
  ast::IncidentDecl i;
  i.name = name(ctx->dottedName());
  i.on = keys(ctx->keys());
  for (auto* item : ctx->incidentItem()) {
    if (item->K_OPENS() != nullptr) {
      for (auto* given : item->dottedName()) {
        i.opens_on.push_back({name(given), nullptr, span(given)});
      }
      if (item->expr() != nullptr) {
        i.opens_on.back().where = expr(item->expr());
        i.opens_on.back().span = source::cover(i.opens_on.back().span, span(item->expr()));
      }
    } else if (item->K_SETTLE() != nullptr) {
      once(i.settle != nullptr, item, "settle");
      i.settle = sum(item->sum());
    } else if (item->K_MERGE() != nullptr) {
      once(i.merge_for != nullptr, item, "merge for");
      i.merge_for = sum(item->sum());
    } else if (item->K_CONFIRM() != nullptr) {
      once(i.confirm != nullptr, item, "confirm");
      i.confirm = sum(item->sum());
    } else if (item->K_SUSPECT() != nullptr) {
      once(i.suspect != nullptr, item, "suspect");
      i.suspect = sum(item->sum());
    } else {
      once(i.unexplained != nullptr, item, "unexplained");
      i.unexplained = sum(item->sum());
    }
  }
  return i;
}

void Builder::declaration(Parser::DeclarationContext* ctx) {
  ast::Decl d;
  d.exported = ctx->K_EXPORT() != nullptr;
  d.span = span(ctx);
  if (ctx->packDecl() != nullptr) {
    return pack(ctx->packDecl());
  }
  if (ctx->importDecl() != nullptr) {
    return import(ctx->importDecl());
  }
  if (ctx->clockDecl() != nullptr || ctx->limitsDecl() != nullptr) {
    const bool clock = ctx->clockDecl() != nullptr;
    if (needs_head(ctx, clock ? "clock" : "limits")) {
      auto* given = clock ? ctx->clockDecl()->settings() : ctx->limitsDecl()->settings();
      auto& into = clock ? module_.head->clock : module_.head->limits;
      for (auto& setting : settings(given)) {
        into.push_back(std::move(setting));
      }
    }
    return;
  }
  if (auto* event_ctx = ctx->eventDecl()) {
    d.node = event(event_ctx);
  } else if (auto* profile_ctx = ctx->profileDecl()) {
    d.node = profile(profile_ctx);
  } else if (auto* list_ctx = ctx->listDecl()) {
    d.node = list_decl(list_ctx);
  } else if (auto* macro_ctx = ctx->macroDecl()) {
    d.node = macro(macro_ctx);
  } else if (auto* decoder_ctx = ctx->decoderDecl()) {
    d.node = decoder(decoder_ctx);
  } else if (auto* signal_ctx = ctx->signalDecl()) {
    d.node = signal(signal_ctx, ctx->start);
  } else if (auto* feature_ctx = ctx->featureDecl()) {
    d.node = feature(feature_ctx);
  } else if (auto* fault_ctx = ctx->faultDecl()) {
    d.node = fault(fault_ctx);
  } else if (auto* incident_ctx = ctx->incidentDecl()) {
    d.node = incident(incident_ctx);
  } else if (auto* edge_ctx = ctx->edgeDecl()) {
    d.node = edge(edge_ctx);
  } else if (auto* test_ctx = ctx->testDecl()) {
    return tests(test_ctx, d);
  } else if (auto* overlay_ctx = ctx->overlayDecl()) {
    d.node = overlay(overlay_ctx);
  } else if (auto* rule_ctx = ctx->verdictRuleDecl()) {
    d.node = verdict_rule(rule_ctx);
  } else if (auto* suppress_ctx = ctx->suppressDecl()) {
    d.node = suppress(suppress_ctx);
  } else if (auto* maintenance_ctx = ctx->maintenanceDecl()) {
    d.node = maintenance(maintenance_ctx);
  } else if (auto* baseline_ctx = ctx->baselineDecl()) {
    d.node = baseline(baseline_ctx);
  } else {
    d.node = synergy(ctx->synergyDecl());
  }
  module_.decls.push_back(std::move(d));
}

}  // namespace reflex::parse
