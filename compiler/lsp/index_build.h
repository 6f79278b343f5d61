// The two passes that fill an Index; internal to the index.
#pragma once

#include "compiler/lsp/index.h"

namespace reflex::lsp {

void declare_all(Index& index, const abi::CompiledPack& plans);
void use_all(Index& index);

}  // namespace reflex::lsp
