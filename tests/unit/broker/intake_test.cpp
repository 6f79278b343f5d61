// Intake over both brokers: every message once, over crashes at each point.
#include "runtime/broker/intake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "runtime/broker/sequence_set.h"
#include "tests/unit/broker/broker_world.h"

namespace reflex::broker {
namespace {

using std::chrono::milliseconds;

/// What a daemon has on disk: texts, and the cursor that came with the last one.
struct Disk {
  std::multiset<std::string> lines;
  std::string cursor;
  void put(const IntakeBatch& batch) {
    std::istringstream in(batch.text);
    for (std::string line; std::getline(in, line);) lines.insert(line);
    cursor = batch.cursor;
  }
};

std::unique_ptr<Intake> opened(const IntakeOptions& options, const std::string& cursor) {
  auto intake = open_intake(options, cursor);
  EXPECT_TRUE(intake.ok()) << (intake.ok() ? "" : intake.error().message);
  return std::move(intake).value();
}

/// Until there are as many lines, or nothing more comes for some time.
void read_until(Intake& intake, Disk& disk, size_t count,
                milliseconds patience = milliseconds(12'000)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  IntakeBatch batch;
  while (disk.lines.size() < count && std::chrono::steady_clock::now() < until) {
    auto status = intake.take(batch, milliseconds(100));
    ASSERT_TRUE(status.ok()) << status.error().message;
    if (batch.messages == 0) continue;
    disk.put(batch);
    ASSERT_TRUE(intake.accepted().ok());
  }
}

class IntakeTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  }
};
INSTANTIATE_TEST_SUITE_P(Brokers, IntakeTest, testing::Values(true, false),
                         [](const auto& row) { return row.param ? "nats" : "kafka"; });

TEST_P(IntakeTest, WhatIsAcceptedDoesNotComeAgain) {
  BrokerWorld world(GetParam());
  world.publish(0, 50);
  Disk disk;
  {
    const auto intake = opened(world.intake(), disk.cursor);
    read_until(*intake, disk, 50);
    EXPECT_EQ(disk.lines, lines_of(0, 50));
    EXPECT_EQ(intake->behind(), 0u);
  }
  world.publish(50, 60);
  // With its cursor, and without one: the broker itself knows what was acknowledged.
  read_until(*opened(world.intake(), disk.cursor), disk, 60);
  EXPECT_EQ(disk.lines, lines_of(0, 60));
  world.publish(60, 65);
  Disk other;
  read_until(*opened(world.intake(), ""), other, 5);
  EXPECT_EQ(other.lines, lines_of(60, 65));
}

TEST_P(IntakeTest, ACrashBeforeTheDiskLosesNothingAndOneBehindItDoublesNothing) {
  BrokerWorld world(GetParam());
  Disk disk;
  world.publish(0, 30);
  {
    const auto intake = opened(world.intake(), disk.cursor);
    IntakeBatch batch;
    for (int i = 0; i < 100 && batch.messages == 0; ++i) {
      ASSERT_TRUE(intake->take(batch, milliseconds(100)).ok());
    }
    ASSERT_GT(batch.messages, 0u);  // not on disk
  }
  world.publish(30, 40);
  {
    const auto intake = opened(world.intake(), disk.cursor);
    read_until(*intake, disk, 40);
    EXPECT_EQ(disk.lines, lines_of(0, 40));
    world.publish(40, 50);
    IntakeBatch batch;
    for (int i = 0; i < 100 && batch.messages == 0; ++i) {
      ASSERT_TRUE(intake->take(batch, milliseconds(100)).ok());
    }
    ASSERT_GT(batch.messages, 0u);
    disk.put(batch);  // on disk, and not acknowledged
  }
  world.publish(50, 60);
  const auto intake = opened(world.intake(), disk.cursor);
  read_until(*intake, disk, 60);
  read_until(*intake, disk, 100, milliseconds(2500));  // what comes again, comes in this time
  EXPECT_EQ(disk.lines, lines_of(0, 60));
}

TEST_P(IntakeTest, CrashesAtRandomPlacesGiveEveryMessageOnce) {
  BrokerWorld world(GetParam());
  std::mt19937 random(11);
  Disk disk;
  int published = 0;
  for (int round = 0; round < 5; ++round) {
    const int more = 1 + static_cast<int>(random() % 40);
    world.publish(published, published + more);
    published += more;
    auto options = world.intake();
    options.batch_bytes = 1 + random() % 200;
    const auto intake = opened(options, disk.cursor);
    IntakeBatch batch;
    for (auto step = random() % 6; step > 0; --step) {
      ASSERT_TRUE(intake->take(batch, milliseconds(300)).ok());
      if (batch.messages == 0) continue;
      disk.put(batch);
      if (random() % 4 != 0) {
        ASSERT_TRUE(intake->accepted().ok());
        continue;
      }
      break;  // on disk, and not acknowledged
    }
  }
  const auto intake = opened(world.intake(), disk.cursor);
  read_until(*intake, disk, static_cast<size_t>(published), milliseconds(25'000));
  read_until(*intake, disk, 10'000, milliseconds(2500));
  EXPECT_EQ(disk.lines, lines_of(0, published));
}

TEST_P(IntakeTest, ABatchThatWaitsKeepsItsPlaceAndTheRestIsCounted) {
  BrokerWorld world(GetParam());
  world.publish(0, 40);
  auto options = world.intake();
  options.batch_bytes = 30;  // some messages
  const auto intake = opened(options, "");
  IntakeBatch batch;
  for (int i = 0; i < 100 && batch.messages == 0; ++i) {
    ASSERT_TRUE(intake->take(batch, milliseconds(100)).ok());
  }
  ASSERT_GT(batch.messages, 0u);
  ASSERT_LT(batch.messages, 40u);
  // Longer than the broker waits for an acknowledgement.
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(intake->hold());
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_EQ(intake->behind(), 40u);
  Disk disk;
  disk.put(batch);
  ASSERT_TRUE(intake->accepted().ok());
  read_until(*intake, disk, 40);
  read_until(*intake, disk, 100, milliseconds(2000));
  EXPECT_EQ(disk.lines, lines_of(0, 40));
}

TEST_P(IntakeTest, FromTheEndOnlyTheFirstTime) {
  BrokerWorld world(GetParam());
  world.publish(0, 10);
  auto options = world.intake();
  options.from_end = true;
  Disk disk;
  {
    const auto intake = opened(options, "");
    IntakeBatch none;
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(intake->take(none, milliseconds(100)).ok());
    world.publish(10, 15);
    read_until(*intake, disk, 5);
  }
  EXPECT_EQ(disk.lines, lines_of(10, 15));
  world.publish(15, 20);
  read_until(*opened(options, disk.cursor), disk, 10);
  EXPECT_EQ(disk.lines, lines_of(10, 20));
}

TEST(NatsIntake, AServerThatWasAwayAndAStreamThatWasMadeAnew) {
  if (!NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  BrokerWorld world(true);
  world.publish(0, 10);
  Disk disk;
  {
    const auto intake = opened(world.intake(), "");
    read_until(*intake, disk, 10);
    world.nats()->kill();
    world.nats()->start();
  }
  world.publish(10, 20);
  read_until(*opened(world.intake(), disk.cursor), disk, 20);
  EXPECT_EQ(disk.lines, lines_of(0, 20));
  // The numbers of another stream mean nothing here.
  BrokerWorld other(true);
  other.publish(0, 5);
  std::string said;
  auto options = other.intake();
  options.note = [&](const std::string& line) { said = line; };
  Disk anew;
  read_until(*opened(options, disk.cursor), anew, 5);
  EXPECT_EQ(anew.lines, lines_of(0, 5));
  EXPECT_NE(said.find("not the stream"), std::string::npos);
}

TEST(NatsIntake, ASubjectThatNoStreamHoldsIsSaid) {
  if (!NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  const BrokerWorld world(true);
  auto options = world.intake();
  options.subject = "nobody.here";
  const auto intake = open_intake(options, "");
  ASSERT_FALSE(intake.ok());
  EXPECT_NE(intake.error().message.find("no stream holds nobody.here"), std::string::npos);
}

TEST(KafkaIntake, AClusterThatIsAwayIsSaid) {
  IntakeOptions options;
  options.address = parse_address("kafka://127.0.0.1:1").value();
  options.subject = "jobs";
  options.group = "test";
  std::string said;
  options.note = [&](const std::string& line) { said += line + "\n"; };
  const auto intake = opened(options, "");
  IntakeBatch batch;
  for (int i = 0; i < 50 && said.empty(); ++i) {
    ASSERT_TRUE(intake->take(batch, milliseconds(100)).ok());
  }
  EXPECT_NE(said.find("127.0.0.1:1"), std::string::npos) << said;
}

TEST(KafkaIntake, APartitionThatMovesTakesItsUnacceptedMessagesWithIt) {
  BrokerWorld world(false);
  world.publish(0, 60);
  Disk first;
  Disk second;
  auto options = world.intake();
  options.batch_bytes = 40;
  auto one = opened(options, "");
  IntakeBatch batch;
  for (int i = 0; i < 100 && batch.messages == 0; ++i) {
    ASSERT_TRUE(one->take(batch, milliseconds(100)).ok());
  }
  ASSERT_GT(batch.messages, 0u);
  // The batch waits while another member joins.
  auto two = opened(options, "");
  bool ours = true;
  IntakeBatch theirs;
  for (int i = 0; i < 150 && ours; ++i) {
    ours = one->hold();
    ASSERT_TRUE(two->take(theirs, milliseconds(50)).ok());
    if (theirs.messages > 0) {
      second.put(theirs);
      ASSERT_TRUE(two->accepted().ok());
    }
  }
  EXPECT_FALSE(ours) << "the batch was not withdrawn";
  for (int i = 0; i < 3000 && first.lines.size() + second.lines.size() < 60; ++i) {
    for (auto& [intake, disk] : {std::pair{one.get(), &first}, {two.get(), &second}}) {
      ASSERT_TRUE(intake->take(batch, milliseconds(20)).ok());
      if (batch.messages == 0) continue;
      disk->put(batch);
      ASSERT_TRUE(intake->accepted().ok());
    }
  }
  EXPECT_FALSE(first.lines.empty());
  EXPECT_FALSE(second.lines.empty());
  std::multiset<std::string> all = first.lines;
  all.insert(second.lines.begin(), second.lines.end());
  EXPECT_EQ(all, lines_of(0, 60));
}

TEST(SequenceSet, AgainstAPlainSet) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    SequenceSet set;
    std::set<uint64_t> plain;
    for (auto i = random() % 20; i > 0; --i) {
      const uint64_t from = 1 + random() % 60;
      const uint64_t to = from + random() % 8;
      set.add(from, to);
      for (uint64_t n = from; n <= to; ++n) plain.insert(n);
    }
    const SequenceSet again = SequenceSet::parse(set.text());
    for (uint64_t n = 0; n < 80; ++n) {
      ASSERT_EQ(set.contains(n), plain.contains(n)) << set.text() << " " << n;
      ASSERT_EQ(again.contains(n), plain.contains(n)) << set.text() << " " << n;
    }
    size_t ranges = 0;
    for (const uint64_t n : plain) ranges += !plain.contains(n - 1);
    ASSERT_EQ(set.ranges(), ranges) << set.text();
    set.forget(30);
    for (uint64_t n = 31; n < 80; ++n) ASSERT_EQ(set.contains(n), plain.contains(n));
  }
  EXPECT_EQ(SequenceSet::parse("5-2,x,7,8-9,10-").text(), "8-9");
}

}  // namespace
}  // namespace reflex::broker
