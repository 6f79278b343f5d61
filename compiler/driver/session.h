// Session: a set of packs that is edited, checked again after every change (the LSP).
//
// Contract: a file is parsed only when its text changes; `check` runs the semantic checks over all
// files and gives the diagnostics that `reflex check` gives for the same texts. No code is made.
// The modules stand in the order of their paths and stay valid until the next set or remove.
// Not: watching the disk; who owns the session tells it every text.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/sema/packs.h"
#include "runtime/abi/compiled_pack.h"

namespace reflex::compiler {

class Session {
 public:
  /// Reads what `list .. from` names; nothing when it cannot be read.
  using Reader = std::function<std::optional<std::string>(const std::string& path)>;
  explicit Session(Reader reader) : reader_(std::move(reader)) {}

  /// False: the file is there with this text already.
  bool set(const std::string& path, std::string text);
  /// False: there is no such file.
  bool remove(const std::string& path);

  struct Check {
    diag::Sink sink;
    sema::PackSet packs;
    abi::CompiledPack pack;  // without code; whole only when the sink has no error
    double milliseconds = 0;
  };
  /// Runs the checks unless nothing changed since. `now_ns` as in Options.
  const Check& check(int64_t now_ns = 0);
  [[nodiscard]] bool is_checked() const { return check_ != nullptr; }

  [[nodiscard]] const source::SourceMap& sources() const { return sources_; }
  [[nodiscard]] const std::vector<ast::Module>& modules() const { return modules_; }
  [[nodiscard]] std::optional<source::FileId> file(const std::string& path) const;
  [[nodiscard]] bool has_syntax_errors(source::FileId file) const;
  /// The tree of the last text of a file without syntax errors, when the present text has some. Its
  /// spans belong to that text; null: there is none.
  [[nodiscard]] const ast::Module* last_good(source::FileId file) const;

 private:
  struct File {
    std::vector<diag::Diagnostic> syntax;
    bool broken = false;
    std::optional<ast::Module> last_good;
  };
  [[nodiscard]] std::vector<ast::Module>::iterator module_at(const std::string& path);
  void rebuild_sources();

  Reader reader_;
  std::vector<std::pair<std::string, std::string>> texts_;  // [FileId] path and text
  source::SourceMap sources_;
  std::map<std::string, source::FileId> ids_;  // of the files that are there
  std::map<std::string, source::FileId> gone_;
  std::map<source::FileId, File> files_;
  std::vector<ast::Module> modules_;
  std::unique_ptr<Check> check_;
};

}  // namespace reflex::compiler
