// `check --emit llvm|asm`: the code of one expression as the JIT would make it, as text.
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/backend/backend.h"
#include "compiler/backend/jit/llvm_jit.h"
#include "compiler/pass/pipeline.h"

namespace reflex::backend {
namespace {

/// One expression, optimised, with everything that must outlive the module.
struct Dump {
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

Result<std::unique_ptr<Dump>> make(const CodegenInput& input, abi::ExprId expr,
                                   abi::ClassId hw_class) {
  RFX_CHECK(input.ir != nullptr && expr < input.ir->functions.size());
  auto builder = jit::host_machine();
  if (!builder) return jit::to_error(builder.takeError(), "finding the host's processor");
  auto machine = builder->createTargetMachine();
  if (!machine) return jit::to_error(machine.takeError(), "making a code generator");
  auto dump = std::make_unique<Dump>();
  dump->machine = std::move(*machine);
  ir::Function function = input.ir->functions[expr];
  if (input.plans != nullptr && hw_class < input.plans->classes.size() &&
      input.plans->exprs[expr].reads_class) {
    function = pass::specialise(*input.ir, function, input.plans->classes[hw_class]);
    function.name += "@" + input.plans->classes[hw_class].name;
  }
  dump->module = std::make_unique<llvm::Module>(function.name, dump->context);
  dump->module->setDataLayout(dump->machine->createDataLayout());
  dump->module->setTargetTriple(dump->machine->getTargetTriple().str());
  jit::emit_expr(*dump->module, function.name, *input.ir, function);
  jit::optimise(*dump->module, *dump->machine);
  return dump;
}

}  // namespace

Result<std::string> dump_llvm(const CodegenInput& input, abi::ExprId expr, abi::ClassId hw_class) {
  auto dump = make(input, expr, hw_class);
  if (!dump.ok()) return dump.error();
  std::string text;
  llvm::raw_string_ostream out(text);
  // Functions only: the module's header names the host.
  for (const llvm::Function& function : *dump.value()->module) {
    if (!function.isDeclaration()) function.print(out);
  }
  return text;
}

Result<std::string> dump_asm(const CodegenInput& input, abi::ExprId expr, abi::ClassId hw_class) {
  auto dump = make(input, expr, hw_class);
  if (!dump.ok()) return dump.error();
  llvm::SmallString<4096> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (dump.value()->machine->addPassesToEmitFile(passes, out, nullptr,
                                                 llvm::CodeGenFileType::AssemblyFile)) {
    return Error{"this processor has no assembly output"};
  }
  passes.run(*dump.value()->module);
  return std::string(text.str());
}

}  // namespace reflex::backend
