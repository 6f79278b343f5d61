// One of both brokers with a stream (topic) `jobs` that holds lines, for tests of what reads it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/broker/connect.h"
#include "runtime/broker/intake.h"
#include "runtime/broker/outbox.h"
#include "tests/unit/broker/mock_kafka.h"
#include "tests/unit/broker/nats_server.h"

namespace reflex {

class BrokerWorld {
 public:
  explicit BrokerWorld(bool nats) {
    if (nats) {
      nats_ = std::make_unique<NatsServer>();
      address_ = broker::parse_address(nats_->url()).value();
      // A workers' broker makes the stream jobs with the subjects jobs.>
      broker::ConnectOptions options;
      options.address = address_;
      options.name = "jobs";
      EXPECT_TRUE(broker::connect(options).ok());
    } else {
      kafka_ = std::make_unique<MockKafka>();
      kafka_->make_topic("jobs", 3);
      address_ = broker::parse_address("kafka://" + kafka_->servers()).value();
    }
    broker::OutboxOptions out;
    out.address = address_;
    out.subject = nats ? "jobs.events" : "jobs";
    auto opened = broker::open_outbox(out);
    EXPECT_TRUE(opened.ok());
    outbox_ = std::move(opened).value();
  }
  static std::string line(int number) { return fmt::format("line {}", number); }
  void publish(int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string text = line(i);
      auto status = outbox_->send({{fmt::format("m{}", i), fmt::format("k{}", i), {}, text}});
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
  }
  [[nodiscard]] broker::IntakeOptions intake() const {
    broker::IntakeOptions options;
    options.address = address_;
    options.subject = nats_ ? "jobs.>" : "jobs";
    options.group = "test";
    options.ack_wait = std::chrono::milliseconds(1500);
    // Why 3 s: a group of mock brokers must see a killed member go within the test, and waits for
    // other members for a second less than this at every join but the first. 15 heartbeats are
    // enough for a busy machine.
    if (kafka_) options.properties = {"session.timeout.ms=3000", "heartbeat.interval.ms=200"};
    return options;
  }
  [[nodiscard]] const broker::Address& address() const { return address_; }
  [[nodiscard]] NatsServer* nats() const { return nats_.get(); }
  [[nodiscard]] std::string url() const {
    return nats_ ? nats_->url() : "kafka://" + kafka_->servers();
  }

 private:
  std::unique_ptr<NatsServer> nats_;
  std::unique_ptr<MockKafka> kafka_;
  broker::Address address_;
  std::unique_ptr<broker::Outbox> outbox_;
};

/// What publish(from, to) publishes.
inline std::multiset<std::string> lines_of(int from, int to) {
  std::multiset<std::string> out;
  for (int i = from; i < to; ++i) out.insert(BrokerWorld::line(i));
  return out;
}

}  // namespace reflex
