// Checks that a function is well formed, so that the backends need no checks of their own.
#include <algorithm>

#include "compiler/ir/semantics.h"

namespace reflex::ir {
namespace {

bool numeric(Rep rep) { return rep == Rep::kI64 || rep == Rep::kF64; }

/// One function under verification; `fail` keeps the first message.
class Verifier {
 public:
  Verifier(const Module& module, const Function& function) : m_(module), f_(function) {}

  std::string run() {
    if (f_.insts.empty()) return f_.name + ": no instruction";
    for (size_t i = 0; i < f_.insts.size() && message_.empty(); ++i) check(i);
    if (message_.empty() && f_.insts.back().rep != result_rep()) {
      fail("the result is not of the function's type");
    }
    return message_;
  }

 private:
  [[nodiscard]] Rep result_rep() const {
    if (f_.type.scalar == abi::Scalar::kBool) return Rep::kBool;
    switch (abi::slot_form(f_.type)) {
      case abi::SlotForm::kF64:
        return Rep::kF64;
      case abi::SlotForm::kText:
        return Rep::kText;
      case abi::SlotForm::kArray:
        return Rep::kArray;
      case abi::SlotForm::kI64:
        break;
    }
    return Rep::kI64;
  }

  void fail(const std::string& what) {
    if (message_.empty()) message_ = f_.name + ": %" + std::to_string(at_) + ": " + what;
  }
  void expect(bool condition, const char* what) {
    if (!condition) fail(what);
  }
  void result(Rep rep) { expect(f_.insts[at_].rep == rep, "wrong result representation"); }
  void operands(Rep rep, unsigned count) {
    for (unsigned k = 0; k < count; ++k) expect(rep_of(k) == rep, "wrong operand representation");
  }
  [[nodiscard]] Rep rep_of(unsigned k) const { return f_.insts[operand(f_.insts[at_], k)].rep; }
  void index_below(size_t size) { expect(f_.insts[at_].index < size, "index out of bounds"); }

  void check(size_t i) {
    at_ = i;
    const Inst& inst = f_.insts[i];
    for (unsigned k = 0; k < operand_count(inst.op); ++k) {
      if (operand(inst, k) >= i) return fail("operand is not an earlier value");
    }
    if (operand_count(inst.op) == 0)
      check_leaf(inst);
    else if (is_scalar_op(inst.op))
      check_scalar(inst);
    else
      check_call(inst);
  }

  void check_leaf(const Inst& inst) {
    switch (inst.op) {
      case Op::kConstBool:
        expect(inst.imm == 0 || inst.imm == 1, "a bool constant is 0 or 1");
        return result(Rep::kBool);
      case Op::kConstI64:
      case Op::kNow:
      case Op::kTimestamp:
      case Op::kRepeats:
        return result(Rep::kI64);
      case Op::kConstF64:
      case Op::kPeers:
        return result(Rep::kF64);
      case Op::kConstText:
        index_below(m_.texts.size());
        return result(Rep::kText);
      case Op::kField:
        return index_below(abi::kFieldsMax);
      case Op::kEntityKey:
        index_below(3);
        return result(Rep::kI64);
      case Op::kFeature:
        return expect(numeric(inst.rep), "a feature is i64 or f64");
      case Op::kTable:
        return expect(numeric(inst.rep) || inst.rep == Rep::kBool, "a table slot is a number");
      case Op::kParam:
        return expect(inst.rep != Rep::kArray, "a parameter is not an array");
      default:
        return;  // kUnknown, kCapture: any representation
    }
  }

  void check_arithmetic(const Inst& inst, unsigned count) {
    expect(numeric(inst.rep), "arithmetic is on i64 or f64");
    expect(inst.op != Op::kMod || inst.rep == Rep::kI64, "mod is on i64");
    operands(inst.rep, count);
  }

  void check_scalar(const Inst& inst) {
    switch (inst.op) {
      case Op::kToF64:
        operands(Rep::kI64, 1);
        return result(Rep::kF64);
      case Op::kToI64:
        operands(Rep::kF64, 1);
        return result(Rep::kI64);
      case Op::kNeg:
      case Op::kAbs:
        return check_arithmetic(inst, 1);
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kDiv:
      case Op::kMod:
      case Op::kMin:
      case Op::kMax:
        return check_arithmetic(inst, 2);
      case Op::kBitAnd:
      case Op::kBitOr:
      case Op::kShr:
        operands(Rep::kI64, 2);
        return result(Rep::kI64);
      case Op::kEq:
      case Op::kNe:
      case Op::kLt:
      case Op::kLe:
      case Op::kGt:
      case Op::kGe: {
        const bool equality = inst.op == Op::kEq || inst.op == Op::kNe;
        expect(numeric(rep_of(0)) || (equality && rep_of(0) == Rep::kBool),
               "operands cannot be compared");
        operands(rep_of(0), 2);
        return result(Rep::kBool);
      }
      case Op::kAnd:
      case Op::kOr:
        operands(Rep::kBool, 2);
        return result(Rep::kBool);
      case Op::kNot:
        operands(Rep::kBool, 1);
        return result(Rep::kBool);
      case Op::kIsMissing:
        return result(Rep::kBool);
      case Op::kCoalesce:
        return operands(inst.rep, 2);
      case Op::kSelect:
        expect(rep_of(0) == Rep::kBool, "select needs a bool");
        expect(rep_of(1) == inst.rep && rep_of(2) == inst.rep, "wrong operand representation");
        return;
      default:
        return check_membership(inst);
    }
  }

  void check_membership(const Inst& inst) {
    operands(Rep::kI64, 1);
    result(Rep::kBool);
    if (inst.op != Op::kInSet && inst.op != Op::kInRange) return;
    index_below(m_.sets.size());
    if (!message_.empty()) return;
    const std::vector<int64_t>& values = m_.sets[inst.index].values;
    // A range of one value is a set of one value: bounds are front and back.
    if (inst.op == Op::kInRange) {
      expect(values.size() == 1 || values.size() == 2, "a range has two bounds");
    }
    expect(std::is_sorted(values.begin(), values.end()), "a set is not sorted");
  }

  void check_call(const Inst& inst) {
    switch (inst.op) {
      case Op::kLog:
        operands(Rep::kF64, 1);
        return result(Rep::kF64);
      case Op::kArrayAt:
      case Op::kArrayCount:
        operands(Rep::kArray, 1);
        return result(Rep::kI64);
      case Op::kTextEq:
        index_below(m_.texts.size());
        return text_predicate(1);
      case Op::kTextLike:
        index_below(m_.globs.size());
        return text_predicate(1);
      case Op::kTextMatches:
        index_below(m_.regexes.size());
        return text_predicate(1);
      case Op::kTextSame:
        return text_predicate(2);
      case Op::kSymbolLike:
        index_below(m_.globs.size());
        operands(Rep::kI64, 1);
        return result(Rep::kBool);
      case Op::kInMaintenance:
        operands(Rep::kI64, 1);
        return result(Rep::kBool);
      case Op::kGpuAt:
        expect(rep_of(0) == Rep::kI64 && rep_of(1) == Rep::kText, "gpu.at needs a node and text");
        return result(Rep::kI64);
      case Op::kJobOf:
      case Op::kNodeLabel:
      case Op::kNodesInJob:
        operands(Rep::kI64, 1);
        return result(Rep::kI64);
      default:
        return fail("no rule to verify this operation");
    }
  }

  void text_predicate(unsigned count) {
    operands(Rep::kText, count);
    result(Rep::kBool);
  }

  const Module& m_;
  const Function& f_;
  size_t at_ = 0;
  std::string message_;
};

}  // namespace

std::string verify(const Module& module, const Function& function) {
  return Verifier(module, function).run();
}

}  // namespace reflex::ir
