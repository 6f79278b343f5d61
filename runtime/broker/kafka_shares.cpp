// Units are the partitions of a topic, members those of a consumer group: see kafka_broker.h.
//
// Why round robin: a topic may have more partitions than there are units; those mean nothing.
#include <fmt/format.h>

#include "runtime/broker/kafka_broker.h"
#include "runtime/broker/kafka_client.h"

namespace reflex::broker {
namespace {

class KafkaShares : public Shares {
 public:
  KafkaShares(KafkaHandle consumer, uint32_t count)
      : consumer_(std::move(consumer)), count_(count) {}
  ~KafkaShares() override { rd_kafka_consumer_close(consumer_.get()); }

  Result<std::set<uint32_t>> mine(std::chrono::milliseconds patience) override {
    const KafkaMessage message(
        rd_kafka_consumer_poll(consumer_.get(), static_cast<int>(patience.count())));
    if (message && (message->err == RD_KAFKA_RESP_ERR__FATAL ||
                    message->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)) {
      return kafka_error("sharing units", message->err);
    }
    rd_kafka_topic_partition_list_t* raw = nullptr;
    const auto code = rd_kafka_assignment(consumer_.get(), &raw);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error("sharing units", code);
    const KafkaPlaces places(raw);
    std::set<uint32_t> out;
    for (int i = 0; i < raw->cnt; ++i) {
      const auto unit = static_cast<uint32_t>(raw->elems[i].partition);
      if (unit < count_) out.insert(unit);
    }
    return out;
  }

  static void rebalanced(rd_kafka_t* consumer, rd_kafka_resp_err_t code,
                         rd_kafka_topic_partition_list_t* places, void*) {
    if (code != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
      rd_kafka_assign(consumer, nullptr);
      return;
    }
    rd_kafka_assign(consumer, places);
    rd_kafka_pause_partitions(consumer, places);  // readers of their own read what is in them
  }

 private:
  KafkaHandle consumer_;
  uint32_t count_;
};

}  // namespace

Result<std::unique_ptr<Shares>> kafka_shares(const KafkaOptions& options, const std::string& topic,
                                             uint32_t count) {
  auto more = kafka_settings(options.properties);
  if (!more.ok()) return more.error();
  KafkaSettings all{{"bootstrap.servers", options.servers},
                    {"group.id", topic + ".workers"},
                    {"enable.auto.commit", "false"},
                    {"allow.auto.create.topics", "true"},
                    {"partition.assignment.strategy", "roundrobin"},
                    {"session.timeout.ms", std::to_string(options.lease.count())},
                    {"max.poll.interval.ms", std::to_string(options.lease.count())},
                    {"heartbeat.interval.ms", std::to_string(options.lease.count() / 5)},
                    {"client.id", "reflex"}};
  all.insert(all.end(), more.value().begin(), more.value().end());
  auto made = make_kafka(RD_KAFKA_CONSUMER, all, [](rd_kafka_conf_t* conf) {
    rd_kafka_conf_set_rebalance_cb(conf, &KafkaShares::rebalanced);
  });
  if (!made.ok()) return made.error();
  KafkaHandle consumer = std::move(made).value();
  rd_kafka_poll_set_consumer(consumer.get());
  const KafkaPlaces topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  const auto code = rd_kafka_subscribe(consumer.get(), topics.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(topic, code);
  return std::unique_ptr<Shares>(std::make_unique<KafkaShares>(std::move(consumer), count));
}

}  // namespace reflex::broker
