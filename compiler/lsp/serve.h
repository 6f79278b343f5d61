// serve: the server on two file descriptors, until `exit` or the end of the input.
#pragma once

#include "compiler/lsp/server.h"

namespace reflex::lsp {

/// The exit code: 0 after shutdown and exit, 1 for an end without them, 3 when writing fails.
int serve(int input, int output, Hooks hooks, const std::string& version);

}  // namespace reflex::lsp
