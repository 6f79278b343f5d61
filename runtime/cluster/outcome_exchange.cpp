// Waiting for the outcomes of others: see outcome_exchange.h.
#include "runtime/cluster/outcome_exchange.h"

#include <algorithm>

#include "runtime/cluster/partition.h"

namespace reflex::cluster {

void OutcomeExchange::accept(OutcomeNotice&& notice, uint64_t position) {
  const std::lock_guard lock(mutex_);
  position_ = std::max(position_, position);
  outcomes_.insert_or_assign(std::move(notice.incident_key), std::move(notice.outcome));
  arrived_.notify_all();
}

uint64_t OutcomeExchange::position() {
  const std::lock_guard lock(mutex_);
  return position_;
}

void OutcomeExchange::save(StateWriter& out, const MessageCodec& codec) {
  const std::lock_guard lock(mutex_);
  out.u64(position_);
  out.u64(outcomes_.size());
  for (const auto& [key, outcome] : outcomes_) out.text(codec.encode(OutcomeNotice{key, outcome}));
}

Status OutcomeExchange::load(StateReader& in, const MessageCodec& codec) {
  const std::lock_guard lock(mutex_);
  position_ = in.u64();
  for (size_t left = in.count(); left > 0; --left) {
    auto notice = codec.outcome(in.text());
    if (!notice.ok()) return notice.error();
    outcomes_[notice.value().incident_key] = std::move(notice.value().outcome);
  }
  return ok_status();
}

void OutcomeExchange::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  arrived_.notify_all();
}

bool OutcomeExchange::is_elsewhere(std::string_view job) const {
  return partition_of(job, workers_) != worker_;
}

engine::Adaptation::Outcome OutcomeExchange::outcome(const std::string& incident_key) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto it = outcomes_.find(incident_key);
    if (it != outcomes_.end()) {
      engine::Adaptation::Outcome outcome = std::move(it->second);
      outcomes_.erase(it);
      return outcome;
    }
    if (stopped_) return {};
    if (arrived_.wait_for(lock, patience_) == std::cv_status::timeout && missing_) {
      lock.unlock();
      missing_(incident_key);
      lock.lock();
    }
  }
}

void OutcomeExchange::tell(const std::string& incident_key,
                           const engine::Adaptation::Outcome& outcome) {
  publish_({incident_key, outcome});
}

}  // namespace reflex::cluster
