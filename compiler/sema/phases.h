// The functions of sema by concern, in the order in which analyze() needs them; internal.
#pragma once

#include "compiler/sema/model.h"

namespace reflex::sema {

// ---- scope.cpp: names
enum class Found : uint8_t { kNo, kYes, kReported };
void declare(State& s, Table& table, const ast::Name& name, PackIndex pack, uint32_t index,
             bool visible);
/// Silent look-up from inside `pack`; several candidates give the first and set *ambiguous.
std::optional<uint32_t> find(const State& s, const Table& table, PackIndex pack,
                             const std::string& name, bool* ambiguous = nullptr);
/// Look-up that reports `unknown` (with did-you-mean), R525 or R526.
std::optional<uint32_t> resolve(State& s, const Table& table, PackIndex pack, const ast::Name& name,
                                Id unknown);
/// Whether a statement that did not parse seems to declare this name: its mistake was reported, the
/// unknown name would be noise.
bool declared_in_broken_text(const State& s, const Table& table, const std::string& name);
/// Names of a table that `pack` can write, for did-you-mean.
std::vector<std::string> visible_names(const State& s, const Table& table, PackIndex pack);
void suggest(diag::Diagnostic& d, const std::string& wrong,
             const std::vector<std::string>& candidates, Span fix_span);
void collect_allows(State& s);
void report_unused_allows(State& s);

// ---- collect.cpp: first pass over all declarations
void collect(State& s);

// ---- types.cpp, units.cpp
std::string to_text(const State& s, const abi::Type& type);
std::optional<abi::Type> resolve_type(State& s, const ast::TypeRef& ref, FieldRange* range);
std::optional<uint16_t> entity_type_id(const State& s, const std::string& name);
uint16_t enum_id(State& s, const std::vector<std::string>& words);
/// A unit word -> its type and the factor to the base unit; kInt with factor for "k", "M".
struct UnitWord {
  abi::Type type;
  double multiply = 1;
  double divide = 1;
};
std::optional<UnitWord> parse_unit(const std::string& text);
std::vector<std::string> unit_words();
bool is_number(const abi::Type& t);
bool integer_like(const abi::Type& t);

// ---- check_kind.cpp, check_list.cpp, check_profile.cpp
void check_kinds(State& s);
void add_builtin_kinds(State& s);
std::optional<uint16_t> slot_of(const KindInfo& kind, const std::string& field);
std::vector<std::string> field_names(const KindInfo& kind);
/// The kind itself, or for an abstract one every concrete kind below it, by name.
std::vector<uint32_t> concrete_kinds(const State& s, uint32_t kind);
void check_lists(State& s);
void check_profiles(State& s);
void check_macros(State& s);

// ---- check_adaptive.cpp: adaptive parameters of profiles
void declare_adaptive(State& s, PackIndex pack, const ast::ProfileParam& p, uint32_t param);
/// Applies the settings that `p` states to those of a class; its default, or nothing when reported.
std::optional<double> set_adaptive(State& s, PackIndex pack, abi::ClassPlan& plan,
                                   const ast::ProfileParam& p, abi::AdaptiveId id, bool declares);
/// Looks up the features, once they are checked.
void check_adaptives(State& s);

// ---- check_expr.cpp, check_name.cpp, check_operator.cpp, check_arithmetic.cpp, check_member.cpp,
//      check_call.cpp
NodePtr check_expr(State& s, const Env& env, const ast::Expr& e,
                   const abi::Type* expected = nullptr);
/// check_expr that must give a truth value; lints constant predicates.
NodePtr check_predicate(State& s, const Env& env, const ast::Expr& e);
NodePtr check_path(State& s, const Env& env, const std::vector<Segment>& path, Span span,
                   const abi::Type* expected);
std::optional<std::vector<Segment>> flatten(const ast::Expr& e);
NodePtr check_binary(State& s, const Env& env, const ast::Expr& e);
NodePtr arithmetic(State& s, ir::Op op, const NodePtr& a, const NodePtr& b, Span span);
NodePtr check_membership(State& s, const Env& env, const ast::Expr& e);
NodePtr check_text_match(State& s, const Env& env, const ast::Expr& e);
NodePtr check_bits(State& s, const Env& env, const ast::Expr& e);
NodePtr check_call(State& s, const Env& env, const ast::Expr& e);
NodePtr check_percent_of(State& s, const Env& env, const ast::Expr& e);
/// `call` is the call `peers(..)`; null for the short form `peers.median`.
NodePtr check_peers(State& s, const Env& env, const ast::Expr* call, const Segment& stat,
                    Span span);
bool mentions_peers(const ast::Expr& e);
NodePtr compare(State& s, ast::BinaryOp op, NodePtr a, NodePtr b, Span span);
/// Fits a literal to `type` (unit, int -> real); reports R104/R106 when it cannot.
NodePtr coerce(State& s, const NodePtr& node, const abi::Type& type, const char* what);
/// A constant of the given type; reports R319.
std::optional<int64_t> constant_duration(State& s, PackIndex pack, const ast::Expr& e,
                                         const char* what, bool allow_negative = false);
std::optional<double> constant_number(State& s, PackIndex pack, const ast::Expr& e,
                                      const char* what);
std::optional<int64_t> constant_count(State& s, PackIndex pack, const ast::Expr& e,
                                      const char* what, int64_t lo, int64_t hi);
/// `half_life 0s` of a fault or feature: what it weighs would be gone before it is read.
void report_no_half_life(State& s, Span span);
std::string literal_text(const State& s, const NodePtr& node);
NodePtr symbol_constant(State& s, const std::string& word, const abi::Type& type, Span span);
uint32_t intern_text(State& s, const std::string& text);

// ---- lower_expr.cpp
abi::ExprId emit(State& s, const NodePtr& node, const std::string& name);
std::vector<abi::FeatureId> features_of(const State& s, abi::ExprId expr);

// ---- lower_leaf.cpp
abi::LeafId intern_leaf(State& s, uint32_t kind, const NodePtr& predicate, abi::EntityKindId entity,
                        const std::string& name, Span span);
void add_owner(State& s, abi::LeafId leaf, abi::OwnerKind kind, uint32_t owner, uint32_t sub);
void finish_leaves(State& s);

// ---- lower_key.cpp
std::optional<abi::EntityKindId> resolve_entity(State& s, PackIndex pack,
                                                const std::vector<ast::Name>& on);
abi::EntityKindId entity_kind_of(State& s, const std::vector<std::string>& keys);
std::optional<abi::KeyPlan> derive_key(State& s, uint32_t kind, abi::EntityKindId entity, Span span,
                                       bool report = true,
                                       const std::map<std::string, uint16_t>* joined = nullptr,
                                       const std::map<std::string, uint16_t>* stated = nullptr);

/// Takes conjuncts `it.FIELD == KEY` (a key of `entity`) out of a predicate and returns
/// key name -> slot: the author says which field names the entity (`it.peer == node`), whatever
/// key field the kind has. What remains of the predicate may be null.
std::map<std::string, uint16_t> take_stated_keys(const State& s, uint32_t kind,
                                                 abi::EntityKindId entity, NodePtr& predicate);
std::string entity_text(const State& s, abi::EntityKindId entity);
bool node_keyed(const State& s, abi::EntityKindId entity);

// ---- lower_feature.cpp
bool is_feature_function(const std::string& name);
std::optional<FeatureCall> feature_call(const State& s, const Env& env, const ast::Expr& e);
FeatureCall feature_call(const ast::Aggregate& a);
struct BuiltFeature {
  abi::FeaturePlan plan;
  abi::Type type;
};
std::optional<BuiltFeature> build_feature(State& s, const Env& env, const FeatureCall& call);
abi::FeatureId intern_feature(State& s, const abi::FeaturePlan& plan, const abi::Type& type);
NodePtr check_feature_call(State& s, const Env& env, const FeatureCall& call);
NodePtr feature_node(State& s, abi::FeatureId id, Span span);
std::optional<abi::FeatureId> last_value(State& s, const Env& env, uint32_t kind, uint16_t slot,
                                         Span span);
void check_features(State& s);
/// "gpu.temp.value" -> kind and field; field empty when the path is a kind. Reports.
struct SourcePath {
  uint32_t kind = kNone32;
  std::optional<uint16_t> slot;
};
std::optional<SourcePath> resolve_source(State& s, PackIndex pack, const ast::Name& name);

// ---- check_signal.cpp, lower_sequence.cpp, lower_count.cpp, lower_condition.cpp
void check_signals(State& s);
struct SignalContext {
  const ast::SignalDecl& decl;
  PackIndex pack;
  abi::SignalId id;
  abi::EntityKindId entity;
  std::string name;
};
bool lower_sequence(State& s, const SignalContext& c, abi::SignalPlan& plan);
bool lower_count(State& s, const SignalContext& c, abi::SignalPlan& plan);
bool lower_condition(State& s, const SignalContext& c, abi::SignalPlan& plan);
bool lower_guards(State& s, const SignalContext& c, std::vector<abi::NoneGuard>& out);
void listen(State& s, abi::SignalPlan& plan, uint32_t kind);

// ---- check_cause.cpp, check_edge.cpp, check_incident.cpp, check_decoder.cpp, check_test.cpp
void check_causes(State& s);
void check_edges(State& s);
void check_cycles(State& s);
void check_incidents(State& s);
void check_decoders(State& s);
void check_tests(State& s);
// ---- check_rule.cpp, check_was.cpp
void check_rules(State& s);
void check_renames(State& s);
void check_imports(State& s);

// ---- check_baseline.cpp: cohorts, repairs, maintenance
void check_baselines(State& s);
// ---- check_suppress.cpp: suppressions; check_mask.cpp: masks, synergies
void check_suppressions(State& s);
void check_mask(State& s, PackIndex pack, const ast::CausesDecl& d);
void check_synergies(State& s);
/// "2027-03-31" or an RFC 3339 text -> ns; reports R319; warns (R210) when it has passed.
std::optional<int64_t> until_ns(State& s, const std::string& text, Span span);
/// The lag of an edge or mask, the default without one; nothing after a report.
struct Lag {
  int64_t lo_ns;
  int64_t hi_ns;
};
std::optional<Lag> check_lag(State& s, PackIndex pack, const ast::CausesDecl& d);

// ---- limits.cpp, lint.cpp
void check_heads(State& s);
void note_window(State& s, int64_t ns, Span span);
void check_limits(State& s);
void lint(State& s);
/// Warns of contradictions and of alternatives that leave nothing out (lint_predicate.cpp).
void lint_predicate(State& s, const NodePtr& predicate);

/// Every declaration of type T in order, with its reference.
template <typename T, typename F>
void for_each(State& s, F&& f) {
  for (PackIndex p = 0; p < s.in.packs.packs.size(); ++p) {
    for (const uint32_t m : s.in.packs.packs[p].modules) {
      const auto& decls = s.in.modules[m].decls;
      for (uint32_t i = 0; i < decls.size(); ++i) {
        if (const T* d = std::get_if<T>(&decls[i].node)) f(DeclRef{p, m, i}, *d, decls[i]);
      }
    }
  }
}

}  // namespace reflex::sema
