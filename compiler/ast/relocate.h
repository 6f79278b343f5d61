// Moves a tree to another place of the text: an editor's or a reload's edit before it.
//
// Contract: every span that a parser set is moved by `delta` bytes and belongs to `file`; what has
// no span stays without. The result is what a parse of the moved text gives.
#pragma once

#include "compiler/ast/ast.h"

namespace reflex::ast {

struct Place {
  source::FileId file = 0;
  uint32_t delta = 0;  // added modulo 2^32: a move to the left is a large number
};

void relocate(Decl& decl, Place to);
/// The whole file, its head too.
void relocate(Module& module, Place to);

}  // namespace reflex::ast
