// What an engine is told when it is made, and where its results go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/abi/firing.h"
#include "runtime/abi/model.h"
#include "runtime/abi/verdict.h"
#include "runtime/attribution/attribution.h"

namespace reflex::engine {

/// Parts of the model that can be left out, to see what each is worth (`backtest --ablate`).
struct Ablation {
  bool history = false;           // hazard 1 for every node
  bool class_thresholds = false;  // one benign rate and one threshold for all classes
  bool dynamic = false;           // authors' leaks and defaults only
  bool common_mode = false;
  bool explain_away = false;
};

struct EngineOptions {
  unsigned threads = 1;
  bool near_misses = false;
  Ablation ablate;
  std::shared_ptr<const abi::Model> model;  // null: the authors' numbers
  /// Each incident is weighed once, at the end of its settle window: the same final answers for a
  /// fraction of the time (learning, backtests). Revisions count from 1, so ids differ.
  bool finals_only = false;
  uint32_t hypotheses_max = 10;  // listed in a verdict; `explain --why-not` asks for all
};

struct EngineSinks {
  std::function<void(abi::Verdict&&)> verdict;     // required
  std::function<void(const abi::Firing&)> firing;  // may be empty
  /// What the final revision of an incident was made from; may be empty. The Input can be kept: its
  /// tables are copies. `observed` is only valid during the call.
  std::function<void(const attribution::Input&, const abi::Verdict&)> final_input;
};

}  // namespace reflex::engine
