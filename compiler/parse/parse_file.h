// The loop over the declarations of a token stream; internal to compiler/parse.
#pragma once

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {

/// Appends to `module`. Throws what ANTLR throws.
void parse_file(Tokens& tokens, diag::Sink& sink, ast::Module& module);

}  // namespace reflex::parse
