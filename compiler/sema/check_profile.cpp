// Hardware profiles: inheritance, typed parameters with ranges, overrides -> ClassPlan.
//
// Class 0 is the fallback; the others follow by name. A root class is its own parent. Without any
// profile in the set there is one class "default" that every node belongs to.
#include <algorithm>

#include "compiler/sema/overlay.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::ClassPlan;
using abi::Scalar;

// Why: see check_kind.cpp; language.md A3 fixes the depth at 8.
constexpr int kDepthMax = 8;

struct Builder {
  State& s;
  std::vector<const ast::ProfileDecl*> decls;  // [ClassId]
  std::vector<DeclRef> refs;
  std::vector<int> state;  // 0 new, 1 busy, 2 done
  struct Change {
    OverlayUse use;
    const ast::OverlayEntry* entry;
  };
  std::vector<std::vector<Change>> changes;  // [ClassId]

  void order();
  void resolve_class(uint32_t c, int depth);
  void declare_params(uint32_t c);
  void set_param(uint32_t c, const ast::ProfileParam& p);
  void set_adaptive_param(uint32_t c, const ast::ProfileParam& p, uint32_t param);
  void new_param(uint32_t c, const ast::ProfileParam& p);
  std::optional<NodePtr> value_of(uint32_t c, const ast::ProfileParam& p, uint32_t param);
  void check_matches(uint32_t c);
  void gather_overlays();
  void set_from_overlays(uint32_t c);
  std::string value_text(uint32_t c, uint32_t param) const;
  std::optional<uint32_t> class_of(const std::string& name) const;
};

std::optional<uint32_t> Builder::class_of(const std::string& name) const {
  for (uint32_t c = 0; c < decls.size(); ++c) {
    if (decls[c]->name.text == name) return c;
  }
  return std::nullopt;
}

void Builder::order() {
  std::vector<std::pair<const ast::ProfileDecl*, DeclRef>> all;
  for_each<ast::ProfileDecl>(s, [&](DeclRef ref, const ast::ProfileDecl& d, const ast::Decl&) {
    declare(s, s.profile_names, d.name, ref.pack, static_cast<uint32_t>(all.size()), true);
    all.emplace_back(&d, ref);
  });
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.first->fallback != b.first->fallback) return a.first->fallback;
    return a.first->name.text < b.first->name.text;
  });
  for (const auto& [d, ref] : all) {
    decls.push_back(d);
    refs.push_back(ref);
  }
  // The table's indices follow the new order.
  for (Symbol& symbol : s.profile_names.symbols) {
    symbol.index = class_of(symbol.name).value_or(0);
  }
}

void Builder::new_param(uint32_t c, const ast::ProfileParam& p) {
  FieldRange range{};
  const auto type = resolve_type(s, p.type, &range);
  if (!type) return;
  for (const ParamInfo& other : s.params) {
    if (other.name != p.name.text) continue;
    if (other.type == *type && !p.adaptive && other.adaptive == kNone32) return;
    if (other.type == *type) {
      auto& d = s.report(Id::kDuplicateName, p.name.span,
                         "parameter '" + p.name.text + "' is declared elsewhere, one is adaptive");
      d.notes.push_back({other.span, "declared here"});
      return;
    }
    auto& d = s.report(Id::kTypeMismatch, p.type.span,
                       "parameter '" + p.name.text + "' is a " + to_text(s, *type) +
                           " here and a " + to_text(s, other.type) + " elsewhere");
    d.notes.push_back({other.span, "declared here"});
    return;
  }
  ParamInfo info{p.name.text, *type, p.name.span, {}, {}, kNone32};
  if (p.within && p.within->args.size() == 2) {
    Env env;
    env.pack = refs[c].pack;
    env.constant_only = true;
    const NodePtr lo = coerce(s, check_expr(s, env, *p.within->args[0]), *type, "the range");
    const NodePtr hi = coerce(s, check_expr(s, env, *p.within->args[1]), *type, "the range");
    info.lo = constant_f64(lo);
    info.hi = constant_f64(hi);
    if (info.lo && info.hi && *info.lo > *info.hi) {
      s.report(Id::kBadInterval, p.within->span, "the range is turned around");
    }
  }
  s.params.push_back(std::move(info));
  s.pack.params.push_back({p.name.text, *type});
  if (p.adaptive) {
    declare_adaptive(s, refs[c].pack, p, static_cast<uint32_t>(s.params.size() - 1));
  }
}

void Builder::declare_params(uint32_t c) {
  for (const ast::ProfileParam& p : decls[c]->params) {
    if (!p.type.name.empty()) new_param(c, p);
  }
}

/// The value of a parameter as a constant of its type, or nothing after a report.
std::optional<NodePtr> Builder::value_of(uint32_t c, const ast::ProfileParam& p, uint32_t param) {
  if (!p.value) return std::nullopt;
  const ParamInfo& info = s.params[param];
  Env env;
  env.pack = refs[c].pack;
  env.constant_only = true;
  NodePtr node = check_expr(s, env, *p.value, &info.type);
  if (is_error(node)) return std::nullopt;
  if (node->op == ir::Op::kConstText && info.type.scalar == Scalar::kEnum) {
    node = symbol_constant(s, literal_text(s, node), info.type, node->span);
  } else {
    node = coerce(s, node, info.type, "the parameter");
  }
  if (is_error(node)) return std::nullopt;
  if (!is_constant(node)) {
    s.report(Id::kNotConstant, p.value->span, "the value must be a constant");
    return std::nullopt;
  }
  const auto v = constant_f64(node);
  if (v && ((info.lo && *v < *info.lo) || (info.hi && *v > *info.hi))) {
    auto& d =
        s.report(Id::kParameterRange, p.value->span, "'" + info.name + "' is outside of its range");
    d.notes.push_back({info.span, "the range is declared here"});
    return std::nullopt;
  }
  return node;
}

void Builder::set_param(uint32_t c, const ast::ProfileParam& p) {
  ClassPlan& plan = s.pack.classes[c];
  std::optional<uint32_t> param;
  for (uint32_t i = 0; i < s.params.size(); ++i) {
    if (s.params[i].name == p.name.text) param = i;
  }
  const bool declares = !p.type.name.empty();
  const bool inherited = param && plan.param_where[*param].line != 0;
  if (declares && inherited) {
    auto& d = s.report(Id::kDuplicateName, p.name.span,
                       "parameter '" + p.name.text + "' is already inherited");
    d.notes.push_back({s.params[*param].span, "declared here"});
    d.help = "override it with: " + p.name.text + " = ..";
    return;
  }
  if (!declares && !inherited) {
    auto& d =
        s.report(Id::kUnknownParameter, p.name.span,
                 "'" + p.name.text + "' is not a parameter that '" + plan.name + "' inherits");
    std::vector<std::string> names;
    for (uint32_t i = 0; i < s.params.size(); ++i) {
      if (plan.param_where[i].line != 0) names.push_back(s.params[i].name);
    }
    suggest(d, p.name.text, names, p.name.span);
    return;
  }
  if (!param) return;  // its type was not understood
  if (s.params[*param].adaptive != kNone32 || p.adaptive || !p.value) {
    set_adaptive_param(c, p, *param);
    return;
  }
  const auto node = value_of(c, p, *param);
  plan.param_where[*param] = s.where(p.name.span);
  if (!node) return;
  plan.params[*param] = static_cast<uint64_t>((*node)->imm);
  plan.params_known[*param] = 1;
}

void Builder::set_adaptive_param(uint32_t c, const ast::ProfileParam& p, uint32_t param) {
  ClassPlan& plan = s.pack.classes[c];
  plan.param_where[param] = s.where(p.name.span);
  const abi::AdaptiveId id = s.params[param].adaptive;
  if (id == kNone32) {
    if (p.adaptive) return;  // its type does not fit, reported
    auto& d = s.report(Id::kTypeMismatch, p.name.span,
                       "'" + p.name.text + "' is not an adaptive parameter");
    d.notes.push_back({s.params[param].span, "declared here"});
    d.help = "write: " + p.name.text + " = ..";
    return;
  }
  if (p.value) {
    auto& d = s.report(Id::kTypeMismatch, p.name.span,
                       "'" + p.name.text + "' is adaptive, it has no fixed value");
    d.notes.push_back({s.params[param].span, "declared here"});
    d.help = "write: " + p.name.text + " { default .. }";
    return;
  }
  const auto initial = set_adaptive(s, refs[c].pack, plan, p, id, p.adaptive);
  if (!initial) return;
  plan.params[param] = static_cast<uint64_t>(f64_to_bits(*initial));
  plan.params_known[param] = 1;
}

void Builder::check_matches(uint32_t c) {
  const ast::ProfileDecl& d = *decls[c];
  if (!d.matches) return;
  Env env;
  env.pack = refs[c].pack;
  env.profile_match = true;
  const NodePtr node = check_predicate(s, env, *d.matches);
  if (!is_error(node)) s.pack.classes[c].matches = emit(s, node, d.name.text + ".matches");
}

void Builder::resolve_class(uint32_t c, int depth) {
  if (state[c] != 0) return;
  state[c] = 1;
  const ast::ProfileDecl& d = *decls[c];
  ClassPlan& plan = s.pack.classes[c];
  plan.name = d.name.text;
  plan.parent = static_cast<abi::ClassId>(c);
  plan.abstract_class = d.abstract_profile;
  plan.fallback = d.fallback;
  plan.where = s.where(d.name.span);
  plan.params.assign(s.params.size(), 0);
  plan.params_known.assign(s.params.size(), 0);
  plan.param_where.assign(s.params.size(), {});
  plan.adaptive.assign(s.adaptives.size(), {});
  if (!d.extends.empty()) {
    const auto parent = resolve(s, s.profile_names, refs[c].pack, d.extends, Id::kUnknownProfile);
    if (parent && state[*parent] == 1) {
      s.report(Id::kInheritanceCycle, d.extends.span,
               "profile '" + d.name.text + "' extends itself");
    } else if (parent && depth >= kDepthMax) {
      s.report(Id::kProfileDepth, d.extends.span, "profiles inherit at most 8 levels deep");
    } else if (parent) {
      resolve_class(*parent, depth + 1);
      const ClassPlan& up = s.pack.classes[*parent];
      plan.parent = static_cast<abi::ClassId>(*parent);
      plan.depth = static_cast<uint16_t>(up.depth + 1);
      plan.params = up.params;
      plan.params_known = up.params_known;
      plan.param_where = up.param_where;
      plan.adaptive = up.adaptive;
    }
  }
  for (const ast::ProfileParam& p : d.params) set_param(c, p);
  set_from_overlays(c);
  state[c] = 2;
}

void Builder::gather_overlays() {
  changes.resize(decls.size());
  for_each_entry(
      s, ast::OverlayEntry::Verb::kSetProfile,
      [&](const OverlayUse& use, const ast::OverlayEntry& e) {
        const auto c = resolve(s, s.profile_names, use.target, e.target, Id::kUnknownProfile);
        if (!c || !e.set) return;  // prior scales: check_cause.cpp
        if (!e.set->type.name.empty() || e.set->adaptive) {
          auto& d = s.report(Id::kNotHere, e.set->span,
                             "an overlay sets a parameter, it declares none");
          d.help = "write: set profile " + e.target.text + " " + e.set->name.text + " = ..";
          return;
        }
        const std::string what = "profile " + e.target.text + " " + e.set->name.text;
        if (claim(s, what, e.set->name.span)) changes[*c].push_back({use, &e});
      });
}

void Builder::set_from_overlays(uint32_t c) {
  for (const Change& change : changes[c]) {
    const ast::ProfileParam& p = *change.entry->set;
    std::optional<uint32_t> param;
    for (uint32_t i = 0; i < s.params.size(); ++i) {
      if (s.params[i].name == p.name.text) param = i;
    }
    const std::string before = param ? value_text(c, *param) : "";
    const size_t errors = s.sink.error_count();
    set_param(c, p);
    if (s.sink.error_count() > errors || !param) continue;
    note_change(s, change.use, p.name.span,
                "profile " + s.pack.classes[c].name + " " + p.name.text + ": " + before + " -> " +
                    value_text(c, *param));
  }
}

/// A value in the base unit of its type, for lists of changes.
std::string Builder::value_text(uint32_t c, uint32_t param) const {
  const ClassPlan& plan = s.pack.classes[c];
  if (plan.params_known[param] == 0) return "unset";
  const abi::Type& type = s.params[param].type;
  const auto bits = static_cast<int64_t>(plan.params[param]);
  if (type.scalar == Scalar::kEnum) {
    return std::string(s.in.symbols->name(static_cast<SymbolId>(bits)));
  }
  if (type.scalar == Scalar::kBool) return bits != 0 ? "true" : "false";
  if (type.scalar == Scalar::kDuration) return reflex::to_text(Duration{bits});
  if (abi::slot_form(type) == abi::SlotForm::kI64) return std::to_string(bits);
  std::string text = std::to_string(bits_to_f64(bits));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  const AdaptiveInfo* adaptive =
      s.params[param].adaptive == kNone32 ? nullptr : &s.adaptives[s.params[param].adaptive];
  const std::string unit = type.scalar == Scalar::kQuantity ? " " + to_text(s, type) : "";
  return (adaptive != nullptr ? "default " : "") + text + unit;
}

void check_fallback(State& s, const std::vector<const ast::ProfileDecl*>& decls) {
  const ast::ProfileDecl* first = nullptr;
  for (const ast::ProfileDecl* d : decls) {
    if (!d->fallback) continue;
    if (first != nullptr) {
      auto& diag = s.report(Id::kFallbackCount, d->name.span, "a second fallback profile");
      diag.notes.push_back({first->name.span, "the first one is here"});
    } else {
      first = d;
    }
    if (d->abstract_profile) {
      s.report(Id::kAbstractUse, d->name.span, "the fallback cannot be abstract");
    }
  }
  if (first == nullptr) {
    auto& diag = s.report(Id::kFallbackCount, decls[0]->name.span,
                          "no profile is the fallback for nodes that match none");
    diag.help = "add: profile hw.unknown extends .. fallback { }";
  }
}

}  // namespace

void check_profiles(State& s) {
  Builder b{s, {}, {}, {}, {}};
  b.order();
  if (b.decls.empty()) {
    ClassPlan plan;
    plan.name = "default";
    plan.fallback = true;
    s.pack.classes.push_back(std::move(plan));
    s.profiles.push_back(nullptr);
    return;
  }
  check_fallback(s, b.decls);
  b.state.assign(b.decls.size(), 0);
  s.pack.classes.resize(b.decls.size());
  s.profiles = b.decls;
  for (uint32_t c = 0; c < b.decls.size(); ++c) b.declare_params(c);
  b.gather_overlays();
  for (uint32_t c = 0; c < b.decls.size(); ++c) b.resolve_class(c, 0);
  for (uint32_t c = 0; c < b.decls.size(); ++c) b.check_matches(c);
}

}  // namespace reflex::sema
