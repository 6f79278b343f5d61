// Packs: which file belongs to which pack, and which pack imports which.
//
// A pack is a folder whose pack.rfx holds the `pack` head, with every .rfx below it; any other file
// with a head of its own is its own pack. Files without a head below a folder `hwprofiles`, or
// that declare only profiles, belong to the implicit pack `hw`. Files without a head that hold only
// overlays (and tests, suppressions, maintenance, cohorts, rules on verdicts) belong to the implicit
// pack `overlays`, which sees its targets and their imports. Errors (no head, two packs of one name,
// unknown or cyclic imports, version ranges) are diagnostics R520 to R524, R528.
#pragma once

#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/source/source_map.h"

namespace reflex::sema {

using PackIndex = uint32_t;
inline constexpr PackIndex kBuiltinPack = 0;

struct ImportRef {
  PackIndex pack = 0;
  std::string alias;              // "" = only by the pack's own name
  std::vector<std::string> only;  // empty = everything
  source::Span span;
};

struct Pack {
  std::string name;
  std::string version;
  const ast::PackHead* head = nullptr;  // null for `hw` and the builtin pack
  source::Span span;                    // of the name in the head
  std::vector<uint32_t> modules;        // indices, in path order
  std::vector<ImportRef> imports;
};

struct PackSet {
  std::vector<Pack> packs;           // [0] is the builtin pack; the rest sorted by name
  std::vector<PackIndex> of_module;  // [module]
};

/// Whether `version` satisfies `range` ("1.2", "^3", ">= 1.4", "= 1.0.0", ""): semver precedence,
/// a pre-release never satisfies a caret or bare range.
bool version_satisfies(const std::string& version, const std::string& range);

PackSet group_packs(const source::SourceMap& sources, const std::vector<ast::Module>& modules,
                    diag::Sink& sink);

}  // namespace reflex::sema
