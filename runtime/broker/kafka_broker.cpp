// Kafka through librdkafka: see kafka_broker.h.
#include "runtime/broker/kafka_broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <set>

#include "runtime/broker/kafka_client.h"

namespace reflex::broker {
namespace {

struct Place {
  std::string topic;
  int32_t partition = 0;
};

Place place_of(const std::string& subject) {
  const size_t dot = subject.rfind('.');
  if (dot == std::string::npos || dot + 1 == subject.size()) return {subject, 0};
  int32_t partition = 0;
  const char* end = subject.data() + subject.size();
  const auto [rest, wrong] = std::from_chars(subject.data() + dot + 1, end, partition);
  if (wrong != std::errc() || rest != end || partition < 0) return {subject, 0};
  return {subject.substr(0, dot), partition};
}

class KafkaReader : public Reader {
 public:
  KafkaReader(KafkaHandle consumer, std::string subject)
      : consumer_(std::move(consumer)), subject_(std::move(subject)) {}
  ~KafkaReader() override { rd_kafka_consumer_close(consumer_.get()); }

  Result<bool> next(Message& out, std::chrono::milliseconds patience) override {
    const KafkaMessage message(
        rd_kafka_consumer_poll(consumer_.get(), static_cast<int>(patience.count())));
    if (!message) return false;
    if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
      return Error{fmt::format("kafka: what was to be read next of {} is not kept any more ({})",
                               subject_, rd_kafka_message_errstr(message.get()))};
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      // What waiting does not mend:
      if (message->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
          message->err == RD_KAFKA_RESP_ERR__FATAL) {
        return kafka_error("reading " + subject_, message->err);
      }
      return false;
    }
    out.position = static_cast<uint64_t>(message->offset) + 1;
    out.bytes.assign(static_cast<const char*>(message->payload), message->len);
    return true;
  }

 private:
  KafkaHandle consumer_;
  std::string subject_;
};

class KafkaBroker : public Broker {
 public:
  KafkaBroker(KafkaOptions options, KafkaSettings settings, std::unique_ptr<KafkaProducer> producer)
      : options_(std::move(options)),
        settings_(std::move(settings)),
        producer_(std::move(producer)) {}

  Status reach() {
    const rd_kafka_metadata_t* metadata = nullptr;
    const auto code = rd_kafka_metadata(producer_->handle(), 0, nullptr, &metadata, patience_ms());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return kafka_error("connecting to " + options_.servers, code);
    }
    rd_kafka_metadata_destroy(metadata);
    return ok_status();
  }

  Status publish(const std::string& subject, const std::string& id,
                 std::string_view bytes) override {
    const Place place = place_of(subject);
    if (auto status = prepare(place); !status.ok()) return status;
    return producer_->send({{place.topic, place.partition, id, {}, bytes}});
  }

  Result<std::optional<Message>> oldest(const std::string& subject) override {
    const Place place = place_of(subject);
    if (auto status = prepare(place); !status.ok()) return status.error();
    int64_t low = 0;
    int64_t high = 0;
    const auto code = rd_kafka_query_watermark_offsets(producer_->handle(), place.topic.c_str(),
                                                       place.partition, &low, &high, patience_ms());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error("asking for " + subject, code);
    if (low == high) return std::optional<Message>();
    auto reader = read(subject, 0);
    if (!reader.ok()) return reader.error();
    Message message;
    auto got = reader.value()->next(message, options_.patience);
    if (!got.ok()) return got.error();
    if (!got.value()) return Error{"kafka: no answer while reading " + subject};
    return std::optional<Message>(std::move(message));
  }

  Result<std::unique_ptr<Reader>> read(const std::string& subject, uint64_t position) override {
    const Place place = place_of(subject);
    if (auto status = prepare(place); !status.ok()) return status.error();
    // Why a group: librdkafka wants a name for consumer_poll; nothing is kept under it.
    // Why `error` behind a position: what retention took must not be skipped in silence.
    KafkaSettings all{{"bootstrap.servers", options_.servers},
                      {"group.id", "reflex-reader"},
                      {"enable.auto.commit", "false"},
                      {"allow.auto.create.topics", "true"},
                      {"auto.offset.reset", position == 0 ? "earliest" : "error"},
                      {"fetch.wait.max.ms", "100"},
                      {"client.id", "reflex"}};
    all.insert(all.end(), settings_.begin(), settings_.end());
    auto made = make_kafka(RD_KAFKA_CONSUMER, all, {});
    if (!made.ok()) return made.error();
    KafkaHandle consumer = std::move(made).value();
    rd_kafka_poll_set_consumer(consumer.get());
    const KafkaPlaces places(rd_kafka_topic_partition_list_new(1));
    auto* row =
        rd_kafka_topic_partition_list_add(places.get(), place.topic.c_str(), place.partition);
    row->offset = position == 0 ? RD_KAFKA_OFFSET_BEGINNING : static_cast<int64_t>(position);
    const auto code = rd_kafka_assign(consumer.get(), places.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error("reading " + subject, code);
    return std::unique_ptr<Reader>(std::make_unique<KafkaReader>(std::move(consumer), subject));
  }

 private:
  [[nodiscard]] int patience_ms() const {
    return static_cast<int>(std::chrono::milliseconds(options_.patience).count());
  }

  /// The topic is there and has the partition.
  Status prepare(const Place& place) {
    const std::lock_guard lock(mutex_);
    if (ready_.contains(place.topic)) return ok_status();
    auto count = partitions_of(place.topic);
    if (count.ok() && count.value() == 0) {
      if (auto status = make_topic(place.topic); !status.ok()) return status;
      count = partitions_of(place.topic);
    }
    if (!count.ok()) return count.error();
    if (place.partition >= static_cast<int32_t>(std::max(count.value(), 1u))) {
      return Error{
          fmt::format("kafka: topic {} has {} partitions, {} are needed: add partitions "
                      "(kafka-topics --alter --partitions {}), or take another NAME",
                      place.topic, count.value(), place.partition + 1, options_.partitions)};
    }
    ready_.insert(place.topic);
    return ok_status();
  }

  /// 0: there is no such topic (yet).
  Result<uint32_t> partitions_of(const std::string& topic) {
    rd_kafka_topic_t* handle = rd_kafka_topic_new(producer_->handle(), topic.c_str(), nullptr);
    if (handle == nullptr) return kafka_error("topic " + topic, rd_kafka_last_error());
    const rd_kafka_metadata_t* metadata = nullptr;
    const auto code = rd_kafka_metadata(producer_->handle(), 0, handle, &metadata, patience_ms());
    rd_kafka_topic_destroy(handle);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error("asking for topic " + topic, code);
    uint32_t count = 0;
    if (metadata->topic_cnt == 1 && metadata->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      count = static_cast<uint32_t>(metadata->topics[0].partition_cnt);
    }
    rd_kafka_metadata_destroy(metadata);
    return count;
  }

  Status make_topic(const std::string& topic);

  KafkaOptions options_;
  KafkaSettings settings_;
  std::unique_ptr<KafkaProducer> producer_;
  std::mutex mutex_;
  std::set<std::string> ready_;  // topics that are there
};

/// A broker that lets no client make topics makes them by itself, or the operator does.
Status KafkaBroker::make_topic(const std::string& topic) {
  std::array<char, 256> text{};
  rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(
      topic.c_str(), static_cast<int>(options_.partitions), -1, text.data(), text.size());
  if (wanted == nullptr) return Error{fmt::format("kafka: topic {}: {}", topic, text.data())};
  const auto keep_ms = std::chrono::milliseconds(options_.keep).count();
  rd_kafka_NewTopic_set_config(wanted, "retention.ms", std::to_string(keep_ms).c_str());
  rd_kafka_NewTopic_set_config(wanted, "max.message.bytes", "8388608");
  rd_kafka_t* handle = producer_->handle();
  rd_kafka_queue_t* queue = rd_kafka_queue_new(handle);
  rd_kafka_CreateTopics(handle, &wanted, 1, nullptr, queue);
  rd_kafka_event_t* event = rd_kafka_queue_poll(queue, patience_ms());
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
  if (event != nullptr) {
    code = rd_kafka_event_error(event);
    size_t count = 0;
    const auto* result = rd_kafka_event_CreateTopics_result(event);
    const auto* topics =
        result == nullptr ? nullptr : rd_kafka_CreateTopics_result_topics(result, &count);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR && count == 1)
      code = rd_kafka_topic_result_error(topics[0]);
    rd_kafka_event_destroy(event);
  }
  rd_kafka_queue_destroy(queue);
  rd_kafka_NewTopic_destroy(wanted);
  const bool fine = code == RD_KAFKA_RESP_ERR_NO_ERROR ||
                    code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ||
                    code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE ||
                    code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                    code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
  if (fine) return ok_status();
  return kafka_error("making topic " + topic, code);
}

}  // namespace

Result<std::unique_ptr<Broker>> connect_kafka(const KafkaOptions& options) {
  auto settings = kafka_settings(options.properties);
  if (!settings.ok()) return settings.error();
  auto producer = KafkaProducer::create(options.servers, settings.value(), options.outage);
  if (!producer.ok()) return producer.error();
  auto broker = std::make_unique<KafkaBroker>(options, std::move(settings).value(),
                                              std::move(producer).value());
  if (auto status = broker->reach(); !status.ok()) return status.error();
  return std::unique_ptr<Broker>(std::move(broker));
}

}  // namespace reflex::broker
