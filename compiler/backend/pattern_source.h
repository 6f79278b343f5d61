// The constant tables of an IR module in the form that the run-time builtins take them.
#pragma once

#include "compiler/ir/ir.h"
#include "runtime/builtin/pattern_table.h"

namespace reflex::backend {

inline builtin::PatternSource pattern_source(const ir::Module& module) {
  builtin::PatternSource source{module.texts, module.globs, module.regexes, {}};
  for (const ir::IntSet& set : module.sets) source.int_sets.push_back(set.values);
  return source;
}

}  // namespace reflex::backend
