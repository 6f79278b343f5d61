// Counts, distinct counts and bursts over one kind (A6).
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::CompareOp;
using abi::CountMode;
using abi::CountPlan;

// Why: `exact` stores one timestamp an event; 64 Ki of them are 512 KiB a key.
constexpr int64_t kExactMax = 65'536;

CompareOp op_of(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::kGt:
      return CompareOp::kGt;
    case ast::BinaryOp::kLe:
      return CompareOp::kLe;
    case ast::BinaryOp::kLt:
      return CompareOp::kLt;
    case ast::BinaryOp::kEq:
      return CompareOp::kEq;
    case ast::BinaryOp::kNe:
      return CompareOp::kNe;
    default:
      return CompareOp::kGe;
  }
}

struct Builder {
  State& s;
  const SignalContext& c;
  abi::SignalPlan& plan;
  const ast::CountCondition& d;
  bool ok = true;

  CountPlan& out() { return plan.count; }
  void input(uint32_t kind);
  void inputs();
  void options();
  void graded();
  void part(uint32_t kind, CountPlan::Input& in);
  void threshold();
};

void Builder::input(uint32_t kind) {
  const ast::Aggregate& a = *d.aggregate;
  Env env;
  env.pack = c.pack;
  env.record_kind = kind;
  env.record_names = {"it"};
  env.has_entity = true;
  env.entity_kind = c.entity;
  env.features_allowed = true;
  NodePtr predicate;
  if (a.source.where) {
    predicate = check_predicate(s, env, *a.source.where);
    if (is_error(predicate)) ok = false;
  }
  std::map<std::string, uint16_t> stated;
  if (ok) stated = take_stated_keys(s, kind, c.entity, predicate);
  const auto key = derive_key(s, kind, c.entity, a.source.kind.span, true, nullptr, &stated);
  CountPlan::Input in;
  in.kind = s.kinds[kind].id;
  if (a.fn == "distinct") {
    const auto slot = slot_of(s.kinds[kind], a.distinct_of.text);
    if (!slot) {
      auto& diag =
          s.report(Id::kUnknownField, a.distinct_of.span,
                   "'" + s.kinds[kind].schema.name + "' has no field '" + a.distinct_of.text + "'");
      suggest(diag, a.distinct_of.text, field_names(s.kinds[kind]), a.distinct_of.span);
      ok = false;
    } else if (!integer_like(s.kinds[kind].schema.fields[*slot].type)) {
      s.report(Id::kTypeMismatch, a.distinct_of.span,
               "`distinct` needs an entity, a word or an integer, this is a " +
                   to_text(s, s.kinds[kind].schema.fields[*slot].type));
      ok = false;
    } else {
      in.distinct_slot = *slot;
      s.pack.kinds[s.kinds[kind].id].fields[*slot].used = true;
    }
  }
  if (!key || !ok) {
    ok = false;
    return;
  }
  in.key = *key;
  if (d.graded) part(kind, in);
  in.leaf = intern_leaf(s, kind, predicate, c.entity, c.name, d.span);
  listen(s, plan, kind);
  out().inputs.push_back(std::move(in));
}

void Builder::inputs() {
  const ast::Aggregate& a = *d.aggregate;
  out().mode = a.fn == "distinct" ? CountMode::kDistinct
               : a.fn == "bursts" ? CountMode::kBursts
                                  : CountMode::kEvents;
  const auto kind = resolve(s, s.kind_names, c.pack, a.source.kind, Id::kUnknownKind);
  if (!kind) {
    ok = false;
    return;
  }
  const auto kinds = concrete_kinds(s, *kind);
  if (kinds.empty()) {
    s.report(Id::kAbstractUse, a.source.kind.span, "no kind extends '" + a.source.kind.text + "'");
    ok = false;
  }
  for (const uint32_t k : kinds) {
    if (ok) input(k);
  }
}

void Builder::options() {
  for (const auto& o : d.aggregate->options) {
    if (o.name == "gap" && out().mode == CountMode::kBursts) {
      const auto ns = constant_duration(s, c.pack, *o.value, "the gap");
      out().gap_ns = ns.value_or(0);
      ok = ok && ns;
      if (ns) note_window(s, *ns, o.span);
      continue;
    }
    auto& diag =
        s.report(Id::kUnknownOption, o.span, d.aggregate->fn + " has no option '" + o.name + "'");
    if (out().mode == CountMode::kBursts) diag.help = "write: bursts(KIND where .., gap 3m)";
    ok = false;
  }
  if (ok && out().mode == CountMode::kBursts && out().gap_ns == 0) {
    auto& diag = s.report(Id::kBadArguments, d.aggregate->span, "bursts needs a gap");
    diag.help = "write: bursts(KIND where .., gap 3m)";
    ok = false;
  }
  if (d.within) {
    const auto ns = constant_duration(s, c.pack, *d.within, "`within`");
    out().window_ns = ns.value_or(0);
    ok = ok && ns;
    if (ns && *ns == 0) {
      s.report(Id::kBadInterval, d.within->span, "the window is empty");
      ok = false;
    }
    if (ns) note_window(s, *ns, d.within->span);
  }
  out().each = d.each;
  if (d.rearm) {
    const auto n = constant_number(s, c.pack, *d.rearm, "`rearm`");
    out().rearm = n.value_or(-1);
    ok = ok && n;
  }
  if (d.exact && !d.exact_max) {
    auto& diag = s.report(Id::kIncomplete, d.span, "`exact` needs a bound");
    diag.help = "write: exact max 1000";
    ok = false;
  } else if (d.exact_max) {
    const auto n = constant_count(s, c.pack, *d.exact_max, "`exact max`", 1, INT64_MAX);
    if (n && *n > kExactMax) {
      s.report(Id::kStateTooLarge, d.exact_max->span,
               "`exact` may store at most " + std::to_string(kExactMax) + " timestamps a key");
      ok = false;
    }
    out().exact_max = static_cast<uint32_t>(n && *n <= kExactMax ? *n : 0);
    ok = ok && n;
  }
}

/// The first key of the kind beside those of the signal: the part of the node that the event is
/// about. Not `job`, which is a whole, and not the node at the other end.
void Builder::part(uint32_t kind, CountPlan::Input& in) {
  const auto& keys = s.pack.entity_kinds[c.entity].keys;
  const auto& fields = s.kinds[kind].schema.fields;
  for (size_t f = 0; f < fields.size(); ++f) {
    const bool whole = fields[f].name == "job" || fields[f].name == "peer";
    const bool own = std::find(keys.begin(), keys.end(), fields[f].name) != keys.end();
    if (!fields[f].is_key || whole || own || !integer_like(fields[f].type)) continue;
    if (!out().part_key.empty() && out().part_key != fields[f].name) return;
    out().part_key = fields[f].name;
    in.part_slot = static_cast<uint16_t>(f);
    s.pack.kinds[s.kinds[kind].id].fields[f].used = true;
    return;
  }
}

/// `graded`: every event fires, and what is measured are the counts.
void Builder::graded() {
  abi::GradedPlan& g = out().graded;
  g.on = true;
  g.votes = d.graded_shape == "votes";
  out().each = true;
  out().op = CompareOp::kGe;
  out().threshold_constant = 1;
  if (out().mode == CountMode::kBursts || (out().mode == CountMode::kDistinct && !g.votes)) {
    auto& diag = s.report(Id::kBadArguments, d.aggregate->span,
                          "`graded` counts events, `graded votes` events or distinct voters");
    diag.help = "write: count KIND within 72h graded";
    ok = false;
  }
  if (d.graded_shape == "steady") {
    for (size_t b = 0; b < abi::kLeadBins; ++b) {
      g.profile[b] = abi::kLeadBounds[b] - abi::kLeadBounds[b + 1];
    }
  }
  if (!d.graded_extra) return;
  const auto extra = constant_number(s, c.pack, *d.graded_extra, "`extra`");
  if (!extra || *extra <= 0 || g.votes) {
    if (extra) {
      s.report(Id::kBadArguments, d.graded_extra->span,
               g.votes ? "votes have no `extra`" : "`extra` must be above 0");
    }
    ok = false;
    return;
  }
  g.extra_mean = *extra;
}

void Builder::threshold() {
  out().op = op_of(d.op);
  Env env;
  env.pack = c.pack;
  env.has_entity = true;
  env.entity_kind = c.entity;
  const NodePtr n = check_expr(s, env, *d.threshold);
  if (is_error(n)) {
    ok = false;
    return;
  }
  const bool plain = n->type.scalar == abi::Scalar::kInt || n->type.scalar == abi::Scalar::kReal;
  if (!plain) {
    s.report(Id::kTypeMismatch, d.threshold->span,
             "a count is compared with a number, this is a " + to_text(s, n->type));
    ok = false;
    return;
  }
  if (const auto v = constant_f64(n)) {
    out().threshold_constant = *v;
    const bool always =
        (d.op == ast::BinaryOp::kGe && *v <= 0) || (d.op == ast::BinaryOp::kGt && *v < 0);
    const bool never =
        (d.op == ast::BinaryOp::kLt && *v <= 0) || (d.op == ast::BinaryOp::kLe && *v < 0);
    if (always || never) {
      s.report(Id::kConstantPredicate, d.threshold->span,
               std::string("a count is ") + (always ? "always" : "never") + " so");
    }
    return;
  }
  out().threshold = emit(s, to_f64(n), c.name + ".threshold");
}

}  // namespace

bool lower_count(State& s, const SignalContext& c, abi::SignalPlan& plan) {
  Builder b{s, c, plan, *c.decl.count, true};
  b.inputs();
  b.options();
  if (c.decl.count->graded) {
    b.graded();
  } else {
    b.threshold();
  }
  if (!lower_guards(s, c, plan.count.guards)) b.ok = false;
  for (const abi::NoneGuard& g : plan.count.guards) plan.kinds.push_back(g.kind);
  if (!b.ok) return false;
  for (uint32_t i = 0; i < plan.count.inputs.size(); ++i) {
    add_owner(s, plan.count.inputs[i].leaf, abi::OwnerKind::kCount, c.id, i);
  }
  return true;
}

}  // namespace reflex::sema
