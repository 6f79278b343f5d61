// One partition of signals, from broker to broker: see roles.h.
#include <fmt/format.h>

#include <optional>

#include "runtime/cluster/roles.h"
#include "runtime/cluster/signal_worker.h"
#include "runtime/cluster/subjects.h"
#include "runtime/cluster/units.h"
#include "runtime/cluster/worker_state.h"

namespace reflex::cluster {
namespace {

// Why: how soon a worker sees that it is to stop.
constexpr std::chrono::milliseconds kPatience{200};

class SignalProcess {
 public:
  SignalProcess(const RoleContext& context, uint32_t partition)
      : context_(context),
        partition_(partition),
        subjects_(context.stream, *context.pack, context.partitions),
        codec_(context.pack),
        worker_(context.pack, partition, context.partitions),
        state_(*context.broker, subjects_.state("signals", partition), context.state_every) {}

  Result<bool> run() {
    auto found = state_.load(*context_.pack, [this](StateReader& in) { return load(in); });
    if (!found.ok()) return found.error();
    if (!found.value()) {
      if (auto status = context_.inventory(worker_.topology()); !status.ok()) return status.error();
    } else if (context_.note) {
      context_.note(fmt::format("partition {}: going on with its state behind message {}",
                                partition_, events_at_));
    }
    auto events = context_.broker->read(subjects_.events(partition_), events_at_);
    if (!events.ok()) return events.error();
    auto limits = context_.broker->read(subjects_.limits(), limits_at_);
    if (!limits.ok()) return limits.error();
    while (!worker_.ended() && !context_.stop->load()) {
      const bool waits = worker_.waits_for_ns() != kNoTimeNs;
      if (auto status = step(waits ? *limits.value() : *events.value(), waits); !status.ok()) {
        return status.error();
      }
      worker_.advance([this](SignalBatch&& batch) { send(batch); });
      if (failed_) return *failed_;
      if (state_.due() || worker_.ended()) {
        if (auto status = save(); !status.ok()) return status.error();
      }
    }
    // Who takes over from a process that is told to stop need not read much again.
    if (!worker_.ended() && events_at_ > 0) {
      if (auto status = save(); !status.ok()) return status.error();
    }
    return worker_.ended();
  }

 private:
  Status step(broker::Reader& reader, bool waits) {
    broker::Message message;
    auto got = reader.next(message, kPatience);
    if (!got.ok()) return got.error();
    if (!got.value()) return ok_status();
    (waits ? limits_at_ : events_at_) = message.position;
    if (waits) {
      auto table = codec_.limit_table(message.bytes);
      if (!table.ok()) return table.error();
      worker_.set_limits(table.value());
      return ok_status();
    }
    auto batch = codec_.event_batch(message.bytes);
    if (!batch.ok()) return batch.error();
    const uint64_t number = batch.value().number;
    if (worker_.push(std::move(batch).value())) return ok_status();
    return missing_message(subjects_.events(partition_), number);
  }

  void send(const SignalBatch& batch) {
    const std::string subject = subjects_.signals(partition_);
    auto status = context_.broker->publish(subject, fmt::format("{}/{}", subject, batch.number),
                                           codec_.encode(batch));
    if (!status.ok() && !failed_) failed_ = status.error();
  }

  Status save() {
    if (!worker_.is_settled()) return ok_status();  // in the middle of an hour's exchange: later
    return state_.save(*context_.pack, [this](StateWriter& out) {
      out.u64(events_at_);
      out.u64(limits_at_);
      worker_.save(out);
    });
  }
  Status load(StateReader& in) {
    events_at_ = in.u64();
    limits_at_ = in.u64();
    return worker_.load(in);
  }

  const RoleContext& context_;
  uint32_t partition_;
  Subjects subjects_;
  MessageCodec codec_;
  SignalWorker worker_;
  WorkerState state_;
  uint64_t events_at_ = 0;  // position of the last message that was taken
  uint64_t limits_at_ = 0;
  std::optional<Error> failed_;
};

}  // namespace

Result<bool> signals(const RoleContext& context, uint32_t partition) {
  return SignalProcess(context, partition).run();
}

Status signals_units(const RoleContext& context) {
  const Subjects subjects(context.stream, *context.pack, context.partitions);
  Units units(context, subjects.all_events(), context.partitions, "signals",
              [](const RoleContext& own, uint32_t unit) { return signals(own, unit); });
  return units.run();
}

}  // namespace reflex::cluster
