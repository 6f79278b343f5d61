// Builder: rules on verdicts (A10) and the expressions inside their templates.
//
// A template is literal text with `{expr}` or `{expr:%format}`; `{{` and `}}` are braces. Each
// expression is parsed by the grammar like any other, with spans into the string.
#include <antlr4-runtime.h>

#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {
namespace {

/// Where the text of a string token begins and ends, as bytes of the file.
source::Span inside(source::Span token, bool raw) {
  const uint32_t quotes = raw ? 3 : 1;
  return {token.file, token.begin + quotes, token.end - quotes};
}

}  // namespace

ast::ExprPtr Builder::template_expr(source::Span at) {
  Tokens tokens(tokens_, at);
  if (!check_limits(tokens, Limits{}, sink_)) {
    return node(ast::ExprKind::kError, at);
  }
  Parser parser(&tokens.stream());
  parser.removeErrorListeners();
  parser.setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
  try {
    auto* tree = parser.expr();
    if (tokens.is_end(tokens.position_of(tokens.stream().index()))) {
      return Builder(tokens, sink_, module_).expr(tree);
    }
  } catch (const antlr4::ParseCancellationException&) {  // reported below, as a text left over is
  }
  auto& d = sink_.report(diag::Id::kBadTemplate, at,
                         "'" + std::string(tokens_.text(at)) + "' is not an expression");
  d.help = "write {v.top.node}, or {v.top.p:%.1f}; {{ for a brace";
  return node(ast::ExprKind::kError, at);
}

/// What stands between two braces: an expression and perhaps ":%format".
ast::TemplatePart Builder::template_field(source::Span at) {
  ast::TemplatePart part;
  part.span = at;
  const std::string_view text = tokens_.text(at);
  const size_t colon = text.rfind(":%");
  source::Span value = at;
  if (colon != std::string_view::npos) {
    part.format = std::string(text.substr(colon + 1));
    value.end = at.begin + static_cast<uint32_t>(colon);
  }
  part.value = template_expr(value);
  return part;
}

std::vector<ast::TemplatePart> Builder::template_parts(antlr4::Token* token) {
  const bool raw = token->getType() == Lexer::RAW_STRING;
  const source::Span whole = inside(tokens_.span(token), raw);
  const std::string_view text = tokens_.text(whole);
  std::vector<ast::TemplatePart> parts;
  std::string literal_text;
  const auto flush = [&] {
    if (literal_text.empty()) return;
    ast::TemplatePart part;
    part.text = std::move(literal_text);
    literal_text.clear();
    part.span = whole;
    parts.push_back(std::move(part));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool twice = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && twice) {
      literal_text += text[i++];
    } else if (text[i] == '\\' && !raw && i + 1 < text.size()) {
      const char next = text[++i];
      literal_text += next == 'n' ? '\n' : next == 't' ? '\t' : next;
    } else if (text[i] != '{') {
      literal_text += text[i];
    } else {
      const size_t close = text.find('}', i);
      if (close == std::string_view::npos) {
        sink_.report(diag::Id::kBadTemplate, whole, "a '{' without its '}'").help =
            "write {{ for a brace";
        break;
      }
      flush();
      parts.push_back(template_field({whole.file, whole.begin + static_cast<uint32_t>(i) + 1,
                                      whole.begin + static_cast<uint32_t>(close)}));
      i = close;
    }
  }
  flush();
  return parts;
}

ast::VerdictRuleDecl::Action Builder::rule_action(Parser::RuleItemContext* ctx) {
  ast::VerdictRuleDecl::Action a;
  a.span = span(ctx);
  a.name = name(ctx->identifier());
  for (auto* arg : ctx->expr()) {
    a.args.push_back(expr(arg));
  }
  for (auto* option : ctx->actionOption()) {
    if (option->K_LIMIT() != nullptr) {
      once(a.limit != 0, option, "limit");
      a.limit = integer(option->INT()->getSymbol());
      if (a.limit < 1) {
        error(span(option), "a limit is at least 1", "leave the action out to never run it");
        a.limit = 1;
      }
      if (option->identifier() != nullptr) {
        a.per = name(option->identifier());
      }
      a.in = sum(option->sum());
    } else {
      once(!a.mode.empty(), option, "mode");
      a.mode = name(option->identifier());
    }
  }
  return a;
}

void Builder::rule_item(ast::VerdictRuleDecl& r, Parser::RuleItemContext* ctx) {
  if (ctx->K_SEVERITY() != nullptr) {
    once(r.severity != nullptr, ctx, "severity");
    r.severity = expr(ctx->expr(0));
  } else if (ctx->K_LABEL() != nullptr) {
    r.labels.push_back({name(ctx->identifier()), expr(ctx->expr(0))});
  } else if (ctx->K_ANNOTATE() != nullptr) {
    r.annotations.push_back({name(ctx->identifier()), template_parts(ctx->stop)});
  } else if (ctx->K_ACTION() != nullptr) {
    r.actions.push_back(rule_action(ctx));
  } else if (ctx->K_REPEAT() != nullptr) {
    once(r.repeat_every != nullptr, ctx, "repeat");
    r.repeat_every = sum(ctx->sum());
  } else {
    once(r.resolve_after != nullptr, ctx, "resolve");
    r.resolve_after = sum(ctx->sum());
  }
}

ast::VerdictRuleDecl Builder::verdict_rule(Parser::VerdictRuleDeclContext* ctx) {
  ast::VerdictRuleDecl r;
  r.name = name(ctx->dottedName(0));
  r.variable = name(ctx->identifier());
  r.incident = name(ctx->dottedName(1));
  r.where = ctx->expr() != nullptr ? expr(ctx->expr()) : nullptr;
  for (auto* item : ctx->ruleItem()) {
    rule_item(r, item);
  }
  return r;
}

}  // namespace reflex::parse
