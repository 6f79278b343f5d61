// Builder: the parse tree of one declaration -> ast nodes, with exact spans.
//
// Contract: internal to compiler/parse; sees only trees without syntax errors. What the grammar is
// wider than the language (a clause twice, a source that is no name) is reported here. The member
// functions are split over build_*.cpp by concern.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "RuleParser.h"
#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {

using Parser = rfxgen::RuleParser;

class Builder {
 public:
  Builder(Tokens& tokens, diag::Sink& sink, ast::Module& module)
      : tokens_(tokens), sink_(sink), module_(module) {}

  void declaration(Parser::DeclarationContext* ctx);

 private:
  using Rule = antlr4::ParserRuleContext;

  // ---- spans and names (build_expr.cpp)
  source::Span span(Rule* ctx) const { return tokens_.span(ctx->start, ctx->stop); }
  std::string text(Rule* ctx) const { return tokens_.joined(ctx->start, ctx->stop); }
  ast::Name name(Rule* ctx) const;
  std::string word_of(Parser::SumContext* value) const;
  std::vector<ast::Name> names(const std::vector<Parser::DottedNameContext*>& list) const;
  std::vector<ast::Name> names(const std::vector<Parser::IdentifierContext*>& list) const;
  std::string token_text(antlr4::tree::TerminalNode* node) const;
  std::string string_value(antlr4::Token* token);
  /// The pattern of `line /../` or `matches /../`; `\/` becomes `/`.
  static std::string regex_text(std::string_view token);
  int64_t integer(antlr4::Token* token);
  void error(source::Span at, std::string message, std::string help = "");
  /// Reports "X is given twice" when `already`.
  void once(bool already, Rule* ctx, std::string_view what);

  // ---- expressions (build_expr.cpp, build_call.cpp, build_literal.cpp)
  ast::ExprPtr expr(Parser::ExprContext* ctx);
  ast::ExprPtr comparison(Parser::ComparisonContext* ctx);
  ast::ExprPtr sum(Parser::SumContext* ctx);
  ast::ExprPtr term(Parser::TermContext* ctx);
  ast::ExprPtr primary(Parser::PrimaryContext* ctx);
  ast::ExprPtr access(Parser::AccessContext* ctx);
  ast::ExprPtr peers(Parser::CallArgumentsContext* ctx, const ast::Name& callee,
                     source::Span whole);
  ast::ExprPtr call(Parser::CallArgumentsContext* ctx, const ast::Name& callee);
  ast::ExprPtr list(Parser::ListLiteralContext* ctx);
  ast::ExprPtr bare_number(Parser::BareNumberContext* ctx);
  ast::ExprPtr literal(antlr4::Token* token);
  ast::ExprPtr node(ast::ExprKind kind, source::Span at) const;
  ast::ExprPtr binary(ast::BinaryOp op, source::Span op_span, ast::ExprPtr left,
                      ast::ExprPtr right);
  /// Sets depth; too deep a tree becomes kError with one diagnostic.
  ast::ExprPtr finish(ast::ExprPtr e);
  ast::ExprPtr negated(ast::ExprPtr e, source::Span at);
  void set_unit(ast::Expr& e, const std::string& unit) const;
  std::string unit_of(Parser::UnitContext* ctx) const;
  ast::BinaryOp comparison_op(Parser::ComparisonOpContext* ctx) const;
  ast::KindPattern pattern(Parser::KindPatternContext* ctx);
  std::unique_ptr<ast::Aggregate> aggregate(const ast::Name& fn, Parser::CallArgumentsContext* ctx);
  void aggregate_source(ast::Aggregate& into, Parser::CallArgumentContext* first);
  ast::Aggregate::Option option(Parser::CallOptionContext* ctx);
  ast::ExprPtr opt(Parser::SumContext* ctx) { return ctx == nullptr ? nullptr : sum(ctx); }

  // ---- pack head, events, profiles, lists, macros (build_pack.cpp)
  void pack(Parser::PackDeclContext* ctx);
  void import(Parser::ImportDeclContext* ctx);
  bool needs_head(Rule* ctx, std::string_view what);
  std::vector<ast::Setting> settings(Parser::SettingsContext* ctx);
  ast::EventDecl event(Parser::EventDeclContext* ctx);
  ast::TypeRef type(Parser::TypeRefContext* ctx);
  ast::ProfileDecl profile(Parser::ProfileDeclContext* ctx);
  ast::ProfileParam profile_param(Parser::ProfileItemContext* ctx);
  ast::ListDecl list_decl(Parser::ListDeclContext* ctx);
  ast::MacroDecl macro(Parser::MacroDeclContext* ctx);
  ast::DecoderDecl decoder(Parser::DecoderDeclContext* ctx);
  ast::DecoderDecl::Assign assignment(Parser::AssignmentContext* ctx);
  std::vector<ast::Name> keys(Parser::KeysContext* ctx) const;

  // ---- signals and features (build_signal.cpp)
  ast::SignalDecl signal(Parser::SignalDeclContext* ctx, antlr4::Token* first);
  void signal_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx);
  bool step_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx);
  ast::Unless unless(Parser::UnlessClauseContext* ctx);
  bool sequence_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx);
  bool condition_clause(ast::SignalDecl& s, Parser::SignalClauseContext* ctx);
  void signal_tail(ast::SignalDecl& s, Parser::SignalTailContext* ctx);
  std::unique_ptr<ast::Aggregate> count_source(Parser::CountSourceContext* source);
  void graded(ast::SignalDecl& s, Parser::GradedClauseContext* ctx);
  void count(ast::SignalDecl& s, Parser::CountClauseContext* ctx);
  std::string doc_above(antlr4::Token* first) const;
  ast::FeatureDecl feature(Parser::FeatureDeclContext* ctx);

  // ---- causes, incidents (build_cause.cpp)
  ast::FaultDecl fault(Parser::FaultDeclContext* ctx);
  ast::CausesDecl edge(Parser::EdgeDeclContext* ctx);
  void edge_option(ast::CausesDecl& c, Parser::EdgeOptionContext* ctx);
  ast::IncidentDecl incident(Parser::IncidentDeclContext* ctx);

  // ---- rules on verdicts (build_rule.cpp)
  ast::VerdictRuleDecl verdict_rule(Parser::VerdictRuleDeclContext* ctx);
  void rule_item(ast::VerdictRuleDecl& r, Parser::RuleItemContext* ctx);
  ast::VerdictRuleDecl::Action rule_action(Parser::RuleItemContext* ctx);
  std::vector<ast::TemplatePart> template_parts(antlr4::Token* token);
  ast::TemplatePart template_field(source::Span at);
  ast::ExprPtr template_expr(source::Span at);

  // ---- overlays, suppression, maintenance (build_later.cpp)
  ast::OverlayDecl overlay(Parser::OverlayDeclContext* ctx);
  ast::OverlayEntry overlay_entry(Parser::OverlayEntryContext* ctx);
  void except_entry(Parser::OverlayEntryContext* ctx, ast::OverlayEntry& entry);
  void reason_until(Parser::OverlayEntryContext* ctx, ast::OverlayEntry& entry);
  ast::SuppressDecl suppress(Parser::SuppressDeclContext* ctx);
  ast::BaselineDecl baseline(Parser::BaselineDeclContext* ctx);
  ast::MaintenanceDecl maintenance(Parser::MaintenanceDeclContext* ctx);
  ast::SynergyDecl synergy(Parser::SynergyDeclContext* ctx);

  // ---- tests (build_test.cpp, build_test_event.cpp)
  /// One declaration, or for a table one a row.
  void tests(Parser::TestDeclContext* ctx, const ast::Decl& head);
  ast::ExprPtr row_value(Parser::SumContext* value);
  void bind_row(Parser::TestTableContext* table, size_t row, ast::TestDecl& into);
  ast::TestDecl test_body(Parser::TestDeclContext* ctx, ast::TestDecl t);
  void test_statement(ast::TestDecl& t, Parser::TestStatementContext* ctx);
  void test_nodes(ast::TestDecl& t, Parser::TestNodesContext* ctx);
  void test_job(ast::TestDecl& t, Parser::TestJobContext* ctx);
  void test_at(ast::TestDecl& t, Parser::TestAtContext* ctx);
  void test_gap(ast::TestDecl& t, Parser::TestGapContext* ctx);
  void test_verdict(ast::TestDecl& t, Parser::TestVerdictContext* ctx);
  void signal_place(ast::TestDecl::Expect& e, Parser::SignalPlaceContext* ctx);
  ast::TestDecl::Expect::Clause verdict_clause(Parser::VerdictClauseContext* ctx);
  ast::TestTarget target(Rule* ctx);
  void event_items(const ast::TestDecl& t, ast::TestDecl::Event& e,
                   const std::vector<Parser::TestItemContext*>& items);
  ast::ExprPtr item_value(Parser::TestItemContext* ctx);
  ast::ExprPtr target_value(Parser::TargetContext* ctx);
  ast::ExprPtr number_value(Parser::TestNumberContext* ctx);

  /// The value that the running row of a table test gives to a variable; null: none.
  Parser::SumContext* bound(const std::string& variable) const {
    const auto it = row_.find(variable);
    return it == row_.end() ? nullptr : it->second;
  }

  Tokens& tokens_;
  diag::Sink& sink_;
  ast::Module& module_;
  std::map<std::string, Parser::SumContext*> row_;
};

}  // namespace reflex::parse
