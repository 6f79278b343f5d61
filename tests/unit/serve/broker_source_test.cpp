// Sources and sinks at brokers: every line once in the journal, over restarts and a full one; each
// verdict at the broker.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "runtime/broker/kafka_broker.h"
#include "runtime/serve/sinks/sink.h"
#include "runtime/serve/sources/source.h"
#include "tests/unit/broker/broker_world.h"
#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {
namespace {

using std::chrono::milliseconds;

/// A journal with a source that reads a broker into it.
class SourceWorld {
 public:
  explicit SourceWorld(const BrokerWorld& world) {
    options_.type = "broker";
    options_.name = "jobs";
    options_.events = true;
    options_.intake = world.intake();
    open();
  }
  ~SourceWorld() { close(); }
  void open() {
    std::vector<std::string> found;
    auto journal = Journal::open({folder_.file("journal"), 1u << 20}, found);
    ASSERT_TRUE(journal.ok());
    journal_ = std::move(journal).value();
    // While `full`, nothing is evaluated, and what waits already is more than may wait.
    IngestLimits limits;
    limits.backlog_bytes_max = 10'000;
    ingest_ = std::make_unique<Ingest>(*journal_, limits, [this] {
      return full ? journal_->end() - std::min<uint64_t>(journal_->end(), 20'000) : journal_->end();
    });
    ASSERT_TRUE(ingest_->begin({}, 0).ok());
    source_ = make_broker_source(options_, *ingest_, {});
    source_->start();
  }
  void close() {
    source_.reset();
    ingest_.reset();
    journal_.reset();
  }
  /// What has been accepted, once there are `count` lines or time is up.
  std::multiset<std::string> lines(size_t count, milliseconds patience = milliseconds(20'000)) {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::multiset<std::string> out;
    do {
      std::this_thread::sleep_for(milliseconds(50));
      out.clear();
      Journal::Reader reader(*journal_, 0);
      for (Entry entry; reader.next(entry);) {
        if (entry.type == EntryType::kTick) continue;
        const auto body = read_body(entry.payload);
        std::istringstream in(std::string(body ? body->text : "?"));
        for (std::string line; std::getline(in, line);) out.insert(line);
      }
    } while (out.size() < count && std::chrono::steady_clock::now() < until);
    return out;
  }
  /// More than may wait, none of it lines.
  void fill() {
    (void)ingest_->append(EntryType::kTick, std::string(20'000, 'x'));
    full = true;
  }
  Source& source() { return *source_; }
  Ingest& ingest() { return *ingest_; }
  std::atomic<bool> full = false;

 private:
  ScratchFolder folder_;
  SourceOptions options_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<Source> source_;
};

class BrokerSourceTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !NatsServer::is_installed()) GTEST_SKIP() << "no nats-server";
  }
};
INSTANTIATE_TEST_SUITE_P(Brokers, BrokerSourceTest, testing::Values(true, false),
                         [](const auto& row) { return row.param ? "nats" : "kafka"; });

TEST_P(BrokerSourceTest, EveryLineOnceOverARestartWithTheLagToSee) {
  BrokerWorld broker(GetParam());
  broker.publish(0, 40);
  SourceWorld world(broker);
  EXPECT_EQ(world.lines(40), lines_of(0, 40));
  world.close();
  broker.publish(40, 70);
  world.open();
  EXPECT_EQ(world.lines(70), lines_of(0, 70));
  for (int i = 0; i < 100 && world.source().behind() != 0; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(world.source().behind(), 0u);
}

TEST_P(BrokerSourceTest, AFullJournalMakesTheSourceWaitAndLosesNothing) {
  BrokerWorld broker(GetParam());
  SourceWorld world(broker);
  for (int i = 0; i < 100; ++i) broker.publish(i, i + 1);
  ASSERT_EQ(world.lines(100), lines_of(0, 100));
  world.fill();
  broker.publish(100, 120);
  // Longer than JetStream waits for an acknowledgement (1.5 s here).
  std::this_thread::sleep_for(milliseconds(4000));
  EXPECT_GT(world.ingest().refused(), 1u);
  EXPECT_EQ(world.source().behind(), 20u);
  world.full = false;
  EXPECT_EQ(world.lines(120), lines_of(0, 120));
  std::this_thread::sleep_for(milliseconds(2000));  // what comes again, comes in this time
  EXPECT_EQ(world.lines(120), lines_of(0, 120));
  // One that stops while it waits: what it had taken is read by the next.
  world.full = true;
  broker.publish(120, 130);
  std::this_thread::sleep_for(milliseconds(500));
  world.close();
  world.full = false;
  world.open();
  EXPECT_EQ(world.lines(130), lines_of(0, 130));
}

TEST(BrokerSource, OfAConfiguration) {
  ConfigTable table;
  for (const auto& key : source_keys()) {
    const bool list = key.form == ValueForm::kTexts || key.form == ValueForm::kPaths;
    const std::string value(key.standard);
    table.set(key.key, {list ? std::vector<std::string>{} : std::vector<std::string>{value}, "x"});
  }
  const auto error_with = [&](const char* key, const char* value) {
    table.set(key, {{value}, "x"});
    auto* none = static_cast<Ingest*>(nullptr);
    auto source = make_source(table, *none, {});
    return source.ok() ? std::string() : source.error().message;
  };
  EXPECT_NE(error_with("type", "nats").find("is no broker"), std::string::npos);
  EXPECT_NE(error_with("url", "kafka://h:1").find("is not of type nats"), std::string::npos);
  EXPECT_NE(error_with("url", "nats://h:1").find("which subject"), std::string::npos);
  EXPECT_EQ(error_with("subject", "jobs.>"), "");
}

class BrokerSinkTest : public BrokerSourceTest {};
INSTANTIATE_TEST_SUITE_P(Brokers, BrokerSinkTest, testing::Values(true, false),
                         [](const auto& row) { return row.param ? "nats" : "kafka"; });

TEST_P(BrokerSinkTest, VerdictsArriveInOrderAndAReplayedBatchOnceAtJetStream) {
  BrokerWorld broker(GetParam());
  broker::OutboxOptions options;
  options.address = broker.address();
  options.subject = GetParam() ? "jobs.verdicts" : "verdicts";
  SinkBatch batch;
  for (int i = 0; i < 3; ++i) {
    StoredVerdict verdict;
    verdict.id = "v1";
    verdict.incident = "i1";
    verdict.revision = static_cast<uint32_t>(i);
    verdict.json = fmt::format("{{\"revision\":{}}}", i);
    batch.verdicts.push_back(verdict);
  }
  StoredAlert alert;
  alert.sequence = 7;
  alert.type = "alert";
  alert.incident = "i1";
  alert.json = "{\"rule\":\"r\"}";
  batch.alerts.push_back(alert);
  for (int process = 0; process < 2; ++process) {
    SinkCursor cursor;
    const auto delivery = broker_delivery(options);
    auto status = delivery->deliver(batch, cursor);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  auto intake_options = broker.intake();
  intake_options.subject = options.subject;
  auto intake = broker::open_intake(intake_options, "");
  ASSERT_TRUE(intake.ok());
  const std::string once =
      "{\"revision\":0}\n{\"revision\":1}\n{\"revision\":2}\n{\"rule\":\"r\"}\n";
  const std::string want = GetParam() ? once : once + once;
  std::string text;
  broker::IntakeBatch got;
  for (int i = 0; i < 150 && text.size() < want.size(); ++i) {
    ASSERT_TRUE(intake.value()->take(got, milliseconds(100)).ok());
    text += got.text;
    if (got.messages > 0) {
      ASSERT_TRUE(intake.value()->accepted().ok());
    }
  }
  ASSERT_TRUE(intake.value()->take(got, milliseconds(300)).ok());
  EXPECT_EQ(text + got.text, want);
}

}  // namespace
}  // namespace reflex::serve
