// Text forms of the parts of a declaration: expressions, patterns, aggregates, types.
#pragma once

#include <string>

#include "compiler/ast/ast.h"

namespace reflex::ast {

std::string print(const Expr& e);
std::string print(const KindPattern& pattern);
std::string print(const Aggregate& aggregate);
std::string print(const TypeRef& type);
/// Quoted and escaped, one line.
std::string print_string(const std::string& text);
/// "==", "and", "+" ..
std::string to_text(BinaryOp op);

}  // namespace reflex::ast
