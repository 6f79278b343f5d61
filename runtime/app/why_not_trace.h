// One recorded evaluation as a tree of sub-expressions with the value of each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "runtime/abi/compiled_pack.h"

namespace reflex::app {

/// Lines, indented by depth: and/or/not on lines of their own, a comparison with the values that
/// it read: "code == 48: false (code = 31)". `record` may be null. Redacted fields stay hidden.
std::vector<std::string> trace_lines(const abi::CompiledPack& pack, const ir::Module& module,
                                     const ir::Function& function, const abi::Record* record,
                                     std::span<const abi::Value> values);

}  // namespace reflex::app
