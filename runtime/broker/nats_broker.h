// NatsBroker: NATS JetStream as the broker. The stream NAME holds the subjects NAME.> .
//
// The stream is made when it is missing: file storage, limits retention, messages kept `keep`.
// Reading uses ordered consumers, which are made again after the server was away; a message that it
// did not answer is sent again under its id until `outage` is over.
// Limits: the server's max_payload (1 MiB unless configured) bounds a message; a larger one is an
// Error that says so.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/broker/broker.h"

namespace reflex::broker {

struct NatsOptions {
  std::string url = "nats://127.0.0.1:4222";
  std::string credentials;  // file of a user's JWT and key; empty: none
  std::string stream = "REFLEX";
  std::chrono::hours keep{72};
  std::chrono::seconds patience{5};         // for the server's answers
  std::chrono::milliseconds lease{10'000};  // a process that says nothing so long is dead
  std::chrono::minutes outage{10};          // how long a server that is away is waited for
  std::function<bool()> stopped;            // ends the waiting; may be empty
};

Result<std::unique_ptr<Broker>> connect_nats(const NatsOptions& options);

}  // namespace reflex::broker
