// A Kafka cluster inside of a test: librdkafka's mock brokers, with real sockets.
#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <string>

namespace reflex {

class MockKafka {
 public:
  explicit MockKafka(int brokers = 1) {
    char error[512];
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, nullptr, error, sizeof error);
    cluster_ = rd_kafka_mock_cluster_new(client_, brokers);
  }
  ~MockKafka() {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(client_);
  }
  MockKafka(const MockKafka&) = delete;
  MockKafka& operator=(const MockKafka&) = delete;
  [[nodiscard]] std::string servers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  rd_kafka_mock_cluster_t* cluster() { return cluster_; }
  void make_topic(const std::string& name, int partitions) {
    rd_kafka_mock_topic_create(cluster_, name.c_str(), partitions, 1);
  }

 private:
  rd_kafka_t* client_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
};

}  // namespace reflex
