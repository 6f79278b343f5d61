// Both brokers; see outbox.h.
#include "runtime/broker/outbox.h"

#include <fmt/format.h>

#include "runtime/broker/kafka_client.h"
#include "runtime/broker/nats_client.h"

namespace reflex::broker {
namespace {

class NatsOutbox : public Outbox {
 public:
  NatsOutbox(OutboxOptions options, NatsClient client)
      : options_(std::move(options)), client_(std::move(client)) {}

  Status send(const std::vector<OutMessage>& messages) override {
    for (const OutMessage& message : messages) {
      if (auto status = send_one(message); !status.ok()) return status;
    }
    return ok_status();
  }

 private:
  Status send_one(const OutMessage& message) {
    if (auto status = client_.check_size(message.bytes.size()); !status.ok()) return status;
    natsMsg* raw = nullptr;
    natsStatus status =
        natsMsg_Create(&raw, options_.subject.c_str(), nullptr, message.bytes.data(),
                       static_cast<int>(message.bytes.size()));
    if (status != NATS_OK) return nats_error("a message", status);
    const NatsMessage made(raw);
    for (const auto& [name, value] : message.headers) {
      status = natsMsgHeader_Set(raw, name.c_str(), value.c_str());
      if (status != NATS_OK) return nats_error("a header", status);
    }
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MsgId = message.id.c_str();
    jsErrCode code = jsErrCode(0);
    status = js_PublishMsg(nullptr, client_.context(), raw, &options, &code);
    if (status == NATS_OK) return ok_status();
    if (status == NATS_NO_RESPONDERS) {
      return Error{
          fmt::format("nats: no stream holds {}: make one (nats stream add)", options_.subject)};
    }
    return nats_error("publishing to " + options_.subject, status, code);
  }

  OutboxOptions options_;
  NatsClient client_;
};

class KafkaOutbox : public Outbox {
 public:
  KafkaOutbox(OutboxOptions options, std::unique_ptr<KafkaProducer> producer)
      : options_(std::move(options)), producer_(std::move(producer)) {}

  Status send(const std::vector<OutMessage>& messages) override {
    std::vector<KafkaProducer::Item> items;
    for (const OutMessage& message : messages) {
      auto headers = message.headers;
      headers.emplace_back("reflex-id", message.id);
      items.push_back({options_.subject, RD_KAFKA_PARTITION_UA, message.key, std::move(headers),
                       message.bytes});
    }
    return producer_->send(items);
  }

 private:
  OutboxOptions options_;
  std::unique_ptr<KafkaProducer> producer_;
};

}  // namespace

Result<std::unique_ptr<Outbox>> open_outbox(const OutboxOptions& options) {
  if (options.address.kind == Address::Kind::kNats) {
    auto client =
        NatsClient::connect(options.address.servers, options.credentials, options.timeout);
    if (!client.ok()) return client.error();
    return std::unique_ptr<Outbox>(
        std::make_unique<NatsOutbox>(options, std::move(client).value()));
  }
  auto settings = kafka_settings(options.properties);
  if (!settings.ok()) return settings.error();
  auto producer = KafkaProducer::create(options.address.servers, settings.value(), options.timeout);
  if (!producer.ok()) return producer.error();
  return std::unique_ptr<Outbox>(
      std::make_unique<KafkaOutbox>(options, std::move(producer).value()));
}

}  // namespace reflex::broker
