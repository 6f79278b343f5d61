// A Kafka cluster for tests: librdkafka's mock brokers, kept alive until standard input ends.
//
// usage: kafka_mock [BROKERS]     prints HOST:PORT,.. and obeys lines: `down N`, `up N` (a broker),
//                                 `topic NAME PARTITIONS`; each is answered with `ok`.
// Real sockets and the real protocol; what it keeps is in memory, 5 MiB a partition.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

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
