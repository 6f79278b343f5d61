// Builder: test blocks (A12) but the events, which are in build_test_event.cpp.
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {

ast::TestTarget Builder::target(Rule* ctx) {
  ast::TestTarget t;
  t.span = span(ctx);
  t.text = std::string(tokens_.text(t.span));
  antlr4::tree::TerminalNode* base_string = nullptr;
  Rule* base = nullptr;
  std::vector<antlr4::tree::TerminalNode*> bounds;
  std::vector<Parser::TargetPartContext*> parts;
  if (auto* plain = dynamic_cast<Parser::TargetContext*>(ctx)) {
    base_string = plain->STRING();
    base = plain->wordPath();
    bounds = plain->INT();
    parts = plain->targetPart();
  } else if (auto* clause = dynamic_cast<Parser::ClauseTargetContext*>(ctx)) {
    base_string = clause->STRING();
    base = clause->clausePath();
    bounds = clause->INT();
    parts = clause->targetPart();
  }
  t.base = base_string != nullptr ? string_value(base_string->getSymbol()) : text(base);
  if (base_string == nullptr && !row_.empty()) {
    if (auto* value = bound(t.base)) {
      t.base = word_of(value);
      t.text = t.base;
    }
  }
  if (bounds.size() == 2) {
    t.ranged = true;
    t.lo = integer(bounds[0]->getSymbol());
    t.hi = integer(bounds[1]->getSymbol());
    // Why: a test that names more nodes than any cluster has is a slip of the keyboard.
    constexpr int64_t kRangeMax = 1'000'000;
    if (t.lo > t.hi || t.hi - t.lo >= kRangeMax) {
      error(t.span,
            "the range " + std::to_string(t.lo) + ".." + std::to_string(t.hi) +
                (t.lo > t.hi ? " is turned around" : " has too many members"),
            "write n[1..8]");
      t.hi = t.lo;
    }
  }
  for (auto* part : parts) {
    if (part->word() != nullptr) {
      auto e = node(ast::ExprKind::kName, span(part));
      e->text = text(part);
      t.sub.push_back(std::move(e));
    } else {
      t.sub.push_back(literal(part->start));
    }
  }
  return t;
}

void Builder::test_nodes(ast::TestDecl& t, Parser::TestNodesContext* ctx) {
  for (auto* given : ctx->target()) {
    ast::TestDecl::Nodes nodes;
    nodes.target = target(given);
    if (ctx->dottedName() != nullptr) {
      nodes.profile = name(ctx->dottedName());
    }
    for (auto* label : ctx->nodeLabel()) {
      antlr4::Token* value = label->stop;
      nodes.labels.emplace_back(name(label->dottedName()), literal(value));
    }
    nodes.span = span(ctx);
    t.nodes.push_back(std::move(nodes));
  }
}

void Builder::test_job(ast::TestDecl& t, Parser::TestJobContext* ctx) {
  ast::TestDecl::Job job;
  job.name = name(ctx->word());
  for (auto* given : ctx->target()) {
    job.nodes.push_back(target(given));
  }
  const auto times = ctx->sum();
  size_t next = 0;
  if (ctx->K_FROM() != nullptr || ctx->K_AT() != nullptr) {
    job.at = sum(times[next++]);
  }
  if (ctx->K_TO() != nullptr) {
    job.to = sum(times[next]);
  }
  job.span = span(ctx);
  t.jobs.push_back(std::move(job));
}

void Builder::test_gap(ast::TestDecl& t, Parser::TestGapContext* ctx) {
  ast::TestDecl::Gap gap;
  gap.target = target(ctx->target());
  if (ctx->wordPath() != nullptr) {
    gap.source = name(ctx->wordPath());
  }
  gap.from = sum(ctx->sum(0));
  gap.to = sum(ctx->sum(1));
  gap.span = span(ctx);
  t.gaps.push_back(std::move(gap));
}

void Builder::signal_place(ast::TestDecl::Expect& e, Parser::SignalPlaceContext* ctx) {
  if (ctx->target() != nullptr) {
    e.target = target(ctx->target());
  }
  const auto times = ctx->sum();
  if (ctx->K_BEFORE() != nullptr) {
    e.before = sum(times[0]);
  } else if (ctx->K_AT() != nullptr) {
    e.at = sum(times[0]);
    e.tolerance = times.size() > 1 ? sum(times[1]) : nullptr;
  }
}

ast::TestDecl::Expect::Clause Builder::verdict_clause(Parser::VerdictClauseContext* ctx) {
  ast::TestDecl::Expect::Clause c;
  c.span = span(ctx);
  c.what = std::string(tokens_.text(ctx->start));
  if (ctx->target() != nullptr) {
    c.targets.push_back(target(ctx->target()));
  }
  for (auto* given : ctx->clauseTarget()) {
    c.targets.push_back(target(given));
  }
  for (auto* given : ctx->clausePath()) {
    c.names.push_back(name(given));
  }
  if (auto* p = ctx->clauseP()) {
    c.p_op = comparison_op(p->comparisonOp());
    c.p = sum(p->sum());
  }
  return c;
}

void Builder::test_verdict(ast::TestDecl& t, Parser::TestVerdictContext* ctx) {
  ast::TestDecl::Expect e;
  e.verdict = true;
  e.negated = ctx->K_NO() != nullptr;
  e.span = span(ctx);
  if (ctx->word() != nullptr) {
    e.incident = name(ctx->word());
  }
  if (ctx->target() != nullptr) {
    e.job = target(ctx->target());
  }
  for (auto* clause : ctx->verdictClause()) {
    e.clauses.push_back(verdict_clause(clause));
  }
  if (!e.negated && e.incident.empty()) {
    error(e.span, "an expected verdict names its incident",
          "write 'expect verdict job_hang j { .. }'");
  }
  if (e.negated && ctx->LBRACE() != nullptr) {
    error(e.span, "'expect no verdict' takes no block", "remove the block");
  }
  t.expects.push_back(std::move(e));
}

void Builder::test_statement(ast::TestDecl& t, Parser::TestStatementContext* ctx) {
  if (auto* nodes = dynamic_cast<Parser::TestNodesContext*>(ctx)) {
    test_nodes(t, nodes);
  } else if (auto* job = dynamic_cast<Parser::TestJobContext*>(ctx)) {
    test_job(t, job);
  } else if (auto* gap = dynamic_cast<Parser::TestGapContext*>(ctx)) {
    test_gap(t, gap);
  } else if (auto* verdict = dynamic_cast<Parser::TestVerdictContext*>(ctx)) {
    test_verdict(t, verdict);
  } else if (auto* expect = dynamic_cast<Parser::TestExpectContext*>(ctx)) {
    ast::TestDecl::Expect e;
    e.negated = expect->K_NO() != nullptr;
    e.signal = name(expect->wordPath());
    e.span = span(ctx);
    signal_place(e, expect->signalPlace());
    t.expects.push_back(std::move(e));
  } else if (auto* allow = dynamic_cast<Parser::TestAllowContext*>(ctx)) {
    ast::TestDecl::Expect e;
    e.allow = true;
    e.signal = name(allow->wordPath());
    e.span = span(ctx);
    signal_place(e, allow->signalPlace());
    t.expects.push_back(std::move(e));
  } else if (auto* shuffle = dynamic_cast<Parser::TestShuffleContext*>(ctx)) {
    once(t.shuffle != nullptr, ctx, "shuffle");
    t.shuffle = literal(shuffle->INT()->getSymbol());
  } else if (dynamic_cast<Parser::TestStrictContext*>(ctx) != nullptr) {
    t.strict = true;
  }
}

ast::ExprPtr Builder::row_value(Parser::SumContext* value) {
  // Values are written outside of the body: a variable of the row is none here.
  auto row = std::exchange(row_, {});
  ast::ExprPtr e = sum(value);
  row_ = std::move(row);
  return e;
}

void Builder::bind_row(Parser::TestTableContext* table, size_t row, ast::TestDecl& into) {
  const auto variables = names(table->identifier());
  const auto values = table->testRow(row)->sum();
  std::string shown;
  for (size_t i = 0; i < values.size() && i < variables.size(); ++i) {
    into.row.emplace_back(variables[i], sum(values[i]));
    shown += (i == 0 ? "" : ", ") + word_of(values[i]);
  }
  into.title += " [" + shown + "]";
  for (size_t i = 0; i < values.size() && i < variables.size(); ++i) {
    row_[variables[i].text] = values[i];
  }
}

void Builder::tests(Parser::TestDeclContext* ctx, const ast::Decl& head) {
  const auto add = [&](ast::TestDecl t) {
    ast::Decl d;
    d.exported = head.exported;
    d.span = head.span;
    d.node = test_body(ctx, std::move(t));
    module_.decls.push_back(std::move(d));
  };
  ast::TestDecl t;
  t.title = string_value(ctx->STRING()->getSymbol());
  auto* table = ctx->testTable();
  if (table == nullptr) {
    return add(std::move(t));
  }
  const size_t before = sink_.error_count();
  const auto variables = names(table->identifier());
  for (size_t i = 0; i < variables.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (variables[k].text != variables[i].text) continue;
      error(variables[i].span, "'" + variables[i].text + "' is named twice");
      return;
    }
  }
  for (auto* row : table->testRow()) {
    if (row->sum().size() == table->identifier().size()) continue;
    error(span(row), "the row has " + std::to_string(row->sum().size()) + " values for " +
                         std::to_string(table->identifier().size()) + " variables");
  }
  // A mistake of the body would be reported once a row.
  for (size_t row = 0; row < table->testRow().size() && sink_.error_count() == before; ++row) {
    ast::TestDecl one;
    one.title = t.title;
    bind_row(table, row, one);
    add(std::move(one));
    row_.clear();
  }
}

ast::TestDecl Builder::test_body(Parser::TestDeclContext* ctx, ast::TestDecl t) {
  const auto statements = ctx->testStatement();
  for (auto* statement : statements) {
    test_statement(t, statement);
  }
  // Events last: which words are nodes and jobs is known only now.
  for (auto* statement : statements) {
    if (auto* at = dynamic_cast<Parser::TestAtContext*>(statement)) {
      test_at(t, at);
    }
  }
  return t;
}

}  // namespace reflex::parse
