// User: the second pass of the index, over everything that reads a name; internal to the index.
#pragma once

#include "compiler/lsp/index_build.h"

namespace reflex::lsp {

/// What an expression can name besides the tables.
struct Scope {
  SymbolId record = kNoSymbol;  // kind of the event under evaluation
  bool verdict = false;         // `variable` is a verdict
  std::vector<std::string> record_names;
  struct Variable {
    std::string name;
    SymbolId symbol;  // the variable
    SymbolId kind;
  };
  std::vector<Variable> variables;
};

class User {
 public:
  explicit User(Index& index) : index_(index) {}
  /// Before the modules: what kinds and profiles extend.
  void link_extends();
  void module(const ast::Module& m, sema::PackIndex pack);

 private:
  // ---- names (index_use.cpp)
  SymbolId name(const ast::Name& n, SymbolKind kind);
  SymbolId path(const std::vector<Segment>& parts, SymbolKind kind, size_t count);
  SymbolId first_of(const ast::Name& n, std::initializer_list<SymbolKind> kinds);
  /// A kind, or a kind with one field: "gpu.temp.value".
  SymbolId source(const ast::Name& n);
  void field_name(SymbolId kind, const ast::Name& n);
  void field_at(SymbolId kind, const std::vector<Segment>& parts, size_t from);
  SymbolId parameter(const std::string& name) const;
  void param_use(const ast::Name& n);
  void type(const ast::TypeRef& t);
  void keys(const std::vector<ast::Name>& on);
  [[nodiscard]] SymbolId variable_of(SymbolId owner, const ast::Name& n);

  // ---- expressions (index_expr.cpp)
  void expr(const ast::ExprPtr& e, const Scope& scope) {
    if (e) expr(*e, scope);
  }
  void expr(const ast::Expr& e, const Scope& scope);
  void path_expr(const ast::Expr& e, const Scope& scope);
  void call(const ast::Expr& e, const Scope& scope);
  void aggregate(const ast::Aggregate& a, const Scope& scope);
  void function_words(const ast::Aggregate& a);
  SymbolId pattern(const ast::KindPattern& p, Scope scope, const ast::Name* variable,
                   SymbolId owner);

  // ---- declarations (index_use.cpp)
  void node(const ast::EventDecl& d);
  void node(const ast::ProfileDecl& d);
  void param(const ast::ProfileParam& p);
  void node(const ast::ListDecl& d);
  void node(const ast::MacroDecl& d);
  void node(const ast::DecoderDecl& d);
  void node(const ast::SignalDecl& d);
  void node(const ast::FeatureDecl& d);
  void node(const ast::FaultDecl& d);
  void node(const ast::CausesDecl& d);
  void node(const ast::IncidentDecl& d);
  void node(const ast::TestDecl& d);
  void event(const ast::TestDecl::Event& e);
  void expect(const ast::TestDecl::Expect& e);
  void node(const ast::OverlayDecl& d);
  void entry(const ast::OverlayEntry& e);
  void node(const ast::VerdictRuleDecl& d);
  void node(const ast::SuppressDecl& d);
  void node(const ast::MaintenanceDecl& d);
  void node(const ast::BaselineDecl& d);
  void node(const ast::SynergyDecl& d);
  void head(const ast::PackHead& h);

  Index& index_;
  sema::PackIndex pack_ = 0;
  SymbolId self_ = kNoSymbol;  // what the running declaration declares
};

}  // namespace reflex::lsp
