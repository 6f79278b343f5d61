// The store: nothing doubled, nothing half, resume by sequence; damage, full disk, retention.
#include "runtime/serve/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/store/store_folder.h"

namespace reflex::serve {
namespace {

abi::Verdict verdict(const std::string& incident, uint32_t revision, bool final = false) {
  abi::Verdict v;
  v.id = "v-" + incident + "-" + std::to_string(revision);
  v.incident = incident;
  v.incident_type = "job_hang";
  v.job = "j1";
  v.revision = revision;
  v.final_revision = final;
  v.ts_ns = 1'000 * revision;
  v.answer = abi::Answer::kNodes;
  v.level = "confirmed";
  v.culprits = {"n3"};
  v.nodes = {{"n3", 0.9, "confirmed", "gpu_memory", "n3/5"}, {"n4", 0.05, "", "", ""}};
  abi::Hypothesis h;
  h.cause = "gpu_memory";
  v.hypotheses.push_back(h);
  return v;
}

std::unique_ptr<Store> open(const StoreFolder& folder, uint64_t bytes_max = 0) {
  auto store = Store::open({folder.file(), false, bytes_max});
  if (!store) {
    ADD_FAILURE() << store.error().message;
    return nullptr;
  }
  return std::move(store).value();
}

Written put(Store& store, const std::vector<abi::Verdict>& verdicts,
            const std::string& json = "{}") {
  WriteBatch batch;
  for (const auto& v : verdicts) batch.verdicts.push_back({&v, json});
  auto written = store.write(batch);
  EXPECT_TRUE(written.ok()) << (written ? "" : written.error().message);
  return written ? written.value() : Written{};
}

TEST(Store, AVerdictThatComesAgainIsIgnored) {
  const StoreFolder folder;
  auto store = open(folder);
  EXPECT_EQ(store->found(), "a new store");
  EXPECT_EQ(put(*store, {verdict("i1", 1), verdict("i1", 2)}).verdicts,
            (std::vector<uint64_t>{1, 2}));
  const Written again = put(*store, {verdict("i1", 2), verdict("i1", 3)});
  ASSERT_EQ(again.verdicts.size(), 2u);
  EXPECT_EQ(again.verdicts[0], 0u);
  EXPECT_GT(again.verdicts[1], 2u) << "growing; a repeat may leave a gap";
  EXPECT_EQ(again.differing, 0u);
  abi::Verdict other = verdict("i1", 3);
  other.id = "of other packs";
  EXPECT_EQ(put(*store, {other}).differing, 1u);
  EXPECT_EQ(store->verdicts({}).value().verdicts.size(), 3u);
  EXPECT_EQ(store->verdict("v-i1-3").value()->revision, 3u);
  EXPECT_FALSE(store->verdict("of other packs").value());
}

TEST(Store, SequencesAreNeverUsedTwice) {
  const StoreFolder folder;
  {
    auto store = open(folder);
    put(*store, {verdict("i1", 1), verdict("i1", 2)});
    ASSERT_TRUE(store->apply({.before_ns = INT64_MAX}).ok());
    EXPECT_TRUE(store->verdicts({}).value().verdicts.empty());
  }
  auto store = open(folder);
  EXPECT_EQ(put(*store, {verdict("i2", 1)}).verdicts, (std::vector<uint64_t>{3}));
}

TEST(Store, FiltersAndPages) {
  const StoreFolder folder;
  auto store = open(folder);
  abi::Verdict other = verdict("i2", 1, true);
  other.job = "j2";
  other.level = "suspected";
  other.culprits = {"n9"};
  other.hypotheses[0].cause = "nic";
  other.ts_ns = 50'000;
  put(*store, {verdict("i1", 1), verdict("i1", 2, true), other});
  const auto count = [&](const VerdictFilter& filter) {
    auto page = store->verdicts(filter);
    EXPECT_TRUE(page.ok()) << (page ? "" : page.error().message);
    return page ? page.value().verdicts.size() : 999u;
  };
  EXPECT_EQ(count({.incident = "i1"}), 2u);
  EXPECT_EQ(count({.job = "j2"}), 1u);
  EXPECT_EQ(count({.fault = "nic"}), 1u);
  EXPECT_EQ(count({.level = "confirmed"}), 2u);
  EXPECT_EQ(count({.node = "n3"}), 2u);
  EXPECT_EQ(count({.node = "n4"}), 0u);
  EXPECT_EQ(count({.mentions = "n4"}), 3u);
  EXPECT_EQ(count({.node = "n9"}), 1u) << "a culprit counts even when it is not listed";
  EXPECT_EQ(count({.final = true}), 2u);
  EXPECT_EQ(count({.since_ns = 2'000, .until_ns = 50'000}), 1u);
  EXPECT_EQ(count({.incident = "i1' OR '1'='1"}), 0u);
  const auto page = store->verdicts({.newest_first = true, .limit = 2}).value();
  ASSERT_EQ(page.verdicts.size(), 2u);
  EXPECT_TRUE(page.more);
  EXPECT_EQ(page.verdicts[0].sequence, 3u);
  const auto rest =
      store->verdicts({.before = page.verdicts[1].sequence, .newest_first = true}).value();
  ASSERT_EQ(rest.verdicts.size(), 1u);
  EXPECT_FALSE(rest.more);
  size_t seen = 0;
  ASSERT_TRUE(store
                  ->each_verdict({.after = 1},
                                 [&](const StoredVerdict&) {
                                   ++seen;
                                   return true;
                                 })
                  .ok());
  EXPECT_EQ(seen, 2u);
}

TEST(Store, OpenIncidentsHaveTheirLatestVerdict) {
  const StoreFolder folder;
  auto store = open(folder);
  put(*store, {verdict("i1", 1), verdict("i2", 1), verdict("i2", 2), verdict("i1", 2, true)});
  const auto open_ones = store->incidents(true, 10).value();
  ASSERT_EQ(open_ones.size(), 1u);
  EXPECT_EQ(open_ones[0].incident, "i2");
  EXPECT_EQ(open_ones[0].latest.id, "v-i2-2");
  EXPECT_EQ(store->incidents(false, 10).value().size(), 2u);
}

TEST(Store, AlertsCursorsAndKeysInOneTransaction) {
  const StoreFolder folder;
  {
    auto store = open(folder);
    WriteBatch batch;
    batch.alerts = {{"a1/1", "alert", "i1", 5, "{\"a\":1}"}, {"a1/1", "alert", "i1", 5, "{}"}};
    batch.cursors = {{"file", 7, 3, 4096}};
    batch.keys = {{"k1", 12, 100}};
    const auto written = store->write(batch);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written.value().alerts, (std::vector<uint64_t>{1, 0}));
  }
  auto store = open(folder);
  EXPECT_EQ(store->alerts(0, 10).value().size(), 1u);
  EXPECT_TRUE(store->alerts(1, 10).value().empty());
  EXPECT_EQ(store->cursor("file").value()->file_bytes, 4096u);
  EXPECT_FALSE(store->cursor("other").value());
  EXPECT_EQ(store->body_key("k1").value()->position, 12u);
  EXPECT_EQ(store->body_keys_from(13).value().size(), 0u);
}

TEST(Store, FeedbackAndSuppressions) {
  const StoreFolder folder;
  auto store = open(folder);
  StoredFeedback f;
  f.incident = "i1";
  f.confirmed = false;
  f.culprits = {"n\"4", ""};
  f.wall_ns = 9;
  ASSERT_TRUE(store->add_feedback(f).ok());
  const auto back = store->feedback("i1", 10).value();
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].culprits, f.culprits);
  EXPECT_TRUE(store->feedback("i2", 10).value().empty());

  StoredSuppression s;
  s.node = "n3";
  s.until_ns = 100;
  s.reason = "burn-in";
  const auto id = store->add_suppression(s);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id.value(), "s1");
  EXPECT_EQ(store->suppressions(99, false).value().size(), 1u);
  EXPECT_TRUE(store->suppressions(100, false).value().empty());
  EXPECT_TRUE(store->lift_suppression("s1", 7).ok());
  EXPECT_FALSE(store->lift_suppression("s1", 7).ok());
  EXPECT_FALSE(store->lift_suppression("s9", 7).ok());
  EXPECT_TRUE(store->suppressions(50, false).value().empty());
  ASSERT_EQ(store->suppressions(50, true).value().size(), 1u);
  EXPECT_EQ(store->add_suppression(s).value(), "s2");
}

TEST(Store, ADamagedFileIsToldAndKept) {
  const StoreFolder folder;
  {
    auto store = open(folder);
    for (uint32_t r = 1; r <= 200; ++r) {
      put(*store, {verdict("i1", r)}, "\"" + std::string(500, 'x') + "\"");
    }
  }
  {  // The middle of the file is overwritten, as by a bad disk.
    std::fstream file(folder.file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    for (int i = 0; i < 20'000; ++i) file.put('\x5a');
  }
  const auto refused = Store::open({folder.file()});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("a copy is kept as"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.file() + ".damaged-1"));
  EXPECT_TRUE(std::filesystem::exists(folder.file()));
  const auto anew = Store::open({folder.file(), true});
  ASSERT_TRUE(anew.ok()) << anew.error().message;
  EXPECT_NE(anew.value()->found().find(".damaged-2"), std::string::npos) << anew.value()->found();
  EXPECT_TRUE(anew.value()->verdicts({}).value().verdicts.empty());
}

TEST(Store, AFileThatIsNoDatabaseIsToldAndKept) {
  const StoreFolder folder;
  std::ofstream(folder.file()) << std::string(4096, 'a');
  const auto refused = Store::open({folder.file()});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("not a database"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.file() + ".damaged-1"));
}

TEST(Store, AFullDiskLeavesNothingHalf) {
  const StoreFolder folder;
  auto store = open(folder, 256 * 1024);
  const std::string json = "\"" + std::string(4'000, 'x') + "\"";
  uint32_t good = 0;
  bool no_space = false;
  std::vector<abi::Verdict> batch;
  for (uint32_t r = 1; r <= 1'000 && !no_space; r += 10) {
    std::vector<abi::Verdict> verdicts;
    for (uint32_t i = 0; i < 10; ++i) verdicts.push_back(verdict("i1", r + i));
    WriteBatch write;
    for (const auto& v : verdicts) write.verdicts.push_back({&v, json});
    if (store->write(write, &no_space).ok()) good += 10;
  }
  EXPECT_TRUE(no_space);
  EXPECT_GT(good, 0u);
  EXPECT_EQ(store->counts().value().verdicts, good) << "all of a batch or nothing";
  EXPECT_EQ(store->incidents(true, 1).value()[0].revision, good);
  // Room again: the store goes on.
  ASSERT_TRUE(store->apply({.before_ns = 1'000 * 40}).ok());
  EXPECT_EQ(put(*store, {verdict("i9", 1)}).verdicts.size(), 1u);
}

TEST(Store, RetentionKeepsWhatASinkStillOwes) {
  const StoreFolder folder;
  auto store = open(folder);
  const std::string json(1'000, 'x');
  put(*store, {verdict("i1", 1), verdict("i1", 2), verdict("i1", 3), verdict("i1", 4)}, json);
  WriteBatch cursor;
  cursor.cursors = {{"webhook", 2, 0, 0}};
  ASSERT_TRUE(store->write(cursor).ok());
  auto report = store->apply({.before_ns = INT64_MAX}).value();
  EXPECT_EQ(report.verdicts, 2u);
  EXPECT_EQ(report.held_back, 2u);
  EXPECT_EQ(store->verdicts({.mentions = "n4"}).value().verdicts.size(), 2u);
  cursor.cursors = {{"webhook", 4, 0, 0}};
  ASSERT_TRUE(store->write(cursor).ok());
  report = store->apply({.bytes_max = 1'500}).value();
  EXPECT_EQ(report.verdicts, 1u);
  const auto left = store->verdicts({}).value().verdicts;
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].revision, 4u) << "the oldest go";
}

TEST(Store, ASinkThatIsGoneHoldsNothingBack) {
  const StoreFolder folder;
  auto store = open(folder);
  put(*store, {verdict("i1", 1), verdict("i1", 2)});
  WriteBatch cursor;
  cursor.cursors = {{"old", 0, 0, 0}, {"file", 2, 0, 7}};
  ASSERT_TRUE(store->write(cursor).ok());
  EXPECT_EQ(store->apply({.before_ns = INT64_MAX}).value().held_back, 2u);
  ASSERT_TRUE(store->keep_sinks({"file"}).ok());
  EXPECT_FALSE(store->cursor("old").value());
  EXPECT_EQ(store->cursor("file").value()->file_bytes, 7u);
  EXPECT_EQ(store->apply({.before_ns = INT64_MAX}).value().verdicts, 2u);
  ASSERT_TRUE(store->keep_sinks({}).ok());
  EXPECT_FALSE(store->cursor("file").value());
}

TEST(Store, OneWritesWhileOthersRead) {
  const StoreFolder folder;
  auto store = open(folder);
  put(*store, {verdict("i0", 1)});
  std::atomic<bool> stop = false;
  std::vector<std::jthread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      size_t before = 0;
      while (!stop) {
        const auto page = store->verdicts({.limit = 10'000});
        ASSERT_TRUE(page.ok()) << page.error().message;
        ASSERT_GE(page.value().verdicts.size(), before);
        before = page.value().verdicts.size();
      }
    });
  }
  for (uint32_t r = 1; r <= 100; ++r) put(*store, {verdict("i1", r)});
  stop = true;
  readers.clear();
  EXPECT_EQ(store->counts().value().verdicts, 101u);
}

}  // namespace
}  // namespace reflex::serve
