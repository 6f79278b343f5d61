// SignalWatch: a signal under the magnifying glass, for `explain --why-not` and failing tests.
//
// Contract: wraps a compilation so that a run with `pack()` answers as always, and records what
// each predicate of one signal was, part by part. `report` tells it after the run: evaluations, the
// last values, near misses, counts and conditions against their limits. One thread (recording.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/eval/signal_engine.h"

namespace reflex::app {

class SignalWatch {
 public:
  /// `node` kNoSymbol: on every node. `time_text` writes event times (absolute, or of a test).
  SignalWatch(const compiler::Compilation& compilation, abi::SignalId signal, SymbolId node,
              std::function<std::string(int64_t)> time_text);
  ~SignalWatch();

  /// The pack whose code records. Errors are ours: the IR was compiled once already.
  Result<std::shared_ptr<const abi::CompiledPack>> build();

  /// Lines indented by two. `misses` of all signals; only this one's are told.
  [[nodiscard]] std::string report(const std::vector<eval::NearMiss>& misses) const;

 private:
  class Recorder;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace reflex::app
