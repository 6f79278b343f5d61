// Arithmetic with units.
//
// + and - need one unit (celsius - celsius is a difference, celsius + celsius an error); * and /
// with a number keep the unit, x / x of one unit is a number, rate * duration is the base unit,
// x / duration a rate. `/` never truncates: integers divide as numbers.
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using abi::Unit;
using ir::Op;
using ir::Rep;

bool is_plain(const Type& t) { return t.scalar == Scalar::kInt || t.scalar == Scalar::kReal; }
bool is_ratio(const Type& t) {
  return t.scalar == Scalar::kQuantity && t.unit == Unit::kRatio && !t.per_time;
}
bool same_unit(const Type& a, const Type& b) {
  return a.unit == b.unit && a.per_time == b.per_time;
}
Type unit_only(const Type& t) { return quantity_type(t.unit, t.per_time); }

NodePtr type_error(State& s, Id id, Span span, const NodePtr& a, const NodePtr& b,
                   const std::string& what) {
  s.report(id, span, what + ": " + to_text(s, a->type) + " and " + to_text(s, b->type));
  return poison(span);
}

NodePtr plain_arithmetic(Op op, const NodePtr& a, const NodePtr& b, Span span) {
  const bool integers = a->rep == Rep::kI64 && b->rep == Rep::kI64;
  if (integers && op != Op::kDiv) return make(op, int_type(), {a, b}, span);
  return make(op, real_type(), {to_f64(a), to_f64(b)}, span);
}

/// + and - of quantities, durations and instants.
NodePtr add_sub(State& s, Op op, NodePtr a, NodePtr b, Span span) {
  const Type& x = a->type;
  const Type& y = b->type;
  const char* verb = op == Op::kAdd ? "cannot add" : "cannot subtract";
  if (x.scalar == Scalar::kDuration && y.scalar == Scalar::kDuration) {
    return make(op, duration_type(), {a, b}, span);
  }
  if (x.scalar == Scalar::kInstant && y.scalar == Scalar::kInstant && op == Op::kSub) {
    return make(op, duration_type(), {a, b}, span);
  }
  if (x.scalar == Scalar::kInstant && y.scalar == Scalar::kDuration) {
    Type t = x;
    t.optional = false;
    return make(op, t, {a, b}, span);
  }
  if (x.scalar != Scalar::kQuantity || y.scalar != Scalar::kQuantity) {
    const Id id = is_number(x) && is_number(y) ? Id::kUnitMismatch : Id::kTypeMismatch;
    return type_error(s, id, span, a, b, verb);
  }
  const bool celsius = x.unit == Unit::kCelsius && !x.per_time;
  // `hot - 4 celsius`, `median + 0.5 celsius`: a written temperature beside one is a difference.
  if (b->literal && y.unit == Unit::kCelsius)
    b = retype(b, quantity_type(Unit::kCelsiusDelta));
  else if (a->literal && celsius)
    a = retype(a, quantity_type(Unit::kCelsiusDelta));
  const Type& p = a->type;
  const Type& q = b->type;
  if (same_unit(p, q)) {
    if (p.unit == Unit::kCelsius && !p.per_time) {
      if (op == Op::kSub) return make(op, quantity_type(Unit::kCelsiusDelta), {a, b}, span);
      auto& d = s.report(Id::kUnitMismatch, span, "cannot add two temperatures");
      d.help = "a difference can be added: a + (b - c)";
      return poison(span);
    }
    return make(op, unit_only(p), {a, b}, span);
  }
  const bool absolute_delta = p.unit == Unit::kCelsius && q.unit == Unit::kCelsiusDelta;
  const bool delta_absolute = p.unit == Unit::kCelsiusDelta && q.unit == Unit::kCelsius;
  if (!p.per_time && !q.per_time && (absolute_delta || (delta_absolute && op == Op::kAdd))) {
    return make(op, quantity_type(Unit::kCelsius), {a, b}, span);
  }
  return type_error(s, Id::kUnitMismatch, span, a, b, verb);
}

NodePtr scaled_duration(Op op, const NodePtr& duration, const NodePtr& number, Span span) {
  if (op == Op::kMul && number->rep == Rep::kI64) {
    return make(op, duration_type(), {duration, number}, span);
  }
  const NodePtr product = make(op, real_type(), {to_f64(duration), to_f64(number)}, span);
  return to_i64(product, duration_type());
}

/// Seconds of a duration, as f64.
NodePtr seconds(const NodePtr& duration, Span span) {
  return make(Op::kDiv, real_type(), {to_f64(duration), const_f64(1e9, real_type(), span)}, span);
}

NodePtr multiply(State& s, const NodePtr& a, const NodePtr& b, Span span) {
  const Type& x = a->type;
  const Type& y = b->type;
  auto scalar = [](const Type& t) { return is_plain(t) || is_ratio(t); };
  if (x.scalar == Scalar::kDuration && scalar(y)) return scaled_duration(Op::kMul, a, b, span);
  if (y.scalar == Scalar::kDuration && scalar(x)) return scaled_duration(Op::kMul, b, a, span);
  if (x.scalar == Scalar::kQuantity && scalar(y)) {
    return make(Op::kMul, unit_only(x), {a, to_f64(b)}, span);
  }
  if (y.scalar == Scalar::kQuantity && scalar(x)) {
    return make(Op::kMul, unit_only(y), {to_f64(a), b}, span);
  }
  auto rate_times = [&](const NodePtr& rate, const NodePtr& time) {
    const Type t = rate->type.unit == Unit::kCount ? real_type() : quantity_type(rate->type.unit);
    return make(Op::kMul, t, {rate, seconds(time, span)}, span);
  };
  if (x.per_time && y.scalar == Scalar::kDuration) return rate_times(a, b);
  if (y.per_time && x.scalar == Scalar::kDuration) return rate_times(b, a);
  return type_error(s, Id::kUnitMismatch, span, a, b, "cannot multiply");
}

NodePtr divide(State& s, const NodePtr& a, const NodePtr& b, Span span) {
  const Type& x = a->type;
  const Type& y = b->type;
  if (is_plain(y) || is_ratio(y)) {
    if (x.scalar == Scalar::kDuration) return scaled_duration(Op::kDiv, a, b, span);
    if (x.scalar == Scalar::kQuantity && !(is_ratio(x) && is_ratio(y))) {
      return make(Op::kDiv, unit_only(x), {a, to_f64(b)}, span);
    }
  }
  const bool both_durations = x.scalar == Scalar::kDuration && y.scalar == Scalar::kDuration;
  const bool both_quantities =
      x.scalar == Scalar::kQuantity && y.scalar == Scalar::kQuantity && same_unit(x, y);
  if (both_durations || both_quantities) {
    return make(Op::kDiv, real_type(), {to_f64(a), to_f64(b)}, span);
  }
  if (y.scalar == Scalar::kDuration && is_number(x) && !x.per_time) {
    Unit unit = x.scalar == Scalar::kQuantity ? x.unit : Unit::kCount;
    if (unit == Unit::kCelsius) unit = Unit::kCelsiusDelta;
    return make(Op::kDiv, quantity_type(unit, true), {to_f64(a), seconds(b, span)}, span);
  }
  return type_error(s, Id::kUnitMismatch, span, a, b, "cannot divide");
}

void lint_mad(State& s, const NodePtr& node, Span span) {
  if (node->op != Op::kPeers || s.pack.peers[node->index].stat != abi::PeersStat::kMad) return;
  auto& d = s.report(Id::kMadWithoutFloor, span,
                     "peers.mad is 0 when the peers agree exactly: the limit has no floor");
  d.help = "write: max(peers(job).mad, 0.5 celsius)";
}

}  // namespace

NodePtr arithmetic(State& s, Op op, const NodePtr& a, const NodePtr& b, Span span) {
  const bool usable = [&] {
    for (const NodePtr& n : {a, b}) {
      const Scalar k = n->type.scalar;
      if (!is_number(n->type) && k != Scalar::kDuration && k != Scalar::kInstant) return false;
    }
    return true;
  }();
  if (!usable) return type_error(s, Id::kTypeMismatch, span, a, b, "no arithmetic on these types");
  if (op == Op::kMul) {
    lint_mad(s, a, a->span);
    lint_mad(s, b, b->span);
  }
  if (op == Op::kMod || op == Op::kBitAnd || op == Op::kBitOr) {
    if (a->rep == Rep::kI64 && b->rep == Rep::kI64 && is_plain(a->type) && is_plain(b->type)) {
      return make(op, int_type(), {a, b}, span);
    }
    return type_error(s, Id::kTypeMismatch, span, a, b, "this operator needs integers");
  }
  if (is_plain(a->type) && is_plain(b->type)) return plain_arithmetic(op, a, b, span);
  if (op == Op::kMul) return multiply(s, a, b, span);
  if (op == Op::kDiv) return divide(s, a, b, span);
  return add_sub(s, op, a, b, span);
}

}  // namespace reflex::sema
