// Builder: overlays, rules on verdicts, suppression, maintenance. Parsed whole; a later version of
// the engine gives them meaning.
#include <algorithm>
#include <array>
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {
namespace {

/// Words that begin a clause of a rule on verdicts.
bool begins_rule_clause(size_t type) {
  static constexpr std::array<size_t, 6> kStarts = {Lexer::K_SEVERITY, Lexer::K_LABEL,
                                                    Lexer::K_ANNOTATE, Lexer::K_ACTION,
                                                    Lexer::K_REPEAT,   Lexer::K_RESOLVE};
  return std::find(kStarts.begin(), kStarts.end(), type) != kStarts.end();
}

}  // namespace

ast::OverlayEntry Builder::overlay_entry(Parser::OverlayEntryContext* ctx) {
  ast::OverlayEntry entry;
  entry.span = span(ctx);
  entry.verb = std::string(tokens_.text(ctx->start));
  entry.names = names(ctx->dottedName());
  for (auto& word : names(ctx->identifier())) {
    entry.names.push_back(std::move(word));
  }
  if (ctx->listLiteral() != nullptr) {
    entry.values.push_back(list(ctx->listLiteral()));
  }
  if (ctx->expr() != nullptr) {
    entry.values.push_back(expr(ctx->expr()));
  }
  for (auto* row : ctx->exceptRow()) {
    auto values = node(ast::ExprKind::kList, span(row));
    for (auto* value : row->sum()) {
      values->args.push_back(sum(value));
    }
    entry.values.push_back(finish(std::move(values)));
  }
  for (auto* given : ctx->assignment()) {
    ast::DecoderDecl::Assign assign = assignment(given);
    entry.names.push_back(std::move(assign.field));
    entry.values.push_back(std::move(assign.value));
  }
  // `reason "x" until 2026-12-01`, in any order: the value follows its keyword.
  for (size_t i = 0; i + 1 < ctx->children.size(); ++i) {
    auto* word = dynamic_cast<antlr4::tree::TerminalNode*>(ctx->children[i]);
    auto* value = dynamic_cast<antlr4::tree::TerminalNode*>(ctx->children[i + 1]);
    if (word == nullptr || value == nullptr) {
      continue;
    }
    antlr4::Token* token = value->getSymbol();
    if (word->getSymbol()->getType() == Lexer::K_REASON) {
      entry.reason = string_value(token);
    } else if (word->getSymbol()->getType() == Lexer::K_UNTIL) {
      entry.until =
          token->getType() == Lexer::DATE ? std::string(tokens_.text(token)) : string_value(token);
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

ast::VerdictRuleDecl Builder::verdict_rule(Parser::VerdictRuleDeclContext* ctx) {
  ast::VerdictRuleDecl r;
  r.name = name(ctx->dottedName(0));
  r.variable = name(ctx->identifier());
  r.incident = name(ctx->dottedName(1));
  r.where = ctx->expr() != nullptr ? expr(ctx->expr()) : nullptr;
  // The body is kept as text: one entry per clause, a clause begins with its keyword.
  const size_t begin = tokens_.position_of(ctx->LBRACE()->getSymbol()->getTokenIndex()) + 1;
  const size_t end = tokens_.position_of(ctx->RBRACE()->getSymbol()->getTokenIndex());
  size_t depth = 0;
  for (size_t i = begin; i < end; ++i) {
    const size_t type = tokens_.type(i);
    const size_t before = tokens_.type(i - 1);
    const bool inside = depth > 0 || before == Lexer::DOT || before == Lexer::ASSIGN;
    if (r.clause_spans.empty() || (begins_rule_clause(type) && !inside)) {
      r.clause_spans.push_back(tokens_.span(tokens_.at(i)));
    }
    r.clause_spans.back() = source::cover(r.clause_spans.back(), tokens_.span(tokens_.at(i)));
    if (type == Lexer::LPAREN || type == Lexer::LBRACE || type == Lexer::LBRACKET) {
      ++depth;
    } else if ((type == Lexer::RPAREN || type == Lexer::RBRACE || type == Lexer::RBRACKET) &&
               depth > 0) {
      --depth;
    }
  }
  for (const source::Span& clause : r.clause_spans) {
    r.clauses.emplace_back(tokens_.text(clause));
  }
  return r;
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
