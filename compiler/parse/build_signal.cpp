// Builder: signals (sequences, counts, conditions) and features.
#include <algorithm>
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {
namespace {

/// "# text" -> "text".
std::string comment_text(std::string_view comment) {
  comment.remove_prefix(1);
  if (!comment.empty() && comment.front() == ' ') {
    comment.remove_prefix(1);
  }
  return std::string(comment);
}

}  // namespace

std::string Builder::doc_above(antlr4::Token* first) const {
  const size_t index = first->getTokenIndex();
  const size_t position = tokens_.position_of(index);
  const size_t code_line = position == 0 ? 0 : tokens_.at(position - 1)->getLine();
  const auto hidden = tokens_.stream().getHiddenTokensToLeft(
      index, static_cast<ssize_t>(antlr4::Token::HIDDEN_CHANNEL));
  std::vector<std::string> lines;
  size_t expected = first->getLine();
  for (auto it = hidden.rbegin(); it != hidden.rend(); ++it) {
    // A comment on the line of code above it belongs to that code.
    if ((*it)->getLine() + 1 != expected || (*it)->getLine() == code_line) {
      break;
    }
    expected = (*it)->getLine();
    lines.push_back(comment_text(tokens_.text(*it)));
  }
  std::string doc;
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) {
    doc += doc.empty() && it == lines.rbegin() ? *it : "\n" + *it;
  }
  return doc;
}

ast::SignalDecl Builder::signal(Parser::SignalDeclContext* ctx, antlr4::Token* first) {
  ast::SignalDecl s;
  s.name = name(ctx->dottedName());
  s.on = keys(ctx->keys());
  s.within = opt(ctx->sum());
  s.doc = doc_above(first);
  for (auto* clause : ctx->signalClause()) {
    signal_clause(s, clause);
  }
  for (auto* tail : ctx->signalTail()) {
    signal_tail(s, tail);
  }
  return s;
}

void Builder::signal_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx) {
  if (auto* tail = dynamic_cast<Parser::TailClauseContext*>(ctx)) {
    signal_tail(s, tail->signalTail());
  } else if (auto* counted = dynamic_cast<Parser::CountClauseContext*>(ctx)) {
    count(s, counted);
  } else if (auto* soft = dynamic_cast<Parser::GradedClauseContext*>(ctx)) {
    graded(s, soft);
  } else if (!sequence_clause(s, ctx)) {
    condition_clause(s, ctx);
  }
}

bool Builder::step_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx) {
  ast::Step step;
  step.span = span(ctx);
  Parser::IdentifierContext* variable = nullptr;
  if (auto* first = dynamic_cast<Parser::FirstStepContext*>(ctx)) {
    if (!s.steps.empty()) {
      error(step.span, "a further step begins with 'then'",
            "write 'then " + text(first->identifier()) + ": ..'");
    }
    variable = first->identifier();
    step.pattern = pattern(first->kindPattern());
  } else if (auto* absent = dynamic_cast<Parser::AbsentStepContext*>(ctx)) {
    step.mode = ast::Step::Mode::kThenAbsent;
    variable = absent->identifier();
    step.pattern = pattern(absent->kindPattern());
    step.absent_for = sum(absent->sum());
  } else if (auto* then = dynamic_cast<Parser::ThenStepContext*>(ctx)) {
    step.mode = then->K_STRICTLY() != nullptr ? ast::Step::Mode::kThenStrictly
                : then->TILDE() != nullptr    ? ast::Step::Mode::kThenEither
                                              : ast::Step::Mode::kThen;
    step.tolerance = opt(then->sum());
    variable = then->identifier();
    step.pattern = pattern(then->kindPattern());
  } else {
    return false;
  }
  if (variable != nullptr) {
    step.variable = name(variable);
  }
  s.steps.push_back(std::move(step));
  return true;
}

ast::Unless Builder::unless(Parser::UnlessClauseContext* ctx) {
  ast::Unless u;
  auto words = names(ctx->identifier());
  if (ctx->K_BETWEEN() != nullptr) {
    u.between_second = words.back();
    u.between_first = words[words.size() - 2];
    words.resize(words.size() - 2);
  }
  if (!words.empty()) {
    u.variable = words.front();
  }
  u.pattern = pattern(ctx->kindPattern());
  u.span = span(ctx);
  return u;
}

bool Builder::sequence_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx) {
  if (step_clause(s, ctx)) {
    return true;
  }
  if (auto* given = dynamic_cast<Parser::UnlessClauseContext*>(ctx)) {
    s.unless.push_back(unless(given));
  } else if (auto* guard = dynamic_cast<Parser::GuardClauseContext*>(ctx)) {
    auto a = std::make_unique<ast::Aggregate>();
    a->fn = "none";
    a->source = pattern(guard->kindPattern());
    a->span = span(ctx);
    const source::Span last =
        source::cover(tokens_.span(guard->K_LAST()->getSymbol()), span(guard->sum()));
    a->options.push_back({"last", sum(guard->sum()), last});
    s.guards.push_back(std::move(a));
  } else if (auto* keep = dynamic_cast<Parser::KeepModeContext*>(ctx)) {
    once(!s.keep_mode.empty(), ctx, "keep");
    s.keep_mode = keep->K_ALL() != nullptr      ? "all"
                  : keep->K_LATEST() != nullptr ? "latest"
                                                : "earliest";
    s.keep_max = opt(keep->sum());
  } else if (auto* after = dynamic_cast<Parser::AfterMatchContext*>(ctx)) {
    s.after_match = "skip " + text(after->identifier(0)) + " " + text(after->identifier(1));
    if (s.after_match != "skip past last") {
      error(span(ctx), "after a match only 'skip past last' is possible",
            "write 'after match skip past last'");
    }
  } else {
    return false;
  }
  return true;
}

std::unique_ptr<ast::Aggregate> Builder::count_source(Parser::CountSourceContext* source) {
  auto aggregate = std::make_unique<ast::Aggregate>();
  aggregate->fn = source->K_DISTINCT() != nullptr ? "distinct"
                  : source->K_BURSTS() != nullptr ? "bursts"
                                                  : "count";
  if (source->dottedName() != nullptr) {
    aggregate->distinct_of = name(source->dottedName());
  }
  aggregate->source = pattern(source->kindPattern());
  for (auto* given : source->callOption()) {
    aggregate->options.push_back(option(given));
  }
  aggregate->span = span(source);
  return aggregate;
}

void Builder::graded(ast::SignalDecl& s, Parser::GradedClauseContext* ctx) {
  once(s.count.has_value(), ctx, "count");
  ast::CountCondition c;
  c.aggregate = count_source(ctx->countSource());
  c.within = sum(ctx->sum());
  c.graded = true;
  for (auto* given : ctx->gradedOption()) {
    if (given->K_EXTRA() != nullptr) {
      once(c.graded_extra != nullptr, given, "extra");
      c.graded_extra = sum(given->sum());
    } else {
      once(!c.graded_shape.empty(), given, "the shape");
      c.graded_shape = text(given);
    }
  }
  c.span = span(ctx);
  s.count = std::move(c);
}

void Builder::count(ast::SignalDecl& s, Parser::CountClauseContext* ctx) {
  once(s.count.has_value(), ctx, "count");
  ast::CountCondition c;
  c.aggregate = count_source(ctx->countSource());
  c.op = comparison_op(ctx->comparisonOp());
  c.threshold = sum(ctx->sum(0));
  c.within = sum(ctx->sum(1));
  for (auto* given : ctx->countOption()) {
    if (given->K_EACH() != nullptr) {
      c.each = true;
    } else if (given->K_REARM() != nullptr) {
      once(c.rearm != nullptr, given, "rearm");
      c.rearm = sum(given->sum());
    } else {
      once(c.exact, given, "exact");
      c.exact = true;
      c.exact_max = opt(given->sum());
    }
  }
  c.span = span(ctx);
  s.count = std::move(c);
}

bool Builder::condition_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx) {
  if (auto* when = dynamic_cast<Parser::WhenClauseContext*>(ctx)) {
    once(s.when != nullptr, ctx, "when");
    s.when = expr(when->expr());
  } else if (auto* span_for = dynamic_cast<Parser::ForClauseContext*>(ctx)) {
    once(s.for_span != nullptr, ctx, "for");
    s.for_span = sum(span_for->sum());
  } else if (auto* keep = dynamic_cast<Parser::KeepSpanContext*>(ctx)) {
    once(s.keep_span != nullptr, ctx, "keep");
    s.keep_span = sum(keep->sum());
  } else if (auto* within = dynamic_cast<Parser::WithinClauseContext*>(ctx)) {
    once(s.within != nullptr, ctx, "within");
    s.within = sum(within->sum());
  } else if (auto* clear = dynamic_cast<Parser::ClearClauseContext*>(ctx)) {
    once(s.clear != nullptr, ctx, "clear");
    s.clear_op = clear->K_BELOW() != nullptr   ? "below"
                 : clear->K_ABOVE() != nullptr ? "above"
                                               : "when";
    s.clear = clear->expr() != nullptr ? expr(clear->expr()) : sum(clear->sum());
  } else if (auto* nodata = dynamic_cast<Parser::NodataClauseContext*>(ctx)) {
    once(!s.nodata.empty(), ctx, "nodata");
    s.nodata = nodata->K_HOLD() != nullptr ? "hold" : "interrupt";
    s.nodata_for = opt(nodata->sum());
  } else if (auto* peers = dynamic_cast<Parser::PeersClauseContext*>(ctx)) {
    once(s.peers_at_least != nullptr, ctx, "peers at least");
    s.peers_at_least = sum(peers->sum());
  } else if (auto* exceptions = dynamic_cast<Parser::ExceptionsClauseContext*>(ctx)) {
    once(!s.exceptions.empty(), ctx, "exceptions");
    auto words = names(exceptions->identifier());
    s.exceptions = words.front();
    s.exception_keys.assign(words.begin() + 1, words.end());
  } else {
    return false;
  }
  return true;
}

void Builder::signal_tail(ast::SignalDecl& s, Parser::SignalTailContext* ctx) {
  if (auto* leak = ctx->leak()) {
    once(s.leak != nullptr, ctx, "leak");
    s.leak = bare_number(leak->bareNumber());
    s.leak_per = leak->rateWord() != nullptr ? text(leak->rateWord()) : "";
    s.learn = leak->K_LEARN() != nullptr;
  } else if (ctx->holds() != nullptr) {
    once(s.holds != nullptr, ctx, "holds");
    s.holds = sum(ctx->holds()->sum());
  } else {
    once(!s.was.empty(), ctx, "was");
    s.was = name(ctx->was()->dottedName());
  }
}

ast::FeatureDecl Builder::feature(Parser::FeatureDeclContext* ctx) {
  ast::FeatureDecl f;
  f.name = name(ctx->dottedName());
  f.on = keys(ctx->keys());
  f.value = aggregate(name(ctx->identifier()), ctx->callArguments());
  for (auto* reset : ctx->featureReset()) {
    f.resets.push_back(pattern(reset->kindPattern()));
  }
  if (ctx->was() != nullptr) {
    f.was = name(ctx->was()->dottedName());
  }
  return f;
}

}  // namespace reflex::parse
