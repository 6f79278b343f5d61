// Operators: Kleene logic and comparisons; arithmetic is in check_arithmetic.cpp.
//
// Both sides of a comparison must have one unit; a bare number stands only for ratios, counts and
// zero. Words take the enum of the other side, peers take its feature.
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using abi::Unit;
using ast::BinaryOp;
using ir::Op;
using ir::Rep;

Op op_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return Op::kOr;
    case BinaryOp::kAnd:
      return Op::kAnd;
    case BinaryOp::kEq:
      return Op::kEq;
    case BinaryOp::kNe:
      return Op::kNe;
    case BinaryOp::kLt:
      return Op::kLt;
    case BinaryOp::kLe:
      return Op::kLe;
    case BinaryOp::kGt:
      return Op::kGt;
    case BinaryOp::kGe:
      return Op::kGe;
    case BinaryOp::kAdd:
      return Op::kAdd;
    case BinaryOp::kSub:
      return Op::kSub;
    case BinaryOp::kMul:
      return Op::kMul;
    case BinaryOp::kDiv:
      return Op::kDiv;
    case BinaryOp::kMod:
      return Op::kMod;
    case BinaryOp::kBitAnd:
      return Op::kBitAnd;
    case BinaryOp::kBitOr:
      return Op::kBitOr;
  }
  return Op::kUnknown;
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }
bool is_plain(const Type& t) { return t.scalar == Scalar::kInt || t.scalar == Scalar::kReal; }
bool is_ratio(const Type& t) {
  return t.scalar == Scalar::kQuantity && t.unit == Unit::kRatio && !t.per_time;
}
bool same_unit(const Type& a, const Type& b) {
  return a.unit == b.unit && a.per_time == b.per_time;
}

NodePtr type_error(State& s, Id id, Span span, const NodePtr& a, const NodePtr& b,
                   const std::string& what) {
  s.report(id, span, what + ": " + to_text(s, a->type) + " and " + to_text(s, b->type));
  return poison(span);
}

// ---------------------------------------------------------------- comparisons

/// A unit that a bare number lacks, as an author would write it.
std::string unit_example(const Type& t) {
  if (t.per_time) return "per hour";
  switch (t.unit) {
    case Unit::kCelsius:
    case Unit::kCelsiusDelta:
      return "celsius";
    case Unit::kWatt:
      return "watt";
    case Unit::kHertz:
      return "MHz";
    case Unit::kByte:
      return "GiB";
    case Unit::kBitPerSecond:
      return "Gbit/s";
    default:
      return "";
  }
}

/// Whether a bare number may stand for a quantity of this type: ratios, counts, and zero.
bool accepts_bare(const Type& t, const NodePtr& n) {
  if (!t.per_time && (t.unit == Unit::kRatio || t.unit == Unit::kCount)) return true;
  const auto v = constant_f64(n);
  return n->bare && v && *v == 0 && t.unit != Unit::kCelsius;
}

bool fit_quantities(State& s, NodePtr& a, NodePtr& b, Span span) {
  const bool qa = a->type.scalar == Scalar::kQuantity;
  const bool qb = b->type.scalar == Scalar::kQuantity;
  if (qa && qb) {
    if (same_unit(a->type, b->type)) return true;
    auto is_delta = [](const Type& t) { return t.unit == Unit::kCelsiusDelta && !t.per_time; };
    auto literal_celsius = [](const NodePtr& n) {
      return n->literal && n->type.unit == Unit::kCelsius && !n->type.per_time;
    };
    if (is_delta(a->type) && literal_celsius(b))
      b = retype(b, a->type);
    else if (is_delta(b->type) && literal_celsius(a))
      a = retype(a, b->type);
    else {
      auto& d = s.report(Id::kUnitMismatch, span,
                         "these units do not compare: " + to_text(s, a->type) + " and " +
                             to_text(s, b->type));
      if (a->literal != b->literal) {
        // Where the written number is the mistake, it needs the unit of what it is held against.
        const NodePtr& value = a->literal ? b : a;
        d.help = "write the number in " + to_text(s, value->type);
      } else {
        d.help = "compare values of one unit, or divide one by what makes it comparable";
      }
      return false;
    }
    return true;
  }
  NodePtr& quantity = qa ? a : b;
  NodePtr& plain = qa ? b : a;
  if (is_plain(plain->type) && accepts_bare(quantity->type, plain)) {
    plain = to_f64(plain);
    return true;
  }
  if (!is_plain(plain->type)) {
    type_error(s, Id::kTypeMismatch, span, a, b, "these types do not compare");
    return false;
  }
  auto& d = s.report(Id::kUnitMismatch, plain->span,
                     "a " + to_text(s, quantity->type) + " is compared with a number without unit");
  const std::string unit = unit_example(quantity->type);
  if (plain->bare && !unit.empty()) {
    d.help = "write the unit: " + unit;
    d.fixes.push_back({{plain->span.file, plain->span.end, plain->span.end}, " " + unit, false});
  }
  return false;
}

/// Makes both sides comparable; false after a report.
bool fit(State& s, NodePtr& a, NodePtr& b, Span span) {
  const Type x = a->type;
  const Type y = b->type;
  if (x.scalar == Scalar::kQuantity || y.scalar == Scalar::kQuantity) {
    return fit_quantities(s, a, b, span);
  }
  if (is_plain(x) && is_plain(y)) {
    if (a->rep != b->rep) {
      a = to_f64(a);
      b = to_f64(b);
    }
    return true;
  }
  auto zero = [](const NodePtr& n) { return n->bare && constant_f64(n) == 0.0; };
  const bool times = x.scalar == Scalar::kDuration || x.scalar == Scalar::kInstant;
  if (times && x.scalar == y.scalar) return true;
  if (x.scalar == Scalar::kDuration && zero(b)) return true;
  if (y.scalar == Scalar::kDuration && zero(a)) return true;
  if ((x.scalar == Scalar::kDuration && is_plain(y)) ||
      (y.scalar == Scalar::kDuration && is_plain(x))) {
    auto& d = s.report(Id::kUnitMismatch, span, "a duration is compared with a number");
    d.help = "write the unit: 30s, 5m, 2h";
    return false;
  }
  type_error(s, Id::kTypeMismatch, span, a, b, "these types do not compare");
  return false;
}

/// == and != of words, entities, texts and truth values; null when these are numbers.
NodePtr compare_names(State& s, Op op, const NodePtr& a, const NodePtr& b, Span span, bool* done) {
  *done = true;
  const Type& x = a->type;
  const Type& y = b->type;
  auto negated = [&](NodePtr n) {
    return op == Op::kNe ? make(Op::kNot, bool_type(), {n}, span) : n;
  };
  if (x.scalar == Scalar::kString && y.scalar == Scalar::kString) {
    const bool ca = a->op == Op::kConstText;
    const bool cb = b->op == Op::kConstText;
    if (ca && cb) return const_bool((a->index == b->index) == (op == Op::kEq), span);
    if (ca) return negated(make(Op::kTextEq, bool_type(), {b}, span, a->index));
    if (cb) return negated(make(Op::kTextEq, bool_type(), {a}, span, b->index));
    return negated(make(Op::kTextSame, bool_type(), {a, b}, span));
  }
  auto named = [](const Type& t) {
    return t.scalar == Scalar::kEnum || (t.scalar == Scalar::kEntity && !t.gpu_index);
  };
  if (named(x) && b->op == Op::kConstText) {
    return make(op, bool_type(), {a, symbol_constant(s, literal_text(s, b), x, b->span)}, span);
  }
  if (named(y) && a->op == Op::kConstText) {
    return make(op, bool_type(), {symbol_constant(s, literal_text(s, a), y, a->span), b}, span);
  }
  const bool open_enum = (x.scalar == Scalar::kEnum && x.enum_id == 0) ||
                         (y.scalar == Scalar::kEnum && y.enum_id == 0);
  if (named(x) && named(y)) {
    const bool same = x.scalar == y.scalar && x.entity == y.entity && x.enum_id == y.enum_id;
    if (same || open_enum) return make(op, bool_type(), {a, b}, span);
    return type_error(s, Id::kTypeMismatch, span, a, b, "these types do not compare");
  }
  auto index_like = [](const Type& t) {
    return t.scalar == Scalar::kInt || (t.scalar == Scalar::kEntity && t.gpu_index);
  };
  if (index_like(x) && index_like(y)) {
    if (x.scalar == Scalar::kInt || y.scalar == Scalar::kInt || x.entity == y.entity) {
      return make(op, bool_type(), {a, b}, span);
    }
    return type_error(s, Id::kTypeMismatch, span, a, b, "these types do not compare");
  }
  if (x.scalar == Scalar::kBool && y.scalar == Scalar::kBool) {
    const auto ca = constant_bool(a);
    const auto cb = constant_bool(b);
    if (!ca && !cb) return make(op, bool_type(), {a, b}, span);
    const NodePtr& other = ca ? b : a;
    const bool wanted = (ca ? *ca : *cb) == (op == Op::kEq);
    return wanted ? other : make(Op::kNot, bool_type(), {other}, span);
  }
  *done = false;
  return nullptr;
}

/// k in `k * mean(..)`, or 1; and the mean. Nothing when the side is not of that form.
struct MeanSide {
  NodePtr factor;  // null = 1
  NodePtr mean;
};
bool has_mean(const NodePtr& n) {
  if (n->mean) return true;
  for (const NodePtr& a : n->args) {
    if (has_mean(a)) return true;
  }
  return false;
}
std::optional<MeanSide> mean_side(const NodePtr& n) {
  if (n->mean) return MeanSide{nullptr, n};
  // A scaled duration goes through f64 and back: k * to.f64(mean).
  const NodePtr& product = n->op == Op::kToI64 ? n->args[0] : n;
  if (product->op != Op::kMul) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const NodePtr& side = product->args[i];
    const NodePtr& m = side->op == Op::kToF64 ? side->args[0] : side;
    const NodePtr& k = product->args[1 - i];
    if (m->mean && !has_mean(k)) return MeanSide{k, m};
  }
  return std::nullopt;
}

/// `x OP k * mean` as `x * count OP k * sum`: no division, so no rounding of the mean.
NodePtr compare_with_mean(State& s, Op op, const NodePtr& x, const MeanSide& m, bool mean_left,
                          Span span) {
  abi::FeaturePlan sum = *m.mean->mean;
  sum.op = abi::FeatureOp::kSum;
  abi::FeaturePlan count = *m.mean->mean;
  count.op = abi::FeatureOp::kCount;
  count.integer_result = true;
  const NodePtr sum_node =
      to_f64(feature_node(s, intern_feature(s, sum, m.mean->type), m.mean->span));
  const NodePtr count_node =
      to_f64(feature_node(s, intern_feature(s, count, int_type()), m.mean->span));
  const NodePtr left = make(Op::kMul, real_type(), {to_f64(x), count_node}, span);
  const NodePtr right =
      m.factor ? make(Op::kMul, real_type(), {to_f64(m.factor), sum_node}, span) : sum_node;
  if (mean_left) return make(op, bool_type(), {right, left}, span);
  return make(op, bool_type(), {left, right}, span);
}

NodePtr logic(State& s, Op op, const NodePtr& a, const NodePtr& b, Span span) {
  for (const NodePtr& n : {a, b}) {
    if (n->type.scalar == Scalar::kBool || is_error(n)) continue;
    s.report(Id::kTypeMismatch, n->span,
             std::string(op == Op::kAnd ? "'and'" : "'or'") + " needs truth values, this is a " +
                 to_text(s, n->type));
    return poison(span);
  }
  return make(op, bool_type(), {a, b}, span);
}

bool is_word(const ast::Expr& e) {
  return (e.kind == ast::ExprKind::kName && e.text.find('.') == std::string::npos) ||
         e.kind == ast::ExprKind::kString;
}

}  // namespace

NodePtr compare(State& s, BinaryOp bop, NodePtr a, NodePtr b, Span span) {
  if (is_error(a) || is_error(b)) return poison(span);
  const Op op = op_of(bop);
  if (op == Op::kEq || op == Op::kNe) {
    bool done = false;
    const NodePtr n = compare_names(s, op, a, b, span, &done);
    if (done) return n;
  }
  if (!fit(s, a, b, span)) return poison(span);
  const auto ma = mean_side(a);
  const auto mb = mean_side(b);
  NodePtr rewritten;
  if (mb && !has_mean(a))
    rewritten = compare_with_mean(s, op, a, *mb, false, span);
  else if (ma && !has_mean(b))
    rewritten = compare_with_mean(s, op, b, *ma, true, span);
  if (rewritten) {
    auto n = std::make_shared<Node>(*rewritten);
    n->written_left = a;
    n->written_right = b;
    return n;
  }
  return make(op, bool_type(), {a, b}, span);
}

NodePtr check_binary(State& s, const Env& env, const ast::Expr& e) {
  const ast::Expr& left = *e.args[0];
  const ast::Expr& right = *e.args[1];
  const Op op = op_of(e.op);
  if (!is_comparison(e.op)) {
    const NodePtr a = check_expr(s, env, left);
    const NodePtr b = check_expr(s, env, right);
    if (op == Op::kAnd || op == Op::kOr) return logic(s, op, a, b, e.span);
    if (is_error(a) || is_error(b)) return poison(e.span);
    return arithmetic(s, op, a, b, e.span);
  }
  // The side that has a type of its own comes first: a bare word takes the other's enum, peers
  // take the other's feature.
  const bool right_first =
      (is_word(left) && !is_word(right)) || (mentions_peers(left) && !mentions_peers(right));
  const NodePtr first = check_expr(s, env, right_first ? right : left);
  Env with_peers = env;
  const ast::Expr& rest = right_first ? left : right;
  if (mentions_peers(rest) && !is_error(first)) {
    std::vector<NodePtr> open{first};
    while (!open.empty() && with_peers.peers_feature == kNone32) {
      const NodePtr n = open.back();
      open.pop_back();
      if (n->op == Op::kFeature) {
        with_peers.peers_feature = n->mean ? intern_feature(s, *n->mean, n->type) : n->index;
      }
      for (auto it = n->args.rbegin(); it != n->args.rend(); ++it) open.push_back(*it);
    }
    with_peers.peers_type = first->type;
  }
  if (is_error(first)) {
    // Only for its own mistakes; peers without a feature would be noise.
    if (!mentions_peers(rest) && !is_word(rest)) check_expr(s, env, rest);
    return poison(e.span);
  }
  const NodePtr second = check_expr(s, with_peers, rest, &first->type);
  return right_first ? compare(s, e.op, second, first, e.span)
                     : compare(s, e.op, first, second, e.span);
}

NodePtr coerce(State& s, const NodePtr& node, const Type& type, const char* what) {
  if (is_error(node) || type.scalar == Scalar::kError) return poison(node->span);
  const Type& t = node->type;
  auto wrong = [&](Id id) {
    s.report(id, node->span,
             std::string(what) + " is a " + to_text(s, type) + ", this is a " + to_text(s, t));
    return poison(node->span);
  };
  if (type.scalar == Scalar::kQuantity) {
    if (t.scalar == Scalar::kQuantity) {
      const bool delta = node->literal && type.unit == Unit::kCelsiusDelta &&
                         t.unit == Unit::kCelsius && !t.per_time && !type.per_time;
      return same_unit(t, type) || delta ? retype(node, type) : wrong(Id::kUnitMismatch);
    }
    // A bare literal takes the declared unit: temp_hot: celsius = 85. A rate would be ambiguous.
    if (is_plain(t) && node->bare && (!type.per_time || constant_f64(node) == 0.0)) {
      return retype(to_f64(node), type);
    }
    return wrong(is_plain(t) ? Id::kUnitMismatch : Id::kTypeMismatch);
  }
  if (type.scalar == Scalar::kReal && (is_plain(t) || is_ratio(t))) return to_f64(node);
  if (type.scalar == Scalar::kDuration && node->bare && constant_f64(node) == 0.0) {
    return const_i64(0, type, node->span);
  }
  if (type.scalar == Scalar::kEntity && type.gpu_index && t.scalar == Scalar::kInt) return node;
  if (t.scalar == type.scalar && t.enum_id == type.enum_id && t.entity == type.entity) return node;
  return wrong(Id::kTypeMismatch);
}

}  // namespace reflex::sema
