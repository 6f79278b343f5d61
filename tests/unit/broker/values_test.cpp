// Values and shares over both brokers.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "runtime/broker/connect.h"
#include "tests/unit/broker/broker_world.h"

namespace reflex::broker {
namespace {

using std::chrono::milliseconds;

class ValuesTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  }
  static std::unique_ptr<Broker> joined(const BrokerWorld& world) {
    ConnectOptions options;
    options.address = world.address();
    options.name = "RUN";
    options.partitions = 4;
    options.lease = milliseconds(GetParam() ? 1500 : 3000);  // see BrokerWorld::intake()
    auto broker = connect(options);
    EXPECT_TRUE(broker.ok()) << (broker.ok() ? "" : broker.error().message);
    return std::move(broker).value();
  }
};
INSTANTIATE_TEST_SUITE_P(Brokers, ValuesTest, testing::Values(true, false),
                         [](const auto& row) { return row.param ? "nats" : "kafka"; });

std::string bytes_of(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

TEST_P(ValuesTest, TheNewestOfEachNameOfAnySize) {
  const BrokerWorld world(GetParam());
  const auto broker = joined(world);
  const auto value_of = [&](const std::string& name) {
    auto value = joined(world)->value(name);
    EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().message);
    return value.ok() ? value.value() : std::nullopt;
  };
  EXPECT_EQ(value_of("RUN.state.1"), std::nullopt);
  uint32_t seed = 0;
  for (const size_t size :
       {size_t{0}, size_t{10}, size_t{600'000}, size_t{1'300'000}, size_t{7}, size_t{700'000}}) {
    const std::string mine = bytes_of(size, ++seed);
    const std::string other = bytes_of(20, seed + 100);
    ASSERT_TRUE(broker->put_value("RUN.state.1", mine).ok());
    ASSERT_TRUE(broker->put_value("RUN.state.2", other).ok());
    EXPECT_TRUE(value_of("RUN.state.1") == mine) << size;
    EXPECT_TRUE(value_of("RUN.state.2") == other) << size;
  }
}

TEST_P(ValuesTest, UnitsAreDividedAndThoseOfOneThatIsGoneAreTaken) {
  const BrokerWorld world(GetParam());
  const auto one = joined(world);
  const auto two = joined(world);
  auto first = one->share("RUN.events", 4);
  ASSERT_TRUE(first.ok()) << first.error().message;
  std::set<uint32_t> mine;
  std::set<uint32_t> theirs;
  const auto until = [&](auto&& reached, Shares* a, Shares* b) {
    for (int i = 0; i < 300; ++i) {
      if (a != nullptr) mine = a->mine(milliseconds(50)).value();
      if (b != nullptr) theirs = b->mine(milliseconds(50)).value();
      if (reached()) return true;
    }
    return false;
  };
  EXPECT_TRUE(until([&] { return mine.size() == 4; }, first.value().get(), nullptr));
  auto second = two->share("RUN.events", 4);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(until([&] { return mine.size() == 2 && theirs.size() == 2; }, first.value().get(),
                    second.value().get()))
      << mine.size() << " and " << theirs.size();
  std::set<uint32_t> all = mine;
  all.insert(theirs.begin(), theirs.end());
  EXPECT_EQ(all, (std::set<uint32_t>{0, 1, 2, 3}));
  // The first one says nothing any more, without having said so.
  EXPECT_TRUE(until([&] { return theirs.size() == 4; }, nullptr, second.value().get()));
}

TEST(NatsShares, PartsDifferByOneAtMost) {
  if (!NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  const NatsServer server;
  ConnectOptions options;
  options.address = parse_address(server.url()).value();
  options.name = "RUN";
  options.lease = milliseconds(1000);
  std::vector<std::unique_ptr<Broker>> brokers;
  std::vector<std::unique_ptr<Shares>> shares;
  for (int i = 0; i < 3; ++i) {
    brokers.push_back(std::move(connect(options)).value());
    shares.push_back(std::move(brokers.back()->share("RUN.events", 4)).value());
  }
  std::multiset<size_t> sizes;
  std::set<uint32_t> all;
  for (int i = 0; i < 100 && (all.size() != 4 || sizes != std::multiset<size_t>{1, 1, 2}); ++i) {
    sizes.clear();
    all.clear();
    for (const auto& share : shares) {
      const auto mine = share->mine(milliseconds(30)).value();
      sizes.insert(mine.size());
      all.insert(mine.begin(), mine.end());
    }
  }
  EXPECT_EQ(sizes, (std::multiset<size_t>{1, 1, 2}));
  EXPECT_EQ(all.size(), 4u);
}

TEST(NatsBroker, AServerThatIsKilledAndComesBackIsWaitedFor) {
  if (!NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  NatsServer server;
  ConnectOptions options;
  options.address = parse_address(server.url()).value();
  options.name = "RUN";
  auto connected = connect(options);
  ASSERT_TRUE(connected.ok());
  Broker& broker = *connected.value();
  auto reader = broker.read("RUN.events.0", 0);
  ASSERT_TRUE(reader.ok());
  const auto next = [&] {
    Message message;
    for (int i = 0; i < 300; ++i) {
      auto got = reader.value()->next(message, milliseconds(100));
      if (!got.ok()) return got.error().message;
      if (got.value()) return message.bytes;
    }
    return std::string("nothing");
  };
  ASSERT_TRUE(broker.publish("RUN.events.0", "1", "one").ok());
  EXPECT_EQ(next(), "one");
  for (const char* text : {"two", "three"}) {
    server.kill();
    std::jthread later([&] {
      std::this_thread::sleep_for(milliseconds(1500));
      server.start();
    });
    const auto status = broker.publish("RUN.events.0", text, text);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(next(), text);
    ASSERT_TRUE(broker.put_value("RUN.state.0", text).ok());
  }
}

}  // namespace
}  // namespace reflex::broker
