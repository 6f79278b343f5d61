// Constant folding and Kleene identities, in one forward walk.
#include <optional>

#include "compiler/ir/semantics.h"
#include "compiler/pass/pipeline.h"

namespace reflex::pass {
namespace {

using ir::Inst;
using ir::Op;
using ir::ValueId;

/// Builds the folded function; `place` says where each old value went.
class Folder {
 public:
  Folder(const ir::Module& module, const ir::Function& function) : module_(module), in_(function) {}

  ir::Function run() {
    out_ = ir::Function{in_.name, {}, in_.type};
    for (const Inst& old : in_.insts) {
      Inst inst = old;
      const unsigned count = ir::operand_count(inst.op);
      if (count > 0) inst.a = place_[inst.a];
      if (count > 1) inst.b = place_[inst.b];
      if (count > 2) inst.c = place_[inst.c];
      place_.push_back(fold_one(inst));
    }
    // The result must come last; nothing after it can be one of its operands.
    if (!place_.empty()) out_.insts.resize(place_.back() + 1);
    return std::move(out_);
  }

 private:
  ValueId emit(const Inst& inst) {
    out_.insts.push_back(inst);
    return static_cast<ValueId>(out_.insts.size() - 1);
  }

  [[nodiscard]] std::optional<abi::Value> constant(ValueId id) const {
    const Inst& inst = out_.insts[id];
    if (!ir::is_constant_op(inst.op)) return std::nullopt;
    return ir::constant_value(inst);
  }
  [[nodiscard]] bool is_truth(ValueId id, bool what) const {
    const auto v = constant(id);
    return v && v->known != 0 && (v->bits != 0) == what;
  }
  [[nodiscard]] bool is_unknown(ValueId id) const { return out_.insts[id].op == Op::kUnknown; }

  ValueId fold_one(const Inst& inst) {
    const unsigned count = ir::operand_count(inst.op);
    if (count == 0) return emit(inst);
    if (const auto alias = identity(inst)) return *alias;
    // A strict operation with an unknown operand is unknown, whatever it is.
    if (is_strict(inst.op)) {
      for (unsigned k = 0; k < count; ++k) {
        if (is_unknown(ir::operand(inst, k))) return emit(ir::constant_inst({}, inst.rep));
      }
    }
    if (!ir::is_scalar_op(inst.op)) return emit(inst);
    abi::Value v[3];
    for (unsigned k = 0; k < count; ++k) {
      const auto c = constant(ir::operand(inst, k));
      if (!c) return emit(inst);
      v[k] = *c;
    }
    const ir::Rep rep = out_.insts[inst.a].rep;
    return emit(ir::constant_inst(ir::scalar_op(module_, inst, rep, v[0], v[1], v[2]), inst.rep));
  }

  static bool is_strict(Op op) {
    return op != Op::kAnd && op != Op::kOr && op != Op::kIsMissing && op != Op::kCoalesce &&
           op != Op::kSelect;
  }

  /// The existing value that `inst` equals, if one of the identities applies.
  std::optional<ValueId> identity(const Inst& inst) {
    switch (inst.op) {
      case Op::kAnd:
      case Op::kOr: {
        const bool neutral = inst.op == Op::kAnd;  // x and true = x, x or false = x
        if (inst.a == inst.b || is_truth(inst.b, neutral)) return inst.a;
        if (is_truth(inst.a, neutral)) return inst.b;
        if (is_truth(inst.a, !neutral)) return inst.a;  // x and false = false
        if (is_truth(inst.b, !neutral)) return inst.b;
        return std::nullopt;
      }
      case Op::kNot: {
        const Inst& operand = out_.insts[inst.a];
        if (operand.op == Op::kNot) return operand.a;
        return std::nullopt;
      }
      case Op::kCoalesce:
        if (is_unknown(inst.a)) return inst.b;
        if (constant(inst.a) || inst.a == inst.b || is_unknown(inst.b)) return inst.a;
        return std::nullopt;
      case Op::kSelect:
        if (is_unknown(inst.a)) return emit(ir::constant_inst({}, inst.rep));
        if (is_truth(inst.a, true)) return inst.b;
        if (is_truth(inst.a, false)) return inst.c;
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  const ir::Module& module_;
  const ir::Function& in_;
  ir::Function out_;
  std::vector<ValueId> place_;
};

}  // namespace

ir::Function fold(const ir::Module& module, const ir::Function& function) {
  return Folder(module, function).run();
}

}  // namespace reflex::pass
