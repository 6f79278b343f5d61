// One transaction a batch, then telling; see publisher.h.
#include "runtime/serve/publisher.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "runtime/explain/explain.h"
#include "runtime/serve/wall_clock.h"

namespace reflex::serve {
namespace {

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Outgoing outgoing_of(const policy::Alert& alert) {
  Outgoing out;
  out.line.key = fmt::format("{}|{}|{}|{}|{}", alert.id, alert.state, alert.reason, alert.revision,
                             alert.ts_ns);
  out.line.type = "alert";
  out.line.incident = alert.incident;
  out.line.ts_ns = alert.ts_ns;
  out.line.json = without_newline(policy::to_json(alert));
  return out;
}

Outgoing outgoing_of(const policy::ActionRequest& action) {
  Outgoing out;
  out.line.json = without_newline(policy::to_json(action));
  out.line.key = "action|" + out.line.json;
  out.line.type = "action";
  out.line.ts_ns = action.ts_ns;
  return out;
}

Publisher::Publisher(Store& store) : store_(store) {}
Publisher::~Publisher() { stop(false); }

void Publisher::start() {
  thread_ = std::thread([this] { work(); });
}

void Publisher::stop(bool drain) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    drain_ = drain;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Publisher::push(Outgoing&& line) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < kQueueMax || stopping_; });
  queue_.push_back(std::move(line));
  ++pushed_;
  lock.unlock();
  changed_.notify_all();
}

uint64_t Publisher::pushed() const {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

bool Publisher::wait_stored(uint64_t count, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return stored_ >= count; });
}

void Publisher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || stopping_; });
    if (stopping_ && (queue_.empty() || !drain_)) return;
    std::vector<Outgoing> batch;
    while (!queue_.empty() && batch.size() < kBatchMax) {
      batch.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    lock.unlock();
    changed_.notify_all();
    while (!store_batch(batch)) {
      lock.lock();
      // What is not stored comes again with the replay of the journal.
      if (changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stopping_; })) return;
      lock.unlock();
    }
    lock.lock();
    stored_ += batch.size();
    ++version_;
    changed_.notify_all();
  }
}

bool Publisher::store_batch(std::vector<Outgoing>& batch) {
  WriteBatch write;
  std::vector<std::shared_ptr<const std::string>> json;
  for (const Outgoing& line : batch) {
    if (line.verdict) {
      json.push_back(std::make_shared<const std::string>(
          without_newline(explain::to_json(*line.verdict, /*timings=*/false))));
      write.verdicts.push_back({line.verdict.get(), *json.back()});
    } else {
      write.alerts.push_back(line.line);
    }
  }
  auto written = store_.write(write);
  {
    const std::lock_guard lock(mutex_);
    error_ = written.ok() ? "" : written.error().message;
  }
  if (!written.ok()) return false;
  count_latency(batch, written.value());
  tell(batch, written.value(), json);
  return true;
}

void Publisher::count_latency(const std::vector<Outgoing>& batch, const Written& written) {
  const int64_t now = wall_clock_ns();
  const std::lock_guard lock(mutex_);
  size_t verdict = 0;
  for (const Outgoing& line : batch) {
    if (!line.verdict) continue;
    const bool is_new = written.verdicts[verdict++] != 0;
    repeated_ += !is_new;
    if (!is_new || line.accepted_wall_ns == 0) continue;
    const double seconds = static_cast<double>(now - line.accepted_wall_ns) / 1e9;
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++latency_[bucket];
  }
}

void Publisher::tell(const std::vector<Outgoing>& batch, const Written& written,
                     const std::vector<std::shared_ptr<const std::string>>& json) {
  const std::lock_guard lock(subscribers_mutex_);
  if (subscribers_.empty()) return;
  size_t verdict = 0;
  for (const Outgoing& line : batch) {
    if (!line.verdict) continue;
    const size_t at = verdict++;
    if (written.verdicts[at] == 0) continue;
    const LiveVerdict live{written.verdicts[at], line.verdict, json[at]};
    for (const auto& [id, told] : subscribers_) told(live);
  }
}

uint64_t Publisher::subscribe(std::function<void(const LiveVerdict&)> told) {
  const std::lock_guard lock(subscribers_mutex_);
  subscribers_[next_subscription_] = std::move(told);
  return next_subscription_++;
}

void Publisher::unsubscribe(uint64_t subscription) {
  const std::lock_guard lock(subscribers_mutex_);
  subscribers_.erase(subscription);
}

uint64_t Publisher::wait_news(uint64_t version, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return version_ != version || stopping_; });
  return version_;
}

std::vector<std::pair<double, uint64_t>> Publisher::latency() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<double, uint64_t>> out;
  uint64_t sum = 0;
  for (size_t i = 0; i < latency_.size(); ++i) {
    sum += latency_[i];
    out.emplace_back(i < kBounds.size() ? kBounds[i] : std::numeric_limits<double>::infinity(),
                     sum);
  }
  return out;
}

std::string Publisher::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}
size_t Publisher::depth() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}
uint64_t Publisher::repeated() const {
  const std::lock_guard lock(mutex_);
  return repeated_;
}

}  // namespace reflex::serve
