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

/// Machine code by its content: what a set that still lives has compiled, the next one takes over.
/// Holds no code itself: a function is freed with the last set that uses it, and with it whatever
/// the cache knows of it. So it is bounded by the sets that live. Threads: any.
class CodeCache {
 public:
  struct Last {  // of the last set
    size_t functions = 0;
    size_t compiled = 0;  // the others were there
    size_t blocks = 0;    // pieces of memory that the set holds
    uint64_t bytes = 0;   // of them, code and its constants
  };
  virtual ~CodeCache() = default;
  [[nodiscard]] virtual Last last() const = 0;
};
std::shared_ptr<CodeCache> make_code_cache();

struct CodegenInput {
  std::shared_ptr<const ir::Module> ir;      // kept alive by the set that is made
  const abi::CompiledPack* plans = nullptr;  // exprs, classes, chunks, leaves; read during the call
  std::shared_ptr<SymbolTable> symbols;
  unsigned compile_threads = 2;
  std::shared_ptr<CodeCache> cache = nullptr;  // of make_code_cache; null: everything is compiled
};

Result<std::shared_ptr<const abi::EvaluatorSet>> make_interp(const CodegenInput& input);
Result<std::shared_ptr<const abi::EvaluatorSet>> make_jit(const CodegenInput& input);

/// `check --emit llvm|asm` of one expression, for `hw_class` where it has variants.
Result<std::string> dump_llvm(const CodegenInput& input, abi::ExprId expr, abi::ClassId hw_class);
Result<std::string> dump_asm(const CodegenInput& input, abi::ExprId expr, abi::ClassId hw_class);

}  // namespace reflex::backend
