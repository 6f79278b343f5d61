// Calls: builtins, macros (expanded hygienically).
//
// A macro's body is checked again for each use, in an environment of its own: its parameters are
// bound to the caller's syntax trees together with the caller's environment, and every other name
// means what it means in the macro's pack. So nothing can be captured by accident.
#include <algorithm>
#include <array>

#include "compiler/sema/builtins.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using ast::Expr;
using ast::ExprKind;
using ir::Op;

// Why: 32 nested macros are beyond reading; 10,000 expansions in one predicate beyond compiling.
constexpr size_t kMacroDepthMax = 32;
constexpr uint32_t kExpansionsMax = 10'000;

bool arity(State& s, const Expr& e, size_t lo, size_t hi) {
  if (e.args.size() >= lo && e.args.size() <= hi) return true;
  std::string want = std::to_string(lo);
  if (hi != lo) want += " to " + std::to_string(hi);
  s.report(Id::kBadArguments, e.span,
           e.text + "() takes " + want + " argument" + (hi == 1 ? "" : "s") + ", not " +
               std::to_string(e.args.size()));
  return false;
}

/// An argument that must be an entity of the given type.
NodePtr entity_argument(State& s, const Env& env, const Expr& e, const char* entity) {
  Type want;
  want.scalar = Scalar::kEntity;
  want.entity = *entity_type_id(s, entity);
  const NodePtr n = check_expr(s, env, e, &want);
  if (is_error(n)) return n;
  if (n->type.scalar != Scalar::kEntity || n->type.entity != want.entity) {
    s.report(Id::kTypeMismatch, e.span,
             std::string("a ") + entity + " is needed, this is a " + to_text(s, n->type));
    return poison(e.span);
  }
  return n;
}

Type entity_type(const State& s, const char* name, bool index) {
  Type t;
  t.scalar = Scalar::kEntity;
  t.entity = *entity_type_id(s, name);
  t.gpu_index = index;
  t.optional = true;
  return t;
}

Type word_type() {
  Type t;
  t.scalar = Scalar::kEnum;
  t.optional = true;
  return t;
}

NodePtr label_call(State& s, const Env& env, const Expr& e) {
  // `label X` of a profile has one argument; label(node, X) has two.
  if (!arity(s, e, env.profile_match ? 1 : 2, 2)) return poison(e.span);
  const Expr& name = *e.args.back();
  std::string label;
  if (name.kind == ExprKind::kString) {
    label = name.text;
  } else if (const auto path = flatten(name)) {
    for (const Segment& segment : *path) label += (label.empty() ? "" : ".") + segment.text;
  } else {
    s.report(Id::kTypeMismatch, name.span, "a label's name is needed");
    return poison(e.span);
  }
  const NodePtr node = e.args.size() == 2
                           ? entity_argument(s, env, *e.args[0], "node")
                           : load(Op::kEntityKey, 0, entity_type(s, "node", false), e.span);
  return make(Op::kNodeLabel, word_type(), {node}, e.span, s.in.symbols->intern(label));
}

NodePtr min_max(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 2, 16)) return poison(e.span);
  const Op op = e.text == "min" ? Op::kMin : Op::kMax;
  NodePtr all = check_expr(s, env, *e.args[0]);
  for (size_t i = 1; i < e.args.size(); ++i) {
    const NodePtr next = check_expr(s, env, *e.args[i], &all->type);
    if (is_error(all) || is_error(next)) {
      all = poison(e.span);
      continue;
    }
    const bool all_fits = !all->literal || next->literal;
    // The written number takes the other's unit.
    NodePtr a = all;
    NodePtr b = next;
    const auto numeric = [](const Type& t) {
      return is_number(t) || t.scalar == Scalar::kDuration || t.scalar == Scalar::kInstant;
    };
    if (!numeric(a->type) || !numeric(b->type)) {
      s.report(Id::kTypeMismatch, e.span, e.text + "() needs numbers");
      return poison(e.span);
    }
    const bool plain = a->type.scalar != b->type.scalar && a->type.unit == abi::Unit::kNone &&
                       b->type.unit == abi::Unit::kNone && is_number(a->type) && is_number(b->type);
    if (plain) {
      a = to_f64(a);
      b = to_f64(b);
    } else if (all_fits) {
      b = coerce(s, b, a->type, "the first argument");
    } else {
      a = coerce(s, a, b->type, "the second argument");
    }
    if (is_error(a) || is_error(b)) {
      all = poison(e.span);
      continue;
    }
    Type t = a->type;
    t.optional = false;
    all = make(op, t, {a, b}, e.span);
  }
  return all;
}

NodePtr abs_log(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 1, 1)) return poison(e.span);
  const NodePtr x = check_expr(s, env, *e.args[0]);
  if (is_error(x)) return x;
  const bool duration = x->type.scalar == Scalar::kDuration;
  if (!is_number(x->type) && !(duration && e.text == "abs")) {
    s.report(Id::kTypeMismatch, e.args[0]->span,
             e.text + "() needs a number, this is a " + to_text(s, x->type));
    return poison(e.span);
  }
  Type t = x->type;
  t.optional = false;
  if (e.text == "abs") return make(Op::kAbs, t, {x}, e.span);
  if (x->type.scalar == Scalar::kQuantity) {
    s.report(Id::kUnitMismatch, e.args[0]->span, "log() needs a number without a unit");
    return poison(e.span);
  }
  return make(Op::kLog, real_type(), {to_f64(x)}, e.span);
}

NodePtr or_else(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 2, 2)) return poison(e.span);
  const NodePtr x = check_expr(s, env, *e.args[0]);
  NodePtr y = check_expr(s, env, *e.args[1], &x->type);
  if (is_error(x) || is_error(y)) return poison(e.span);
  y = coerce(s, y, x->type, "the first argument");
  Type t = x->type;
  t.optional = false;
  return make(Op::kCoalesce, t, {x, y}, e.span);
}

NodePtr gpu_at(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 2, 2)) return poison(e.span);
  const NodePtr node = entity_argument(s, env, *e.args[0], "node");
  const NodePtr pci = check_expr(s, env, *e.args[1]);
  if (is_error(node) || is_error(pci)) return poison(e.span);
  if (pci->type.scalar != Scalar::kString) {
    s.report(Id::kTypeMismatch, e.args[1]->span, "a PCI address is text");
    return poison(e.span);
  }
  return make(Op::kGpuAt, entity_type(s, "gpu", true), {node, pci}, e.span);
}

NodePtr lookup(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 1, 1)) return poison(e.span);
  if (e.text == "nodes") {
    const NodePtr job = entity_argument(s, env, *e.args[0], "job");
    return make(Op::kNodesInJob, int_type(), {job}, e.span);
  }
  const NodePtr node = entity_argument(s, env, *e.args[0], "node");
  if (e.text == "job_of") return make(Op::kJobOf, entity_type(s, "job", false), {node}, e.span);
  return make(Op::kInMaintenance, bool_type(), {node}, e.span);
}

NodePtr missing(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 1, 1)) return poison(e.span);
  const NodePtr x = check_expr(s, env, *e.args[0]);
  return make(Op::kIsMissing, bool_type(), {x}, e.span);
}

NodePtr array_length(State& s, const Env& env, const Expr& e) {
  if (!arity(s, e, 1, 1)) return poison(e.span);
  const NodePtr x = check_expr(s, env, *e.args[0]);
  if (is_error(x)) return x;
  if (x->type.scalar != Scalar::kArray) {
    s.report(Id::kTypeMismatch, e.args[0]->span, "length() needs an array");
    return poison(e.span);
  }
  return make(Op::kArrayCount, int_type(), {x}, e.span);
}

using BuiltinFn = NodePtr (*)(State&, const Env&, const Expr&);
struct BuiltinRow {
  std::string_view name;
  BuiltinFn fn;
};
constexpr std::array<BuiltinRow, 12> kBuiltins{{{"label", label_call},
                                                {"job_of", lookup},
                                                {"nodes", lookup},
                                                {"in_maintenance", lookup},
                                                {"gpu_at", gpu_at},
                                                {"abs", abs_log},
                                                {"log", abs_log},
                                                {"min", min_max},
                                                {"max", min_max},
                                                {"missing", missing},
                                                {"or_else", or_else},
                                                {"length", array_length}}};

// ---------------------------------------------------------------- macros

/// Whether an argument fits the parameter's declared kind; only step variables can be checked.
bool check_macro_argument(State& s, const Env& env, const MacroInfo& macro, size_t i,
                          const Expr& arg) {
  const auto& param = macro.decl->params[i];
  const auto wanted = find(s, s.kind_names, macro.pack, param.type.text);
  if (!wanted) return true;
  const auto path = flatten(arg);
  uint32_t kind = kNone32;
  if (path && path->size() == 1) {
    const std::string& name = (*path)[0].text;
    for (const Binding& b : env.bindings) {
      if (b.name != name) continue;
      if (b.expr != nullptr) return true;  // checked where it was bound
      kind = b.kind;
    }
    for (const std::string& record : env.record_names) {
      if (record == name) kind = env.record_kind;
    }
    for (const StepVariable& v : env.steps) {
      if (v.name == name) kind = v.kind;
    }
  }
  for (uint32_t up = kind; up != kNone32; up = s.kinds[up].parent) {
    if (up == *wanted) return true;
  }
  auto& d = s.report(
      Id::kTypeMismatch, arg.span,
      "macro '" + macro.decl->name.text + "' wants an event of kind '" + param.type.text + "'" +
          (kind == kNone32 ? "" : ", this is a '" + s.kinds[kind].schema.name + "'"));
  d.notes.push_back({param.name.span, "the parameter is declared here"});
  return false;
}

NodePtr expand_macro(State& s, const Env& env, const Expr& e, uint32_t index) {
  const MacroInfo& macro = s.macros[index];
  const ast::MacroDecl& d = *macro.decl;
  if (std::find(env.macro_stack.begin(), env.macro_stack.end(), index) != env.macro_stack.end()) {
    auto& diag = s.report(Id::kMacroRecursion, e.span, "macro '" + d.name.text + "' uses itself");
    diag.notes.push_back({d.name.span, "declared here"});
    return poison(e.span);
  }
  if (e.args.size() != d.params.size()) {
    auto& diag = s.report(Id::kBadArguments, e.span,
                          "macro '" + d.name.text + "' takes " + std::to_string(d.params.size()) +
                              " arguments, not " + std::to_string(e.args.size()));
    diag.notes.push_back({d.name.span, "declared here"});
    return poison(e.span);
  }
  if (macro.broken || d.body == nullptr) return poison(e.span);
  if (env.macro_stack.size() >= kMacroDepthMax || ++s.expansions > kExpansionsMax) {
    if (s.expansions <= kExpansionsMax + 1) {
      s.report(Id::kExpressionTooLarge, e.span, "the macros expand to too large an expression");
    }
    s.expansions = kExpansionsMax + 1;
    return poison(e.span);
  }
  for (size_t i = 0; i < e.args.size(); ++i) {
    if (!check_macro_argument(s, env, macro, i, *e.args[i])) return poison(e.span);
  }
  Env inner = env;
  inner.pack = macro.pack;
  inner.record_names.clear();
  inner.steps.clear();
  inner.bindings.clear();
  inner.macro_stack.push_back(index);
  for (size_t i = 0; i < e.args.size(); ++i) {
    Binding b;
    b.name = d.params[i].name.text;
    b.expr = e.args[i].get();
    b.env = &env;
    inner.bindings.push_back(std::move(b));
  }
  return check_expr(s, inner, *d.body);
}

NodePtr unknown_function(State& s, const Env& env, const Expr& e) {
  auto& d = s.report(Id::kUnknownFunction, e.span, "no function or macro '" + e.text + "'");
  std::vector<std::string> names;
  add_value_functions(names);
  add_feature_functions(names);
  const auto macros = visible_names(s, s.macro_names, env.pack);
  names.insert(names.end(), macros.begin(), macros.end());
  const Span name{e.span.file, e.span.begin, e.span.begin + static_cast<uint32_t>(e.text.size())};
  if (const auto near = diag::did_you_mean(e.text, names)) {
    d.help = "did you mean '" + *near + "'?";
    d.fixes.push_back({name, *near, false});
  }
  return poison(e.span);
}

/// `count(v.others)` in a rule on verdicts: how many the verdict lists.
NodePtr count_of_verdict(State& s, const Env& env, const Expr& e) {
  const NodePtr n = check_expr(s, env, *e.args[0]);
  if (is_error(n)) return n;
  if (n->type.scalar != Scalar::kArray) {
    auto& d = s.report(Id::kTypeMismatch, e.span, "count(..) needs a list, this is a " +
                                                      to_text(s, n->type));
    d.help = "the lists of a verdict are `culprits` and `others`";
    return poison(e.span);
  }
  return make(Op::kArrayCount, int_type(), {n}, e.span);
}

}  // namespace

void add_value_functions(std::vector<std::string>& names) {
  for (const BuiltinRow& row : kBuiltins) names.emplace_back(row.name);
}

NodePtr check_call(State& s, const Env& env, const Expr& e) {
  const bool of_verdict = env.record_kind != kNone32 && env.record_kind == s.verdict_kind;
  if (of_verdict && e.text == "count" && e.args.size() == 1) return count_of_verdict(s, env, e);
  if (env.constant_only && e.text != "min" && e.text != "max" && e.text != "abs") {
    s.report(Id::kNotConstant, e.span, "'" + e.text + "(..)' is not a constant");
    return poison(e.span);
  }
  if (is_feature_function(e.text)) {
    if (const auto call = feature_call(s, env, e)) return check_feature_call(s, env, *call);
  }
  for (const BuiltinRow& row : kBuiltins) {
    if (row.name == e.text) return row.fn(s, env, e);
  }
  bool ambiguous = false;
  if (find(s, s.macro_names, env.pack, e.text, &ambiguous) || s.macro_names.by_name.count(e.text)) {
    const Span name{e.span.file, e.span.begin, e.span.begin + static_cast<uint32_t>(e.text.size())};
    const auto index = resolve(s, s.macro_names, env.pack, {e.text, name}, Id::kUnknownFunction);
    return index ? expand_macro(s, env, e, *index) : poison(e.span);
  }
  if (e.text == "peers") {
    auto& d = s.report(Id::kPeersWithoutFeature, e.span, "peers(..) needs a statistic");
    d.help = "write: peers(job).median";
    return poison(e.span);
  }
  return unknown_function(s, env, e);
}

}  // namespace reflex::sema
