// WorkerState: the state of one unit of work (a partition, a share of the jobs) on the broker, so
// that whoever goes on with it need not read everything again.
//
// A state is of a place in the messages: who loads it reads on behind them, and says again what was
// said between the state and the end of its predecessor; that is numbered, so nobody hears it
// twice. Two processes may for a moment serve the same unit (a lease that has run out): they say
// the same, and either's state is a good one.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"
#include "runtime/base/state_stream.h"
#include "runtime/broker/broker.h"

namespace reflex::cluster {

class WorkerState {
 public:
  WorkerState(broker::Broker& broker, std::string name, std::chrono::milliseconds interval)
      : broker_(broker), name_(std::move(name)), interval_(interval) {}

  /// Whether it is time for one. The first is due after one interval.
  [[nodiscard]] bool due() const { return Clock::now() - last_ >= interval_; }
  Status save(const abi::CompiledPack& pack, const std::function<void(StateWriter&)>& write);
  /// False: there is none, of this form. Errors: the broker's, or `read`'s.
  Result<bool> load(const abi::CompiledPack& pack, const std::function<Status(StateReader&)>& read);

 private:
  using Clock = std::chrono::steady_clock;
  broker::Broker& broker_;
  std::string name_;
  std::chrono::milliseconds interval_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace reflex::cluster
