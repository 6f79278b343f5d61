// What each scalar operation of the IR means, in one place: the interpreter and constant folding
// call this, the JIT is tested against it bit for bit.
//
// Contract: covers every operation that needs only its operands and the module's constant sets
// (is_scalar_op). Loads, text and look-ups are the backends' business.
// Canonical form: an unknown Value has bits 0; a bool has bits 0 or 1.
#pragma once

#include <string_view>

#include "compiler/ir/ir.h"
#include "runtime/abi/evaluator.h"
#include "runtime/base/check.h"

namespace reflex::ir {

/// Number of operands of `op` (0..3).
unsigned operand_count(Op op);
/// The text of ops.def.
std::string_view op_text(Op op);
/// Operand `i` (0..2) of an instruction.
inline ValueId operand(const Inst& inst, unsigned i) {
  return i == 0 ? inst.a : i == 1 ? inst.b : inst.c;
}

/// The comparison with its sides exchanged (`a < b` is `b > a`); other operations as they are.
Op mirrored(Op op);

/// A constant or kUnknown.
bool is_constant_op(Op op);
/// The value of a constant; kConstText is not one (its pointer belongs to a backend).
abi::Value constant_value(const Inst& inst);
/// The instruction that makes `value` with representation `rep` (kBool, kI64 or kF64).
Inst constant_inst(abi::Value value, Rep rep);

bool is_scalar_op(Op op);
/// Evaluates a scalar operation. `operand_rep` is the representation of operand a.
abi::Value scalar_op(const Module& module, const Inst& inst, Rep operand_rep, abi::Value a,
                     abi::Value b, abi::Value c);

}  // namespace reflex::ir
