// Declared features, inline feature calls and implicit last values.
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::FeatureOp;
using abi::FeaturePlan;
using ast::Expr;
using ast::ExprKind;

std::string path_text(const std::vector<Segment>& path) {
  std::string text;
  for (const Segment& segment : path) text += (text.empty() ? "" : ".") + segment.text;
  return text;
}

/// Whether `text` is a kind or kind.field from inside this pack; silent.
bool is_source(const State& s, PackIndex pack, const std::string& text) {
  if (find(s, s.kind_names, pack, text)) return true;
  const size_t dot = text.rfind('.');
  return dot != std::string::npos && find(s, s.kind_names, pack, text.substr(0, dot));
}

void check_reset(State& s, const Env& env, const ast::KindPattern& reset, FeaturePlan& plan) {
  const auto kind = resolve(s, s.kind_names, env.pack, reset.kind, Id::kUnknownKind);
  if (!kind) return;
  for (const uint32_t concrete : concrete_kinds(s, *kind)) {
    Env inner;
    inner.pack = env.pack;
    inner.record_kind = concrete;
    inner.record_names = {"it"};
    NodePtr predicate;
    if (reset.where) {
      predicate = check_predicate(s, inner, *reset.where);
      if (is_error(predicate)) return;
    }
    const auto key = derive_key(s, concrete, env.entity_kind, reset.kind.span);
    if (!key) return;
    FeaturePlan::Input in;
    in.key = *key;
    in.leaf = intern_leaf(s, concrete, predicate, env.entity_kind, "reset", reset.span);
    plan.resets.push_back(in);
  }
}

void check_feature(State& s, uint32_t index) {
  FeatureInfo& info = s.features[index];
  const ast::FeatureDecl& d = *info.decl;
  const auto entity = resolve_entity(s, info.pack, d.on);
  if (!entity || !d.value) return;
  Env env;
  env.pack = info.pack;
  env.has_entity = true;
  env.entity_kind = *entity;
  auto built = build_feature(s, env, feature_call(*d.value));
  const size_t before = s.sink.error_count();
  for (const ast::KindPattern& reset : d.resets) {
    FeaturePlan ignored;
    check_reset(s, env, reset, built ? built->plan : ignored);
  }
  if (!built || s.sink.error_count() > before) return;
  built->plan.name = s.full_name(info.pack, d.name.text);
  built->plan.where = s.where(d.name.span);
  s.features[index].id = intern_feature(s, built->plan, built->type);
}

}  // namespace

std::optional<SourcePath> resolve_source(State& s, PackIndex pack, const ast::Name& name) {
  if (find(s, s.kind_names, pack, name.text)) {
    const auto kind = resolve(s, s.kind_names, pack, name, Id::kUnknownKind);
    if (!kind) return std::nullopt;
    return SourcePath{*kind, std::nullopt};
  }
  const size_t dot = name.text.rfind('.');
  if (dot != std::string::npos) {
    const std::string head = name.text.substr(0, dot);
    if (const auto kind = find(s, s.kind_names, pack, head)) {
      const std::string field = name.text.substr(dot + 1);
      if (const auto slot = slot_of(s.kinds[*kind], field)) return SourcePath{*kind, slot};
      auto& d =
          s.report(Id::kUnknownField, name.span, "'" + head + "' has no field '" + field + "'");
      suggest(d, field, field_names(s.kinds[*kind]), name.span);
      return std::nullopt;
    }
    // Declared, but in a pack that is not imported: say that, not "no such kind".
    const auto range = s.kind_names.by_name.equal_range(head);
    if (range.first != range.second) {
      resolve(s, s.kind_names, pack, {head, name.span}, Id::kUnknownKind);
      return std::nullopt;
    }
  }
  resolve(s, s.kind_names, pack, name, Id::kUnknownKind);
  return std::nullopt;
}

FeatureCall feature_call(const ast::Aggregate& a) {
  FeatureCall call;
  call.fn = a.fn;
  call.inner_fn = a.inner_fn;
  call.source = a.source.kind;
  call.where = a.source.where.get();
  for (const auto& arg : a.args) call.args.push_back(arg.get());
  for (const auto& o : a.options) call.options.push_back({o.name, o.value.get(), o.span});
  call.span = a.span;
  return call;
}

std::optional<FeatureCall> feature_call(const State& s, const Env& env, const Expr& e) {
  if (e.args.empty()) return std::nullopt;
  FeatureCall call;
  call.fn = e.text;
  call.span = e.span;
  const Expr* source = e.args[0].get();
  if (source->kind == ExprKind::kCall && !source->args.empty() &&
      is_feature_function(source->text)) {
    call.inner_fn = source->text;
    source = source->args[0].get();
  }
  const auto path = flatten(*source);
  if (!path) return std::nullopt;
  call.source = {path_text(*path), source->span};
  // `min(a.value, b.value)` of step variables is arithmetic; a kind makes it a feature.
  const bool scalar_too = e.text == "min" || e.text == "max";
  if (scalar_too && !is_source(s, env.pack, call.source.text)) return std::nullopt;
  if (scalar_too && e.args.size() > 1 && e.args[1]->kind != ExprKind::kDuration) {
    return std::nullopt;
  }
  for (size_t i = 1; i < e.args.size(); ++i) {
    const std::string name = i < e.arg_names.size() ? e.arg_names[i] : "";
    if (name.empty()) {
      call.args.push_back(e.args[i].get());
    } else {
      call.options.push_back({name, e.args[i].get(), e.args[i]->span});
    }
  }
  return call;
}

NodePtr check_feature_call(State& s, const Env& env, const FeatureCall& call) {
  if (env.constant_only) {
    s.report(Id::kNotConstant, call.span, "'" + call.fn + "(..)' is not a constant");
    return poison(call.span);
  }
  if (!env.features_allowed || !env.has_entity) {
    auto& d = s.report(Id::kNotHere, call.span, call.fn + "(..) is not possible here");
    d.help = "features can be read in the steps and conditions of a signal";
    return poison(call.span);
  }
  auto built = build_feature(s, env, call);
  if (!built) return poison(call.span);
  if (built->plan.op == FeatureOp::kMean) {
    auto n = std::make_shared<Node>();
    n->op = ir::Op::kFeature;
    n->rep = rep_of(built->type);
    n->type = built->type;
    n->span = call.span;
    n->index = kNone32;
    n->mean = std::make_shared<const FeaturePlan>(std::move(built->plan));
    return n;
  }
  return feature_node(s, intern_feature(s, built->plan, built->type), call.span);
}

std::optional<abi::FeatureId> last_value(State& s, const Env& env, uint32_t kind, uint16_t slot,
                                         Span span) {
  FeatureCall call;
  call.fn = "last";
  call.source = {s.kinds[kind].schema.name + "." + s.kinds[kind].schema.fields[slot].name, span};
  call.span = span;
  Env inner = env;
  inner.bindings.clear();
  inner.pack = s.kinds[kind].pack == kBuiltinPack ? env.pack : s.kinds[kind].pack;
  auto built = build_feature(s, inner, call);
  if (!built) return std::nullopt;
  return intern_feature(s, built->plan, built->type);
}

void check_features(State& s) {
  for (uint32_t i = 0; i < s.features.size(); ++i) check_feature(s, i);
}

}  // namespace reflex::sema
