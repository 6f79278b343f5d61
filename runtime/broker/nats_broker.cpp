// JetStream through the C client: see nats_broker.h.
#include "runtime/broker/nats_broker.h"

#include <fmt/format.h>
#include <nats/nats.h>

#include <utility>

namespace reflex::broker {
namespace {

Error error_of(std::string_view what, natsStatus status, jsErrCode code = jsErrCode(0)) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = fmt::format("nats: {}: {}", what, natsStatus_GetText(status));
  if (detail != nullptr && *detail != '\0') text += fmt::format(" ({})", detail);
  if (code != 0) text += fmt::format(" [JetStream {}]", static_cast<int>(code));
  return Error{std::move(text)};
}

template <typename T, void (*kDestroy)(T*)>
struct Destroy {
  void operator()(T* object) const { kDestroy(object); }
};
using Options = std::unique_ptr<natsOptions, Destroy<natsOptions, natsOptions_Destroy>>;
using Connection = std::unique_ptr<natsConnection, Destroy<natsConnection, natsConnection_Destroy>>;
using Context = std::unique_ptr<jsCtx, Destroy<jsCtx, jsCtx_Destroy>>;
using Subscription =
    std::unique_ptr<natsSubscription, Destroy<natsSubscription, natsSubscription_Destroy>>;
using Msg = std::unique_ptr<natsMsg, Destroy<natsMsg, natsMsg_Destroy>>;
using ConsumerInfo =
    std::unique_ptr<jsConsumerInfo, Destroy<jsConsumerInfo, jsConsumerInfo_Destroy>>;
using MetaData = std::unique_ptr<jsMsgMetaData, Destroy<jsMsgMetaData, jsMsgMetaData_Destroy>>;

class NatsReader : public Reader {
 public:
  explicit NatsReader(Subscription subscription) : subscription_(std::move(subscription)) {}

  /// Messages that were there when reading began and have not been taken.
  Result<uint64_t> waiting() {
    jsConsumerInfo* raw = nullptr;
    jsErrCode code = jsErrCode(0);
    const natsStatus status =
        natsSubscription_GetConsumerInfo(&raw, subscription_.get(), nullptr, &code);
    if (status != NATS_OK) return error_of("asking for the consumer", status, code);
    const ConsumerInfo info(raw);
    return info->NumPending + info->Delivered.Consumer;
  }

  Result<bool> next(Message& out, std::chrono::milliseconds patience) override {
    natsMsg* raw = nullptr;
    const natsStatus status =
        natsSubscription_NextMsg(&raw, subscription_.get(), static_cast<int64_t>(patience.count()));
    if (status == NATS_TIMEOUT) return false;
    if (status != NATS_OK) return error_of("reading", status);
    const Msg message(raw);
    jsMsgMetaData* raw_meta = nullptr;
    if (const natsStatus s = natsMsg_GetMetaData(&raw_meta, raw); s != NATS_OK) {
      return error_of("a message without its position", s);
    }
    const MetaData meta(raw_meta);
    out.position = meta->Sequence.Stream;
    out.bytes.assign(natsMsg_GetData(raw), static_cast<size_t>(natsMsg_GetDataLength(raw)));
    return true;
  }

 private:
  Subscription subscription_;
};

class NatsBroker : public Broker {
 public:
  NatsBroker(NatsOptions options, Connection connection, Context context)
      : options_(std::move(options)),
        connection_(std::move(connection)),
        context_(std::move(context)) {}

  Status make_stream() {
    jsStreamInfo* info = nullptr;
    jsErrCode code = jsErrCode(0);
    natsStatus status =
        js_GetStreamInfo(&info, context_.get(), options_.stream.c_str(), nullptr, &code);
    jsStreamInfo_Destroy(info);
    if (status == NATS_OK) return ok_status();
    if (status != NATS_NOT_FOUND) return error_of("asking for the stream", status, code);
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    const std::string all = options_.stream + ".>";
    const char* subjects[] = {all.c_str()};
    config.Name = options_.stream.c_str();
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.MaxAge = std::chrono::nanoseconds(options_.keep).count();
    info = nullptr;
    status = js_AddStream(&info, context_.get(), &config, nullptr, &code);
    jsStreamInfo_Destroy(info);
    // Another worker that starts at the same moment may have made it.
    if (status == NATS_OK || code == JSStreamNameExistErr) return ok_status();
    return error_of(fmt::format("making stream {}", options_.stream), status, code);
  }

  Status publish(const std::string& subject, const std::string& id,
                 std::string_view bytes) override {
    const int64_t payload_max = natsConnection_GetMaxPayload(connection_.get());
    if (payload_max > 0 && bytes.size() > static_cast<uint64_t>(payload_max)) {
      return Error{
          fmt::format("nats: a message of {} bytes is larger than the server's max_payload "
                      "of {}: raise it in the server's configuration",
                      bytes.size(), payload_max)};
    }
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MsgId = id.c_str();
    jsErrCode code = jsErrCode(0);
    const natsStatus status = js_Publish(nullptr, context_.get(), subject.c_str(), bytes.data(),
                                         static_cast<int>(bytes.size()), &options, &code);
    if (status != NATS_OK) return error_of("publishing to " + subject, status, code);
    return ok_status();
  }

  Result<std::optional<Message>> oldest(const std::string& subject) override {
    auto reader = read(subject, 0);
    if (!reader.ok()) return reader.error();
    auto waiting = static_cast<NatsReader&>(*reader.value()).waiting();
    if (!waiting.ok()) return waiting.error();
    if (waiting.value() == 0) return std::optional<Message>();
    Message message;
    auto got = reader.value()->next(message, options_.patience);
    if (!got.ok()) return got.error();
    if (!got.value()) return Error{"nats: no answer while reading " + subject};
    return std::optional<Message>(std::move(message));
  }

  Result<std::unique_ptr<Reader>> read(const std::string& subject, uint64_t position) override {
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = options_.stream.c_str();
    options.Ordered = true;
    options.Config.DeliverPolicy = position == 0 ? js_DeliverAll : js_DeliverByStartSequence;
    if (position != 0) options.Config.OptStartSeq = position + 1;
    natsSubscription* raw = nullptr;
    jsErrCode code = jsErrCode(0);
    const natsStatus status =
        js_SubscribeSync(&raw, context_.get(), subject.c_str(), nullptr, &options, &code);
    if (status != NATS_OK) return error_of("reading " + subject, status, code);
    Subscription subscription(raw);
    // Flow control bounds what is under way; the client must not drop what it was sent.
    natsSubscription_SetPendingLimits(raw, -1, -1);
    return std::unique_ptr<Reader>(std::make_unique<NatsReader>(std::move(subscription)));
  }

 private:
  NatsOptions options_;
  Connection connection_;
  Context context_;
};

}  // namespace

Result<std::unique_ptr<Broker>> connect_nats(const NatsOptions& options) {
  natsOptions* raw_options = nullptr;
  if (const natsStatus s = natsOptions_Create(&raw_options); s != NATS_OK) {
    return error_of("options", s);
  }
  const Options nats_options(raw_options);
  natsStatus status = natsOptions_SetURL(raw_options, options.url.c_str());
  if (status == NATS_OK) status = natsOptions_SetName(raw_options, "reflex");
  // A worker outlives a restart of the broker, however long it takes.
  if (status == NATS_OK) status = natsOptions_SetMaxReconnect(raw_options, -1);
  if (status == NATS_OK && !options.credentials.empty()) {
    status =
        natsOptions_SetUserCredentialsFromFiles(raw_options, options.credentials.c_str(), nullptr);
  }
  if (status != NATS_OK) return error_of(options.url, status);
  natsConnection* raw_connection = nullptr;
  status = natsConnection_Connect(&raw_connection, raw_options);
  if (status != NATS_OK) return error_of("connecting to " + options.url, status);
  Connection connection(raw_connection);
  jsOptions js_options;
  jsOptions_Init(&js_options);
  js_options.Wait = std::chrono::milliseconds(options.patience).count();
  jsCtx* raw_context = nullptr;
  status = natsConnection_JetStream(&raw_context, raw_connection, &js_options);
  if (status != NATS_OK) return error_of("JetStream (is the server started with -js?)", status);
  auto broker = std::make_unique<NatsBroker>(options, std::move(connection), Context(raw_context));
  if (auto made = broker->make_stream(); !made.ok()) return made.error();
  return std::unique_ptr<Broker>(std::move(broker));
}

}  // namespace reflex::broker
