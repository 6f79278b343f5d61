// Outbox: what arrives: bytes, headers, order of a key; doubles and missing streams.
#include "runtime/broker/outbox.h"

#include <gtest/gtest.h>

#include "runtime/broker/kafka_broker.h"
#include "runtime/broker/nats_broker.h"
#include "tests/unit/broker/broker_world.h"

namespace reflex::broker {
namespace {

std::vector<OutMessage> two() {
  return {{"v1/0", "i1", {{"ce_id", "v1"}}, "{\"a\":1}"}, {"v1/1", "i1", {{"ce_id", "v1"}}, "{}"}};
}

TEST(NatsOutbox, AMessageSentAgainUnderItsIdIsKeptOnce) {
  if (!NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  const NatsServer server;
  NatsOptions broker_options;
  broker_options.url = server.url();
  broker_options.stream = "OUT";
  auto broker = connect_nats(broker_options);
  ASSERT_TRUE(broker.ok());
  OutboxOptions options;
  options.address = parse_address(server.url()).value();
  options.subject = "OUT.verdicts";
  for (int i = 0; i < 2; ++i) {
    auto outbox = open_outbox(options);
    ASSERT_TRUE(outbox.ok());
    ASSERT_TRUE(outbox.value()->send(two()).ok());
  }
  auto reader = broker.value()->read("OUT.verdicts", 0);
  ASSERT_TRUE(reader.ok());
  Message message;
  ASSERT_TRUE(reader.value()->next(message, std::chrono::seconds(5)).value());
  EXPECT_EQ(message.bytes, "{\"a\":1}");
  ASSERT_TRUE(reader.value()->next(message, std::chrono::seconds(5)).value());
  EXPECT_EQ(message.bytes, "{}");
  EXPECT_FALSE(reader.value()->next(message, std::chrono::milliseconds(300)).value());
  options.subject = "nobody.here";
  auto outbox = open_outbox(options);
  const auto refused = outbox.value()->send(two());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no stream holds nobody.here"), std::string::npos);
}

TEST(KafkaOutbox, ValueKeyAndHeaders) {
  MockKafka kafka;
  kafka.make_topic("verdicts", 1);
  OutboxOptions options;
  options.address = parse_address("kafka://" + kafka.servers()).value();
  options.subject = "verdicts";
  auto outbox = open_outbox(options);
  ASSERT_TRUE(outbox.ok());
  ASSERT_TRUE(outbox.value()->send(two()).ok());
  char error[256];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", kafka.servers().c_str(), error, sizeof error);
  rd_kafka_conf_set(conf, "group.id", "test", error, sizeof error);
  rd_kafka_t* consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  rd_kafka_poll_set_consumer(consumer);
  rd_kafka_topic_partition_list_t* places = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(places, "verdicts", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_assign(consumer, places);
  rd_kafka_topic_partition_list_destroy(places);
  for (const auto& expected : two()) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer, 10'000);
    ASSERT_NE(message, nullptr);
    ASSERT_EQ(message->err, RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(std::string(static_cast<char*>(message->payload), message->len), expected.bytes);
    EXPECT_EQ(std::string(static_cast<char*>(message->key), message->key_len), "i1");
    rd_kafka_headers_t* headers = nullptr;
    ASSERT_EQ(rd_kafka_message_headers(message, &headers), RD_KAFKA_RESP_ERR_NO_ERROR);
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>{"ce_id", "v1"}, {"reflex-id", expected.id}}) {
      const void* found = nullptr;
      size_t size = 0;
      ASSERT_EQ(rd_kafka_header_get_last(headers, name.c_str(), &found, &size),
                RD_KAFKA_RESP_ERR_NO_ERROR);
      EXPECT_EQ(std::string(static_cast<const char*>(found), size), value);
    }
    rd_kafka_message_destroy(message);
  }
  rd_kafka_consumer_close(consumer);
  rd_kafka_destroy(consumer);
}

TEST(KafkaOutbox, AClusterThatIsAwayIsAnErrorInTime) {
  OutboxOptions options;
  options.address = parse_address("kafka://127.0.0.1:1").value();
  options.subject = "verdicts";
  options.timeout = std::chrono::milliseconds(700);
  auto outbox = open_outbox(options);
  ASSERT_TRUE(outbox.ok());
  EXPECT_FALSE(outbox.value()->send(two()).ok());
}

}  // namespace
}  // namespace reflex::broker
