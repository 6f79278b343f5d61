// KafkaBroker: Kafka as the broker (librdkafka).
//
// A subject that ends in .N is partition N of the topic before it, any other is partition 0 of a
// topic of its own: so a subject is one partition, whose order is that of its offsets, and a
// position is an offset + 1. Why not a topic for each subject: numbered subjects are the units that
// workers share out, which is what a consumer group does with partitions.
// The producer is idempotent (acks=all): what the client sends again is kept once and in order;
// what a restarted process says again is not (broker.h). The id of a message is its key. Topics are
// made when missing, with as many partitions as `partitions` says, where the broker lets clients
// make them; a topic with fewer is an Error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/broker/broker.h"

namespace reflex::broker {

struct KafkaOptions {
  std::string servers = "127.0.0.1:9092";
  std::vector<std::string> properties;  // KEY=VALUE of librdkafka, for all its clients
  uint32_t partitions = 1;
  std::chrono::hours keep{72};
  std::chrono::seconds patience{10};        // for the first answer, and for the making of topics
  std::chrono::milliseconds lease{10'000};  // a process that says nothing so long is dead
  std::chrono::minutes outage{10};          // how long a broker that is away is waited for
};

Result<std::unique_ptr<Broker>> connect_kafka(const KafkaOptions& options);
/// A consumer group over the partitions of a topic, which are the units; nothing is read.
Result<std::unique_ptr<Shares>> kafka_shares(const KafkaOptions& options, const std::string& topic,
                                             uint32_t count);

}  // namespace reflex::broker
