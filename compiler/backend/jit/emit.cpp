// IR to LLVM IR: straight-line code, every value a (payload, known) pair of SSA registers.
//
// A bool is two rails instead, "known true" and "known false": and, or, not are then one operation
// a rail, and a chunk, which asks only for "known true", pays nothing for the other rail.
// known folds to a constant wherever that can be proved (constants, keys, is.missing), so that it
// costs nothing there. Nothing may trap: pointers of unknown values are replaced before they are
// read, divisors before they are divided by. Equal instructions are emitted once a body, which for
// a chunk means once for all of its predicates.
// Functions are nounwind: no unwind tables, so throws elsewhere stay fast (toolchain.md trap 1).
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "compiler/backend/jit/llvm_jit.h"
#include "compiler/ir/semantics.h"
#include "runtime/abi/evaluator.h"

namespace reflex::backend::jit {
namespace {

using abi::EvalContext;
using ir::Inst;
using ir::Op;
using ir::Rep;
using LV = llvm::Value*;

static_assert(sizeof(abi::Value) == 16 && offsetof(abi::Value, known) == 8);
static_assert(sizeof(abi::Text) == 4 && sizeof(abi::IntArray) == 8);

/// What an IR value became: its payload (i64, double or ptr) and whether it is known (i1).
/// A bool: `bits` = known to be true, `no` = known to be false (both i1), `known` on demand.
struct Pair {
  LV bits = nullptr;
  LV known = nullptr;
  LV no = nullptr;
};

/// Emits the bodies of any number of IR functions into one LLVM function.
class Body {
 public:
  Body(llvm::IRBuilder<>& builder, llvm::Function& function, const ir::Module& ir)
      : b_(builder), f_(function), ir_(ir) {}

  /// Appends the instructions of `function`; its result.
  Pair append(const ir::Function& function) {
    std::vector<uint32_t> place;  // value of `function` -> value of this body
    for (const Inst& old : function.insts) {
      Inst inst = old;
      const unsigned count = ir::operand_count(inst.op);
      inst.a = count > 0 ? place[old.a] : ir::kNoValue;
      inst.b = count > 1 ? place[old.b] : ir::kNoValue;
      inst.c = count > 2 ? place[old.c] : ir::kNoValue;
      const Key key{inst.op, inst.rep, inst.a, inst.b, inst.c, inst.index, inst.imm};
      const auto [it, fresh] = seen_.try_emplace(key, static_cast<uint32_t>(values_.size()));
      if (fresh) {
        const Pair pair = emit(inst);
        values_.push_back(inst.rep == Rep::kBool && pair.no == nullptr ? rails(pair) : pair);
        reps_.push_back(inst.rep);
      }
      place.push_back(it->second);
    }
    return values_[place.back()];
  }

  LV and_(LV a, LV b) {
    if (a == b || is(b, true) || is(a, false)) return a;
    if (is(a, true) || is(b, false)) return b;
    return b_.CreateAnd(a, b);
  }
  LV or_(LV a, LV b) {
    if (a == b || is(b, false) || is(a, true)) return a;
    if (is(a, false) || is(b, true)) return b;
    return b_.CreateOr(a, b);
  }
  LV not_(LV v) { return is(v, true) ? no() : is(v, false) ? yes() : b_.CreateNot(v); }
  LV choose(LV condition, LV a, LV b) {
    if (a == b || is(condition, true)) return a;
    if (is(condition, false)) return b;
    return b_.CreateSelect(condition, a, b);
  }
  /// The payload as it goes to *out.
  LV as_i64(LV bits) {
    llvm::Type* type = bits->getType();
    if (type->isDoubleTy()) return b_.CreateBitCast(bits, b_.getInt64Ty());
    if (type->isPointerTy()) return b_.CreatePtrToInt(bits, b_.getInt64Ty());
    return type->isIntegerTy(1) ? b_.CreateZExt(bits, b_.getInt64Ty()) : bits;
  }

 private:
  using Key = std::tuple<Op, Rep, uint32_t, uint32_t, uint32_t, uint32_t, int64_t>;

  static bool is(LV v, bool what) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v);
    return constant != nullptr && constant->getBitWidth() == 1 && constant->isOne() == what;
  }
  LV yes() { return b_.getTrue(); }
  LV no() { return b_.getFalse(); }
  LV self() { return f_.getArg(0); }
  LV record() { return f_.getArg(1); }
  LV context() { return f_.getArg(2); }
  LV i64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  LV f64(double v) { return llvm::ConstantFP::get(b_.getDoubleTy(), v); }
  LV null() { return llvm::ConstantPointerNull::get(b_.getPtrTy()); }
  LV at(LV base, uint64_t bytes) {
    return bytes == 0 ? base : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, bytes);
  }
  LV load(llvm::Type* type, LV base, uint64_t bytes, uint64_t align = 8) {
    return b_.CreateAlignedLoad(type, at(base, bytes), llvm::Align(align));
  }
  llvm::Type* type_of(Rep rep) {
    switch (rep) {
      case Rep::kBool:
        return b_.getInt1Ty();
      case Rep::kI64:
        return b_.getInt64Ty();
      case Rep::kF64:
        return b_.getDoubleTy();
      case Rep::kText:
      case Rep::kArray:
        return b_.getPtrTy();
    }
    return nullptr;
  }
  /// Loads a payload; a bool lives in memory as an i64.
  LV payload(Rep rep, LV base, uint64_t bytes) {
    if (rep != Rep::kBool) return load(type_of(rep), base, bytes);
    return b_.CreateICmpNE(load(b_.getInt64Ty(), base, bytes), i64(0));
  }
  LV finite(LV v) {
    return b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v),
                            llvm::ConstantFP::getInfinity(b_.getDoubleTy()));
  }
  Pair real(LV v, LV known) { return {v, and_(known, finite(v))}; }

  Pair emit(const Inst& inst) {
    const unsigned count = ir::operand_count(inst.op);
    const Pair a = count > 0 ? values_[inst.a] : Pair{};
    const Pair b = count > 1 ? values_[inst.b] : Pair{};
    const Pair c = count > 2 ? values_[inst.c] : Pair{};
    if (count == 0) return emit_leaf(inst);
    if (!ir::is_scalar_op(inst.op)) return emit_call(inst, a, b);
    switch (inst.op) {
      case Op::kAnd:
        return {and_(a.bits, b.bits), nullptr, or_(a.no, b.no)};
      case Op::kOr:
        return {or_(a.bits, b.bits), nullptr, and_(a.no, b.no)};
      case Op::kNot:
        return {a.no, nullptr, a.bits};
      case Op::kIsMissing:
        return {not_(known(a)), yes()};
      case Op::kCoalesce:
        return choose_pair(inst.rep, known(a), a, b);
      case Op::kSelect: {
        const Pair out = choose_pair(inst.rep, a.bits, b, c);
        if (inst.rep != Rep::kBool) return {out.bits, and_(known(a), out.known)};
        return {and_(known(a), out.bits), nullptr, and_(known(a), out.no)};
      }
      default:
        break;
    }
    const LV both = count > 1 ? and_(known(a), known(b)) : known(a);
    return reps_[inst.a] == Rep::kF64 ? emit_real(inst, a.bits, b.bits, both)
                                      : emit_integer(inst, a.bits, b.bits, both);
  }

  /// Both rails of a bool from its payload and knownness.
  Pair rails(Pair v) {
    const LV is_true = and_(v.known, v.bits);
    if (is(v.known, true)) return {is_true, v.known, not_(is_true)};
    if (is(v.known, false)) return {no(), v.known, no()};
    return {is_true, v.known, b_.CreateXor(v.known, is_true)};
  }
  LV known(Pair v) { return v.known != nullptr ? v.known : or_(v.bits, v.no); }
  Pair choose_pair(Rep rep, LV condition, Pair a, Pair b) {
    Pair out{choose(condition, a.bits, b.bits), nullptr, nullptr};
    if (rep == Rep::kBool)
      out.no = choose(condition, a.no, b.no);
    else
      out.known = choose(condition, a.known, b.known);
    return out;
  }

  // ---- constants and loads

  Pair emit_leaf(const Inst& inst) {
    switch (inst.op) {
      case Op::kConstBool:
        return {b_.getInt1(inst.imm != 0), yes()};
      case Op::kConstI64:
        return {i64(inst.imm), yes()};
      case Op::kConstF64:
        return {f64(ir::constant_value(inst).f64()), yes()};
      case Op::kUnknown:
        return {llvm::Constant::getNullValue(type_of(inst.rep)), no()};
      case Op::kConstText:
        return {call("rfx_const_text", b_.getPtrTy(), {self(), b_.getInt32(inst.index)}), yes()};
      case Op::kField:
        return field(inst);
      case Op::kCapture:
        return slot(inst, offsetof(EvalContext, captures));
      case Op::kFeature:
        return slot(inst, offsetof(EvalContext, features));
      case Op::kParam:
        return slot(inst, offsetof(EvalContext, class_params));
      case Op::kTable:
        return slot(inst, offsetof(EvalContext, table));
      case Op::kEntityKey:
        return {load(b_.getInt64Ty(), context(), offsetof(EvalContext, entity) + 8 * inst.index),
                yes()};
      case Op::kNow:
        return {load(b_.getInt64Ty(), context(), offsetof(EvalContext, now_ns)), yes()};
      case Op::kTimestamp:
        return {load(b_.getInt64Ty(), record(), offsetof(abi::Record, ts_ns)), yes()};
      case Op::kRepeats:
        return {b_.CreateZExt(load(b_.getInt32Ty(), record(), offsetof(abi::Record, repeats), 4),
                              b_.getInt64Ty()),
                yes()};
      case Op::kPeers: {
        const LV query = b_.getInt32(inst.index);
        const Pair v = answer(call("rfx_peers", value_type(), {context(), query}));
        return {b_.CreateBitCast(v.bits, b_.getDoubleTy()), v.known};
      }
      default:
        RFX_CHECK(false && "operation without operands that the JIT does not know");
    }
    return {};
  }

  Pair field(const Inst& inst) {
    if (present_ == nullptr) {
      present_ = load(b_.getInt64Ty(), record(), offsetof(abi::Record, present));
    }
    const uint64_t bit = uint64_t{1} << inst.index;
    const LV known = b_.CreateICmpNE(b_.CreateAnd(present_, b_.getInt64(bit)), i64(0));
    return {payload(inst.rep, record(), sizeof(abi::Record) + 8 * inst.index), known};
  }

  /// Entry `index` of the array of abi::Value that EvalContext points to at `offset`.
  Pair slot(const Inst& inst, size_t offset) {
    LV& base = bases_[offset];
    if (base == nullptr) base = load(b_.getPtrTy(), context(), offset);
    const uint64_t bytes = sizeof(abi::Value) * inst.index;
    const LV known = load(b_.getInt64Ty(), base, bytes + offsetof(abi::Value, known));
    return {payload(inst.rep, base, bytes), b_.CreateICmpNE(known, i64(0))};
  }

  // ---- arithmetic and comparisons

  Pair emit_real(const Inst& inst, LV a, LV b, LV known) {
    switch (inst.op) {
      case Op::kToI64: {
        llvm::Type* types[] = {b_.getInt64Ty(), b_.getDoubleTy()};
        return {b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, types, {a}), known};
      }
      case Op::kAdd:
        return real(b_.CreateFAdd(a, b), known);
      case Op::kSub:
        return real(b_.CreateFSub(a, b), known);
      case Op::kMul:
        return real(b_.CreateFMul(a, b), known);
      case Op::kDiv:
        return real(b_.CreateFDiv(a, b), known);
      case Op::kNeg:
        return real(b_.CreateFNeg(a), known);
      case Op::kAbs:
        return real(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a), known);
      case Op::kMin:
        return real(b_.CreateSelect(b_.CreateFCmpOLT(b, a), b, a), known);
      case Op::kMax:
        return real(b_.CreateSelect(b_.CreateFCmpOLT(a, b), b, a), known);
      case Op::kEq:
        return {b_.CreateFCmpOEQ(a, b), known};
      case Op::kNe:
        return {b_.CreateFCmpONE(a, b), known};
      case Op::kLt:
        return {b_.CreateFCmpOLT(a, b), known};
      case Op::kLe:
        return {b_.CreateFCmpOLE(a, b), known};
      case Op::kGt:
        return {b_.CreateFCmpOGT(a, b), known};
      case Op::kGe:
        return {b_.CreateFCmpOGE(a, b), known};
      default:
        RFX_CHECK(false && "real operation that the JIT does not know");
    }
    return {};
  }

  LV saturating(llvm::Intrinsic::ID id, LV a, LV b) { return b_.CreateBinaryIntrinsic(id, a, b); }
  LV negated(LV a) { return saturating(llvm::Intrinsic::ssub_sat, i64(0), a); }

  LV product(LV a, LV b) {
    const LV pair = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, a, b);
    const LV same_sign = b_.CreateICmpSGE(b_.CreateXor(a, b), i64(0));
    const LV limit = b_.CreateSelect(same_sign, i64(std::numeric_limits<int64_t>::max()),
                                     i64(std::numeric_limits<int64_t>::min()));
    return b_.CreateSelect(b_.CreateExtractValue(pair, 1), limit, b_.CreateExtractValue(pair, 0));
  }

  /// Quotient or remainder with a divisor that can trap (0, and -1 for the smallest integer)
  /// replaced by 1.
  Pair division(bool quotient, LV a, LV b, LV known) {
    const LV minus_one = b_.CreateICmpEQ(b, i64(-1));
    const LV zero = b_.CreateICmpEQ(b, i64(0));
    const LV divisor = b_.CreateSelect(b_.CreateOr(minus_one, zero), i64(1), b);
    const LV bits = quotient ? choose(minus_one, negated(a), b_.CreateSDiv(a, divisor))
                             : b_.CreateSRem(a, divisor);  // by 1: 0, as by -1
    return {bits, and_(known, not_(zero))};
  }

  Pair emit_integer(const Inst& inst, LV a, LV b, LV known) {
    switch (inst.op) {
      case Op::kToF64:
        return {b_.CreateSIToFP(a, b_.getDoubleTy()), known};
      case Op::kAdd:
        return {saturating(llvm::Intrinsic::sadd_sat, a, b), known};
      case Op::kSub:
        return {saturating(llvm::Intrinsic::ssub_sat, a, b), known};
      case Op::kMul:
        return {product(a, b), known};
      case Op::kDiv:
        return division(true, a, b, known);
      case Op::kMod:
        return division(false, a, b, known);
      case Op::kNeg:
        return {negated(a), known};
      case Op::kAbs:
        return {b_.CreateSelect(b_.CreateICmpSLT(a, i64(0)), negated(a), a), known};
      case Op::kMin:
        return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b), known};
      case Op::kMax:
        return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b), known};
      case Op::kBitAnd:
        return {b_.CreateAnd(a, b), known};
      case Op::kBitOr:
        return {b_.CreateOr(a, b), known};
      case Op::kShr:
        return {b_.CreateLShr(a, b_.CreateAnd(b, i64(63))),
                and_(known, b_.CreateICmpULT(b, i64(64)))};
      case Op::kEq:
        return {b_.CreateICmpEQ(a, b), known};
      case Op::kNe:
        return {b_.CreateICmpNE(a, b), known};
      case Op::kLt:
        return {b_.CreateICmpSLT(a, b), known};
      case Op::kLe:
        return {b_.CreateICmpSLE(a, b), known};
      case Op::kGt:
        return {b_.CreateICmpSGT(a, b), known};
      case Op::kGe:
        return {b_.CreateICmpSGE(a, b), known};
      case Op::kInSet:
        return {member(inst, a), known};
      case Op::kInRange: {
        const std::vector<int64_t>& bounds = ir_.sets[inst.index].values;
        return {within(a, bounds.front(), bounds.back()), known};
      }
      case Op::kAnyBits:
        return {b_.CreateICmpNE(b_.CreateAnd(a, i64(inst.imm)), i64(0)), known};
      case Op::kAllBits:
        return {b_.CreateICmpEQ(b_.CreateAnd(a, i64(inst.imm)), i64(inst.imm)), known};
      default:
        RFX_CHECK(false && "integer operation that the JIT does not know");
    }
    return {};
  }

  /// lo <= a <= hi as one unsigned compare (the subtraction wraps on purpose).
  LV within(LV a, int64_t lo, int64_t hi) {
    if (lo > hi) return no();
    const uint64_t width = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
    return b_.CreateICmpULE(b_.CreateSub(a, i64(lo)), b_.getInt64(width));
  }

  /// Membership in a constant set without a branch: a range, a bit test, compares, or a call.
  LV member(const Inst& inst, LV a) {
    const std::vector<int64_t>& values = ir_.sets[inst.index].values;
    if (values.empty()) return no();
    const uint64_t lo = static_cast<uint64_t>(values.front());
    const uint64_t width = static_cast<uint64_t>(values.back()) - lo;
    if (width == values.size() - 1) return within(a, values.front(), values.back());
    constexpr size_t kCompares = 6;  // Why: above it the bit test or the call is shorter code
    if (values.size() <= 2 || (width >= 64 && values.size() <= kCompares)) {
      LV found = no();
      for (const int64_t v : values) found = or_(found, b_.CreateICmpEQ(a, i64(v)));
      return found;
    }
    if (width < 64) {
      uint64_t mask = 0;
      for (const int64_t v : values) mask |= uint64_t{1} << (static_cast<uint64_t>(v) - lo);
      const LV offset = b_.CreateSub(a, b_.getInt64(lo));
      const LV bit = b_.CreateLShr(b_.getInt64(mask), b_.CreateAnd(offset, i64(63)));
      return b_.CreateAnd(b_.CreateICmpULT(offset, i64(64)), b_.CreateTrunc(bit, b_.getInt1Ty()));
    }
    return test("rfx_in_set", {self(), b_.getInt32(inst.index), a});
  }

  // ---- arrays and calls

  Pair emit_call(const Inst& inst, Pair a, Pair b) {
    const LV index = b_.getInt32(inst.index);
    switch (inst.op) {
      case Op::kLog: {
        const LV result = call("rfx_log", b_.getDoubleTy(), {a.bits});
        return real(result, and_(a.known, b_.CreateFCmpOGT(a.bits, f64(0))));
      }
      case Op::kArrayAt:
        return array_at(a, inst.imm);
      case Op::kArrayCount:
        return {array_count(readable(a)), a.known};
      case Op::kTextEq:
        return {test("rfx_text_eq", {self(), index, text(a)}), a.known};
      case Op::kTextLike:
        return {test("rfx_text_like", {self(), index, text(a)}), a.known};
      case Op::kTextMatches:
        return {test("rfx_text_matches", {self(), index, text(a)}), a.known};
      case Op::kTextSame:
        return {test("rfx_text_same", {text(a), text(b)}), and_(a.known, b.known)};
      case Op::kSymbolLike:
        return {test("rfx_symbol_like", {self(), index, a.bits}), a.known};
      case Op::kJobOf:
        return answer(call("rfx_job_of", value_type(), node(a)));
      case Op::kNodesInJob:
        return answer(call("rfx_nodes_in_job", value_type(), node(a)));
      case Op::kNodeLabel:
        return answer(
            call("rfx_node_label", value_type(), {context(), a.bits, as_i64(a.known), index}));
      case Op::kGpuAt:
        return answer(call("rfx_gpu_at", value_type(),
                           {context(), a.bits, text(b), as_i64(and_(a.known, b.known))}));
      case Op::kInMaintenance: {
        const Pair v = answer(call("rfx_in_maintenance", value_type(), node(a)));
        return {b_.CreateICmpNE(v.bits, i64(0)), v.known};
      }
      default:
        RFX_CHECK(false && "call that the JIT does not know");
    }
    return {};
  }

  std::vector<LV> node(Pair a) { return {context(), a.bits, as_i64(a.known)}; }
  llvm::Type* value_type() {
    return llvm::StructType::get(b_.getContext(), {b_.getInt64Ty(), b_.getInt64Ty()});
  }
  Pair answer(LV value) {
    return {b_.CreateExtractValue(value, 0),
            b_.CreateICmpNE(b_.CreateExtractValue(value, 1), i64(0))};
  }
  /// A text pointer that may be handed to a builtin: null when unknown.
  LV text(Pair v) { return choose(v.known, v.bits, null()); }

  LV call(const char* name, llvm::Type* result, const std::vector<LV>& args) {
    std::vector<llvm::Type*> types;
    for (const LV arg : args) types.push_back(arg->getType());
    auto callee =
        f_.getParent()->getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
    llvm::CallInst* made = b_.CreateCall(callee, args);
    made->setDoesNotThrow();
    return made;
  }
  LV test(const char* name, const std::vector<LV>& args) {
    return b_.CreateICmpNE(call(name, b_.getInt64Ty(), args), i64(0));
  }

  /// A pointer to an array that may be read: an empty one when the value is unknown.
  LV readable(Pair array) {
    llvm::Module& module = *f_.getParent();
    llvm::GlobalVariable* empty = module.getNamedGlobal("empty_array");
    if (empty == nullptr) {
      llvm::Type* type = llvm::ArrayType::get(b_.getInt64Ty(), 2);
      empty = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::PrivateLinkage,
                                       llvm::Constant::getNullValue(type), "empty_array");
      empty->setAlignment(llvm::Align(8));
    }
    return choose(array.known, array.bits, empty);
  }
  LV array_count(LV array) {
    return b_.CreateZExt(load(b_.getInt32Ty(), array, offsetof(abi::IntArray, count), 4),
                         b_.getInt64Ty());
  }
  Pair array_at(Pair array, int64_t index) {
    if (index < 0) return {i64(0), no()};
    const LV base = readable(array);
    const LV inside = b_.CreateICmpUGT(array_count(base), i64(index));
    const uint64_t bytes = sizeof(abi::IntArray) + 8 * static_cast<uint64_t>(index);
    // Not inbounds: the address is computed before it is known to be inside.
    const LV element = b_.CreateConstGEP1_64(b_.getInt8Ty(), base, bytes);
    return {load(b_.getInt64Ty(), b_.CreateSelect(inside, element, base), 0),
            and_(array.known, inside)};
  }

  llvm::IRBuilder<>& b_;
  llvm::Function& f_;
  const ir::Module& ir_;
  std::map<Key, uint32_t> seen_;
  std::vector<Pair> values_;
  std::vector<Rep> reps_;
  LV present_ = nullptr;
  std::map<size_t, LV> bases_;  // by offset in EvalContext
};

/// i32 name(ptr self, ptr record, ptr context, ptr out): both EvalFn and ChunkFn.
llvm::Function* declare(llvm::Module& module, const std::string& name) {
  llvm::LLVMContext& c = module.getContext();
  llvm::Type* p = llvm::PointerType::get(c, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(c), {p, p, p, p}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  for (unsigned i = 0; i < 3; ++i) function->addParamAttr(i, llvm::Attribute::ReadOnly);
  function->addParamAttr(3, llvm::Attribute::NoAlias);
  return function;
}

}  // namespace

void emit_expr(llvm::Module& module, const std::string& name, const ir::Module& ir,
               const ir::Function& function) {
  llvm::Function* f = declare(module, name);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "entry", f));
  Body body(b, *f, ir);
  const Pair result = body.append(function);
  if (function.type.scalar == abi::Scalar::kBool) {
    const LV not_false = b.CreateZExt(body.not_(result.no), b.getInt32Ty());
    static_assert(abi::kFalse == 0 && abi::kTrue == 1 && abi::kUnknown == 2);
    // false: 0; true: 2 - 1; unknown: 2
    b.CreateRet(b.CreateSub(b.CreateShl(not_false, 1), b.CreateZExt(result.bits, b.getInt32Ty())));
    return;
  }
  const LV bits = body.choose(result.known, body.as_i64(result.bits), b.getInt64(0));
  b.CreateAlignedStore(bits, f->getArg(3), llvm::Align(8));
  b.CreateRet(body.choose(result.known, b.getInt32(abi::kTrue), b.getInt32(abi::kUnknown)));
}

void emit_chunk(llvm::Module& module, const std::string& name, const ir::Module& ir,
                const std::vector<const ir::Function*>& predicates) {
  llvm::Function* f = declare(module, name);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "entry", f));
  Body body(b, *f, ir);
  // Every index is stored at hits[n]; n grows only when the predicate holds. So n <= i, and
  // `hits` needs room for as many entries as there are predicates.
  LV count = b.getInt32(0);
  for (uint32_t i = 0; i < predicates.size(); ++i) {
    LV hit = b.getTrue();
    if (predicates[i] != nullptr) {
      hit = body.append(*predicates[i]).bits;  // "known true"
    }
    const LV wide = b.CreateZExt(count, b.getInt64Ty());
    b.CreateAlignedStore(b.getInt32(i), b.CreateInBoundsGEP(b.getInt32Ty(), f->getArg(3), {wide}),
                         llvm::Align(4));
    count = b.CreateAdd(count, b.CreateZExt(hit, b.getInt32Ty()));
  }
  b.CreateRet(count);
}

}  // namespace reflex::backend::jit
