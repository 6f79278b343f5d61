// The compiler's only public entry: paths of packs and profiles -> CompiledPack + diagnostics.
//
// Phases in order: find files, parse, resolve + check (sema), lower to IR and plans, passes
// (fold per class, share, index constraints), backend. A later phase runs only when the earlier
// ones found no error. Deterministic: the same bytes give the same plans and the same hash.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/ir/ir.h"
#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::compiler {

class CompileCache;

enum class Backend : uint8_t { kJit, kInterp };

struct Options {
  Backend backend = Backend::kJit;
  unsigned compile_threads = 2;
  bool include_tests = false;            // keep *_test.rfx files and `test` blocks
  std::shared_ptr<SymbolTable> symbols;  // null: a new one
  int64_t now_ns = 0;                    // wall clock for warnings about ends; 0 = give none
  std::shared_ptr<CompileCache> cache;   // compile_cache.h; null: nothing is kept
};

/// One file given in memory (tests, the LSP later) instead of on disk.
struct InMemoryFile {
  std::string path;
  std::string text;
};

struct Compilation {
  source::SourceMap sources;
  diag::Sink sink;
  std::vector<ast::Module> modules;          // every file that parsed
  std::vector<std::string> module_packs;     // parallel: the name of the file's pack
  std::vector<uint8_t> has_syntax_findings;  // parallel: the parser reported something
  std::vector<InMemoryFile> data_files;      // that lists read, by path
  /// Of packs for tests alone (test_packs.h), when tests are not kept: not among `modules`.
  std::vector<ast::Module> left_out;
  std::shared_ptr<const abi::CompiledPack> pack;  // null when there are errors
  ir::Module ir;                                  // after the passes
  /// Tests of the packs in declaration order: (module index, decl index).
  std::vector<std::pair<uint32_t, uint32_t>> tests;
  double parse_ms = 0, check_ms = 0, lower_ms = 0, codegen_ms = 0;
};

/// Compiles every .rfx below `paths` (files or folders; a folder is read recursively, names
/// sorted). Errors of the environment (missing path, unreadable file, nothing found) are Errors;
/// everything that a rule author can mend is in Compilation::sink.
Result<std::unique_ptr<Compilation>> compile(const std::vector<std::string>& paths,
                                             const Options& options);
Result<std::unique_ptr<Compilation>> compile_text(const std::vector<InMemoryFile>& files,
                                                  const Options& options);

/// What made the pack: its modules and the data that lists read, without packs for tests alone.
/// compile_text() of them gives the same set, the hash too.
std::vector<InMemoryFile> compiled_files(const Compilation& compilation);

/// Every .rfx at or below the paths, names sorted, each once. Errors: as of `compile`.
Result<std::vector<std::string>> find_sources(const std::vector<std::string>& paths);
/// The bytes of a file. Errors: with the path.
Result<std::string> read_source(const std::string& path);

/// What one of a unit word is in the base unit ("GHz" -> 1e9); 1 for an unknown word.
double unit_factor(const std::string& word);

}  // namespace reflex::compiler
