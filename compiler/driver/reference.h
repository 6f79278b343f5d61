// The generated parts of the reference: grammar/BUILTINS.md, grammar/DIAGNOSTICS.md.
//
// Contract: pure functions of the tables; a test compares the files, and the examples of
// BUILTINS.md together are a pack whose tests pass (cli_test).
#pragma once

#include <string>

namespace reflex::compiler {

std::string builtins_reference();
std::string diagnostics_reference();

}  // namespace reflex::compiler
