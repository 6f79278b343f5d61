// Connections to NATS; see nats_client.h.
#include "runtime/broker/nats_client.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

namespace reflex::broker {

Error nats_error(std::string_view what, natsStatus status, jsErrCode code) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = fmt::format("nats: {}: {}", what, natsStatus_GetText(status));
  if (detail != nullptr && *detail != '\0') text += fmt::format(" ({})", detail);
  if (code != 0) text += fmt::format(" [JetStream {}]", static_cast<int>(code));
  if (status == NATS_NO_SERVER) text += "; start one (`nats-server -js`), or say where it is";
  if (status == NATS_NO_RESPONDERS) text += "; the server runs without JetStream: start it with -js";
  return Error{std::move(text)};
}

bool is_outage(natsStatus status) {
  switch (status) {
    case NATS_TIMEOUT:
    case NATS_NO_RESPONDERS:
    case NATS_NO_SERVER:
    case NATS_CONNECTION_DISCONNECTED:
    case NATS_STALE_CONNECTION:
    case NATS_IO_ERROR:
    case NATS_INSUFFICIENT_BUFFER:
    case NATS_MISSED_HEARTBEAT:
      return true;
    default:
      return false;
  }
}

natsStatus until_back(const std::function<natsStatus()>& call, std::chrono::milliseconds time,
                      const std::function<bool()>& stopped) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const natsStatus status = call();
    const bool over = std::chrono::steady_clock::now() - begin > time;
    if (!is_outage(status) || over || (stopped && stopped())) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

Result<NatsBucket> open_bucket(const NatsClient& client, const std::string& name,
                               std::chrono::milliseconds ttl) {
  kvStore* raw = nullptr;
  natsStatus status = js_KeyValue(&raw, client.context(), name.c_str());
  if (status == NATS_NOT_FOUND) {
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = name.c_str();
    config.StorageType = js_FileStorage;
    config.TTL = std::chrono::nanoseconds(ttl).count();
    status = js_CreateKeyValue(&raw, client.context(), &config);
    // Another one that starts at the same moment may have made it.
    if (status != NATS_OK) status = js_KeyValue(&raw, client.context(), name.c_str());
  }
  if (status != NATS_OK) return nats_error("bucket " + name, status);
  return NatsBucket(raw);
}

Result<NatsClient> NatsClient::connect(const std::string& url, const std::string& credentials,
                                       std::chrono::milliseconds patience) {
  natsOptions* raw_options = nullptr;
  if (const natsStatus s = natsOptions_Create(&raw_options); s != NATS_OK) {
    return nats_error("options", s);
  }
  const NatsOwned<natsOptions, natsOptions_Destroy> options(raw_options);
  natsStatus status = natsOptions_SetURL(raw_options, url.c_str());
  if (status == NATS_OK) status = natsOptions_SetName(raw_options, "reflex");
  // A worker outlives a restart of the broker, however long it takes.
  if (status == NATS_OK) status = natsOptions_SetMaxReconnect(raw_options, -1);
  if (status == NATS_OK) status = natsOptions_SetReconnectWait(raw_options, 500);
  if (status == NATS_OK && !credentials.empty()) {
    status = natsOptions_SetUserCredentialsFromFiles(raw_options, credentials.c_str(), nullptr);
  }
  if (status != NATS_OK) return nats_error(url, status);
  NatsClient client;
  natsConnection* raw_connection = nullptr;
  status = natsConnection_Connect(&raw_connection, raw_options);
  if (status != NATS_OK) return nats_error("connecting to " + url, status);
  client.connection_.reset(raw_connection);
  jsOptions js_options;
  jsOptions_Init(&js_options);
  js_options.Wait = patience.count();
  jsCtx* raw_context = nullptr;
  status = natsConnection_JetStream(&raw_context, raw_connection, &js_options);
  if (status != NATS_OK) return nats_error("JetStream (is the server started with -js?)", status);
  client.context_.reset(raw_context);
  return client;
}

uint64_t NatsClient::reconnects() const {
  natsStatistics* raw = nullptr;
  if (natsStatistics_Create(&raw) != NATS_OK) return 0;
  const NatsOwned<natsStatistics, natsStatistics_Destroy> statistics(raw);
  uint64_t in_messages = 0, in_bytes = 0, out_messages = 0, out_bytes = 0, reconnects = 0;
  if (natsConnection_GetStats(connection_.get(), raw) != NATS_OK) return 0;
  natsStatistics_GetCounts(raw, &in_messages, &in_bytes, &out_messages, &out_bytes, &reconnects);
  return reconnects;
}

Status NatsClient::check_size(size_t bytes) const {
  const int64_t payload_max = natsConnection_GetMaxPayload(connection_.get());
  if (payload_max <= 0 || bytes <= static_cast<uint64_t>(payload_max)) return ok_status();
  return Error{
      fmt::format("nats: a message of {} bytes is larger than the server's max_payload "
                  "of {}: raise it in the server's configuration",
                  bytes, payload_max)};
}

}  // namespace reflex::broker
