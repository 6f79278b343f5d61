// Making and meeting; see running_set.h.
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

Result<std::shared_ptr<RunningSet>> make_running(const RunningParts& parts, LoadedSet set,
                                                 LaneOutput::Mode mode, std::string_view state,
                                                 uint64_t position) {
  auto running = std::make_shared<RunningSet>();
  running->set = std::move(set);
  running->output = std::make_unique<LaneOutput>(parts.publisher, mode);
  auto lane =
      Lane::create(running->set.pack, running->set.lane, sinks_of(running.get(), parts.replay_end));
  if (!lane.ok()) return lane.error();
  if (state.empty()) {
    lane.value()->start_at(position);
  } else {
    StateReader reader(state, *running->set.pack->symbols);
    if (auto status = lane.value()->load(reader, running->report); !status.ok()) {
      return status.error();
    }
  }
  running->runner = std::make_unique<LaneRunner>(parts.journal, std::move(lane).value());
  return running;
}

bool meet_ahead(LaneRunner& old, LaneRunner& next) {
  if (next.position() < old.position()) return false;
  const uint64_t at = next.hold();
  // Two steps at once may have carried `old` beyond; then it is held there and let go.
  if (at >= old.position() && old.hold_at(at)) return true;
  old.release();
  next.release();
  return false;
}

bool meet(LaneRunner& a, LaneRunner& b) {
  const uint64_t at_a = a.hold();
  const uint64_t at_b = b.hold();
  if (at_a < at_b) return a.hold_at(at_b);
  if (at_b < at_a) return b.hold_at(at_a);
  return true;
}

}  // namespace reflex::serve
