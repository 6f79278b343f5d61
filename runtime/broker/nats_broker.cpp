// JetStream through the C client: see nats_broker.h.
#include "runtime/broker/nats_broker.h"

#include <fmt/format.h>

#include <mutex>
#include <thread>
#include <utility>

#include "runtime/broker/nats_client.h"
#include "runtime/broker/nats_values.h"

namespace reflex::broker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRetry{500};

/// An ordered consumer, which is made again behind the last message whenever the server has lost it
/// (it lives in the server's memory).
class NatsReader : public Reader {
 public:
  NatsReader(const NatsClient& client, const NatsOptions& options, std::string subject,
             uint64_t position)
      : client_(client), options_(options), subject_(std::move(subject)), position_(position) {}

  Status subscribe() {
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = options_.stream.c_str();
    options.Ordered = true;
    options.Config.DeliverPolicy = position_ == 0 ? js_DeliverAll : js_DeliverByStartSequence;
    if (position_ != 0) options.Config.OptStartSeq = position_ + 1;
    natsSubscription* raw = nullptr;
    jsErrCode code = jsErrCode(0);
    reconnects_ = client_.reconnects();
    const natsStatus status =
        js_SubscribeSync(&raw, client_.context(), subject_.c_str(), nullptr, &options, &code);
    if (status != NATS_OK) return nats_error("reading " + subject_, status, code);
    subscription_.reset(raw);
    // Flow control bounds what is under way; the client must not drop what it was sent.
    natsSubscription_SetPendingLimits(raw, -1, -1);
    return ok_status();
  }

  /// Messages that were there when reading began and have not been taken.
  Result<uint64_t> waiting() {
    jsConsumerInfo* raw = nullptr;
    jsErrCode code = jsErrCode(0);
    const natsStatus status =
        natsSubscription_GetConsumerInfo(&raw, subscription_.get(), nullptr, &code);
    if (status != NATS_OK) return nats_error("asking for the consumer", status, code);
    const NatsConsumerInfo info(raw);
    return info->NumPending + info->Delivered.Consumer;
  }

  Result<bool> next(Message& out, std::chrono::milliseconds patience) override {
    if (!subscription_) return again(patience);
    natsMsg* raw = nullptr;
    const natsStatus status =
        natsSubscription_NextMsg(&raw, subscription_.get(), static_cast<int64_t>(patience.count()));
    if (status == NATS_TIMEOUT) {
      if (client_.reconnects() != reconnects_) subscription_.reset();
      return false;
    }
    if (status != NATS_OK) {
      subscription_.reset();
      return false;
    }
    const NatsMessage message(raw);
    jsMsgMetaData* raw_meta = nullptr;
    if (const natsStatus s = natsMsg_GetMetaData(&raw_meta, raw); s != NATS_OK) {
      return nats_error("a message without its position", s);
    }
    const NatsMetaData meta(raw_meta);
    if (meta->Sequence.Stream <= position_) return false;
    position_ = meta->Sequence.Stream;
    out.position = position_;
    out.bytes.assign(natsMsg_GetData(raw), static_cast<size_t>(natsMsg_GetDataLength(raw)));
    return true;
  }

 private:
  Result<bool> again(std::chrono::milliseconds patience) {
    if (!out_) out_ = Clock::now();
    auto status = subscribe();
    if (status.ok()) {
      out_.reset();
      return false;
    }
    if (Clock::now() - *out_ > options_.outage) return status.error();
    std::this_thread::sleep_for(std::min(patience, kRetry));
    return false;
  }

  const NatsClient& client_;
  const NatsOptions& options_;
  std::string subject_;
  uint64_t position_;
  uint64_t reconnects_ = 0;
  std::optional<Clock::time_point> out_;  // since when it has no consumer
  NatsSubscription subscription_;
};

class NatsBroker : public Broker {
 public:
  NatsBroker(NatsOptions options, NatsClient client)
      : options_(std::move(options)), client_(std::move(client)) {}

  Status make_stream() {
    jsStreamInfo* info = nullptr;
    jsErrCode code = jsErrCode(0);
    natsStatus status =
        js_GetStreamInfo(&info, client_.context(), options_.stream.c_str(), nullptr, &code);
    jsStreamInfo_Destroy(info);
    if (status == NATS_OK) return ok_status();
    if (status != NATS_NOT_FOUND) return nats_error("asking for the stream", status, code);
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
    status = js_AddStream(&info, client_.context(), &config, nullptr, &code);
    jsStreamInfo_Destroy(info);
    // Another worker that starts at the same moment may have made it.
    if (status == NATS_OK || code == JSStreamNameExistErr) return ok_status();
    return nats_error(fmt::format("making stream {}", options_.stream), status, code);
  }

  Status publish(const std::string& subject, const std::string& id,
                 std::string_view bytes) override {
    if (auto status = client_.check_size(bytes.size()); !status.ok()) return status;
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MsgId = id.c_str();
    jsErrCode code = jsErrCode(0);
    // Sent again under its id: if the server has it, it is kept once.
    const natsStatus status = until_back(
        [&] {
          return js_Publish(nullptr, client_.context(), subject.c_str(), bytes.data(),
                            static_cast<int>(bytes.size()), &options, &code);
        },
        options_.outage, options_.stopped);
    if (status == NATS_OK) return ok_status();
    return nats_error("publishing to " + subject, status, code);
  }

  Status put_value(const std::string& name, std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    if (auto status = open_values(); !status.ok()) return status;
    return values_->put(name, bytes);
  }
  Result<std::optional<std::string>> value(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    if (auto status = open_values(); !status.ok()) return status.error();
    return values_->get(name);
  }
  Result<std::unique_ptr<Shares>> share(const std::string& subject, uint32_t count) override {
    return nats_shares(client_, options_, subject, count);
  }

  Result<std::optional<Message>> oldest(const std::string& subject) override {
    NatsReader reader(client_, options_, subject, 0);
    if (auto status = reader.subscribe(); !status.ok()) return status.error();
    auto waiting = reader.waiting();
    if (!waiting.ok()) return waiting.error();
    if (waiting.value() == 0) return std::optional<Message>();
    Message message;
    auto got = reader.next(message, options_.patience);
    if (!got.ok()) return got.error();
    if (!got.value()) return Error{"nats: no answer while reading " + subject};
    return std::optional<Message>(std::move(message));
  }

  Result<std::unique_ptr<Reader>> read(const std::string& subject, uint64_t position) override {
    auto reader = std::make_unique<NatsReader>(client_, options_, subject, position);
    if (auto status = reader->subscribe(); !status.ok()) return status.error();
    return std::unique_ptr<Reader>(std::move(reader));
  }

 private:
  Status open_values() {
    if (values_) return ok_status();
    auto opened = NatsValues::open(client_, options_);
    if (!opened.ok()) return opened.error();
    values_ = std::make_unique<NatsValues>(std::move(opened).value());
    return ok_status();
  }

  NatsOptions options_;
  NatsClient client_;
  std::mutex mutex_;  // of values_
  std::unique_ptr<NatsValues> values_;
};

}  // namespace

Result<std::unique_ptr<Broker>> connect_nats(const NatsOptions& options) {
  auto client = NatsClient::connect(options.url, options.credentials, options.patience);
  if (!client.ok()) return client.error();
  auto broker = std::make_unique<NatsBroker>(options, std::move(client).value());
  if (auto made = broker->make_stream(); !made.ok()) return made.error();
  return std::unique_ptr<Broker>(std::move(broker));
}

}  // namespace reflex::broker
