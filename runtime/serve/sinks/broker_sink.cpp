// Verdicts or alerts to a subject of NATS JetStream or a topic of Kafka, as CloudEvents in binary
// mode: the message is the line itself, the attributes are its headers.
//
// The message id is that of the verdict and its revision (or of the alert's line): JetStream leaves
// out what a crash between delivery and cursor sends again; of Kafka it is at least once, told
// apart by `reflex-id`. Kafka keeps what is said of one incident in order (the key). Source:
// CloudEvents 1.0.2, Kafka protocol binding, section 3.2 (ce_ headers); NATS protocol binding
// (working draft after 1.0.2), section 3.1 (ce- headers).
#include <fmt/format.h>

#include "runtime/base/time.h"
#include "runtime/serve/sinks/sink.h"

namespace reflex::serve {
namespace {

class BrokerDelivery final : public Delivery {
 public:
  explicit BrokerDelivery(broker::OutboxOptions options) : options_(std::move(options)) {}

  reflex::Status deliver(const SinkBatch& batch, SinkCursor&) override {
    std::vector<broker::OutMessage> messages;
    for (const auto& verdict : batch.verdicts) {
      messages.push_back(message(fmt::format("{}/{}", verdict.id, verdict.revision), verdict.id,
                                 "io.reflex.verdict.v1", verdict.incident, verdict.ts_ns,
                                 verdict.json));
    }
    for (const auto& alert : batch.alerts) {
      const auto id = fmt::format("a-{}", alert.sequence);
      messages.push_back(message(id, id, "io.reflex." + alert.type + ".v1", alert.incident,
                                 alert.ts_ns, alert.json));
    }
    if (!outbox_) {
      auto opened = broker::open_outbox(options_);
      if (!opened.ok()) return opened.error();
      outbox_ = std::move(opened).value();
    }
    auto status = outbox_->send(messages);
    if (!status.ok()) outbox_.reset();
    return status;
  }

 private:
  [[nodiscard]] broker::OutMessage message(const std::string& message_id, const std::string& id,
                                           const std::string& type, const std::string& incident,
                                           int64_t ts_ns, const std::string& line) const {
    const bool nats = options_.address.kind == broker::Address::Kind::kNats;
    broker::OutMessage out;
    out.id = message_id;
    out.key = incident;
    out.bytes = line;
    const auto put = [&](const char* name, std::string value) {
      out.headers.emplace_back(std::string(nats ? "ce-" : "ce_") + name, std::move(value));
    };
    put("specversion", "1.0");
    put("id", id);
    put("source", "/reflex");
    put("type", type);
    put("subject", incident);
    put("time", to_rfc3339(EventTime{ts_ns}));
    out.headers.emplace_back("content-type", "application/json");
    return out;
  }

  broker::OutboxOptions options_;
  std::unique_ptr<broker::Outbox> outbox_;
};

}  // namespace

std::unique_ptr<Delivery> broker_delivery(const broker::OutboxOptions& options) {
  return std::make_unique<BrokerDelivery>(options);
}

}  // namespace reflex::serve
