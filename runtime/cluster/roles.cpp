// The processes of signals and of attribution: see roles.h.
#include "runtime/cluster/roles.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/cluster/attribution_worker.h"
#include "runtime/cluster/outcome_exchange.h"
#include "runtime/cluster/signal_worker.h"
#include "runtime/cluster/subjects.h"
#include "runtime/engine/inventory_names.h"

namespace reflex::cluster {
namespace {

// Why: how soon a worker sees that it is to stop.
constexpr std::chrono::milliseconds kPatience{200};

/// What several readers bring, for one thread. Bounded: a reader waits while it is full.
class Inbox {
 public:
  static constexpr size_t kMessagesMax = 256;

  void put(std::string bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || messages_.size() < kMessagesMax; });
    messages_.push_back(std::move(bytes));
    changed_.notify_all();
  }
  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stopped_ = true;
    changed_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  /// False when nothing came in time.
  bool take(std::string& out) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return stopped_ || !messages_.empty(); })) {
      return false;
    }
    if (messages_.empty()) return false;
    out = std::move(messages_.front());
    messages_.pop_front();
    changed_.notify_all();
    return true;
  }
  [[nodiscard]] std::optional<Error> error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> messages_;
  std::optional<Error> error_;
  bool stopped_ = false;
};

/// Reads one subject into `take` until told to stop.
template <typename Take>
void read_on(broker::Broker& broker, const std::string& subject, Inbox& inbox, Take&& take) {
  auto reader = broker.read(subject, 0);
  if (!reader.ok()) return inbox.fail(reader.error());
  broker::Message message;
  while (!inbox.stopped()) {
    auto got = reader.value()->next(message, kPatience);
    if (!got.ok()) return inbox.fail(got.error());
    if (got.value()) take(std::move(message.bytes));
  }
}

class SignalProcess {
 public:
  SignalProcess(const RoleContext& context, uint32_t partition)
      : context_(context),
        partition_(partition),
        subjects_(context.stream, *context.pack, context.partitions),
        codec_(context.pack),
        worker_(context.pack, partition, context.partitions) {}

  Status run() {
    if (auto status = context_.inventory(worker_.topology()); !status.ok()) return status;
    auto events = context_.broker->read(subjects_.events(partition_), 0);
    if (!events.ok()) return events.error();
    auto limits = context_.broker->read(subjects_.limits(), 0);
    if (!limits.ok()) return limits.error();
    while (!worker_.ended() && !context_.stop->load()) {
      const bool waits = worker_.waits_for_ns() != kNoTimeNs;
      if (auto status = step(waits ? *limits.value() : *events.value(), waits); !status.ok()) {
        return status;
      }
      worker_.advance([this](SignalBatch&& batch) { send(batch); });
      if (failed_) return *failed_;
    }
    return ok_status();
  }

 private:
  Status step(broker::Reader& reader, bool waits) {
    broker::Message message;
    auto got = reader.next(message, kPatience);
    if (!got.ok()) return got.error();
    if (!got.value()) return ok_status();
    if (waits) {
      auto table = codec_.limit_table(message.bytes);
      if (!table.ok()) return table.error();
      worker_.set_limits(table.value());
      return ok_status();
    }
    auto batch = codec_.event_batch(message.bytes);
    if (!batch.ok()) return batch.error();
    worker_.push(std::move(batch).value());
    return ok_status();
  }

  void send(const SignalBatch& batch) {
    const std::string subject = subjects_.signals(partition_);
    auto status = context_.broker->publish(subject, fmt::format("{}/{}", subject, batch.number),
                                           codec_.encode(batch));
    if (!status.ok() && !failed_) failed_ = status.error();
  }

  const RoleContext& context_;
  uint32_t partition_;
  Subjects subjects_;
  MessageCodec codec_;
  SignalWorker worker_;
  std::optional<Error> failed_;
};

class AttributionProcess {
 public:
  AttributionProcess(const RoleContext& context, uint32_t worker, uint32_t workers)
      : context_(context), worker_(worker), subjects_(context.stream, *context.pack, context.partitions), codec_(context.pack) {
    exchange_ = std::make_shared<OutcomeExchange>(
        worker, workers, [this](const OutcomeNotice& notice) { publish_outcome(notice); },
        [this](const std::string& key) {
          if (context_.stop->load()) exchange_->stop();
          if (context_.note) context_.note("waiting for another worker's verdict on " + key);
        },
        std::chrono::seconds(5));
  }

  Status run(engine::EngineOptions options, engine::EngineSinks sinks) {
    options.elsewhere = exchange_;
    auto created = AttributionWorker::create(
        context_.pack, context_.partitions, std::move(options), std::move(sinks),
        [this](const LimitTable& table) { publish_limits(table); });
    if (!created.ok()) return created.error();
    AttributionWorker& attribution = *created.value();
    if (auto status = context_.inventory(attribution.engine().topology()); !status.ok()) {
      return status;
    }
    engine::InventoryNames names(context_.pack, attribution.engine().topology());
    attribution.engine().coverage().rename_exceptions(names);
    start_readers();
    Status status = work(attribution);
    inbox_.stop();
    exchange_->stop();
    readers_.clear();  // joins
    if (auto error = inbox_.error(); error && status.ok()) return *error;
    return status;
  }

 private:
  void start_readers() {
    for (uint32_t p = 0; p < context_.partitions; ++p) {
      readers_.emplace_back([this, p] {
        read_on(*context_.broker, subjects_.signals(p), inbox_,
                [this](std::string bytes) { inbox_.put(std::move(bytes)); });
      });
    }
    readers_.emplace_back([this] {
      read_on(*context_.broker, subjects_.outcomes(), inbox_, [this](const std::string& bytes) {
        auto notice = codec_.outcome(bytes);
        if (!notice.ok()) return inbox_.fail(notice.error());
        exchange_->accept(std::move(notice).value());
      });
    });
  }

  Status work(AttributionWorker& attribution) {
    std::string bytes;
    while (!attribution.ended() && !context_.stop->load() && !inbox_.stopped()) {
      if (!inbox_.take(bytes)) continue;
      auto batch = codec_.signal_batch(bytes);
      if (!batch.ok()) return batch.error();
      attribution.push(std::move(batch).value());
      attribution.advance();
      if (failed_) return *failed_;
    }
    return ok_status();
  }

  void publish_outcome(const OutcomeNotice& notice) {
    keep(context_.broker->publish(subjects_.outcomes(), "outcome/" + notice.incident_key,
                                  codec_.encode(notice)));
  }
  void publish_limits(const LimitTable& table) {
    if (worker_ != 0) return;
    keep(context_.broker->publish(subjects_.limits(),
                                  fmt::format("{}/{}", subjects_.limits(), table.hour_ns),
                                  codec_.encode(table)));
  }
  void keep(const Status& status) {
    if (!status.ok() && !failed_) failed_ = status.error();
  }

  const RoleContext& context_;
  uint32_t worker_;
  Subjects subjects_;
  MessageCodec codec_;
  Inbox inbox_;
  std::shared_ptr<OutcomeExchange> exchange_;
  std::optional<Error> failed_;
  std::vector<std::jthread> readers_;
};

}  // namespace

Status signals(const RoleContext& context, uint32_t partition) {
  return SignalProcess(context, partition).run();
}

Status attribute(const RoleContext& context, uint32_t worker, uint32_t workers,
                 engine::EngineOptions options, engine::EngineSinks sinks) {
  return AttributionProcess(context, worker, workers).run(std::move(options), std::move(sinks));
}

}  // namespace reflex::cluster
