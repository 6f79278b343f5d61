// sema: syntax trees -> checked plans and IR. The one entry of this folder for the driver.
//
// Contract: resolves names across packs, types every expression with units, and fills CompiledPack
// (everything but `code`, hashes and PackIdentity) and ir::Module. Everything that a rule author
// can mend goes to the sink; after an error the output must not be used.
// Deterministic: declarations are visited in (pack name, path, position) order; nothing depends on
// addresses or on symbol numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/ir/ir.h"
#include "compiler/sema/packs.h"
#include "compiler/source/source_map.h"
#include "runtime/abi/compiled_pack.h"

namespace reflex::sema {

struct Input {
  const source::SourceMap& sources;
  const std::vector<ast::Module>& modules;
  const PackSet& packs;
  std::shared_ptr<SymbolTable> symbols;
  bool include_tests = false;
  /// Text of a file that a `list .. from` names; nothing when it cannot be read.
  std::function<std::optional<std::string>(const std::string& path)> read_file;
  /// The wall clock, only for warnings about ends that have passed; 0 = unknown, none are given.
  int64_t now_ns = 0;
};

struct Output {
  abi::CompiledPack pack;
  ir::Module ir;
  std::vector<std::pair<uint32_t, uint32_t>> tests;  // (module, declaration)
};

void analyze(const Input& input, diag::Sink& sink, Output& output);

}  // namespace reflex::sema
