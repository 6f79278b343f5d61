// Builder: names, member access, calls and aggregates (feature functions).
#include <algorithm>
#include <array>
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {
namespace {

using ast::ExprKind;

/// Functions whose first argument is always a stream (a kind or a field of one).
bool is_stream_function(std::string_view name) {
  static constexpr std::array<std::string_view, 16> kNames = {
      "cusum",    "decayed", "ewma",        "first", "increase", "last",   "mean", "median",
      "quantile", "rate",    "reset_count", "since", "stddev",   "streak", "sum",  "trend"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// `max(x, last 8)` is an aggregate, `max(3, 5)` a call: options and `where` tell.
bool has_stream_parts(Parser::CallArgumentsContext* ctx) {
  for (auto* argument : ctx->callArgument()) {
    if (argument->K_WHERE() != nullptr || !argument->callOption().empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace

ast::ExprPtr Builder::access(Parser::AccessContext* ctx) {
  antlr4::Token* last = ctx->exprName()->stop;
  // The identifiers directly in `access` are the path; those of accessTail are members.
  for (auto* part : ctx->identifier()) {
    last = part->stop;
  }
  const ast::Name path{tokens_.joined(ctx->start, last), tokens_.span(ctx->start, last)};
  ast::ExprPtr e;
  if (ctx->callArguments() != nullptr) {
    ast::Name callee = path;
    if (ctx->QUESTION() != nullptr) {
      callee.text += "?";
    }
    e = call(ctx->callArguments(), callee);
  } else if (auto* value = row_.empty() ? nullptr : bound(path.text)) {
    e = row_value(value);
  } else {
    e = node(ExprKind::kName, path.span);
    e->text = path.text;
  }
  if (ctx->sum() != nullptr) {
    auto index = node(ExprKind::kIndex, tokens_.span(ctx->start, ctx->RBRACKET()->getSymbol()));
    index->args.push_back(std::move(e));
    index->args.push_back(sum(ctx->sum()));
    e = finish(std::move(index));
  }
  for (auto* tail : ctx->accessTail()) {
    const bool member = tail->identifier() != nullptr;
    auto outer =
        node(member ? ExprKind::kMember : ExprKind::kIndex, source::cover(e->span, span(tail)));
    outer->args.push_back(std::move(e));
    if (member) {
      outer->text = text(tail->identifier());
      outer->op_span = span(tail->identifier());
    } else {
      outer->args.push_back(sum(tail->sum()));
    }
    e = finish(std::move(outer));
  }
  return e;
}

ast::ExprPtr Builder::call(Parser::CallArgumentsContext* ctx, const ast::Name& callee) {
  const source::Span whole = source::cover(callee.span, span(ctx));
  if (callee.text == "peers") return peers(ctx, callee, whole);
  if (is_stream_function(callee.text) || has_stream_parts(ctx)) {
    auto e = node(ExprKind::kAggregate, whole);
    e->text = callee.text;
    e->op_span = callee.span;
    e->aggregate = aggregate(callee, ctx);
    return finish(std::move(e));
  }
  auto e = node(ExprKind::kCall, whole);
  e->text = callee.text;
  e->op_span = callee.span;
  for (auto* argument : ctx->callArgument()) {
    e->args.push_back(expr(argument->expr(0)));
    e->arg_names.emplace_back();
  }
  return finish(std::move(e));
}

ast::ExprPtr Builder::peers(Parser::CallArgumentsContext* ctx, const ast::Name& callee,
                            source::Span whole) {
  auto e = node(ExprKind::kCall, whole);
  e->text = callee.text;
  e->op_span = callee.span;
  for (auto* argument : ctx->callArgument()) {
    if (!argument->expr().empty()) {
      e->args.push_back(expr(argument->expr(0)));
      e->arg_names.emplace_back();
    }
    for (auto* given : argument->callOption()) {
      ast::Aggregate::Option o = option(given);
      if (o.name != "by") {
        error(o.span, "peers(..) has no option '" + o.name + "'", "write: peers(job by ..)");
        continue;
      }
      e->args.push_back(std::move(o.value));
      e->arg_names.emplace_back("by");
    }
  }
  return finish(std::move(e));
}

ast::KindPattern Builder::pattern(Parser::KindPatternContext* ctx) {
  ast::KindPattern p;
  p.kind = name(ctx->dottedName());
  p.where = ctx->expr() != nullptr ? expr(ctx->expr()) : nullptr;
  p.span = span(ctx);
  return p;
}

ast::Aggregate::Option Builder::option(Parser::CallOptionContext* ctx) {
  return {text(ctx->optionName()), sum(ctx->sum()), span(ctx)};
}

std::unique_ptr<ast::Aggregate> Builder::aggregate(const ast::Name& fn,
                                                   Parser::CallArgumentsContext* ctx) {
  auto a = std::make_unique<ast::Aggregate>();
  a->fn = fn.text;
  a->span = source::cover(fn.span, span(ctx));
  const auto arguments = ctx->callArgument();
  if (arguments.empty() || arguments[0]->expr().empty()) {
    error(a->span, "the first argument of '" + fn.text + "' must be an event kind or a field",
          "write for example " + fn.text + "(gpu.temp.value, ..)");
  } else {
    aggregate_source(*a, arguments[0]);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto exprs = arguments[i]->expr();
    if (i > 0 && !exprs.empty()) {
      a->args.push_back(expr(exprs[0]));
      if (exprs.size() > 1) {
        error(span(exprs[1]), "'where' belongs behind the first argument of '" + fn.text + "'");
      }
    }
    for (auto* given : arguments[i]->callOption()) {
      a->options.push_back(option(given));
    }
  }
  return a;
}

void Builder::aggregate_source(ast::Aggregate& into, Parser::CallArgumentContext* first) {
  const auto exprs = first->expr();
  ast::ExprPtr source = expr(exprs[0]);
  into.source.span = span(first);
  if (source->kind == ExprKind::kName) {
    into.source.kind = {source->text, source->span};
  } else if (source->kind == ExprKind::kAggregate) {
    into.inner_fn = source->aggregate->fn;
    into.source.kind = source->aggregate->source.kind;
    into.source.where = std::move(source->aggregate->source.where);
    if (!source->aggregate->inner_fn.empty() || !source->aggregate->args.empty() ||
        !source->aggregate->options.empty()) {
      error(source->span, "only increase(kind.field) may stand inside of '" + into.fn + "'",
            "declare the inner part as a feature of its own");
    }
  } else if (source->kind != ExprKind::kError) {
    error(source->span, "the first argument of '" + into.fn + "' must be an event kind or a field",
          "write for example " + into.fn + "(gpu.temp.value, ..)");
  }
  if (exprs.size() > 1) {
    if (into.source.where != nullptr) {
      error(span(exprs[1]), "'where' is given twice", "join the two conditions with 'and'");
    }
    into.source.where = expr(exprs[1]);
  }
}

}  // namespace reflex::parse
