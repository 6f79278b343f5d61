// NatsBroker: NATS JetStream as the broker. The stream NAME holds the subjects NAME.> .
//
// The stream is made when it is missing: file storage, limits retention, messages kept `keep`.
// Reading uses ordered consumers, which the client library makes again after a reconnect.
// Limits: the server's max_payload (1 MiB unless configured) bounds a message; a larger one is an
// Error that says so.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/broker/broker.h"

namespace reflex::broker {

struct NatsOptions {
  std::string url = "nats://127.0.0.1:4222";
  std::string credentials;  // file of a user's JWT and key; empty: none
  std::string stream = "REFLEX";
  std::chrono::hours keep{72};
  std::chrono::seconds patience{5};  // for the server's answers
};

Result<std::unique_ptr<Broker>> connect_nats(const NatsOptions& options);

}  // namespace reflex::broker
