// The process's LLJIT and the life cycle of code in it.
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/IRTransformLayer.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>

#include "compiler/backend/jit/llvm_jit.h"
#include "runtime/builtin/lookup.h"
#include "runtime/builtin/numeric.h"
#include "runtime/builtin/text.h"

namespace reflex::backend::jit {
namespace {

namespace orc = llvm::orc;

/// The target machine of this thread. Why: one a module costs half of the compile time of small
/// modules. All engines of the process use the same settings.
llvm::Expected<llvm::TargetMachine*> thread_machine() {
  thread_local std::unique_ptr<llvm::TargetMachine> machine;
  if (machine == nullptr) {
    auto builder = host_machine();
    if (!builder) return builder.takeError();
    auto made = builder->createTargetMachine();
    if (!made) return made.takeError();
    machine = std::move(*made);
  }
  return machine.get();
}

class ThreadMachineCompiler final : public orc::IRCompileLayer::IRCompiler {
 public:
  explicit ThreadMachineCompiler(const orc::JITTargetMachineBuilder& builder)
      : IRCompiler(orc::irManglingOptionsFromTargetOptions(builder.getOptions())) {}
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> operator()(llvm::Module& module) override {
    auto machine = thread_machine();
    if (!machine) return machine.takeError();
    return orc::SimpleCompiler(**machine)(module);
  }
};

/// Tells the engine how much memory a linked module takes.
class ByteCounter final : public orc::ObjectLinkingLayer::Plugin {
 public:
  explicit ByteCounter(Engine& engine) : engine_(engine) {}
  void modifyPassConfig(orc::MaterializationResponsibility& responsibility,
                        llvm::jitlink::LinkGraph&,
                        llvm::jitlink::PassConfiguration& config) override {
    const orc::JITDylib& dylib = responsibility.getTargetJITDylib();
    config.PostAllocationPasses.push_back([this, &dylib](llvm::jitlink::LinkGraph& graph) {
      uint64_t bytes = 0;
      for (const llvm::jitlink::Block* block : graph.blocks()) bytes += block->getSize();
      engine_.add_bytes(dylib, bytes);
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override {
    return llvm::Error::success();
  }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  Engine& engine_;  // owns the layer that owns this
};

/// Runs on the compile threads. An exception must not pass through LLVM's frames (it would leave
/// locks held), so it becomes an llvm::Error here.
llvm::Expected<orc::ThreadSafeModule> transform(orc::ThreadSafeModule module,
                                                orc::MaterializationResponsibility&) {
  auto machine = thread_machine();
  if (!machine) return machine.takeError();
  try {
    module.withModuleDo([&](llvm::Module& m) { optimise(m, **machine); });
  } catch (...) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "exception while optimising");
  }
  return module;
}

}  // namespace

Error to_error(llvm::Error error, std::string_view context) {
  return Error{llvm::toString(std::move(error))}.in(context);
}

llvm::Expected<orc::JITTargetMachineBuilder> host_machine() {
  static const bool initialised =
      (llvm::InitializeNativeTarget(), llvm::InitializeNativeTargetAsmPrinter(), true);
  static_cast<void>(initialised);
  auto builder = orc::JITTargetMachineBuilder::detectHost();
  if (!builder) return builder.takeError();
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
  builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return builder;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager pipeline;
  pipeline.addPass(llvm::EarlyCSEPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) pipeline.run(function, functions);
  }
}

Result<std::shared_ptr<Engine>> Engine::shared(unsigned compile_threads) {
  // The one piece of process-wide state: code pages and compile threads are process resources.
  // A weak reference, so that nothing lives on when no set does.
  static std::mutex mutex;
  static std::weak_ptr<Engine> current;
  const std::lock_guard lock(mutex);
  if (auto engine = current.lock()) return engine;
  auto made = make(compile_threads);
  if (made.ok()) current = made.value();
  return made;
}

Result<std::shared_ptr<Engine>> Engine::make(unsigned compile_threads) {
  auto machine = host_machine();
  if (!machine) return to_error(machine.takeError(), "finding the host's processor");
  orc::LLJITBuilder builder;
  builder.setJITTargetMachineBuilder(*machine)
      .setNumCompileThreads(compile_threads)
      .setPlatformSetUp(orc::setUpInactivePlatform)
      .setLinkProcessSymbolsByDefault(false)
      .setCompileFunctionCreator(
          [](orc::JITTargetMachineBuilder m)
              -> llvm::Expected<std::unique_ptr<orc::IRCompileLayer::IRCompiler>> {
            return std::make_unique<ThreadMachineCompiler>(m);
          });
  auto jit = builder.create();
  if (!jit) return to_error(jit.takeError(), "starting the JIT");
  auto engine = std::make_shared<Engine>();
  engine->jit_ = std::move(*jit);
  Engine* raw = engine.get();  // the session dies with the engine
  engine->jit_->getExecutionSession().setErrorReporter([raw](llvm::Error error) {
    const std::string text = llvm::toString(std::move(error));
    const std::lock_guard lock(raw->reports_mutex_);
    if (!raw->reports_.empty()) raw->reports_ += "; ";
    raw->reports_ += text;
  });
  engine->jit_->getIRTransformLayer().setTransform(transform);
  if (auto* layer = llvm::dyn_cast<orc::ObjectLinkingLayer>(&engine->jit_->getObjLinkingLayer())) {
    layer->addPlugin(std::make_shared<ByteCounter>(*engine));
  }
  if (auto defined = engine->define_builtins(); !defined.ok()) return defined.error();
  return engine;
}

Status Engine::define_builtins() {
  auto& session = jit_->getExecutionSession();
  builtins_ = &session.createBareJITDylib("builtins");
  orc::SymbolMap symbols;
  const auto flags = llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable;
#define RFX_BUILTIN(name) \
  symbols[jit_->mangleAndIntern(#name)] = {orc::ExecutorAddr::fromPtr(&name), flags};
#include "runtime/builtin/builtins.def"
#undef RFX_BUILTIN
  if (auto error = builtins_->define(orc::absoluteSymbols(std::move(symbols)))) {
    return to_error(std::move(error), "defining builtins");
  }
  return ok_status();
}

std::string Engine::take_reports() {
  const std::lock_guard lock(reports_mutex_);
  return std::exchange(reports_, {});
}

void Engine::add_bytes(const orc::JITDylib& dylib, uint64_t bytes) {
  const std::lock_guard lock(reports_mutex_);
  bytes_[&dylib] += bytes;
}

uint64_t Engine::take_bytes(const orc::JITDylib& dylib) {
  const std::lock_guard lock(reports_mutex_);
  const auto it = bytes_.find(&dylib);
  if (it == bytes_.end()) return 0;
  const uint64_t bytes = it->second;
  bytes_.erase(it);
  return bytes;
}

Result<std::unique_ptr<Code>> Code::make(std::shared_ptr<Engine> engine) {
  std::unique_ptr<Code> code(new Code(std::move(engine)));
  auto& session = code->engine_->jit().getExecutionSession();
  // Bare: a plain dylib would link process symbols and let rule code call system().
  code->dylib_ = &session.createBareJITDylib("block" + std::to_string(code->engine_->next_id()));
  code->dylib_->addToLinkOrder(code->engine_->builtins());
  code->tracker_ = code->dylib_->createResourceTracker();
  return code;
}

Code::~Code() {
  // This order gives the pages, the dylib's tables and the symbol names back (toolchain.md 2).
  auto& session = engine_->jit().getExecutionSession();
  if (tracker_ != nullptr) llvm::consumeError(tracker_->remove());
  tracker_ = nullptr;
  if (dylib_ != nullptr) llvm::consumeError(session.removeJITDylib(*dylib_));
  session.getSymbolStringPool()->clearDeadEntries();
}

Status Code::add(std::unique_ptr<llvm::Module> module, std::unique_ptr<llvm::LLVMContext> context) {
  orc::ThreadSafeModule safe(std::move(module), std::move(context));
  if (auto error = engine_->jit().addIRModule(tracker_, std::move(safe))) {
    return to_error(std::move(error), "adding code");
  }
  return ok_status();
}

void Code::begin(const std::vector<std::string>& names) {
  orc::SymbolLookupSet wanted;
  wanted_.clear();
  for (const std::string& name : names) {
    wanted_.push_back(engine_->jit().mangleAndIntern(name));
    wanted.add(wanted_.back());
  }
  // Not the call that waits: several modules compile at a time only when all have begun.
  auto promise = std::make_shared<std::promise<llvm::MSVCPExpected<orc::SymbolMap>>>();
  linked_ = promise->get_future();
  engine_->jit().getExecutionSession().lookup(
      orc::LookupKind::Static, orc::makeJITDylibSearchOrder(dylib_), std::move(wanted),
      orc::SymbolState::Ready,
      [promise](llvm::Expected<orc::SymbolMap> found) { promise->set_value(std::move(found)); },
      orc::NoDependenciesToRegister);
}

Result<std::vector<void*>> Code::finish() {
  auto found = linked_.get();
  bytes_ += engine_->take_bytes(*dylib_);
  if (!found) {
    Error error = to_error(found.takeError(), "compiling rules");
    if (const std::string reports = engine_->take_reports(); !reports.empty()) {
      error.message += " (" + reports + ")";
    }
    return error;
  }
  std::vector<void*> out;
  for (const auto& name : wanted_) out.push_back((*found)[name].getAddress().toPtr<void*>());
  wanted_.clear();
  return out;
}

}  // namespace reflex::backend::jit
