// The two ways to run the IR: a slow, obvious interpreter (the reference) and LLVM ORC.
//
// Both implement abi::EvaluatorSet for every ExprId of the module and every chunk of the plans,
// with one variant per hardware class for expressions that read class parameters
// (ExprInfo::reads_class). They must agree bit for bit (differential test).
// Errors: code memory and LLVM failures come back as Error; no exception, no LLVM type leaves.
#pragma once

#include <memory>
#include <string>

#include "compiler/ir/ir.h"
#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::backend {

struct CodegenInput {
  std::shared_ptr<const ir::Module> ir;      // kept alive by the set that is made
  const abi::CompiledPack* plans = nullptr;  // exprs, classes, chunks, leaves; read during the call
  std::shared_ptr<SymbolTable> symbols;
  unsigned compile_threads = 2;
};

Result<std::shared_ptr<const abi::EvaluatorSet>> make_interp(const CodegenInput& input);
Result<std::shared_ptr<const abi::EvaluatorSet>> make_jit(const CodegenInput& input);

/// `check --emit llvm|asm` of one expression, for `hw_class` where it has variants.
Result<std::string> dump_llvm(const CodegenInput& input, abi::ExprId expr, abi::ClassId hw_class);
Result<std::string> dump_asm(const CodegenInput& input, abi::ExprId expr, abi::ClassId hw_class);

}  // namespace reflex::backend
