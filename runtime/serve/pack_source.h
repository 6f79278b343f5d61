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
  /// What compiling left and nobody needs: to be let go when nobody waits for it.
  std::shared_ptr<void> rest;
};

struct PackRequest {
  std::vector<std::string> paths;
  std::vector<std::string> profiles;  // empty: those near the packs
  /// Of the set whose place it may take: its names keep their ids. Null: a new one.
  std::shared_ptr<SymbolTable> symbols;
  /// When there are any: compiled in place of `paths`, under the paths that they had.
  std::vector<SourceText> files;
};

/// Called from any thread, one call at a time. Errors: of the environment.
using PackSource = std::function<Result<CompiledSet>(const PackRequest& request)>;

}  // namespace reflex::serve
