// Sink: verdicts and alerts of the store, delivered in order, each as often as the sink promises.
//
// One thread a sink. It reads the store from its cursor on, delivers, moves the cursor; a delivery
// that fails is tried again with growing waits, for ever: nothing is dropped but what retention
// takes. A sink that is down costs nothing but its own backlog in the store.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/broker/outbox.h"
#include "runtime/serve/config.h"
#include "runtime/serve/port.h"
#include "runtime/serve/publisher.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

/// What a sink takes at once.
struct SinkBatch {
  std::vector<StoredVerdict> verdicts;
  std::vector<StoredAlert> alerts;
};

/// The part that differs. Called from one thread.
class Delivery {
 public:
  virtual ~Delivery() = default;
  /// Brings its side to what the cursor says, before the first delivery; null: the store knows of
  /// none (a new sink, or a new store).
  virtual reflex::Status begin(const SinkCursor* cursor) {
    (void)cursor;
    return ok_status();
  }
  /// Delivers all of it, or nothing that counts. `cursor` already stands behind the batch; a sink
  /// may note what it needs in it.
  virtual reflex::Status deliver(const SinkBatch& batch, SinkCursor& cursor) = 0;
};

struct SinkOptions {
  std::string name;
  bool verdicts = true;
  bool finals_only = false;
  bool alerts = false;
  int64_t retry_max_ns = 300'000'000'000;
};

class Sink {
 public:
  Sink(Store& store, Publisher& publisher, SinkOptions options, std::unique_ptr<Delivery> delivery);
  ~Sink();  // stop()
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  void start();
  /// After the delivery at hand.
  void stop();
  [[nodiscard]] SinkStatus status() const;

 private:
  void work();
  reflex::Status deliver_next(bool& any);
  void wait(std::chrono::milliseconds time);

  Store& store_;
  Publisher& publisher_;
  SinkOptions options_;
  std::unique_ptr<Delivery> delivery_;
  SinkCursor cursor_;     // written under the lock
  uint64_t version_ = 0;  // of the store, as the publisher counts
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  SinkStatus status_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Of a [[sinks]] table. Errors: an unknown type, a missing path or url.
Result<std::unique_ptr<Sink>> make_sink(const ConfigTable& table, Store& store,
                                        Publisher& publisher);

std::unique_ptr<Delivery> file_delivery(const std::string& path);
struct WebOptions {
  std::string url;
  std::string token;
  std::chrono::milliseconds timeout{10'000};
};
std::unique_ptr<Delivery> webhook_delivery(const WebOptions& options);
std::unique_ptr<Delivery> alertmanager_delivery(const WebOptions& options);
std::unique_ptr<Delivery> broker_delivery(const broker::OutboxOptions& options);

}  // namespace reflex::serve
