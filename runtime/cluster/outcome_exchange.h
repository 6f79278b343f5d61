// OutcomeExchange: final outcomes between attribution workers, which are spread by job.
//
// Threads: accept() from the broker's thread, the rest from the engine's. outcome() waits for the
// worker that owns the job; after `patience` without an answer it asks `missing` again and again,
// so that an operator sees who is waited for. stop() ends all waiting with an empty outcome.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "runtime/cluster/messages.h"
#include "runtime/engine/elsewhere.h"

namespace reflex::cluster {

class OutcomeExchange : public engine::Elsewhere {
 public:
  using Publish = std::function<void(const OutcomeNotice&)>;
  using Missing = std::function<void(const std::string& incident_key)>;
  OutcomeExchange(uint32_t worker, uint32_t workers, Publish publish, Missing missing = {},
                  std::chrono::milliseconds patience = std::chrono::seconds(10))
      : worker_(worker),
        workers_(workers),
        publish_(std::move(publish)),
        missing_(std::move(missing)),
        patience_(patience) {}

  /// `position`: of the message, for those who read on behind a saved state.
  void accept(OutcomeNotice&& notice, uint64_t position = 0);
  void stop();
  [[nodiscard]] uint64_t position();
  /// What has arrived and was not asked for, and up to where.
  void save(StateWriter& out, const MessageCodec& codec);
  Status load(StateReader& in, const MessageCodec& codec);

  [[nodiscard]] bool is_elsewhere(std::string_view job) const override;
  engine::Adaptation::Outcome outcome(const std::string& incident_key) override;
  void tell(const std::string& incident_key, const engine::Adaptation::Outcome& outcome) override;

 private:
  uint32_t worker_;
  uint32_t workers_;
  Publish publish_;
  Missing missing_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::string, engine::Adaptation::Outcome> outcomes_;  // not asked for yet
  uint64_t position_ = 0;
  bool stopped_ = false;
};

}  // namespace reflex::cluster
