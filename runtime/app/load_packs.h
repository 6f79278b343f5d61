// Loading packs for a command: find the profiles, compile, tell the diagnostics, pick the exit
// code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/app/commands.h"

namespace reflex::app {

struct LoadRequest {
  std::vector<std::string> packs;
  std::vector<std::string> profiles;  // empty: a folder `hwprofiles` near the packs, if any
  bool include_tests = false;
  std::string backend = "jit";  // jit | interp
  unsigned compile_threads = 2;
  std::shared_ptr<SymbolTable> symbols;  // null: a new one
  bool print_diagnostics = true;  // errors only: lints are for `check`, which prints by itself
};

struct Loaded {
  std::unique_ptr<compiler::Compilation> compilation;  // null when nothing could be read
  int exit_code = kOk;                                 // of the load: 0, 2 or 3
};

/// Whether one of the packs is a folder of profiles or lies in one.
bool names_profiles(const std::vector<std::string>& packs);
/// `hwprofiles` beside the packs or up to three levels above them; empty when there is none, or
/// when it is given among the packs.
std::vector<std::string> default_profiles(const std::vector<std::string>& packs);

/// Compiles; prints errors of the environment, and diagnostics when the request says so.
Loaded load_packs(const LoadRequest& request, const CommonFlags& common);

/// In the form of --format: text to stderr, the others to stdout. SARIF is printed even when there
/// is nothing to tell; it records the exit code.
void print_diagnostics(const compiler::Compilation& compilation, bool warnings, int exit_code,
                       const CommonFlags& common);

/// "reflex: error: ..." on stderr, in red on a terminal.
void print_error(const CommonFlags& common, const std::string& message);
void print_note(const CommonFlags& common, const std::string& message);

}  // namespace reflex::app
