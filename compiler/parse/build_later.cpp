// Builder: overlays (A4), suppression, maintenance, cohorts, synergies.
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {

using Verb = ast::OverlayEntry::Verb;

/// `reason "x" until 2026-12-01`, in any order: the value follows its keyword.
void Builder::reason_until(Parser::OverlayEntryContext* ctx, ast::OverlayEntry& entry) {
  for (size_t i = 0; i + 1 < ctx->children.size(); ++i) {
    auto* word = dynamic_cast<antlr4::tree::TerminalNode*>(ctx->children[i]);
    auto* value = dynamic_cast<antlr4::tree::TerminalNode*>(ctx->children[i + 1]);
    if (word == nullptr || value == nullptr) {
      continue;
    }
    antlr4::Token* token = value->getSymbol();
    if (word->getSymbol()->getType() == Lexer::K_REASON) {
      once(!entry.reason.empty(), ctx, "reason");
      entry.reason = string_value(token);
    } else if (word->getSymbol()->getType() == Lexer::K_UNTIL) {
      once(!entry.until.empty(), ctx, "until");
      entry.until =
          token->getType() == Lexer::DATE ? std::string(tokens_.text(token)) : string_value(token);
    }
  }
}

void Builder::except_entry(Parser::OverlayEntryContext* ctx, ast::OverlayEntry& entry) {
  auto words = names(ctx->identifier());
  entry.what = words.front();
  entry.keys.assign(words.begin() + 1, words.end());
  for (auto* row : ctx->exceptRow()) {
    auto values = node(ast::ExprKind::kList, span(row));
    for (auto* value : row->sum()) {
      values->args.push_back(sum(value));
    }
    if (values->args.size() != entry.keys.size()) {
      error(values->span,
            "the row has " + std::to_string(values->args.size()) + " values for " +
                std::to_string(entry.keys.size()) + " keys",
            "write one value for each key");
    }
    entry.rows.push_back(finish(std::move(values)));
  }
}

ast::OverlayEntry Builder::overlay_entry(Parser::OverlayEntryContext* ctx) {
  ast::OverlayEntry entry;
  entry.span = span(ctx);
  const auto dotted = ctx->dottedName();
  entry.target = name(dotted.back());
  if (ctx->K_EXTEND() != nullptr) {
    entry.verb = Verb::kExtendList;
    entry.value = list(ctx->listLiteral());
  } else if (ctx->K_SET() != nullptr) {
    entry.verb = Verb::kSetProfile;
    auto* item = ctx->profileItem();
    if (item->K_PRIOR_SCALE() != nullptr) {
      entry.scale = {name(item->dottedName()), sum(item->sum(0))};
    } else {
      entry.set = profile_param(item);
    }
  } else if (ctx->K_DISABLE() != nullptr) {
    entry.verb = Verb::kDisableSignal;
    reason_until(ctx, entry);
  } else if (ctx->K_EXCEPT() != nullptr) {
    entry.verb = Verb::kExcept;
    except_entry(ctx, entry);
  } else {
    entry.verb = Verb::kAliasKind;
    entry.what = dotted.size() > 1 ? name(dotted.front())
                                   : ast::Name{string_value(ctx->STRING(0)->getSymbol()),
                                               tokens_.span(ctx->STRING(0)->getSymbol())};
    if (entry.what.empty()) {
      error(entry.what.span, "the other name of a kind is empty",
            "write the name that events carry: alias kind \"dcgm.sbe_burst\" = ..");
    }
    for (auto* given : ctx->assignment()) {
      entry.assigns.push_back(assignment(given));
    }
  }
  return entry;
}

ast::OverlayDecl Builder::overlay(Parser::OverlayDeclContext* ctx) {
  ast::OverlayDecl o;
  o.name = name(ctx->dottedName(0));
  o.target = name(ctx->dottedName(1));
  o.range = ctx->versionRange() != nullptr ? text(ctx->versionRange()) : "";
  for (auto* entry : ctx->overlayEntry()) {
    o.entries.push_back(overlay_entry(entry));
  }
  return o;
}

ast::SuppressDecl Builder::suppress(Parser::SuppressDeclContext* ctx) {
  ast::SuppressDecl s;
  s.name = name(ctx->dottedName());
  for (auto* item : ctx->suppressItem()) {
    if (item->K_SIGNALS() != nullptr) {
      for (auto& signal : names(item->dottedName())) {
        s.signals.push_back(std::move(signal));
      }
    } else if (item->K_WHERE() != nullptr) {
      once(s.where != nullptr, item, "where");
      s.where = expr(item->expr());
    } else if (item->K_REASON() != nullptr) {
      once(!s.reason.empty(), item, "reason");
      s.reason = string_value(item->STRING()->getSymbol());
    } else {
      once(!s.until.empty(), item, "until");
      s.until = item->DATE() != nullptr ? token_text(item->DATE())
                                        : string_value(item->STRING()->getSymbol());
    }
  }
  return s;
}

ast::BaselineDecl Builder::baseline(Parser::BaselineDeclContext* ctx) {
  ast::BaselineDecl b;
  b.repair = ctx->K_REPAIR() != nullptr;
  b.kind = name(ctx->dottedName());
  if (!b.repair) b.field = name(ctx->identifier(0));
  b.on = name(ctx->identifier(b.repair ? 0 : 1));
  return b;
}

ast::MaintenanceDecl Builder::maintenance(Parser::MaintenanceDeclContext* ctx) {
  ast::MaintenanceDecl m;
  m.from = name(ctx->dottedName(0));
  m.until = name(ctx->dottedName(1));
  m.on = name(ctx->identifier());
  m.grace = opt(ctx->sum());
  return m;
}

ast::SynergyDecl Builder::synergy(Parser::SynergyDeclContext* ctx) {
  ast::SynergyDecl s;
  s.signals = names(ctx->dottedName());
  s.cause = s.signals.front();
  s.signals.erase(s.signals.begin());
  s.weight_nats = sum(ctx->sum());
  return s;
}

}  // namespace reflex::parse
