// Private to compiler/backend/jit: the only header of the project that includes LLVM.
//
// Engine is one ORC LLJIT for the whole process, shared by every evaluator set that lives; Code is
// the machine code of some functions in a dylib of its own; emit_* turn IR functions into LLVM IR.
// Contract: every LLVM failure becomes reflex::Error here; rule code can reach the builtins of
// builtins.def and nothing else of the process (no libc, no LLVM, no static constructors).
// Invariant: a Code holds its Engine, because a resource tracker that outlives its LLJIT hangs.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "runtime/base/result.h"

namespace reflex::backend::jit {

Error to_error(llvm::Error error, std::string_view context);

/// The machine that code is made for: this host, fast instruction selection, no contraction.
llvm::Expected<llvm::orc::JITTargetMachineBuilder> host_machine();

/// Early common sub-expressions and dead code, nothing more. Why: the emitter already shares values
/// and there is no control flow. Measured on rules of ten comparisons: instcombine made no code
/// faster and took 4 to 10 times as long as everything else together.
void optimise(llvm::Module& module, llvm::TargetMachine& machine);

class Engine {
 public:
  /// The engine of the process; made by the first caller (whose `compile_threads` count), freed
  /// with the last set. Threads: any.
  static Result<std::shared_ptr<Engine>> shared(unsigned compile_threads);

  [[nodiscard]] llvm::orc::LLJIT& jit() { return *jit_; }
  [[nodiscard]] llvm::orc::JITDylib& builtins() { return *builtins_; }
  uint64_t next_id() { return next_id_++; }
  /// What ORC reported since the last call; the Error of a lookup does not hold the reason.
  std::string take_reports();
  /// Bytes that were linked into a dylib since the last call.
  uint64_t take_bytes(const llvm::orc::JITDylib& dylib);
  void add_bytes(const llvm::orc::JITDylib& dylib, uint64_t bytes);

 private:
  static Result<std::shared_ptr<Engine>> make(unsigned compile_threads);
  Status define_builtins();

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  llvm::orc::JITDylib* builtins_ = nullptr;
  std::atomic<uint64_t> next_id_{0};
  std::mutex reports_mutex_;  // of what follows
  std::string reports_;
  std::map<const llvm::orc::JITDylib*, uint64_t> bytes_;  // only looked up
};

/// The code of one LLVM module.
class Code {
 public:
  static Result<std::unique_ptr<Code>> make(std::shared_ptr<Engine> engine);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  Status add(std::unique_ptr<llvm::Module> module, std::unique_ptr<llvm::LLVMContext> context);
  /// Begins to compile and link what was added; finish() waits for it. Every begin has its finish.
  void begin(const std::vector<std::string>& names);
  /// Addresses parallel to `names`.
  Result<std::vector<void*>> finish();
  [[nodiscard]] Engine& engine() { return *engine_; }
  /// Of what was linked: code, constants, tables. 0 before finish().
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  explicit Code(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  std::shared_ptr<Engine> engine_;  // first, so that it is destroyed last
  llvm::orc::JITDylib* dylib_ = nullptr;
  llvm::orc::ResourceTrackerSP tracker_;
  std::vector<llvm::orc::SymbolStringPtr> wanted_;
  std::future<llvm::MSVCPExpected<llvm::orc::SymbolMap>> linked_;
  uint64_t bytes_ = 0;
};

/// Adds an abi::EvalFn named `name` to `module`.
void emit_expr(llvm::Module& module, const std::string& name, const ir::Module& ir,
               const ir::Function& function);
/// Adds an abi::ChunkFn over `predicates` (null = always true), all in one function body.
void emit_chunk(llvm::Module& module, const std::string& name, const ir::Module& ir,
                const std::vector<const ir::Function*>& predicates);

}  // namespace reflex::backend::jit
