// The code tables of std.nvidia against its policy lists: every code of the table stands in the
// list that the table names, in no other, and no list has a code that the table does not know.
//
// Contract: the first cell of a row is the code, the last one the list; lines that begin with '#'
// and the head are skipped. Cells in the middle may be quoted; they are not read.
#pragma once

#include <string>
#include <vector>

#include "compiler/ast/ast.h"

namespace reflex::tools {

/// `prefix`: "policy_" or "sxid_", how the lists of this table begin. One line for each difference.
std::vector<std::string> table_differences(const std::vector<ast::Module>& modules,
                                           const std::string& prefix, const std::string& csv);

}  // namespace reflex::tools
