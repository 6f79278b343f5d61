// One share of the jobs, from broker to broker: see roles.h.
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/cluster/attribution_worker.h"
#include "runtime/cluster/outcome_exchange.h"
#include "runtime/cluster/roles.h"
#include "runtime/cluster/subjects.h"
#include "runtime/cluster/units.h"
#include "runtime/cluster/verdict_stream.h"
#include "runtime/cluster/worker_state.h"
#include "runtime/engine/inventory_names.h"

namespace reflex::cluster {
namespace {

// Why: how soon a worker sees that it is to stop.
constexpr std::chrono::milliseconds kPatience{200};

/// What several readers bring, for one thread. Bounded: a reader waits while it is full.
class Inbox {
 public:
  static constexpr size_t kMessagesMax = 256;
  struct Item {
    uint32_t partition = 0;
    broker::Message message;
  };

  void put(Item item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || messages_.size() < kMessagesMax; });
    messages_.push_back(std::move(item));
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
  bool take(Item& out) {
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
  std::deque<Item> messages_;
  std::optional<Error> error_;
  bool stopped_ = false;
};

/// Reads one subject from a position on into `take` until told to stop.
template <typename Take>
void read_on(broker::Broker& broker, const std::string& subject, uint64_t position, Inbox& inbox,
             Take&& take) {
  auto reader = broker.read(subject, position);
  if (!reader.ok()) return inbox.fail(reader.error());
  broker::Message message;
  while (!inbox.stopped()) {
    auto got = reader.value()->next(message, kPatience);
    if (!got.ok()) return inbox.fail(got.error());
    if (got.value()) take(std::move(message));
  }
}

class AttributionProcess {
 public:
  AttributionProcess(const RoleContext& context, uint32_t worker, const AttributionOptions& options,
                     const TakeLine& take)
      : context_(context),
        worker_(worker),
        options_(options),
        take_(take),
        subjects_(context.stream, *context.pack, context.partitions),
        codec_(context.pack),
        state_(*context.broker, subjects_.state("attribution", worker), context.state_every),
        positions_(context.partitions) {
    exchange_ = std::make_shared<OutcomeExchange>(
        worker, options.workers, [this](const OutcomeNotice& notice) { publish_outcome(notice); },
        [this](const std::string& key) { wait_for(key); }, std::chrono::seconds(1));
  }

  Result<bool> run() {
    if (auto status = create(); !status.ok()) return status.error();
    if (auto status = recall(); !status.ok()) return status.error();
    start_readers();
    Status status = work();
    inbox_.stop();
    exchange_->stop();
    readers_.clear();  // joins
    if (auto error = inbox_.error(); error && status.ok()) return *error;
    if (!status.ok()) return status.error();
    return attribution_->ended();
  }

 private:
  Status create() {
    engine::EngineOptions engine = options_.engine;
    engine.elsewhere = exchange_;
    engine::EngineSinks sinks;
    sinks.verdict = [this](abi::Verdict&& verdict) { say(options_.line(verdict)); };
    auto created = AttributionWorker::create(
        context_.pack, context_.partitions, std::move(engine), std::move(sinks),
        [this](const LimitTable& table) { publish_limits(table); });
    if (!created.ok()) return created.error();
    attribution_ = std::move(created).value();
    topology::Topology& topology = attribution_->engine().topology();
    if (auto status = context_.inventory(topology); !status.ok()) return status;
    names_ = std::make_unique<engine::InventoryNames>(context_.pack, topology);
    auto found = state_.load(*context_.pack, [this](StateReader& in) { return load(in); });
    if (!found.ok()) return found.error();
    if (found.value() && context_.note) {
      context_.note(
          fmt::format("share {}: going on with its state behind verdict {}", worker_, said_));
    }
    attribution_->engine().coverage().rename_exceptions(*names_);
    verdicts_ =
        std::make_unique<VerdictWriter>(*context_.broker, subjects_.verdicts(worker_), said_);
    return ok_status();
  }

  /// What was said before the state goes to `take_` first.
  Status recall() {
    if (!take_ || said_ == 0) return ok_status();
    auto reader = VerdictReader::open(*context_.broker, subjects_.verdicts(worker_));
    if (!reader.ok()) return reader.error();
    std::string line;
    constexpr int kQuietMax = 25;  // Why: 5 s; the last ones may be older than what is kept
    for (int quiet = 0; reader.value()->number() < said_ && quiet < kQuietMax; ++quiet) {
      if (context_.stop->load()) break;
      const uint64_t before = reader.value()->number();
      auto got = reader.value()->next(line, kPatience);
      if (!got.ok()) return got.error();
      if (got.value() != VerdictReader::Got::kLine) continue;
      if (before == 0 && reader.value()->number() > 1 && context_.note) {
        context_.note(fmt::format("the first {} verdicts are not kept at the broker any more",
                                  reader.value()->number() - 1));
      }
      quiet = 0;
      if (auto status = take_(line); !status.ok()) return status;
    }
    return ok_status();
  }

  void start_readers() {
    for (uint32_t p = 0; p < context_.partitions; ++p) {
      readers_.emplace_back([this, p, position = positions_[p]] {
        read_on(*context_.broker, subjects_.signals(p), position, inbox_,
                [this, p](broker::Message message) { inbox_.put({p, std::move(message)}); });
      });
    }
    readers_.emplace_back([this] {
      read_on(*context_.broker, subjects_.outcomes(), exchange_->position(), inbox_,
              [this](const broker::Message& message) {
                auto notice = codec_.outcome(message.bytes);
                if (!notice.ok()) return inbox_.fail(notice.error());
                exchange_->accept(std::move(notice).value(), message.position);
              });
    });
  }

  Status work() {
    Inbox::Item item;
    bool fresh = false;  // something was taken since the state
    while (!attribution_->ended() && !context_.stop->load() && !inbox_.stopped()) {
      if (inbox_.take(item)) {
        fresh = true;
        if (auto status = step(item); !status.ok()) return status;
      }
      if (torn_) return ok_status();
      if (attribution_->ended()) say("");
      if (failed_) return *failed_;
      if (!fresh || (!state_.due() && !attribution_->ended())) continue;
      if (auto status = save(); !status.ok()) return status;
      fresh = false;
    }
    // Who takes over from a process that is told to stop need not read much again.
    return fresh && !inbox_.stopped() ? save() : ok_status();
  }

  Status step(const Inbox::Item& item) {
    auto batch = codec_.signal_batch(item.message.bytes);
    if (!batch.ok()) return batch.error();
    const uint64_t number = batch.value().number;
    if (!attribution_->push(std::move(batch).value())) {
      return missing_message(subjects_.signals(item.partition), number);
    }
    positions_[item.partition] = item.message.position;
    attribution_->advance();
    return ok_status();
  }

  /// When it is to stop while it waits for another's outcome, that is missing from then on: what is
  /// evaluated with it must not be said.
  void wait_for(const std::string& key) {
    if (context_.stop->load()) {
      torn_ = true;
      return exchange_->stop();
    }
    if (key != waited_for_ && context_.note) {
      context_.note("waiting for another worker's verdict on " + key);
    }
    waited_for_ = key;
  }

  void say(const std::string& line) {
    if (torn_ || failed_) return;
    keep(verdicts_->say(line));
    if (take_ && !line.empty() && !failed_) keep(take_(line));
  }
  void publish_outcome(const OutcomeNotice& notice) {
    if (torn_ || failed_) return;
    keep(context_.broker->publish(subjects_.outcomes(), "outcome/" + notice.incident_key,
                                  codec_.encode(notice)));
  }
  void publish_limits(const LimitTable& table) {
    if (worker_ != 0 || torn_ || failed_) return;
    keep(context_.broker->publish(subjects_.limits(),
                                  fmt::format("{}/{}", subjects_.limits(), table.hour_ns),
                                  codec_.encode(table)));
  }
  void keep(const Status& status) {
    if (!status.ok() && !failed_) failed_ = status.error();
  }

  Status save() {
    return state_.save(*context_.pack, [this](StateWriter& out) {
      out.u64(verdicts_->number());
      out.u64(positions_.size());
      for (const uint64_t position : positions_) out.u64(position);
      exchange_->save(out, codec_);
      names_->save(out);
      attribution_->save(out);
    });
  }
  Status load(StateReader& in) {
    said_ = in.u64();
    if (in.count() != positions_.size()) return Error{"the state is of other partitions"};
    for (uint64_t& position : positions_) position = in.u64();
    if (auto status = exchange_->load(in, codec_); !status.ok()) return status;
    if (!names_->load(in)) return Error{"the state of an attribution worker is damaged"};
    return attribution_->load(in);
  }

  const RoleContext& context_;
  uint32_t worker_;
  const AttributionOptions& options_;
  const TakeLine& take_;
  Subjects subjects_;
  MessageCodec codec_;
  WorkerState state_;
  std::vector<uint64_t> positions_;  // of the last message of each partition
  uint64_t said_ = 0;                // verdicts before the state
  Inbox inbox_;
  std::shared_ptr<OutcomeExchange> exchange_;
  std::unique_ptr<AttributionWorker> attribution_;
  std::unique_ptr<engine::InventoryNames> names_;  // the inventory as it was at the beginning
  std::unique_ptr<VerdictWriter> verdicts_;
  bool torn_ = false;
  std::string waited_for_;
  std::optional<Error> failed_;
  std::vector<std::jthread> readers_;
};

}  // namespace

Result<bool> attribute(const RoleContext& context, uint32_t worker,
                       const AttributionOptions& options, const TakeLine& take) {
  return AttributionProcess(context, worker, options, take).run();
}

Status attribute_units(const RoleContext& context, const AttributionOptions& options) {
  const Subjects subjects(context.stream, *context.pack, context.partitions);
  Units units(context, subjects.all_verdicts(), options.workers, "attribution",
              [&options](const RoleContext& own, uint32_t unit) {
                return attribute(own, unit, options, {});
              });
  return units.run();
}

Status collect(const RoleContext& context, uint32_t workers, const TakeLine& take) {
  const Subjects subjects(context.stream, *context.pack, context.partitions);
  std::vector<std::unique_ptr<VerdictReader>> readers;
  for (uint32_t w = 0; w < workers; ++w) {
    auto reader = VerdictReader::open(*context.broker, subjects.verdicts(w));
    if (!reader.ok()) return reader.error();
    readers.push_back(std::move(reader).value());
  }
  std::string line;
  while (!readers.empty() && !context.stop->load()) {
    for (size_t i = 0; i < readers.size();) {
      auto got = readers[i]->next(line, kPatience / static_cast<int>(readers.size()));
      if (!got.ok()) return got.error();
      if (got.value() == VerdictReader::Got::kEnd) {
        readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      if (got.value() == VerdictReader::Got::kLine) {
        if (auto status = take(line); !status.ok()) return status;
      }
      ++i;
    }
  }
  return ok_status();
}

}  // namespace reflex::cluster
