// KafkaBroker over mock brokers: order, positions, faults of the cluster.
#include "runtime/broker/kafka_broker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/broker/connect.h"
#include "tests/unit/broker/mock_kafka.h"

namespace reflex::broker {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{10'000};

// Numbers of the protocol's requests. Source: Apache Kafka protocol guide, "Api Keys".
constexpr int16_t kProduce = 0;
constexpr int16_t kFetch = 1;

std::unique_ptr<Broker> connected(const MockKafka& kafka, uint32_t partitions = 4) {
  KafkaOptions options;
  options.servers = kafka.servers();
  options.partitions = partitions;
  auto broker = connect_kafka(options);
  EXPECT_TRUE(broker.ok()) << (broker.ok() ? "" : broker.error().message);
  return broker.ok() ? std::move(broker).value() : nullptr;
}

std::unique_ptr<Reader> reader_of(Broker& broker, const std::string& subject, uint64_t position) {
  auto reader = broker.read(subject, position);
  EXPECT_TRUE(reader.ok()) << (reader.ok() ? "" : reader.error().message);
  return std::move(reader).value();
}

std::vector<std::string> take(Reader& reader, size_t count, uint64_t* position = nullptr) {
  std::vector<std::string> out;
  Message message;
  while (out.size() < count) {
    auto got = reader.next(message, kLong);
    if (!got.ok()) {
      out.push_back("error: " + got.error().message);
      return out;
    }
    if (!got.value()) return out;
    out.push_back(message.bytes);
    if (position != nullptr) *position = message.position;
  }
  return out;
}

std::vector<std::string> texts(size_t from, size_t to) {
  std::vector<std::string> out;
  for (size_t i = from; i < to; ++i) out.push_back(fmt::format("m{}", i));
  return out;
}

void publish(Broker& broker, const std::string& subject, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    auto status = broker.publish(subject, fmt::format("{}/{}", subject, i), fmt::format("m{}", i));
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
}

TEST(KafkaBroker, AReaderGetsASubjectInOrderAndGoesOnBehindAPosition) {
  const MockKafka kafka;
  const auto broker = connected(kafka);
  publish(*broker, "RUN.events.2", 0, 20);
  publish(*broker, "RUN.events.1", 50, 53);
  publish(*broker, "RUN.limits", 70, 71);
  uint64_t position = 0;
  EXPECT_EQ(take(*reader_of(*broker, "RUN.events.2", 0), 7, &position), texts(0, 7));
  const auto behind = reader_of(*broker, "RUN.events.2", position);
  EXPECT_EQ(take(*behind, 13), texts(7, 20));
  // Nothing more yet; then what is said later.
  Message message;
  auto none = behind->next(message, milliseconds(200));
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none.value());
  publish(*broker, "RUN.events.2", 20, 22);
  EXPECT_EQ(take(*behind, 2), texts(20, 22));
  EXPECT_EQ(take(*reader_of(*broker, "RUN.events.1", 0), 3), texts(50, 53));
  EXPECT_EQ(take(*reader_of(*broker, "RUN.limits", 0), 1), texts(70, 71));
}

TEST(KafkaBroker, AReaderMayComeBeforeTheFirstMessage) {
  const MockKafka kafka;
  const auto broker = connected(kafka);
  const auto reader = reader_of(*broker, "RUN.signals.0", 0);
  Message message;
  EXPECT_FALSE(reader->next(message, milliseconds(100)).value());
  publish(*broker, "RUN.signals.0", 0, 3);
  EXPECT_EQ(take(*reader, 3), texts(0, 3));
}

TEST(KafkaBroker, FaultsOfTheClusterLoseAndDoubleNothing) {
  MockKafka kafka(3);
  const auto broker = connected(kafka);
  publish(*broker, "RUN.events.0", 0, 5);
  rd_kafka_mock_push_request_errors(
      kafka.cluster(), kProduce, 4, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
      RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
      RD_KAFKA_RESP_ERR__TRANSPORT);
  publish(*broker, "RUN.events.0", 5, 15);
  const auto reader = reader_of(*broker, "RUN.events.0", 0);
  rd_kafka_mock_push_request_errors(kafka.cluster(), kFetch, 2,
                                    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                    RD_KAFKA_RESP_ERR__TRANSPORT);
  EXPECT_EQ(take(*reader, 15), texts(0, 15));
}

TEST(KafkaBroker, ABrokerThatGoesAndComesIsWaitedFor) {
  MockKafka kafka;
  const auto broker = connected(kafka);
  const auto reader = reader_of(*broker, "RUN.events.0", 0);
  publish(*broker, "RUN.events.0", 0, 3);
  EXPECT_EQ(take(*reader, 3), texts(0, 3));
  rd_kafka_mock_broker_set_down(kafka.cluster(), 1);
  std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(700));
    rd_kafka_mock_broker_set_up(kafka.cluster(), 1);
  });
  publish(*broker, "RUN.events.0", 3, 6);
  EXPECT_EQ(take(*reader, 3), texts(3, 6));
}

TEST(KafkaBroker, ATopicWithTooFewPartitionsIsAnErrorThatSaysWhatToDo) {
  MockKafka kafka;
  kafka.make_topic("RUN.events", 2);
  const auto broker = connected(kafka, 4);
  publish(*broker, "RUN.events.1", 0, 1);
  auto status = connected(kafka, 4)->publish("RUN.events.3", "x", "y");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("has 2 partitions, 4 are needed"), std::string::npos)
      << status.error().message;
}

TEST(KafkaBroker, WhatIsWrongWithTheConnectionIsSaid) {
  KafkaOptions options;
  options.servers = "127.0.0.1:1";
  options.patience = std::chrono::seconds(1);
  const auto unreachable = connect_kafka(options);
  ASSERT_FALSE(unreachable.ok());
  EXPECT_NE(unreachable.error().message.find("127.0.0.1:1"), std::string::npos);
  options.properties = {"no.such.setting=1"};
  const auto unknown = connect_kafka(options);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("no.such.setting"), std::string::npos);
  options.properties = {"nothing"};
  EXPECT_FALSE(connect_kafka(options).ok());
}

TEST(Address, SchemesServersAndNames) {
  const auto nats = parse_address("nats://user:word@h:4222/JOBS");
  ASSERT_TRUE(nats.ok());
  EXPECT_EQ(nats.value().kind, Address::Kind::kNats);
  EXPECT_EQ(nats.value().servers, "nats://user:word@h:4222");
  EXPECT_EQ(nats.value().name, "JOBS");
  const auto many = parse_address("nats://a:1,nats://b:2");
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(many.value().servers, "nats://a:1,nats://b:2");
  EXPECT_EQ(many.value().name, "");
  const auto kafka = parse_address("kafka://a:9092,b:9092/reflex");
  ASSERT_TRUE(kafka.ok());
  EXPECT_EQ(kafka.value().kind, Address::Kind::kKafka);
  EXPECT_EQ(kafka.value().servers, "a:9092,b:9092");
  EXPECT_EQ(kafka.value().name, "reflex");
  for (const char* wrong : {"", "host:4222", "http://a:1", "kafka:///x"}) {
    EXPECT_FALSE(parse_address(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace reflex::broker
