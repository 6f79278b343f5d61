// The order of the passes, and specialisation for a hardware class.
#include "compiler/pass/pipeline.h"

#include <algorithm>
#include <array>

#include "compiler/ir/semantics.h"

namespace reflex::pass {

std::span<const Pass> passes() {
  // Why this order: folding makes instructions equal and dead, sharing makes more of them dead.
  static constexpr std::array<Pass, 3> kPasses{
      {{"fold", &fold}, {"share", &share}, {"prune", &prune}}};
  return kPasses;
}

ir::Function run(const ir::Module& module, const ir::Function& function, const Options& options) {
  ir::Function out = function;
  for (const Pass& pass : passes()) {
    const auto& off = options.disabled;
    if (std::find(off.begin(), off.end(), pass.name) == off.end()) out = pass.run(module, out);
  }
  return out;
}

void run_all(ir::Module& module, const Options& options) {
  for (ir::Function& function : module.functions) function = run(module, function, options);
}

ir::Function specialise(const ir::Module& module, const ir::Function& function,
                        const abi::ClassPlan& hw_class) {
  ir::Function out = function;
  for (ir::Inst& inst : out.insts) {
    if (inst.op != ir::Op::kParam || inst.rep == ir::Rep::kText) continue;
    abi::Value value;
    if (inst.index < hw_class.params.size() && inst.index < hw_class.params_known.size() &&
        hw_class.params_known[inst.index] != 0) {
      value = {hw_class.params[inst.index], 1};
    }
    inst = ir::constant_inst(value, inst.rep);
  }
  return run(module, out);
}

}  // namespace reflex::pass
