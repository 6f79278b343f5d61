// What all users of libnats here share: owners of its objects, and how a connection is made.
#pragma once

#include <nats/nats.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace reflex::broker {

Error nats_error(std::string_view what, natsStatus status, jsErrCode code = jsErrCode(0));

template <typename T, void (*kDestroy)(T*)>
struct NatsDestroy {
  void operator()(T* object) const { kDestroy(object); }
};
template <typename T, void (*kDestroy)(T*)>
using NatsOwned = std::unique_ptr<T, NatsDestroy<T, kDestroy>>;

using NatsSubscription = NatsOwned<natsSubscription, natsSubscription_Destroy>;
using NatsMessage = NatsOwned<natsMsg, natsMsg_Destroy>;
using NatsMetaData = NatsOwned<jsMsgMetaData, jsMsgMetaData_Destroy>;
using NatsConsumerInfo = NatsOwned<jsConsumerInfo, jsConsumerInfo_Destroy>;
using NatsStreamInfo = NatsOwned<jsStreamInfo, jsStreamInfo_Destroy>;

/// A connection that is taken up again for ever, and its JetStream context. Threads: any.
class NatsClient {
 public:
  /// Errors: the server cannot be reached now, or has no JetStream.
  static Result<NatsClient> connect(const std::string& url, const std::string& credentials,
                                    std::chrono::milliseconds patience);
  [[nodiscard]] natsConnection* connection() const { return connection_.get(); }
  [[nodiscard]] jsCtx* context() const { return context_.get(); }
  /// How often the connection was taken up again.
  [[nodiscard]] uint64_t reconnects() const;
  /// Errors: larger than the server takes.
  [[nodiscard]] Status check_size(size_t bytes) const;

 private:
  NatsOwned<natsConnection, natsConnection_Destroy> connection_;
  NatsOwned<jsCtx, jsCtx_Destroy> context_;
};

/// Calls until it succeeds, fails for good, the time is up or `stopped`.
natsStatus until_back(const std::function<natsStatus()>& call, std::chrono::milliseconds time,
                      const std::function<bool()>& stopped);

/// A key-value bucket, made when missing. `ttl` 0: values are kept.
using NatsBucket = NatsOwned<kvStore, kvStore_Destroy>;
Result<NatsBucket> open_bucket(const NatsClient& client, const std::string& name,
                               std::chrono::milliseconds ttl);

/// Whether a call that failed so may succeed when the server is back.
[[nodiscard]] bool is_outage(natsStatus status);

}  // namespace reflex::broker
