// The typed, flat IR of expressions. One IrFunction an ExprId; both backends compile it.
//
// Shape: straight-line SSA. Instruction i defines value i; operands are smaller indices. There is
// no control flow: and/or/select evaluate both sides (branchless), which is legal because nothing
// in an expression can fail or loop (unknown takes the place of failure).
// Values: payload (i64 or f64 or pointer) plus a Kleene `known` bit. The result of every operation
// on an unknown operand is unknown, except kAnd/kOr (Kleene), kIsMissing and kCoalesce.
// Semantics, the same for every backend, bit for bit:
//  - integer add/sub/mul/neg saturate; div and mod by 0 are unknown; f64 results that are NaN or
//    infinite are unknown; comparisons of f64 use ordered compares; one rounding per instruction,
//    no contraction, no fast-math.
//  - kMeanGreater etc. compare x * count with k * sum, so that no division rounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/plan.h"
#include "runtime/abi/types.h"

namespace reflex::ir {

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = 0xffffffffu;

enum class Op : uint8_t {
#define RFX_IR_OP(op, operand_count, text) op,
#include "compiler/ir/ops.def"
#undef RFX_IR_OP
};

/// Machine type of an IR value.
enum class Rep : uint8_t { kBool, kI64, kF64, kText, kArray };

struct Inst {
  Op op;
  Rep rep;
  ValueId a = kNoValue;
  ValueId b = kNoValue;
  ValueId c = kNoValue;
  uint32_t index = 0;  // slot, capture, feature, parameter, table slot, set, pattern, query
  int64_t imm = 0;     // integer constant, or the bits of a f64 constant
  friend bool operator==(const Inst&, const Inst&) = default;
};

/// Constant sets and patterns that instructions refer to by index; owned by the IrModule.
struct IntSet {
  std::vector<int64_t> values;  // sorted, unique
  friend bool operator==(const IntSet&, const IntSet&) = default;
};

struct Function {
  std::string name;         // "std.nvidia.xid_48.e": for dumps
  std::vector<Inst> insts;  // the last one is the result
  abi::Type type;           // kBool for predicates
};

struct Module {
  std::vector<Function> functions;  // [ExprId]
  std::vector<IntSet> sets;
  std::vector<std::string> texts;    // literals compared with free text
  std::vector<std::string> globs;    // `like` patterns
  std::vector<std::string> regexes;  // RE2 patterns of `matches`
};

/// Stable text form (`check --emit ir`).
std::string print(const Module& module, const Function& function);

/// Checks operand order, representations and index bounds. Returns what is wrong, or "".
std::string verify(const Module& module, const Function& function);

}  // namespace reflex::ir
