// The page of all signals of the standard packs, made from the packs themselves.
//
// Contract: reads parsed files only (no semantic check: `reflex check` does that), writes Markdown
// that depends on nothing but their text. Signals stand by pack folder and name. It also finds what
// a pack may not lack: a meaning, a test in which a signal fires, one in which it stays silent, and
// for what a node's fault shows on other nodes, the tests of victims without a culprit. Not here:
// the command line (list_signals.cpp).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/source/source_map.h"

namespace reflex::tools {

/// One edge that ends at a signal.
struct Reason {
  std::string cause;
  double p = 0;      // 0: a weight, or a parameter of the hardware class
  bool own = false;  // scope self: it speaks of the entity it is on
  bool masks = false;
  bool on_others = false;  // scope peers or job: who shows it need not be the culprit
};

struct SignalEntry {
  std::string folder;  // "nvidia"
  std::string keys;    // "node, gpu"
  std::string meaning;
  std::string source;
  std::vector<Reason> reasons;
  bool opens_incident = false;
  int fires = 0;
  int silent = 0;
};

struct CauseEntry {
  std::string keys;
  std::string severity;
  std::string remedy;
  bool external = false;
  int tests = 0;     // tests whose verdict names it
  int shuffled = 0;  // of these, in several arrival orders
};

struct Catalogue {
  std::map<std::string, SignalEntry> signals;
  std::map<std::string, CauseEntry> causes;
  int tests = 0;
  std::set<std::string> titles;  // of all tests
};

/// `modules` in the order of their paths. Signals called `probe_..` exist for tests only: left out.
Catalogue collect(const std::vector<ast::Module>& modules, const source::SourceMap& map);
std::string to_markdown(const Catalogue& catalogue);
/// One line for each thing that is missing.
std::vector<std::string> gaps(const Catalogue& catalogue);

}  // namespace reflex::tools
