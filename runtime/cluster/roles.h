// The three kinds of processes of a cluster, over a broker: they run until the input has ended, an
// error comes that waiting cannot mend, or `stop` is set.
//
//   route      files -> STREAM.SET.ofN.events.P          (one process)
//   signals    events.P -> STREAM.SET.ofN.signals.P      (one process for each partition)
//   attribute  signals.* -> verdicts                 (one process for each share of the jobs)
//
// SET is the start of the pack set's hash: workers with other packs do not meet. Limits go over
// STREAM.SET.ofN.limits, outcomes of incidents over STREAM.SET.ofN.outcomes.
// A process that died is started again with the same numbers, anywhere: it reads its messages from
// the oldest that the broker keeps and says the same again, with the same ids and numbers, which
// the others ignore. Retention must therefore cover the time since the start of the input.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
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
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> note;  // one line for the operator; may be empty
  /// Fills a topology with the inventory.
  std::function<Status(topology::Topology&)> inventory;
};

Result<stream::IngestCounters> route(const RoleContext& context,
                                     const engine::PipelineOptions& input);
Status signals(const RoleContext& context, uint32_t partition);
Status attribute(const RoleContext& context, uint32_t worker, uint32_t workers,
                 engine::EngineOptions options, engine::EngineSinks sinks);

}  // namespace reflex::cluster
