// Addresses; see connect.h.
#include "runtime/broker/connect.h"

#include <fmt/format.h>

#include "runtime/broker/intake.h"
#include "runtime/broker/kafka_broker.h"
#include "runtime/broker/nats_broker.h"

namespace reflex::broker {

Result<Address> parse_address(std::string_view text) {
  const size_t colon = text.find("://");
  const auto scheme = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const bool nats = scheme == "nats" || scheme == "tls";
  if (!nats && scheme != "kafka") {
    return Error{fmt::format(
        "'{}' is no broker: nats://HOST:4222, or kafka://HOST:9092[,HOST:9092]/NAME", text)};
  }
  auto rest = text.substr(colon + 3);
  Address address;
  address.kind = nats ? Address::Kind::kNats : Address::Kind::kKafka;
  // Of several NATS servers each is an URL: only what follows the last host is the name.
  const size_t slash = rest.rfind('/');
  const bool has_name = slash != std::string_view::npos && (slash == 0 || rest[slash - 1] != '/');
  if (has_name) {
    address.name = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  if (rest.empty()) return Error{fmt::format("'{}' names no host", text)};
  address.servers = nats ? fmt::format("{}://{}", scheme, rest) : std::string(rest);
  return address;
}

Result<std::unique_ptr<Intake>> open_intake(const IntakeOptions& options,
                                            const std::string& cursor) {
  return options.address.kind == Address::Kind::kNats ? open_nats_intake(options, cursor)
                                                      : open_kafka_intake(options, cursor);
}

Result<std::unique_ptr<Broker>> connect(const ConnectOptions& options) {
  if (options.address.kind == Address::Kind::kNats) {
    NatsOptions nats;
    nats.url = options.address.servers;
    nats.credentials = options.credentials;
    nats.stream = options.name;
    nats.keep = options.keep;
    nats.lease = options.lease;
    nats.stopped = options.stopped;
    return connect_nats(nats);
  }
  KafkaOptions kafka;
  kafka.servers = options.address.servers;
  kafka.properties = options.properties;
  kafka.partitions = options.partitions;
  kafka.keep = options.keep;
  kafka.lease = options.lease;
  return connect_kafka(kafka);
}

}  // namespace reflex::broker
