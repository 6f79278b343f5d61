// Conditions over features and last values (A8): when / for / keep / clear / nodata / peers.
#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::ConditionPlan;
using abi::FeatureOp;
using ast::BinaryOp;
using ir::Op;

bool is_comparison(Op op) {
  return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe || op == Op::kGt ||
         op == Op::kGe;
}

/// The first comparison from the left, for the explanation.
const Node* first_comparison(const Node& n) {
  if (is_comparison(n.op)) return &n;
  for (const NodePtr& a : n.args) {
    if (const Node* found = first_comparison(*a)) return found;
  }
  return nullptr;
}

void collect_params(const State& s, const Node& n, std::vector<uint32_t>& out) {
  if (n.op == Op::kParam) out.push_back(n.index);
  if (n.op == Op::kTable) out.push_back(s.adaptives[n.index].param);
  for (const NodePtr& a : n.args) collect_params(s, *a, out);
}

bool changes_with_time(FeatureOp op) {
  switch (op) {
    case FeatureOp::kSince:
    case FeatureOp::kAge:
    case FeatureOp::kDecayed:
    case FeatureOp::kRate:
    case FeatureOp::kIncrease:
    case FeatureOp::kResetCount:
    case FeatureOp::kRecurrences:
    case FeatureOp::kBurstiness:
    case FeatureOp::kCount:
    case FeatureOp::kDistinct:
      return true;
    default:
      return false;
  }
}

struct Builder {
  State& s;
  const SignalContext& c;
  abi::SignalPlan& plan;
  Env env;
  NodePtr when;
  NodePtr value;  // of the first comparison, feature side
  NodePtr limit;
  bool ok = true;

  ConditionPlan& out() { return plan.condition; }
  void conditions();
  void shown();
  void clear();
  void spans();
  void triggers();
  std::string origin(const NodePtr& n) const;
};

void Builder::conditions() {
  env.pack = c.pack;
  env.has_entity = true;
  env.entity_kind = c.entity;
  env.features_allowed = true;
  env.peers_allowed = true;
  if (c.decl.peers_at_least) {
    const auto n =
        constant_count(s, c.pack, *c.decl.peers_at_least, "`peers at least`", 1, 1'000'000);
    env.peers_at_least = static_cast<uint32_t>(n.value_or(3));
    ok = ok && n;
  }
  when = check_predicate(s, env, *c.decl.when);
  if (is_error(when)) {
    ok = false;
    return;
  }
  out().when = emit(s, when, c.name + ".when");
}

std::string Builder::origin(const NodePtr& n) const {
  std::vector<uint32_t> params;
  collect_params(s, *n, params);
  std::string text;
  for (const uint32_t p : params) {
    const abi::SourceRef at = s.where(s.params[p].span);
    text += (text.empty() ? "" : ", ") + ("profile." + s.params[p].name) + " (" + at.file + ":" +
            std::to_string(at.line) + ")";
  }
  if (reads(n, Op::kPeers)) text += text.empty() ? "peers" : ", peers";
  if (text.empty()) text = is_constant(n) ? "static" : "computed";
  return text;
}

void Builder::shown() {
  const Node* cmp = first_comparison(*when);
  if (cmp == nullptr) return;
  value = cmp->written_left ? cmp->written_left : cmp->args[0];
  limit = cmp->written_right ? cmp->written_right : cmp->args[1];
  // The measured side is the one with a feature; peers alone are a limit.
  if (!reads(value, Op::kFeature) && reads(limit, Op::kFeature)) std::swap(value, limit);
  if (value->rep != ir::Rep::kI64 && value->rep != ir::Rep::kF64) {
    value = nullptr;
    limit = nullptr;
    return;
  }
  out().shown_value = emit(s, to_f64(value), c.name + ".value");
  out().shown_limit = emit(s, to_f64(limit), c.name + ".limit");
  out().limit_origin = origin(limit);
  std::vector<uint32_t> params;
  collect_params(s, *limit, params);
  // One that is adaptive: what moved it is part of the explanation.
  for (const uint32_t p : params) {
    if (s.params[p].adaptive != kNone32) out().limit_adaptive = s.params[p].adaptive;
  }
}

void Builder::clear() {
  const ast::SignalDecl& d = c.decl;
  if (!d.clear) return;
  NodePtr node;
  if (d.clear_op == "when") {
    node = check_predicate(s, env, *d.clear);
  } else if (!value) {
    s.report(Id::kIncomplete, d.clear->span,
             "`clear " + d.clear_op + "` needs a comparison in `when` to take the value from");
    ok = false;
    return;
  } else {
    Env inner = env;
    if (mentions_peers(*d.clear)) {
      const auto features = features_of(s, out().shown_value);
      if (!features.empty()) inner.peers_feature = features[0];
      inner.peers_type = value->type;
    }
    const NodePtr bound = check_expr(s, inner, *d.clear, &value->type);
    node = compare(s, d.clear_op == "below" ? BinaryOp::kLt : BinaryOp::kGt, value, bound,
                   d.clear->span);
  }
  if (is_error(node)) {
    ok = false;
    return;
  }
  out().clear = emit(s, node, c.name + ".clear");
}

void Builder::spans() {
  const ast::SignalDecl& d = c.decl;
  auto span = [&](const ast::ExprPtr& e, const char* what, int64_t& into) {
    if (!e) return;
    const auto ns = constant_duration(s, c.pack, *e, what);
    into = ns.value_or(0);
    ok = ok && ns;
    if (ns) note_window(s, *ns, e->span);
  };
  span(d.for_span, "`for`", out().for_ns);
  span(d.keep_span, "`keep`", out().keep_ns);
  out().nodata = d.nodata == "hold" ? abi::NoData::kHold : abi::NoData::kInterrupt;
  span(d.nodata_for, "`nodata hold for`", out().nodata_hold_ns);
}

void Builder::triggers() {
  auto add = [&](abi::LeafId leaf, const abi::KeyPlan& key) {
    auto& all = out().triggers;
    if (std::find(all.begin(), all.end(), leaf) != all.end()) return;
    all.push_back(leaf);
    out().trigger_keys.push_back(key);
    const abi::KindId kind = s.pack.leaves[leaf].kind;
    if (std::find(plan.kinds.begin(), plan.kinds.end(), kind) == plan.kinds.end()) {
      plan.kinds.push_back(kind);
    }
  };
  std::vector<abi::FeatureId> features = features_of(s, out().when);
  const auto more = features_of(s, out().clear);
  features.insert(features.end(), more.begin(), more.end());
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  if (features.empty()) {
    auto& d = s.report(Id::kIncomplete, c.decl.when->span,
                       "the condition reads no feature and no field: nothing can make it true");
    d.help = "write for example: when gpu.temp.value > profile.temp_hot";
    ok = false;
    return;
  }
  out().features = features;
  for (const abi::FeatureId f : features) {
    const abi::FeaturePlan feature = s.pack.features[f];
    for (const auto& in : feature.inputs) add(in.leaf, in.key);
    // Resets only trigger: a repair is not what makes the signal observed.
    const std::vector<abi::KindId> kinds = plan.kinds;
    for (const auto& in : feature.resets) add(in.leaf, in.key);
    plan.kinds = kinds;
    out().time_driven = out().time_driven || changes_with_time(feature.op) ||
                        (feature.window_ns > 0 && feature.op != FeatureOp::kTrend);
    plan.horizon_ns = std::max({plan.horizon_ns, feature.window_ns, feature.half_life_ns});
    plan.global_stage = plan.global_stage || feature.global_stage;
  }
}

}  // namespace

bool lower_condition(State& s, const SignalContext& c, abi::SignalPlan& plan) {
  Builder b{s, c, plan, {}, nullptr, nullptr, nullptr, true};
  b.conditions();
  if (!is_error(b.when)) {
    b.shown();
    b.clear();
  }
  b.spans();
  if (!c.decl.guards.empty()) {
    s.report(Id::kNotHere, c.decl.guards[0]->span, "a none guard is not possible with `when`");
    b.ok = false;
  }
  if (!b.ok) return false;
  b.triggers();
  if (!b.ok) return false;
  for (const abi::ExprId e : {plan.condition.when, plan.condition.clear}) {
    if (e != kNone32 && s.pack.exprs[e].reads_peers) plan.global_stage = true;
  }
  for (uint32_t i = 0; i < plan.condition.triggers.size(); ++i) {
    add_owner(s, plan.condition.triggers[i], abi::OwnerKind::kCondition, c.id, i);
  }
  return true;
}

}  // namespace reflex::sema
