// PackSource: how the daemon gets compiled packs. The app implements it with the compiler, which
// the daemon does not know.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::serve {

struct SourceText {
  std::string path;
  std::string text;
};

struct CompiledSet {
  std::shared_ptr<const abi::CompiledPack> pack;  // null: there are errors
  std::vector<std::string> diagnostics;           // JSON objects, as `reflex check --format json`
  std::vector<SourceText> files;                  // all that was compiled, and data of lists
  double compile_ms = 0;
  uint64_t code_bytes = 0;  // machine code and its constants; 0: interpreted
};

/// Packs and profiles at `paths`; profiles empty: those near the packs. Called from any thread, one
/// call at a time. Each call makes its own SymbolTable. Errors: of the environment.
using PackSource = std::function<Result<CompiledSet>(const std::vector<std::string>& paths,
                                                     const std::vector<std::string>& profiles)>;

}  // namespace reflex::serve
