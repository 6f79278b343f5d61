// Constructors, constant folding and queries of typed trees; see node.h.
#include "compiler/sema/node.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace reflex::sema {

using abi::Scalar;
using abi::Type;
using ir::Op;
using ir::Rep;
using source::Span;

Rep rep_of(const Type& type) {
  switch (type.scalar) {
    case Scalar::kBool:
      return Rep::kBool;
    case Scalar::kReal:
    case Scalar::kQuantity:
      return Rep::kF64;
    case Scalar::kString:
      return Rep::kText;
    case Scalar::kArray:
      return Rep::kArray;
    default:
      return Rep::kI64;
  }
}

namespace {
Type scalar_type(Scalar scalar) {
  Type t;
  t.scalar = scalar;
  return t;
}
}  // namespace

Type bool_type() { return scalar_type(Scalar::kBool); }
Type int_type() { return scalar_type(Scalar::kInt); }
Type real_type() { return scalar_type(Scalar::kReal); }
Type duration_type() { return scalar_type(Scalar::kDuration); }
Type quantity_type(abi::Unit unit, bool per_time) {
  Type t = scalar_type(Scalar::kQuantity);
  t.unit = unit;
  t.per_time = per_time;
  return t;
}

double bits_to_f64(int64_t bits) {
  double v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

int64_t f64_to_bits(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

namespace {

std::shared_ptr<Node> raw(Op op, Rep rep, const Type& type, Span span) {
  auto n = std::make_shared<Node>();
  n->op = op;
  n->rep = rep;
  n->type = type;
  n->span = span;
  return n;
}

constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
constexpr int64_t kLow = std::numeric_limits<int64_t>::min();

int64_t add(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? (a < 0 ? kLow : kHigh) : r;
}

int64_t subtract(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? kLow : kHigh) : r;
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? ((a < 0) != (b < 0) ? kLow : kHigh) : r;
}

/// Folds integer operations; nothing when the result is unknown.
std::optional<int64_t> fold_i64(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kAdd:
      return add(a, b);
    case Op::kSub:
      return subtract(a, b);
    case Op::kMul:
      return multiply(a, b);
    case Op::kDiv:
      if (b == 0) return std::nullopt;
      return b == -1 ? subtract(0, a) : a / b;
    case Op::kMod:
      return b == 0 || b == -1 ? std::nullopt : std::optional(a % b);
    case Op::kMin:
      return a < b ? a : b;
    case Op::kMax:
      return a > b ? a : b;
    case Op::kBitAnd:
      return a & b;
    case Op::kBitOr:
      return a | b;
    default:
      return std::nullopt;
  }
}

std::optional<double> fold_f64(Op op, double a, double b) {
  double r = 0;
  switch (op) {
    case Op::kAdd:
      r = a + b;
      break;
    case Op::kSub:
      r = a - b;
      break;
    case Op::kMul:
      r = a * b;
      break;
    case Op::kDiv:
      r = a / b;
      break;
    case Op::kMin:
      r = a < b ? a : b;
      break;
    case Op::kMax:
      r = a > b ? a : b;
      break;
    default:
      return std::nullopt;
  }
  return std::isfinite(r) ? std::optional(r) : std::nullopt;
}

template <typename T>
std::optional<bool> fold_compare(Op op, T a, T b) {
  switch (op) {
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    default:
      return std::nullopt;
  }
}

/// Logic with one constant side: the neutral element goes, the absorbing one wins.
NodePtr fold_logic(Op op, const std::vector<NodePtr>& args) {
  if (op == Op::kNot) {
    const auto v = constant_bool(args[0]);
    return v ? const_bool(!*v, args[0]->span) : nullptr;
  }
  const bool neutral = op == Op::kAnd;
  for (size_t i = 0; i < 2; ++i) {
    const auto v = constant_bool(args[i]);
    if (v) return *v == neutral ? args[1 - i] : args[i];
  }
  return nullptr;
}

NodePtr fold(Op op, const Type& type, const std::vector<NodePtr>& args, Span span) {
  if (op == Op::kAnd || op == Op::kOr || op == Op::kNot) return fold_logic(op, args);
  if (args.empty() || args.size() > 2) return nullptr;
  for (const NodePtr& a : args) {
    if (!is_constant(a)) return nullptr;
  }
  const NodePtr& x = args[0];
  if (op == Op::kToF64) return const_f64(static_cast<double>(x->imm), type, span);
  if (op == Op::kNeg) {
    if (x->rep == Rep::kF64) return const_f64(-bits_to_f64(x->imm), type, span);
    return const_i64(subtract(0, x->imm), type, span);
  }
  if (args.size() != 2) return nullptr;
  const NodePtr& y = args[1];
  std::optional<bool> truth;
  if (x->rep == Rep::kF64) {
    truth = fold_compare(op, bits_to_f64(x->imm), bits_to_f64(y->imm));
    if (!truth) {
      const auto v = fold_f64(op, bits_to_f64(x->imm), bits_to_f64(y->imm));
      return v ? const_f64(*v, type, span) : nullptr;
    }
  } else {
    truth = fold_compare(op, x->imm, y->imm);
    if (!truth) {
      const auto v = fold_i64(op, x->imm, y->imm);
      return v ? const_i64(*v, type, span) : nullptr;
    }
  }
  return const_bool(*truth, span);
}

}  // namespace

NodePtr poison(Span span) { return raw(Op::kUnknown, Rep::kI64, Type{}, span); }

NodePtr const_bool(bool value, Span span) {
  auto n = raw(Op::kConstBool, Rep::kBool, bool_type(), span);
  n->imm = value ? 1 : 0;
  return n;
}

NodePtr const_i64(int64_t value, const Type& type, Span span) {
  auto n = raw(Op::kConstI64, Rep::kI64, type, span);
  n->imm = value;
  return n;
}

NodePtr const_f64(double value, const Type& type, Span span) {
  auto n = raw(Op::kConstF64, Rep::kF64, type, span);
  n->imm = f64_to_bits(value);
  return n;
}

NodePtr load(Op op, uint32_t index, const Type& type, Span span) {
  auto n = raw(op, rep_of(type), type, span);
  n->index = index;
  return n;
}

NodePtr make(Op op, const Type& type, std::vector<NodePtr> args, Span span, uint32_t index,
             int64_t imm) {
  for (const NodePtr& a : args) {
    if (is_error(a)) return poison(span);
  }
  if (NodePtr folded = fold(op, type, args, span)) return folded;
  auto n = raw(op, rep_of(type), type, span);
  n->args = std::move(args);
  n->index = index;
  n->imm = imm;
  return n;
}

NodePtr retype(const NodePtr& node, const Type& type) {
  auto n = std::make_shared<Node>(*node);
  n->type = type;
  return n;
}

NodePtr to_f64(const NodePtr& node) {
  if (is_error(node) || node->rep == Rep::kF64) return node;
  Type t = real_type();
  auto n = make(Op::kToF64, t, {node}, node->span);
  if (node->literal) {
    auto copy = std::make_shared<Node>(*n);
    copy->literal = node->literal;
    copy->bare = node->bare;
    return copy;
  }
  return n;
}

NodePtr to_i64(const NodePtr& node, const Type& type) {
  if (is_error(node)) return node;
  if (node->rep == Rep::kI64) return retype(node, type);
  return make(Op::kToI64, type, {node}, node->span);
}

bool is_constant(const NodePtr& node) {
  return node->op == Op::kConstBool || node->op == Op::kConstI64 || node->op == Op::kConstF64;
}

std::optional<double> constant_f64(const NodePtr& node) {
  if (node->op == Op::kConstF64) return bits_to_f64(node->imm);
  if (node->op == Op::kConstI64) return static_cast<double>(node->imm);
  return std::nullopt;
}

std::optional<int64_t> constant_i64(const NodePtr& node) {
  if (node->op == Op::kConstI64) return node->imm;
  return std::nullopt;
}

std::optional<bool> constant_bool(const NodePtr& node) {
  if (node->op == Op::kConstBool) return node->imm != 0;
  return std::nullopt;
}

bool reads(const NodePtr& node, Op op) {
  if (node->op == op) return true;
  for (const NodePtr& a : node->args) {
    if (reads(a, op)) return true;
  }
  return false;
}

void conjuncts(const NodePtr& node, std::vector<NodePtr>& out) {
  if (node->op == Op::kAnd) {
    conjuncts(node->args[0], out);
    conjuncts(node->args[1], out);
    return;
  }
  out.push_back(node);
}

NodePtr conjunction(const std::vector<NodePtr>& parts) {
  NodePtr all;
  for (const NodePtr& p : parts) {
    all = all ? make(Op::kAnd, bool_type(), {all, p}, source::cover(all->span, p->span)) : p;
  }
  return all;
}

size_t node_count(const NodePtr& node, size_t limit) {
  size_t n = 1;
  for (const NodePtr& a : node->args) {
    if (n >= limit) break;
    n += node_count(a, limit - n);
  }
  return n;
}

}  // namespace reflex::sema
