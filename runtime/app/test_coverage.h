// What a run of tests has exercised: signals, edges, profile parameters, both answers of
// predicates.
//
// How: the plans are run with one change that alters no answer: the index that skips predicates and
// the fused chunks are taken out, so that every predicate is asked for every event of its kind, and
// each evaluator counts what it said. So the numbers are of the engine that runs, not of a second
// reading of the rules. Cost: some times slower than a plain run.
// Threads: `observe` from any; counters are atomic.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/app/test_expect.h"

namespace reflex::app {

class TestCoverage {
 public:
  explicit TestCoverage(const compiler::Compilation& compilation);
  ~TestCoverage();

  /// The pack to run the tests with.
  [[nodiscard]] const std::shared_ptr<const abi::CompiledPack>& pack() const { return pack_; }
  /// What one test brought about.
  void observe(const Observed& observed);

  /// After all tests: a table and what is missing, or one JSON object on one line.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;

 private:
  class CountingSet;
  struct Part;
  [[nodiscard]] std::vector<Part> parts() const;
  [[nodiscard]] Part signals() const;
  [[nodiscard]] Part edges() const;
  [[nodiscard]] Part parameters() const;
  [[nodiscard]] Part predicates() const;

  const compiler::Compilation& compilation_;  // outlives this: the command owns both
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const CountingSet> code_;
  mutable std::mutex mutex_;
  std::set<abi::SignalId> fired_;
  std::set<std::pair<std::string, std::string>> evidence_;  // (cause or signal, signal it explains)
};

}  // namespace reflex::app
