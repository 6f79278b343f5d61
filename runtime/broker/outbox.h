// Outbox: messages to a subject or topic that others read.
//
// send() returns when the broker has all of them on disk. A message that is sent again with its id
// is kept once by JetStream within the stream's window of duplicates; by Kafka when the client
// itself sends it again, not when a restarted process does: its readers know it by the id.
// A broker that is away is an Error after `timeout`: the caller tries again. Threads: one.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/broker/connect.h"

namespace reflex::broker {

struct OutMessage {
  std::string id;
  std::string key;  // Kafka: those of one key stay in order
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view bytes;
};

struct OutboxOptions {
  Address address;
  std::string credentials;              // NATS
  std::vector<std::string> properties;  // Kafka
  std::string subject;                  // NATS: of a stream that is there; Kafka: the topic
  std::chrono::milliseconds timeout{10'000};
};

class Outbox {
 public:
  virtual ~Outbox() = default;
  /// All of it, or an Error: then any part of it may be there.
  virtual Status send(const std::vector<OutMessage>& messages) = 0;
};

Result<std::unique_ptr<Outbox>> open_outbox(const OutboxOptions& options);

}  // namespace reflex::broker
