// What an engine is told when it is made, and where its results go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/firing.h"
#include "runtime/abi/model.h"
#include "runtime/abi/verdict.h"
#include "runtime/attribution/attribution.h"
#include "runtime/engine/signal_stage.h"

namespace reflex::engine {

/// Parts of the model that can be left out, to see what each is worth (`backtest --ablate`).
struct Ablation {
  bool history = false;           // hazard 1 for every node, and repairs end nothing
  bool class_thresholds = false;  // one rate, threshold, prior and level for all classes
  bool dynamic = false;           // authors' leaks and defaults only
  bool common_mode = false;       // no cause on more than one node, no masks, no job-relative leak
  bool explain_away = false;      // every node for itself: no rivals, no residuals, no shared fate
};

/// What turned out to be true of an incident: a label, or an operator's feedback.
struct KnownIncident {
  std::string incident;
  int64_t ts_ns = 0;
  std::vector<std::string> culprits;  // empty: no node was at fault
  std::string fault;                  // a cause of the packs, or ""
};

class Elsewhere;
class Engine;

struct EngineOptions {
  unsigned threads = 1;
  bool near_misses = false;
  Ablation ablate;
  std::shared_ptr<const abi::Model> model;  // null: the authors' numbers
  /// Each incident is weighed once, at the end of its settle window: the same final answers for a
  /// fraction of the time (learning, backtests). Revisions count from 1, so ids differ.
  bool finals_only = false;
  bool counterfactual = true;  // of final revisions; costs more than the answer itself
  /// By time; may be null. Once the incident has its final verdict, this goes into the history of
  /// its nodes in place of the engine's own opinion; older ones go in before the first incident.
  std::shared_ptr<const std::vector<KnownIncident>> known;
  SignalStageMaker signal_stage;  // empty: signals are evaluated in this process
  /// Null: all incidents are weighed in this process.
  std::shared_ptr<Elsewhere> elsewhere;
  uint32_t hypotheses_max = 10;  // listed in a verdict; `explain --why-not` asks for all
  /// The engine whose place this one is to take (Engine::take_over); it is looked at while the new
  /// one is made, and may run meanwhile.
  const Engine* before = nullptr;
};

struct EngineSinks {
  std::function<void(abi::Verdict&&)> verdict;     // required
  std::function<void(const abi::Firing&)> firing;  // may be empty
  /// What the final revision of an incident was made from; may be empty. The Input can be kept: its
  /// tables are copies. `observed` is only valid during the call.
  std::function<void(const attribution::Input&, const abi::Verdict&)> final_input;
};

}  // namespace reflex::engine
