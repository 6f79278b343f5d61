// What NatsBroker keeps in key-value buckets: values of any size, and who serves which unit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/broker/broker.h"
#include "runtime/broker/nats_broker.h"
#include "runtime/broker/nats_client.h"

namespace reflex::broker {

/// A value that fits goes into one message; a larger one into pieces of one of two slots, then a
/// head that says which slot: the slot of the value in force is never written to.
class NatsValues {
 public:
  static Result<NatsValues> open(const NatsClient& client, const NatsOptions& options);
  Status put(const std::string& name, std::string_view bytes);
  Result<std::optional<std::string>> get(const std::string& name);

 private:
  NatsValues(const NatsOptions& options, NatsBucket bucket)
      : options_(&options), bucket_(std::move(bucket)) {}
  Status put_one(const std::string& key, std::string_view bytes);
  Result<std::optional<std::string>> get_one(const std::string& key);
  Result<std::optional<std::string>> get_whole(const std::string& name, bool& torn);
  const NatsOptions* options_;
  NatsBucket bucket_;
};

/// Leases: a key a unit and one a process, which vanish when they are not renewed. Each process
/// takes up to its even part of the units, and gives back what is more than that when others come.
Result<std::unique_ptr<Shares>> nats_shares(const NatsClient& client, const NatsOptions& options,
                                            const std::string& subject, uint32_t count);

}  // namespace reflex::broker
