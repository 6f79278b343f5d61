// A Kafka cluster for tests: librdkafka's mock brokers, kept alive until standard input ends.
//
// usage: kafka_mock [BROKERS]     prints HOST:PORT,.. and obeys lines: `down N`, `up N` (a broker),
//                                 `topic NAME PARTITIONS`, `send TOPIC FILE` (the whole file as one
//                                 message of partition 0); each is answered with `ok`.
// Real sockets and the real protocol; what it keeps is in memory, 5 MiB a partition.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

/// With a client of its own: that of the cluster knows no servers.
void send(rd_kafka_mock_cluster_t* cluster, const std::string& topic, const std::string& path) {
  static rd_kafka_t* producer = nullptr;
  char error[512];
  if (producer == nullptr) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), error,
                      sizeof error);
    rd_kafka_conf_set(conf, "linger.ms", "0", error, sizeof error);
    producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string bytes = text.str();
  rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(0),
                    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                    RD_KAFKA_V_VALUE(bytes.data(), bytes.size()), RD_KAFKA_V_END);
  rd_kafka_flush(producer, 10'000);
}

}  // namespace

int main(int argc, char** argv) {
  char error[512];
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_PRODUCER, nullptr, error, sizeof error);
  if (client == nullptr) {
    std::fprintf(stderr, "kafka_mock: %s\n", error);
    return 1;
  }
  rd_kafka_mock_cluster_t* cluster =
      rd_kafka_mock_cluster_new(client, argc > 1 ? std::atoi(argv[1]) : 1);
  if (cluster == nullptr) {
    std::fprintf(stderr, "kafka_mock: no cluster\n");
    return 1;
  }
  std::cout << rd_kafka_mock_cluster_bootstraps(cluster) << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    std::string name;
    int number = 1;
    words >> word;
    if (word == "topic") words >> name;
    if (word == "send") {
      words >> name >> line;
      send(cluster, name, line);
    }
    words >> number;
    if (word == "down") rd_kafka_mock_broker_set_down(cluster, number);
    if (word == "up") rd_kafka_mock_broker_set_up(cluster, number);
    if (word == "topic") rd_kafka_mock_topic_create(cluster, name.c_str(), number, 1);
    std::cout << "ok" << std::endl;
  }
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(client);
  return 0;
}
