// What all users of librdkafka here share: owners of its objects, and how a client is made.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace reflex::broker {

template <typename T, void (*kDestroy)(T*)>
struct KafkaDestroy {
  void operator()(T* object) const { kDestroy(object); }
};
using KafkaHandle = std::unique_ptr<rd_kafka_t, KafkaDestroy<rd_kafka_t, rd_kafka_destroy>>;
using KafkaMessage =
    std::unique_ptr<rd_kafka_message_t, KafkaDestroy<rd_kafka_message_t, rd_kafka_message_destroy>>;
using KafkaPlaces = std::unique_ptr<
    rd_kafka_topic_partition_list_t,
    KafkaDestroy<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>>;

Error kafka_error(std::string_view what, rd_kafka_resp_err_t code);

/// KEY=VALUE; the later one counts.
using KafkaSettings = std::vector<std::pair<std::string, std::string>>;
/// Errors: not of the form KEY=VALUE.
Result<KafkaSettings> kafka_settings(const std::vector<std::string>& properties);

/// `more` may set callbacks. Errors: a setting that librdkafka does not know.
Result<KafkaHandle> make_kafka(rd_kafka_type_t type, const KafkaSettings& settings,
                               const std::function<void(rd_kafka_conf_t*)>& more);

/// A producer that knows the fate of each message. Threads: any.
class KafkaProducer {
 public:
  struct Item {
    std::string topic;
    int32_t partition = RD_KAFKA_PARTITION_UA;  // by the key
    std::string key;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string_view bytes;
  };
  /// `outage`: how long a message waits for a broker that is away.
  static Result<std::unique_ptr<KafkaProducer>> create(const std::string& servers,
                                                       const KafkaSettings& settings,
                                                       std::chrono::milliseconds outage);
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;
  /// Returns when all replicas in sync have all of it, in this order for each partition.
  Status send(const std::vector<Item>& items);
  [[nodiscard]] rd_kafka_t* handle() const { return handle_.get(); }

 private:
  explicit KafkaProducer(KafkaHandle handle);
  struct Ticket;
  static void delivered(rd_kafka_t*, const rd_kafka_message_t* message, void*);
  Status enqueue(const Item& item, Ticket& ticket);
  KafkaHandle handle_;
  std::jthread serving_;  // delivery reports
};

}  // namespace reflex::broker
