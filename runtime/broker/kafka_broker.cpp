// Kafka through librdkafka: see kafka_broker.h.
#include "runtime/broker/kafka_broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/base/crc32c.h"
#include "runtime/broker/kafka_client.h"

namespace reflex::broker {
namespace {

// Why: half of what a topic takes unless it is configured (max.message.bytes 1 MiB).
constexpr size_t kPieceBytes = 512u << 10;

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

  Status put_value(const std::string& name, std::string_view bytes) override;
  Result<std::optional<std::string>> value(const std::string& name) override;

  Result<std::unique_ptr<Shares>> share(const std::string& subject, uint32_t count) override {
    if (auto status = prepare({subject, static_cast<int32_t>(count) - 1}); !status.ok()) {
      return status.error();
    }
    return kafka_shares(options_, subject, count);
  }

  Result<std::unique_ptr<Reader>> read(const std::string& subject, uint64_t position) override {
    const Place place = place_of(subject);
    if (auto status = prepare(place); !status.ok()) return status.error();
    const bool begin = position == 0;
    auto consumer =
        consumer_at(place, begin ? RD_KAFKA_OFFSET_BEGINNING : static_cast<int64_t>(position), {});
    if (!consumer.ok()) return consumer.error();
    return std::unique_ptr<Reader>(
        std::make_unique<KafkaReader>(std::move(consumer).value(), subject));
  }

 private:
  [[nodiscard]] int patience_ms() const {
    return static_cast<int>(std::chrono::milliseconds(options_.patience).count());
  }

  /// The topic is there and has the partition.
  Status prepare(const Place& place, bool compacted = false) {
    const std::lock_guard lock(mutex_);
    if (ready_.contains(place.topic)) return ok_status();
    auto count = partitions_of(place.topic);
    if (count.ok() && count.value() == 0) {
      if (auto status = make_topic(place.topic, compacted); !status.ok()) return status;
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

  Status make_topic(const std::string& topic, bool compacted);

  /// The oldest offset, and that behind the newest.
  Result<std::pair<int64_t, int64_t>> ends_of(const Place& place) {
    int64_t low = 0;
    int64_t high = 0;
    const auto code = rd_kafka_query_watermark_offsets(producer_->handle(), place.topic.c_str(),
                                                       place.partition, &low, &high, patience_ms());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error("asking for " + place.topic, code);
    return std::pair(low, high);
  }

  Result<KafkaHandle> consumer_at(const Place& place, int64_t offset, const KafkaSettings& more);
  Result<std::map<std::string, std::string>> read_values(const Place& place, int64_t from,
                                                         int64_t to);

  KafkaOptions options_;
  KafkaSettings settings_;
  std::unique_ptr<KafkaProducer> producer_;
  std::mutex mutex_;
  std::set<std::string> ready_;  // topics that are there
};

/// A broker that lets no client make topics makes them by itself, or the operator does.
Status KafkaBroker::make_topic(const std::string& topic, bool compacted) {
  std::array<char, 256> text{};
  rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(
      topic.c_str(), static_cast<int>(options_.partitions), -1, text.data(), text.size());
  if (wanted == nullptr) return Error{fmt::format("kafka: topic {}: {}", topic, text.data())};
  const auto keep_ms = std::chrono::milliseconds(options_.keep).count();
  if (compacted) {
    rd_kafka_NewTopic_set_config(wanted, "cleanup.policy", "compact");
  } else {
    rd_kafka_NewTopic_set_config(wanted, "retention.ms", std::to_string(keep_ms).c_str());
  }
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

Result<KafkaHandle> KafkaBroker::consumer_at(const Place& place, int64_t offset,
                                             const KafkaSettings& more) {
  // Why a group: librdkafka wants a name for consumer_poll; nothing is kept under it.
  // Why `error` behind a position: what retention took must not be skipped in silence.
  KafkaSettings all{{"bootstrap.servers", options_.servers},
                    {"group.id", "reflex-reader"},
                    {"enable.auto.commit", "false"},
                    {"allow.auto.create.topics", "true"},
                    {"auto.offset.reset", offset < 0 ? "earliest" : "error"},
                    {"fetch.wait.max.ms", "100"},
                    {"client.id", "reflex"}};
  all.insert(all.end(), more.begin(), more.end());
  all.insert(all.end(), settings_.begin(), settings_.end());
  auto made = make_kafka(RD_KAFKA_CONSUMER, all, {});
  if (!made.ok()) return made.error();
  KafkaHandle consumer = std::move(made).value();
  rd_kafka_poll_set_consumer(consumer.get());
  const KafkaPlaces places(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(places.get(), place.topic.c_str(), place.partition)->offset =
      offset;
  const auto code = rd_kafka_assign(consumer.get(), places.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error("reading " + place.topic, code);
  return consumer;
}

/// The newest value of each key from one offset to another.
Result<std::map<std::string, std::string>> KafkaBroker::read_values(const Place& place,
                                                                    int64_t from, int64_t to) {
  std::map<std::string, std::string> out;
  auto consumer = consumer_at(place, from, {{"enable.partition.eof", "true"}});
  if (!consumer.ok()) return consumer.error();
  rd_kafka_t* handle = consumer.value().get();
  Status status = ok_status();
  for (bool more = true; more;) {
    const KafkaMessage message(rd_kafka_consumer_poll(handle, patience_ms()));
    if (!message) {
      status = Error{"kafka: no answer while reading " + place.topic};
      break;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) break;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      status = kafka_error("reading " + place.topic, message->err);
      break;
    }
    out[std::string(static_cast<const char*>(message->key), message->key_len)] =
        std::string(static_cast<const char*>(message->payload), message->len);
    more = message->offset + 1 < to;
  }
  rd_kafka_consumer_close(handle);
  if (!status.ok()) return status.error();
  return out;
}

Status KafkaBroker::put_value(const std::string& name, std::string_view bytes) {
  const Place place = place_of(name);
  if (auto status = prepare(place, true); !status.ok()) return status;
  std::vector<KafkaProducer::Item> items;
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    items.push_back({place.topic,
                     place.partition,
                     fmt::format("piece {}", items.size()),
                     {},
                     bytes.substr(at, kPieceBytes)});
  }
  const auto head = fmt::format("{} {} {:08x}", items.size(), bytes.size(), crc32c(bytes));
  items.push_back({place.topic, place.partition, "head", {}, head});
  return producer_->send(items);
}

/// The pieces stand right before the head, unless two have written at one time: then the newest of
/// each are tried, which the checksum tells.
Result<std::optional<std::string>> KafkaBroker::value(const std::string& name) {
  const Place place = place_of(name);
  if (auto status = prepare(place, true); !status.ok()) return status.error();
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto ends = ends_of(place);
    if (!ends.ok()) return ends.error();
    const auto [low, high] = ends.value();
    if (low == high) return std::optional<std::string>();
    // Why 64: one read is enough for a value of some 32 MiB; a longer one is read from the oldest.
    const int64_t from = attempt == 0 ? std::max(low, high - 64) : low;
    auto values = read_values(place, from, high);
    if (!values.ok()) return values.error();
    size_t pieces = 0;
    size_t size = 0;
    uint32_t sum = 0;
    const auto head = values.value().find("head");
    if (head != values.value().end() &&
        std::sscanf(head->second.c_str(), "%zu %zu %x", &pieces, &size, &sum) == 3) {
      std::string bytes;
      for (size_t i = 0; i < pieces; ++i) bytes += values.value()[fmt::format("piece {}", i)];
      if (bytes.size() == size && crc32c(bytes) == sum) return std::optional(std::move(bytes));
    }
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return Error{"kafka: the value " + name + " is damaged"};
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
