// Which broker: nats://HOST:PORT[/NAME] or kafka://HOST:PORT[,HOST:PORT..][/NAME].
//
// NAME is the JetStream stream, or what the topics' names begin with. A kafka:// address may not
// hold a user: SASL and TLS are options of librdkafka (`properties`).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/broker/broker.h"

namespace reflex::broker {

struct Address {
  enum class Kind : uint8_t { kNats, kKafka };
  Kind kind = Kind::kNats;
  std::string servers;  // of NATS an URL, of Kafka HOST:PORT,..
  std::string name;     // "" when there is none
};

/// Errors: another scheme, no host.
Result<Address> parse_address(std::string_view text);

struct ConnectOptions {
  Address address;
  std::string name = "REFLEX";          // stream; what topics begin with
  std::string credentials;              // NATS: file of a user's JWT and key
  std::vector<std::string> properties;  // Kafka: KEY=VALUE of librdkafka
  uint32_t partitions = 1;              // Kafka: of the topics that are made
  std::chrono::hours keep{72};
  std::chrono::milliseconds lease{10'000};  // a process that says nothing so long is dead
  std::function<bool()> stopped;            // ends waiting for a broker that is away; may be empty
};

Result<std::unique_ptr<Broker>> connect(const ConnectOptions& options);

}  // namespace reflex::broker
