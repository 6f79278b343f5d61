// What `reflex check` prints besides diagnostics: the dumps of a signal, costs, class bindings.
//
// Contract: a compilation without errors. Data goes to stdout, in text or as one JSON object a
// line.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/app/commands.h"

namespace reflex::app {

/// `--emit ast|ir|llvm|asm SIGNAL`
int emit_signal(const compiler::Compilation& c, const std::string& what, const std::string& name,
                const CommonFlags& common);

/// `--cost`: evaluators of each event kind, bytes a key, partial matches and horizon of each
/// signal, and the worst case of all state.
void print_cost(const abi::CompiledPack& pack, bool json);

/// `--nodes INVENTORY`: the class of every node. Profiles that both match a node and are not on one
/// inheritance line are reported to `sink` (R220), once for each pair.
int bind_nodes(const compiler::Compilation& c, const std::string& inventory, diag::Sink& sink,
               const CommonFlags& common);

}  // namespace reflex::app
