// The kinds of processes of a cluster, over a broker: they run until the input has ended, an error
// comes that waiting cannot mend, or `stop` is set.
//
//   route      files -> STREAM.SET.ofN.events.P              (one process)
//   signals    events.P -> STREAM.SET.ofN.signals.P          (a unit for each partition)
//   attribute  signals.* -> STREAM.SET.ofN.verdicts.W        (a unit for each share of the jobs)
//   collect    verdicts.* -> lines                           (anywhere, any number)
//
// SET is the start of the pack set's hash. Limits go over STREAM.SET.ofN.limits, outcomes of
// incidents over STREAM.SET.ofN.outcomes.
// A unit is served by one process: a named one, or whichever takes it (`*_units`): then the units
// of a process that died go to the others. Whoever goes on with a unit begins with its newest state
// on the broker (worker_state.h) and reads on from there; without one, from the oldest message.
// What it says again has the same numbers, which the others ignore. A message that should be there
// and is not (retention) is an Error.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"
#include "runtime/broker/broker.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/pipeline.h"
#include "runtime/topology/topology.h"

namespace reflex::cluster {

struct RoleContext {
  std::shared_ptr<const abi::CompiledPack> pack;
  broker::Broker* broker = nullptr;
  std::string stream = "REFLEX";  // one for each run: its messages are kept
  uint32_t partitions = 1;
  std::chrono::milliseconds state_every{60'000};  // Why: what a restart reads again, in wall time
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> note;  // one line for the operator; may be empty
  /// Fills a topology with the inventory.
  std::function<Status(topology::Topology&)> inventory;
};

/// What an attribution worker needs besides.
struct AttributionOptions {
  uint32_t workers = 1;  // shares of the jobs
  engine::EngineOptions engine;
  std::function<std::string(const abi::Verdict&)> line;  // without '\n'
};
using TakeLine = std::function<Status(const std::string&)>;

Result<stream::IngestCounters> route(const RoleContext& context,
                                     const engine::PipelineOptions& input);
/// True when the unit has ended, false when it was stopped.
Result<bool> signals(const RoleContext& context, uint32_t partition);
/// `take` may be empty; else it gets every verdict of the share, those before the state first.
Result<bool> attribute(const RoleContext& context, uint32_t worker,
                       const AttributionOptions& options, const TakeLine& take);
/// Units that this process takes; until all units of the run have ended.
Status signals_units(const RoleContext& context);
Status attribute_units(const RoleContext& context, const AttributionOptions& options);
/// Every verdict once, in the order of each share.
Status collect(const RoleContext& context, uint32_t workers, const TakeLine& take);

}  // namespace reflex::cluster
