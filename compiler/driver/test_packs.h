// Which packs are there for tests alone: no part of what runs, nor of the hash of a set.
//
// A pack that declares nothing but tests (outside of *_test.rfx files), states no clock and no
// limits, that no other pack imports, and that has tests. An empty pack without tests is not one:
// it may be a name and a version that somebody looks for.
#pragma once

#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/sema/packs.h"
#include "compiler/source/source_map.h"

namespace reflex::compiler {

/// "x_test.rfx".
bool is_test_file(const std::string& path);

/// [PackIndex]; `test_files` are the paths of test files that were not parsed.
std::vector<bool> test_packs(const source::SourceMap& sources,
                             const std::vector<ast::Module>& modules, const sema::PackSet& packs,
                             const std::vector<std::string>& test_files);

}  // namespace reflex::compiler
