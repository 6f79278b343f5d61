// Passes over the IR: small, named, switchable, deterministic.
//
// Contract: every pass takes a function that ir::verify accepts and gives one that it accepts,
// with the same type and the same result for every record and context, known or unknown
// (property test). Passes work on one function; nothing moves between functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"

namespace reflex::pass {

/// Replaces operations on constants by their result and applies the Kleene identities
/// (x and true = x, not not x = x, coalesce of a known value, select on a constant).
ir::Function fold(const ir::Module& module, const ir::Function& function);
/// Merges equal instructions. Look-ups are included: within one evaluation they cannot change.
ir::Function share(const ir::Module& module, const ir::Function& function);
/// Drops instructions that the result does not need.
ir::Function prune(const ir::Module& module, const ir::Function& function);

struct Pass {
  std::string_view name;
  ir::Function (*run)(const ir::Module&, const ir::Function&);
};
/// All passes in the order in which they run.
std::span<const Pass> passes();

struct Options {
  std::vector<std::string> disabled;  // names of passes that are skipped
};
ir::Function run(const ir::Module& module, const ir::Function& function,
                 const Options& options = {});
/// Runs the pipeline over every function of the module.
void run_all(ir::Module& module, const Options& options = {});

/// `function` for one hardware class: parameters become constants (unknown where the class does
/// not set them), then the pipeline runs. Text parameters stay loads: their text lives in the plan.
ir::Function specialise(const ir::Module& module, const ir::Function& function,
                        const abi::ClassPlan& hw_class);

}  // namespace reflex::pass
