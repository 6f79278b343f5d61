// CompileCache: what one compilation leaves to the next one of nearly the same files.
//
// Contract: a compilation with a cache gives what one without gives: the same plans, code that
// computes the same, the same diagnostics. Kept are trees of files that had nothing to report (an
// edit is parsed around the change only), and machine code as long as a set that uses it lives.
// Everything between, the checks and plans, depends on all files and is done anew.
// Bounds: trees of kTextMax bytes of text; of files that the last compilation read, when there is
// more. Threads: one compilation at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/ast/ast.h"
#include "compiler/backend/backend.h"
#include "compiler/source/source_map.h"

namespace reflex::compiler {

struct Compilation;

class CompileCache {
 public:
  // Why: ten times the largest set that was measured; a tree takes some 40 times its text.
  static constexpr size_t kTextMax = 8u << 20;

  struct Last {               // of the last compilation
    size_t files_taken = 0;   // as they were
    size_t files_edited = 0;  // parsed around the change
    size_t files_parsed = 0;
  };

  /// The tree of a file of this path and text, at its place in `map`; nothing: parse it.
  std::optional<ast::Module> take(const source::SourceMap& map, source::FileId file);
  /// What was read, good or bad, when it is not needed any more.
  void keep(Compilation&& done);

  [[nodiscard]] const std::shared_ptr<backend::CodeCache>& code() const { return code_; }
  [[nodiscard]] const Last& last() const { return last_; }
  [[nodiscard]] size_t text_bytes() const { return bytes_; }

 private:
  struct File {
    std::string text;
    ast::Module module;
    uint64_t used = 0;  // number of the compilation that read it last
  };
  void shrink();

  std::map<std::string, File, std::less<>> files_;  // by path
  size_t bytes_ = 0;                                // of texts
  uint64_t number_ = 0;
  Last last_;
  Last now_;
  std::shared_ptr<backend::CodeCache> code_ = backend::make_code_cache();
};

}  // namespace reflex::compiler
