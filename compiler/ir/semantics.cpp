// The reference meaning of scalar operations. Plain code, one case an operation.
#include "compiler/ir/semantics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reflex::ir {
namespace {

using abi::Value;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

Value truth(bool v) { return {v ? 1u : 0u, 1}; }
Value integer(int64_t v) { return Value::of_i64(v); }
Value real(double v) { return std::isfinite(v) ? Value::of(v) : Value::unknown(); }

int64_t add_saturating(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return a < 0 ? kMin : kMax;
}

int64_t sub_saturating(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!__builtin_sub_overflow(a, b, &r)) return r;
  return a < 0 ? kMin : kMax;
}

int64_t mul_saturating(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!__builtin_mul_overflow(a, b, &r)) return r;
  return (a < 0) == (b < 0) ? kMax : kMin;
}

int64_t to_i64(double v) {
  if (v != v) return 0;
  if (v >= 9223372036854775808.0) return kMax;  // 2^63
  if (v < -9223372036854775808.0) return kMin;
  return static_cast<int64_t>(v);
}

Value arithmetic_i64(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kAdd:
      return integer(add_saturating(a, b));
    case Op::kSub:
      return integer(sub_saturating(a, b));
    case Op::kMul:
      return integer(mul_saturating(a, b));
    case Op::kDiv:
      if (b == 0) return Value::unknown();
      return integer(b == -1 ? sub_saturating(0, a) : a / b);
    case Op::kMod:
      if (b == 0) return Value::unknown();
      return integer(b == -1 ? 0 : a % b);
    case Op::kNeg:
      return integer(sub_saturating(0, a));
    case Op::kAbs:
      return integer(a < 0 ? sub_saturating(0, a) : a);
    case Op::kMin:
      return integer(std::min(a, b));
    case Op::kMax:
      return integer(std::max(a, b));
    default:
      RFX_CHECK(false && "not integer arithmetic");
  }
  return Value::unknown();
}

Value arithmetic_f64(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return real(a + b);
    case Op::kSub:
      return real(a - b);
    case Op::kMul:
      return real(a * b);
    case Op::kDiv:
      return real(a / b);
    case Op::kNeg:
      return real(-a);
    case Op::kAbs:
      return real(std::fabs(a));
    case Op::kMin:
      return real(b < a ? b : a);  // of -0 and 0: the first
    case Op::kMax:
      return real(a < b ? b : a);
    default:
      RFX_CHECK(false && "not real arithmetic");
  }
  return Value::unknown();
}

template <typename T>
Value compare(Op op, T a, T b) {
  switch (op) {
    case Op::kEq:
      return truth(a == b);
    case Op::kNe:
      return truth(a < b || a > b);  // ordered, also for f64
    case Op::kLt:
      return truth(a < b);
    case Op::kLe:
      return truth(a <= b);
    case Op::kGt:
      return truth(a > b);
    case Op::kGe:
      return truth(a >= b);
    default:
      RFX_CHECK(false && "not a comparison");
  }
  return Value::unknown();
}

bool known_as(const Value& v, bool what) { return v.known != 0 && (v.bits != 0) == what; }

/// Operations that look at knownness themselves. Nothing: not one of them.
bool kleene_op(const Inst& inst, Value a, Value b, Value c, Value& result) {
  switch (inst.op) {
    case Op::kAnd:
      if (known_as(a, false) || known_as(b, false))
        result = truth(false);
      else if (known_as(a, true) && known_as(b, true))
        result = truth(true);
      else
        result = Value::unknown();
      return true;
    case Op::kOr:
      if (known_as(a, true) || known_as(b, true))
        result = truth(true);
      else if (known_as(a, false) && known_as(b, false))
        result = truth(false);
      else
        result = Value::unknown();
      return true;
    case Op::kIsMissing:
      result = truth(a.known == 0);
      return true;
    case Op::kCoalesce:
      result = a.known != 0 ? a : b;
      return true;
    case Op::kSelect:
      if (a.known == 0)
        result = Value::unknown();
      else
        result = a.bits != 0 ? b : c;
      return true;
    default:
      return false;
  }
}

Value strict_op(const Module& module, const Inst& inst, Rep operand_rep, Value a, Value b) {
  switch (inst.op) {
    case Op::kToF64:
      return real(static_cast<double>(a.i64()));
    case Op::kToI64:
      return integer(to_i64(a.f64()));
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMod:
    case Op::kNeg:
    case Op::kAbs:
    case Op::kMin:
    case Op::kMax:
      return operand_rep == Rep::kF64 ? arithmetic_f64(inst.op, a.f64(), b.f64())
                                      : arithmetic_i64(inst.op, a.i64(), b.i64());
    case Op::kBitAnd:
      return integer(a.i64() & b.i64());
    case Op::kBitOr:
      return integer(a.i64() | b.i64());
    case Op::kShr:
      return b.bits < 64 ? Value{a.bits >> b.bits, 1} : Value::unknown();
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return operand_rep == Rep::kF64 ? compare(inst.op, a.f64(), b.f64())
                                      : compare(inst.op, a.i64(), b.i64());
    case Op::kNot:
      return truth(a.bits == 0);
    case Op::kInSet: {
      const std::vector<int64_t>& values = module.sets[inst.index].values;
      return truth(std::binary_search(values.begin(), values.end(), a.i64()));
    }
    case Op::kInRange: {
      const std::vector<int64_t>& bounds = module.sets[inst.index].values;
      return truth(a.i64() >= bounds.front() && a.i64() <= bounds.back());
    }
    case Op::kAnyBits:
      return truth((a.i64() & inst.imm) != 0);
    case Op::kAllBits:
      return truth((a.i64() & inst.imm) == inst.imm);
    default:
      RFX_CHECK(false && "not a scalar operation");
  }
  return Value::unknown();
}

}  // namespace

unsigned operand_count(Op op) {
  switch (op) {
#define RFX_IR_OP(name, count, text) \
  case Op::name:                     \
    return count;
#include "compiler/ir/ops.def"
#undef RFX_IR_OP
  }
  RFX_CHECK(false && "no such operation");
  return 0;
}

std::string_view op_text(Op op) {
  switch (op) {
#define RFX_IR_OP(name, count, text) \
  case Op::name:                     \
    return text;
#include "compiler/ir/ops.def"
#undef RFX_IR_OP
  }
  RFX_CHECK(false && "no such operation");
  return "";
}

Op mirrored(Op op) {
  switch (op) {
    case Op::kLt:
      return Op::kGt;
    case Op::kLe:
      return Op::kGe;
    case Op::kGt:
      return Op::kLt;
    case Op::kGe:
      return Op::kLe;
    default:
      return op;
  }
}

bool is_constant_op(Op op) {
  return op == Op::kConstBool || op == Op::kConstI64 || op == Op::kConstF64 || op == Op::kUnknown;
}

abi::Value constant_value(const Inst& inst) {
  RFX_DCHECK(is_constant_op(inst.op));
  return inst.op == Op::kUnknown ? Value::unknown() : Value{static_cast<uint64_t>(inst.imm), 1};
}

Inst constant_inst(abi::Value value, Rep rep) {
  Inst inst{};
  inst.rep = rep;
  if (value.known == 0) {
    inst.op = Op::kUnknown;
    return inst;
  }
  RFX_CHECK(rep == Rep::kBool || rep == Rep::kI64 || rep == Rep::kF64);
  inst.op = rep == Rep::kBool ? Op::kConstBool : rep == Rep::kI64 ? Op::kConstI64 : Op::kConstF64;
  inst.imm = rep == Rep::kBool ? (value.bits != 0 ? 1 : 0) : value.i64();
  return inst;
}

bool is_scalar_op(Op op) {
  switch (op) {
    case Op::kToF64:
    case Op::kToI64:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMod:
    case Op::kNeg:
    case Op::kAbs:
    case Op::kMin:
    case Op::kMax:
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kShr:
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
    case Op::kIsMissing:
    case Op::kCoalesce:
    case Op::kSelect:
    case Op::kInSet:
    case Op::kInRange:
    case Op::kAnyBits:
    case Op::kAllBits:
      return true;
    default:
      return false;
  }
}

abi::Value scalar_op(const Module& module, const Inst& inst, Rep operand_rep, abi::Value a,
                     abi::Value b, abi::Value c) {
  Value result;
  if (kleene_op(inst, a, b, c, result)) return result;
  const unsigned count = operand_count(inst.op);
  if (a.known == 0 || (count > 1 && b.known == 0)) return Value::unknown();
  return strict_op(module, inst, operand_rep, a, b);
}

}  // namespace reflex::ir
