// Longitudinal features (A7): calls of feature functions -> FeaturePlan, shared when equal.
//
// Result types: decayed, ewma, mean, min, max, sum, .. keep the unit of their input; rate is the
// unit per second, trend too; since and age are durations; streak, count, distinct, recurrences and
// reset_count whole numbers. Windowed statistics do not see the event under evaluation.
#include <algorithm>
#include <array>

#include "compiler/sema/builtins.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::FeatureOp;
using abi::FeaturePlan;
using abi::Scalar;
using abi::Type;
using abi::Unit;
using ir::Op;

/// What a function needs and gives.
enum class Wants : uint8_t { kEvents, kValue, kEither };
enum class Gives : uint8_t { kInput, kRate, kTrend, kDuration, kCount, kReal };
struct FunctionRow {
  std::string_view name;
  FeatureOp op;
  Wants wants;
  Gives gives;
  bool window_needed;  // a positional duration, `within` or `last`
  bool windowed_statistic;
  bool counter;  // accepts a counter field
};
constexpr std::array<FunctionRow, 22> kFunctions{{
    {"last", FeatureOp::kLast, Wants::kValue, Gives::kInput, false, false, false},
    {"decayed", FeatureOp::kDecayed, Wants::kEither, Gives::kInput, false, false, false},
    {"ewma", FeatureOp::kEwma, Wants::kValue, Gives::kInput, false, false, false},
    {"rate", FeatureOp::kRate, Wants::kEither, Gives::kRate, true, false, true},
    {"increase", FeatureOp::kIncrease, Wants::kValue, Gives::kInput, true, false, true},
    {"reset_count", FeatureOp::kResetCount, Wants::kValue, Gives::kCount, true, false, true},
    {"trend", FeatureOp::kTrend, Wants::kValue, Gives::kTrend, true, false, false},
    {"cusum", FeatureOp::kCusum, Wants::kValue, Gives::kInput, false, false, false},
    {"since", FeatureOp::kSince, Wants::kEvents, Gives::kDuration, false, false, false},
    {"streak", FeatureOp::kStreak, Wants::kEither, Gives::kCount, false, false, false},
    {"recurrences", FeatureOp::kRecurrences, Wants::kEvents, Gives::kCount, true, false, false},
    {"burstiness", FeatureOp::kBurstiness, Wants::kEvents, Gives::kReal, false, false, false},
    {"age", FeatureOp::kAge, Wants::kEvents, Gives::kDuration, false, false, false},
    {"count", FeatureOp::kCount, Wants::kEvents, Gives::kCount, true, false, false},
    {"distinct", FeatureOp::kDistinct, Wants::kValue, Gives::kCount, true, false, false},
    {"mean", FeatureOp::kMean, Wants::kValue, Gives::kInput, true, true, false},
    {"min", FeatureOp::kMin, Wants::kValue, Gives::kInput, true, true, false},
    {"max", FeatureOp::kMax, Wants::kValue, Gives::kInput, true, true, false},
    {"sum", FeatureOp::kSum, Wants::kValue, Gives::kInput, true, true, false},
    {"stddev", FeatureOp::kStdDev, Wants::kValue, Gives::kInput, true, true, false},
    {"median", FeatureOp::kMedian, Wants::kValue, Gives::kInput, true, true, false},
    {"quantile", FeatureOp::kQuantile, Wants::kValue, Gives::kInput, true, true, false},
}};

const FunctionRow* row_of(const std::string& name) {
  for (const FunctionRow& row : kFunctions) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// Why: a ring of values per key; 4,096 doubles are 32 KiB a key, already a lot.
constexpr int64_t kLastMax = 4096;

struct Builder {
  State& s;
  const Env& env;  // of the place where the function is called
  const FeatureCall& call;
  const FunctionRow& row;
  FeaturePlan plan;
  Type input;  // of one sample
  bool ok = true;

  void fail(Id id, Span span, std::string message) {
    s.report(id, span, std::move(message));
    ok = false;
  }
  void inputs();
  void add_input(uint32_t kind, std::optional<uint16_t> slot, bool wants_counter);
  void options();
  void option(const FeatureCall::Option& o);
  void positional();
  void window(int64_t ns, Span span);
  void target(const ast::Expr& e);
  void slack(const ast::Expr& e);
  void requirements();
  Type result() const;
};

void Builder::add_input(uint32_t kind, std::optional<uint16_t> slot, bool wants_counter) {
  Env inner;
  inner.pack = env.pack;
  inner.record_kind = kind;
  inner.record_names = {"it"};
  inner.bindings = env.bindings;
  inner.macro_stack = env.macro_stack;
  NodePtr predicate;
  if (call.where != nullptr) {
    predicate = check_predicate(s, inner, *call.where);
    if (is_error(predicate)) ok = false;
  }
  const auto key = derive_key(s, kind, env.entity_kind, call.source.span);
  if (!key) ok = false;
  NodePtr value;
  if (slot) {
    const abi::FieldSchema& f = s.kinds[kind].schema.fields[*slot];
    input = f.type;
    if (!s.kinds[kind].is_abstract) s.pack.kinds[s.kinds[kind].id].fields[*slot].used = true;
    if (f.type.counter && !wants_counter) {
      auto& d = s.report(Id::kCounterRead, call.source.span,
                         "'" + f.name + "' is a counter: its value alone means nothing");
      d.help = "write: " + call.fn + "(increase(" + call.source.text + "), ..)";
      ok = false;
    }
    Type plain = f.type;
    plain.counter = false;
    value = load(Op::kField, *slot, plain, call.source.span);
  }
  if (!ok) return;
  const std::string name = call.fn + "(" + call.source.text + ")";
  FeaturePlan::Input in;
  in.key = *key;
  if (row.op == FeatureOp::kStreak && value && value->type.scalar == Scalar::kBool) {
    predicate = predicate ? make(Op::kAnd, bool_type(), {predicate, value}, call.span) : value;
    value = nullptr;
  }
  if (value) {
    // A truth value or a word is a number too: its 0/1 or its symbol.
    in.value = emit(s, value->rep == ir::Rep::kF64 ? value : to_f64(value), name + ".value");
  }
  in.leaf = intern_leaf(s, kind, predicate, env.entity_kind, name, call.span);
  plan.inputs.push_back(in);
  if (row.op == FeatureOp::kStreak && predicate) {
    FeaturePlan::Input stop = in;
    stop.value = kNone32;
    stop.streak_break = true;
    stop.leaf = intern_leaf(s, kind, make(Op::kNot, bool_type(), {predicate}, call.span),
                            env.entity_kind, name + ".break", call.span);
    plan.inputs.push_back(stop);
  }
}

void Builder::inputs() {
  const auto source = resolve_source(s, env.pack, call.source);
  if (!source) {
    ok = false;
    return;
  }
  if (!call.inner_fn.empty() && call.inner_fn != "increase") {
    fail(Id::kBadArguments, call.span,
         "only increase(kind.field) may stand inside of '" + call.fn + "'");
  }
  if (row.wants == Wants::kValue && !source->slot) {
    auto& d = s.report(Id::kBadArguments, call.source.span,
                       call.fn + "() needs a field, '" + call.source.text + "' is a kind");
    d.help = "write: " + call.fn + "(" + call.source.text + ".<field>, ..)";
    ok = false;
  }
  if (row.wants == Wants::kEvents && source->slot) {
    fail(Id::kBadArguments, call.source.span, call.fn + "() counts events, not a field");
  }
  const bool inner_increase = call.inner_fn == "increase";
  const bool counter_field =
      source->slot && s.kinds[source->kind].schema.fields[*source->slot].type.counter;
  plan.counter_input = inner_increase || counter_field;
  if (inner_increase && source->slot && !counter_field) {
    fail(Id::kBadArguments, call.source.span,
         "increase() needs a counter, '" + call.source.text + "' is none");
  }
  const auto kinds = concrete_kinds(s, source->kind);
  if (kinds.empty()) {
    fail(Id::kAbstractUse, call.source.span, "no kind extends '" + call.source.text + "'");
  }
  for (const uint32_t kind : kinds) {
    if (!ok) return;
    std::optional<uint16_t> slot = source->slot;
    if (slot) slot = slot_of(s.kinds[kind], s.kinds[source->kind].schema.fields[*slot].name);
    add_input(kind, slot, row.counter || inner_increase);
  }
}

void Builder::window(int64_t ns, Span span) {
  if (row.op == FeatureOp::kDecayed || row.op == FeatureOp::kEwma) {
    plan.half_life_ns = ns;
  } else {
    plan.window_ns = ns;
    if (row.op == FeatureOp::kTrend) plan.half_life_ns = ns;
  }
  if (ns == 0) fail(Id::kBadInterval, span, "the window is empty");
  note_window(s, ns, span);
}

void Builder::slack(const ast::Expr& e) {
  Env constant;
  constant.pack = env.pack;
  constant.constant_only = true;
  const NodePtr n = check_expr(s, constant, e);
  if (is_error(n)) {
    ok = false;
    return;
  }
  plan.slack_relative = n->type.scalar == Scalar::kQuantity && n->type.unit == Unit::kRatio &&
                        input.unit != Unit::kRatio;
  Type want = input;
  if (want.unit == Unit::kCelsius) want.unit = Unit::kCelsiusDelta;
  if (want.scalar == Scalar::kInt) want = real_type();
  const NodePtr fitted = plan.slack_relative ? n : coerce(s, n, want, "the slack");
  const auto v = constant_f64(fitted);
  if (is_error(fitted) || !v) {
    ok = false;
    return;
  }
  plan.slack = *v;
}

void Builder::target(const ast::Expr& e) {
  Env inner = env;
  inner.record_kind = kNone32;
  inner.record_names.clear();
  inner.steps.clear();
  inner.has_entity = true;
  inner.features_allowed = true;
  inner.peers_allowed = true;
  if (mentions_peers(e)) {
    const auto source = resolve_source(s, env.pack, call.source);
    if (!source || !source->slot) {
      ok = false;
      return;
    }
    const auto last = last_value(s, env, source->kind, *source->slot, call.source.span);
    if (!last) {
      ok = false;
      return;
    }
    inner.peers_feature = *last;
    inner.peers_type = s.feature_types[*last];
    plan.global_stage = true;
  }
  Type want = input;
  want.optional = false;
  if (want.scalar == Scalar::kInt) want = real_type();
  const NodePtr n = coerce(s, check_expr(s, inner, e, &want), want, "the target");
  if (is_error(n)) {
    ok = false;
    return;
  }
  plan.target = emit(s, to_f64(n), call.fn + ".target");
}

void Builder::option(const FeatureCall::Option& o) {
  const ast::Expr& v = *o.value;
  if (o.name == "half_life") {
    const auto ns = constant_duration(s, env.pack, v, "half_life");
    plan.half_life_ns = ns.value_or(0);
    if (ns && *ns == 0) {
      report_no_half_life(s, v.span);
      ok = false;
    }
    ok = ok && ns && *ns > 0;
    if (ns && *ns > 0) note_window(s, *ns, o.span);
  } else if (o.name == "within" || o.name == "over") {
    const auto ns = constant_duration(s, env.pack, v, "the window");
    ok = ok && ns;
    if (ns) window(*ns, o.span);
  } else if (o.name == "last") {
    const auto n = constant_count(s, env.pack, v, "`last`", 1, kLastMax);
    plan.last_n = static_cast<uint32_t>(n.value_or(1));
    ok = ok && n;
  } else if (o.name == "min") {
    const auto n = constant_count(s, env.pack, v, "`min`", 1, kLastMax);
    plan.min_samples = static_cast<uint32_t>(n.value_or(1));
    ok = ok && n;
  } else if (o.name == "stale_after") {
    const auto ns = constant_duration(s, env.pack, v, "stale_after");
    plan.stale_after_ns = ns.value_or(0);
    ok = ok && ns;
  } else if (o.name == "slack" && row.op == FeatureOp::kCusum) {
    slack(v);
  } else if (o.name == "target" && row.op == FeatureOp::kCusum) {
    target(v);
  } else {
    auto& d = s.report(Id::kUnknownOption, o.span, call.fn + "() has no option '" + o.name + "'");
    suggest(d, o.name,
            row.op == FeatureOp::kCusum
                ? std::vector<std::string>{"target", "slack"}
                : std::vector<std::string>{"half_life", "last", "min", "stale_after", "within"},
            o.span);
    ok = false;
  }
}

void Builder::positional() {
  for (const ast::Expr* arg : call.args) {
    if (row.op == FeatureOp::kQuantile && arg->kind != ast::ExprKind::kDuration) {
      const auto q = constant_number(s, env.pack, *arg, "the quantile");
      ok = ok && q;
      if (q && (*q <= 0 || *q >= 1)) {
        fail(Id::kProbabilityRange, arg->span, "a quantile lies between 0 and 1");
      }
      plan.quantile = q.value_or(0.5);
      continue;
    }
    const auto ns = constant_duration(s, env.pack, *arg, "the window");
    ok = ok && ns;
    if (ns) window(*ns, arg->span);
  }
}

void Builder::requirements() {
  const bool has_window = plan.window_ns > 0 || plan.last_n > 0;
  auto need = [&](bool have, const char* what) {
    if (have || !ok) return;
    auto& d = s.report(Id::kBadArguments, call.span, call.fn + "() needs " + what);
    d.help = "write: " + call.fn + "(" + call.source.text +
             (row.windowed_statistic        ? ", last 8)"
              : row.op == FeatureOp::kCusum ? ", target .., slack 2%)"
              : plan.op == FeatureOp::kDecayed || plan.op == FeatureOp::kEwma ? ", half_life 3d)"
                                                                              : ", 6h)");
    ok = false;
  };
  if (row.window_needed) need(has_window, "a window");
  if (row.op == FeatureOp::kDecayed || row.op == FeatureOp::kEwma) {
    need(plan.half_life_ns > 0, "a half_life");
  }
  if (row.op == FeatureOp::kCusum) need(plan.target != kNone32, "a target");
  if (row.wants != Wants::kEvents && ok && row.op != FeatureOp::kLast &&
      row.op != FeatureOp::kDistinct && row.op != FeatureOp::kStreak &&
      input.scalar != Scalar::kError && !is_number(input) && input.scalar != Scalar::kDuration) {
    fail(Id::kTypeMismatch, call.source.span,
         call.fn + "() needs numbers, '" + call.source.text + "' is a " + to_text(s, input));
  }
  if (ok &&
      (abi::slot_form(input) == abi::SlotForm::kText ||
       abi::slot_form(input) == abi::SlotForm::kArray) &&
      input.scalar != Scalar::kError) {
    fail(Id::kTypeMismatch, call.source.span,
         "no feature of a " + to_text(s, input) + " is possible");
  }
}

Type Builder::result() const {
  Type t = input;
  t.counter = false;
  t.optional = true;
  const bool events = t.scalar == Scalar::kError;
  switch (row.gives) {
    case Gives::kDuration:
      return duration_type();
    case Gives::kCount:
      return int_type();
    case Gives::kReal:
      return real_type();
    case Gives::kRate:
    case Gives::kTrend: {
      Unit unit = events || t.scalar != Scalar::kQuantity ? Unit::kCount : t.unit;
      if (unit == Unit::kCelsius) unit = Unit::kCelsiusDelta;
      return quantity_type(unit, true);
    }
    case Gives::kInput:
      break;
  }
  if (events) return real_type();
  if (t.scalar == Scalar::kInt && row.op != FeatureOp::kLast) t = real_type();
  const bool difference = row.op == FeatureOp::kStdDev || row.op == FeatureOp::kCusum ||
                          row.op == FeatureOp::kIncrease || row.op == FeatureOp::kDecayed;
  if (t.unit == Unit::kCelsius && difference) t.unit = Unit::kCelsiusDelta;
  return t;
}

std::string plan_key(const FeaturePlan& p) {
  std::string key;
  auto put = [&key](auto v) { key += std::to_string(v) + ","; };
  auto put_inputs = [&](const std::vector<FeaturePlan::Input>& inputs) {
    put(inputs.size());
    for (const auto& in : inputs) {
      put(in.leaf);
      put(in.value);
      put(in.streak_break ? 1 : 0);
      for (const abi::KeyPart& k : in.key.parts) {
        put(static_cast<int>(k.from));
        put(k.slot);
        put(k.expr);
        key += k.label + ";";
      }
    }
  };
  put(static_cast<int>(p.op));
  put(p.entity_kind);
  put_inputs(p.inputs);
  put_inputs(p.resets);
  put(p.counter_input ? 1 : 0);
  put(p.half_life_ns);
  put(p.window_ns);
  put(p.last_n);
  put(p.min_samples);
  put(f64_to_bits(p.quantile));
  put(f64_to_bits(p.slack));
  put(p.slack_relative ? 1 : 0);
  put(p.target);
  put(p.stale_after_ns);
  put(p.exclude_current ? 1 : 0);
  return key;
}

}  // namespace

void add_feature_functions(std::vector<std::string>& names) {
  for (const FunctionRow& row : kFunctions) names.emplace_back(row.name);
}

bool is_feature_function(const std::string& name) { return row_of(name) != nullptr; }

std::optional<BuiltFeature> build_feature(State& s, const Env& env, const FeatureCall& call) {
  const FunctionRow* row = row_of(call.fn);
  if (row == nullptr) {
    auto& d = s.report(Id::kUnknownFunction, call.span, "no feature function '" + call.fn + "'");
    std::vector<std::string> names;
    for (const FunctionRow& r : kFunctions) names.emplace_back(r.name);
    if (const auto near = diag::did_you_mean(call.fn, names)) {
      d.help = "did you mean '" + *near + "'?";
    }
    return std::nullopt;
  }
  Builder b{s, env, call, *row, {}, {}, true};
  b.plan.op = row->op;
  b.plan.entity_kind = env.entity_kind;
  b.plan.where = s.where(call.span);
  b.plan.global_stage = !node_keyed(s, env.entity_kind);
  b.inputs();
  if (!b.ok) return std::nullopt;
  b.positional();
  for (const FeatureCall::Option& o : call.options) b.option(o);
  b.requirements();
  if (!b.ok) return std::nullopt;
  b.plan.exclude_current = row->windowed_statistic;
  const Type type = b.result();
  b.plan.integer_result = rep_of(type) == ir::Rep::kI64 || type.scalar == Scalar::kBool;
  return BuiltFeature{std::move(b.plan), type};
}

abi::FeatureId intern_feature(State& s, const FeaturePlan& plan, const Type& type) {
  const auto [it, added] =
      s.feature_ids.emplace(plan_key(plan), static_cast<abi::FeatureId>(s.pack.features.size()));
  const abi::FeatureId id = it->second;
  if (!added) {
    if (s.pack.features[id].name.empty()) s.pack.features[id].name = plan.name;
    return id;
  }
  s.pack.features.push_back(plan);
  s.feature_types.push_back(type);
  for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
    add_owner(s, plan.inputs[i].leaf, abi::OwnerKind::kFeatureInput, id, i);
  }
  for (uint32_t i = 0; i < plan.resets.size(); ++i) {
    add_owner(s, plan.resets[i].leaf, abi::OwnerKind::kFeatureReset, id, i);
  }
  return id;
}

NodePtr feature_node(State& s, abi::FeatureId id, Span span) {
  const Type type = s.feature_types[id];
  if (type.scalar != Scalar::kBool) return load(Op::kFeature, id, type, span);
  // Features hold numbers; a truth value comes back as 0 or 1.
  return make(Op::kNe, bool_type(),
              {load(Op::kFeature, id, int_type(), span), const_i64(0, int_type(), span)}, span);
}

}  // namespace reflex::sema
