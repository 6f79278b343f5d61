// Making; see running_set.h.
#include "runtime/serve/running_set.h"

#include <utility>

namespace reflex::serve {
namespace {

LaneSinks sinks_of(RunningSet* running, const std::atomic<uint64_t>& replay_end) {
  const auto say = [running, &replay_end](Outgoing&& line) {
    // No runner yet: nothing is evaluated before it is there.
    const bool replayed = running->runner->position() < replay_end.load(std::memory_order_relaxed);
    line.accepted_wall_ns = replayed ? 0 : running->runner->step_wall_ns();
    running->output->say(std::move(line));
  };
  LaneSinks sinks;
  sinks.verdict = [say](abi::Verdict&& verdict) {
    Outgoing line;
    line.verdict = std::make_shared<const abi::Verdict>(std::move(verdict));
    say(std::move(line));
  };
  sinks.alert = [say](const policy::Alert& alert) { say(outgoing_of(alert)); };
  sinks.action = [say](const policy::ActionRequest& action) { say(outgoing_of(action)); };
  return sinks;
}

}  // namespace

Result<PreparedSet> prepare(const RunningParts& parts, LoadedSet set, LaneOutput::Mode mode,
                            const engine::Engine* before) {
  PreparedSet prepared;
  prepared.running = std::make_shared<RunningSet>();
  RunningSet& running = *prepared.running;
  running.set = std::move(set);
  running.output = std::make_unique<LaneOutput>(parts.publisher, mode);
  LaneOptions options = running.set.lane;
  options.engine.before = before;
  auto lane = Lane::create(running.set.pack, options, sinks_of(&running, parts.replay_end));
  if (!lane.ok()) return lane.error();
  prepared.lane = std::move(lane).value();
  return prepared;
}

Result<std::shared_ptr<RunningSet>> with_state(const RunningParts& parts, PreparedSet prepared,
                                               std::string_view state, uint64_t position) {
  RunningSet& running = *prepared.running;
  if (state.empty()) {
    prepared.lane->start_at(position);
  } else {
    StateReader reader(state, *running.set.pack->symbols);
    if (auto status = prepared.lane->load(reader, running.report); !status.ok()) {
      return status.error();
    }
    running.began_ns = prepared.lane->watermark_ns();
  }
  running.runner = std::make_shared<LaneRunner>(parts.journal, std::move(prepared.lane));
  return std::move(prepared.running);
}

Result<std::shared_ptr<RunningSet>> make_running(const RunningParts& parts, LoadedSet set,
                                                 LaneOutput::Mode mode, std::string_view state,
                                                 uint64_t position) {
  auto prepared = prepare(parts, std::move(set), mode, nullptr);
  if (!prepared.ok()) return prepared.error();
  return with_state(parts, std::move(prepared).value(), state, position);
}

}  // namespace reflex::serve
