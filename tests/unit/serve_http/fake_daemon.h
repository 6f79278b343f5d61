// FakeDaemon: a DaemonPort whose engine is real (a small pack over three days of events) and whose
// journal is a list. Tests set what it answers and look at what it was given.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/serve/port.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

class FakeDaemon : public DaemonPort {
 public:
  /// With an engine (a second of work) unless `bare`. Its verdicts go into `store`.
  FakeDaemon(Store& store, bool bare);
  ~FakeDaemon() override;

  IngestAnswer accept(IngestBody&& body) override;
  bool ask(const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look,
           std::chrono::milliseconds timeout) override;
  Status status() override;
  ReloadAnswer reload() override;
  ReloadAnswer start_shadow(const std::vector<std::string>& paths) override;
  ReloadAnswer promote() override;
  reflex::Status drop_shadow() override;
  reflex::Status snapshot() override;
  reflex::Status feedback(const Feedback& feedback) override;
  reflex::Status suppress(const SuppressionOrder& order) override;
  uint64_t subscribe(std::function<void(const LiveVerdict&)> told) override;
  void unsubscribe(uint64_t subscription) override;
  std::vector<std::pair<double, uint64_t>> diagnosis_latency() override;

  /// Puts a verdict into the store and tells all subscribers.
  uint64_t publish(const abi::Verdict& verdict);
  /// Publishes another incident, as if a job hung just now.
  void hang_again(const std::string& incident);

  // What tests look at and set; under `mutex` while a server runs.
  std::mutex mutex;
  std::vector<IngestBody> bodies;
  std::vector<Feedback> feedbacks;
  std::vector<SuppressionOrder> orders;
  std::vector<std::string> shadow_paths;
  IngestAnswer next_ingest;  // outcome of the next bodies; positions are counted
  ReloadAnswer next_reload;
  Status state;
  std::string fails;    // what snapshot, feedback, suppress, drop_shadow answer
  bool answers = true;  // ask()

 private:
  void run_engine();
  Store& store_;
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<abi::Verdict> made_;
  std::map<uint64_t, std::function<void(const LiveVerdict&)>> told_;
  uint64_t next_subscription_ = 1;
  uint64_t position_ = 0;
};

}  // namespace reflex::serve
