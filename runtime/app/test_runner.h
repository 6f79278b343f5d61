// TestRunner: runs `test` blocks on a virtual clock and checks their expectations (A12).
//
// A test fails when an expectation does not hold, when no expectation ran, when its input is
// rejected, or when a shuffled arrival order, other threads or a saved and loaded state change any
// firing or verdict. Deterministic.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/stream/log_decoder.h"

namespace reflex::app {

class TestCoverage;

struct TestOptions {
  /// Every test also batch 1, 3 shuffles, 2 threads, and restored from saved states on the way.
  bool matrix = false;
  uint64_t shuffle_seed = 1;
  bool verbose = false;
  /// Compiled line patterns of the pack set, shared by all tests; null: each decoder makes its own.
  std::shared_ptr<const stream::LineMatcher> patterns;
  TestCoverage* coverage = nullptr;  // told of every test; null: none
};

struct TestOutcome {
  std::string title;
  std::string place;  // file:line:col
  bool passed = false;
  size_t expectations = 0;
  double milliseconds = 0;
  std::string report;  // what failed, with the timeline and the verdict
  /// Signals of expectations that did not hold, and the node they were expected on ("" = any).
  std::vector<std::pair<abi::SignalId, std::string>> suspects;
};

TestOutcome run_test(const compiler::Compilation& compilation, const ast::Module& module,
                     const ast::Decl& decl, const TestOptions& options);

}  // namespace reflex::app
