// Clients of Kafka; see kafka_client.h.
#include "runtime/broker/kafka_client.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <mutex>

namespace reflex::broker {

Error kafka_error(std::string_view what, rd_kafka_resp_err_t code) {
  return Error{fmt::format("kafka: {}: {}", what, rd_kafka_err2str(code))};
}

Result<KafkaSettings> kafka_settings(const std::vector<std::string>& properties) {
  KafkaSettings settings;
  for (const auto& property : properties) {
    const size_t equals = property.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{fmt::format("kafka: '{}' is not KEY=VALUE", property)};
    }
    settings.emplace_back(property.substr(0, equals), property.substr(equals + 1));
  }
  return settings;
}

Result<KafkaHandle> make_kafka(rd_kafka_type_t type, const KafkaSettings& settings,
                               const std::function<void(rd_kafka_conf_t*)>& more) {
  std::array<char, 512> error{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [key, value] : settings) {
    if (rd_kafka_conf_set(conf, key.c_str(), value.c_str(), error.data(), error.size()) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return Error{fmt::format("kafka: {}", error.data())};
    }
  }
  // Why: the client tries again by itself; what it cannot mend comes back from the call.
  rd_kafka_conf_set_log_cb(conf, nullptr);
  if (more) more(conf);
  KafkaHandle handle(rd_kafka_new(type, conf, error.data(), error.size()));
  if (!handle) {
    rd_kafka_conf_destroy(conf);
    return Error{fmt::format("kafka: {}", error.data())};
  }
  return handle;
}

/// The fate of the items of one send().
struct KafkaProducer::Ticket {
  std::mutex mutex;
  std::condition_variable changed;
  size_t open = 0;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
};

Result<std::unique_ptr<KafkaProducer>> KafkaProducer::create(const std::string& servers,
                                                             const KafkaSettings& settings,
                                                             std::chrono::milliseconds outage) {
  // Why linger 0: a sender waits for each message. Why 8 MiB: verdicts with long explanations and
  // records of a busy piece; topics of ours allow as much.
  KafkaSettings all{{"bootstrap.servers", servers},
                    {"enable.idempotence", "true"},
                    {"acks", "all"},
                    {"linger.ms", "0"},
                    {"message.max.bytes", "8388608"},
                    {"client.id", "reflex"},
                    {"message.timeout.ms", std::to_string(outage.count())}};
  all.insert(all.end(), settings.begin(), settings.end());
  auto handle = make_kafka(RD_KAFKA_PRODUCER, all, [](rd_kafka_conf_t* conf) {
    rd_kafka_conf_set_dr_msg_cb(conf, &KafkaProducer::delivered);
  });
  if (!handle.ok()) return handle.error();
  return std::unique_ptr<KafkaProducer>(new KafkaProducer(std::move(handle).value()));
}

KafkaProducer::KafkaProducer(KafkaHandle handle) : handle_(std::move(handle)) {
  serving_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) rd_kafka_poll(handle_.get(), 50);
  });
}

KafkaProducer::~KafkaProducer() {
  serving_.request_stop();
  serving_.join();
}

void KafkaProducer::delivered(rd_kafka_t*, const rd_kafka_message_t* message, void*) {
  auto* ticket = static_cast<Ticket*>(message->_private);
  const std::lock_guard lock(ticket->mutex);
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ticket->error = message->err;
  // Under the lock: the owner of the ticket may go as soon as it sees 0.
  if (--ticket->open == 0) ticket->changed.notify_all();
}

Status KafkaProducer::enqueue(const Item& item, Ticket& ticket) {
  for (;;) {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(item.headers.size());
    for (const auto& [name, value] : item.headers) {
      rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                          static_cast<ssize_t>(value.size()));
    }
    {
      const std::lock_guard lock(ticket.mutex);
      ++ticket.open;
    }
    // Why const_cast: MSG_F_COPY only reads.
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        handle_.get(), RD_KAFKA_V_TOPIC(item.topic.c_str()), RD_KAFKA_V_PARTITION(item.partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(item.key.data(), item.key.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(item.bytes.data()), item.bytes.size()),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(&ticket), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return ok_status();
    rd_kafka_headers_destroy(headers);
    {
      const std::lock_guard lock(ticket.mutex);
      --ticket.open;
    }
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) return kafka_error("sending to " + item.topic, code);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Status KafkaProducer::send(const std::vector<Item>& items) {
  Ticket ticket;
  Status status = ok_status();
  for (const Item& item : items) {
    if (status = enqueue(item, ticket); !status.ok()) break;
  }
  std::unique_lock lock(ticket.mutex);
  ticket.changed.wait(lock, [&] { return ticket.open == 0; });
  if (!status.ok()) return status;
  if (ticket.error == RD_KAFKA_RESP_ERR_NO_ERROR) return ok_status();
  return kafka_error("sending to " + items.front().topic, ticket.error);
}

}  // namespace reflex::broker
