// The journal: what was accepted is there after a crash at any byte and after any failed call.
#include "runtime/serve/journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {
namespace {

namespace fs = std::filesystem;

/// A disk with a budget of bytes; then it writes short and says ENOSPC.
class SmallDisk final : public Disk {
 public:
  int64_t write(int fd, std::span<const iovec> parts) override {
    const auto all = static_cast<int64_t>(parts.front().iov_len);
    if (left <= 0) return -ENOSPC;
    iovec first = parts.front();
    first.iov_len = static_cast<size_t>(std::min(all, left.load()));
    const int64_t wrote = Disk::write(fd, {&first, 1});
    if (wrote > 0) left -= wrote;
    return wrote;
  }
  int sync(int fd) override { return fail_sync ? -EIO : Disk::sync(fd); }
  int truncate(int fd, uint64_t size) override {
    return fail_truncate ? -EIO : Disk::truncate(fd, size);
  }
  std::atomic<int64_t> left = INT64_MAX;
  std::atomic<bool> fail_sync = false;
  std::atomic<bool> fail_truncate = false;
};

/// Does not wait for the disk: for tests that cut files themselves.
class LazyDisk final : public Disk {
 public:
  int sync(int) override { return 0; }
  int sync_folder(const std::string&) override { return 0; }
};

std::unique_ptr<Journal> open(const JournalOptions& options, std::vector<std::string>* told = {}) {
  std::vector<std::string> found;
  auto journal = Journal::open(options, found);
  if (told != nullptr) *told = found;
  if (!journal.ok()) {
    ADD_FAILURE() << journal.error().message;
    return nullptr;
  }
  return std::move(journal).value();
}

std::vector<std::string> all_of(const Journal& journal, uint64_t from) {
  std::vector<std::string> entries;
  Journal::Reader reader(journal, from);
  for (Entry entry; reader.next(entry);) entries.emplace_back(entry.payload);
  EXPECT_EQ(reader.error(), "");
  return entries;
}

Journal::Written put(Journal& journal, std::string_view text) {
  return journal.append(EntryType::kEvents, 7, {text});
}

TEST(Journal, EntriesComeBackInOrderWithTypeTimeAndPosition) {
  const ScratchFolder folder;
  auto journal = open({folder.path()});
  const auto a = journal->append(EntryType::kLog, 11, {"ab", "", "c"});
  const auto b = journal->append(EntryType::kTick, -12, {});
  EXPECT_EQ(journal->end(), b.next);
  Journal::Reader reader(*journal, 0);
  Entry entry;
  ASSERT_TRUE(reader.next(entry));
  EXPECT_EQ(entry.type, EntryType::kLog);
  EXPECT_EQ(entry.wall_ns, 11);
  EXPECT_EQ(entry.payload, "abc");
  EXPECT_EQ(entry.next, a.next);
  ASSERT_TRUE(reader.next(entry));
  EXPECT_EQ(entry.type, EntryType::kTick);
  EXPECT_EQ(entry.wall_ns, -12);
  EXPECT_EQ(entry.payload, "");
  EXPECT_FALSE(reader.next(entry));
  put(*journal, "later");
  ASSERT_TRUE(reader.next(entry));
  EXPECT_EQ(entry.payload, "later");
  EXPECT_EQ(entry.position, b.next);
}

TEST(Journal, SegmentsAreFollowedAndTrimmed) {
  const ScratchFolder folder;
  auto journal = open({folder.path(), 200});
  std::vector<std::string> wrote;
  std::vector<uint64_t> positions{0};
  for (int i = 0; i < 50; ++i) {
    wrote.push_back(std::string(i * 3, 'x') + std::to_string(i));
    positions.push_back(put(*journal, wrote.back()).next);
  }
  EXPECT_EQ(all_of(*journal, 0), wrote);
  const std::vector<std::string> later(wrote.begin() + 20, wrote.end());
  EXPECT_EQ(all_of(*journal, positions[20]), later);
  ASSERT_TRUE(journal->trim(positions[20]).ok());
  EXPECT_GT(journal->begin(), 0u);
  EXPECT_LE(journal->begin(), positions[20]);
  EXPECT_EQ(all_of(*journal, positions[20]), later);
  Journal::Reader gone(*journal, 0);
  Entry entry;
  EXPECT_FALSE(gone.next(entry));
  EXPECT_NE(gone.error(), "");
  journal.reset();
  journal = open({folder.path(), 200});
  EXPECT_EQ(all_of(*journal, positions[20]), later);
}

TEST(Journal, ManyThreadsLoseNothingAndReadersSeeOnlyWhole) {
  const ScratchFolder folder;
  auto journal = open({folder.path(), 4096});
  constexpr int kThreads = 8;
  constexpr int kEach = 60;
  std::atomic<bool> stop = false;
  std::vector<std::string> seen;
  std::thread reading([&] {
    Journal::Reader reader(*journal, 0);
    Entry entry;
    for (;;) {
      const bool last = stop;
      while (reader.next(entry)) seen.emplace_back(entry.payload);
      if (last) break;
      journal->wait_beyond(reader.position(), journal->pokes(), 20);
    }
    EXPECT_EQ(reader.error(), "");
    EXPECT_EQ(reader.skipped_bytes(), 0u);
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const auto written = put(*journal, std::to_string(t) + ":" + std::to_string(i));
        EXPECT_EQ(written.outcome, Journal::Outcome::kWritten);
        EXPECT_GE(journal->end(), written.next);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  stop = true;
  journal->poke();
  reading.join();
  EXPECT_EQ(seen.size(), size_t{kThreads * kEach});
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), size_t{kThreads * kEach});
  EXPECT_EQ(all_of(*journal, 0), seen);
}

TEST(Journal, FullDiskRefusesKeepsWhatWasAcceptedAndGoesOn) {
  const ScratchFolder folder;
  const auto disk = std::make_shared<SmallDisk>();
  auto journal = open({folder.path(), 1000, disk});
  std::vector<std::string> accepted;
  for (int i = 0; i < 10; ++i) {
    accepted.push_back("before " + std::to_string(i));
    ASSERT_EQ(put(*journal, accepted.back()).outcome, Journal::Outcome::kWritten);
  }
  const uint64_t end = journal->end();
  for (const int64_t left : {0, 1, 27, 28, 30, 90}) {
    disk->left = left;
    const auto refused = put(*journal, std::string(200, 'r'));
    EXPECT_EQ(refused.outcome, Journal::Outcome::kNoSpace) << left;
    EXPECT_NE(refused.error, "");
    EXPECT_EQ(journal->end(), end);
  }
  disk->left = INT64_MAX;
  disk->fail_sync = true;
  EXPECT_NE(put(*journal, "not synced").outcome, Journal::Outcome::kWritten);
  disk->fail_sync = false;
  journal.reset();
  journal = open({folder.path(), 1000, disk});
  EXPECT_EQ(all_of(*journal, 0), accepted);
  for (int i = 0; i < 40; ++i) {  // over the border of a segment
    accepted.push_back("after " + std::to_string(i));
    ASSERT_EQ(put(*journal, accepted.back()).outcome, Journal::Outcome::kWritten);
  }
  EXPECT_EQ(all_of(*journal, 0), accepted);
}

TEST(Journal, SegmentThatCannotBeMadeRefusesAndLeavesNoFile) {
  const ScratchFolder folder;
  const auto disk = std::make_shared<SmallDisk>();
  auto journal = open({folder.path(), 50, disk});
  ASSERT_EQ(put(*journal, std::string(60, 'a')).outcome, Journal::Outcome::kWritten);
  disk->left = 5;
  EXPECT_EQ(put(*journal, "b").outcome, Journal::Outcome::kNoSpace);
  disk->left = INT64_MAX;
  ASSERT_EQ(put(*journal, "c").outcome, Journal::Outcome::kWritten);
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{std::string(60, 'a'), "c"}));
}

TEST(Journal, BrokenWhenItCannotBeCutBackUntilTheNextStart) {
  const ScratchFolder folder;
  const auto disk = std::make_shared<SmallDisk>();
  auto journal = open({folder.path(), 1u << 20, disk});
  put(*journal, "good");
  disk->left = 10;
  disk->fail_truncate = true;
  EXPECT_EQ(put(*journal, "bad").outcome, Journal::Outcome::kBroken);
  disk->left = INT64_MAX;
  EXPECT_EQ(put(*journal, "bad too").outcome, Journal::Outcome::kBroken);
  journal.reset();
  std::vector<std::string> told;
  journal = open({folder.path()}, &told);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("10 bytes of an unfinished write were cut"), std::string::npos) << told[0];
  EXPECT_EQ(all_of(*journal, 0), std::vector<std::string>{"good"});
}

TEST(Journal, DamageInTheMiddleIsSkippedAndTold) {
  const ScratchFolder folder;
  auto journal = open({folder.path()});
  put(*journal, "first");
  const uint64_t second = journal->end();
  put(*journal, "second");
  put(*journal, "third");
  const std::string path = fs::directory_iterator(folder.path())->path().string();
  journal.reset();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(16 + second + 30));
    file.put('!');
  }
  std::vector<std::string> told;
  journal = open({folder.path()}, &told);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("damaged bytes"), std::string::npos) << told[0];
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{"first", "third"}));
}

// A crash keeps any prefix of what was not synced yet; all prefixes of the file stand for it.
TEST(Journal, ADamagedBeginningLosesNoEntry) {
  const ScratchFolder folder;
  auto journal = open({folder.path()});
  put(*journal, "first");
  const std::string path = fs::directory_iterator(folder.path())->path().string();
  journal.reset();
  const auto flip = [&path](int at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put('!');
  };
  flip(0);
  std::vector<std::string> told;
  journal = open({folder.path()}, &told);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("damaged bytes"), std::string::npos) << told[0];
  EXPECT_EQ(all_of(*journal, 0), std::vector<std::string>{"first"});
  journal.reset();
  flip(9);  // where it begins, which its name tells, too
  journal = open({folder.path()}, &told);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("16 damaged bytes"), std::string::npos) << told[0];
  put(*journal, "second");
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{"first", "second"}));
}

TEST(Journal, ANameThatTheSegmentBeforeContradictsIsRefused) {
  const ScratchFolder folder;
  JournalOptions options;
  options.folder = folder.path();
  options.segment_bytes = 1;
  auto journal = open(options);
  const uint64_t last = put(*journal, "first").next;
  put(*journal, "second");
  journal.reset();
  const auto path = [&](uint64_t begin) {
    return fmt::format("{}/{:020}.journal", folder.path(), begin);
  };
  {
    std::fstream file(path(last), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8);
    file.write("!!!!!!!!", 8);
  }
  std::vector<std::string> told;
  journal = open(options, &told);
  ASSERT_EQ(told.size(), 1u) << "the segment before it ends where the name says";
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{"first", "second"}));
  journal.reset();
  fs::rename(path(last), path(last + 5));
  std::vector<std::string> found;
  const auto refused = Journal::open(options, found);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("Give it its name back"), std::string::npos);
}

TEST(Journal, AFileThatIsRemovedUnderItTakesNothingMore) {
  const ScratchFolder folder;
  const std::string name = folder.path() + "/journal";
  auto journal = open({name});
  const uint64_t end = put(*journal, "first").next;
  EXPECT_EQ(journal->trouble(), "");
  fs::rename(name, name + ".away");
  EXPECT_NE(journal->trouble().find("removed or moved away"), std::string::npos);
  const auto refused = put(*journal, "lost");
  EXPECT_EQ(refused.outcome, Journal::Outcome::kNoSpace);
  EXPECT_NE(refused.error.find("removed or moved away"), std::string::npos);
  fs::rename(name + ".away", name);
  EXPECT_EQ(journal->trouble(), "");
  EXPECT_EQ(put(*journal, "second").outcome, Journal::Outcome::kWritten);
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{"first", "second"}));
  fs::remove_all(name);
  EXPECT_EQ(put(*journal, "lost").outcome, Journal::Outcome::kNoSpace);
  EXPECT_GT(journal->end(), end);
  const uint64_t went_to = journal->end();
  journal.reset();
  JournalOptions options;
  options.folder = name;
  options.first_position = went_to;
  journal = open(options);
  EXPECT_EQ(journal->begin(), went_to);
  put(*journal, "third");
  EXPECT_EQ(all_of(*journal, went_to), std::vector<std::string>{"third"});
}

TEST(Journal, ASegmentThatLacksItsEndIsReadUpToThereAndTheNextGoesOn) {
  const ScratchFolder folder;
  const std::string large(300'000, 'x');
  auto journal = open({folder.path(), 1u << 20});
  std::vector<std::string> all;
  for (int i = 0; i < 9; ++i) put(*journal, all.emplace_back(std::to_string(i) + large));
  std::set<std::string> files;
  for (const auto& file : fs::directory_iterator(folder.path())) files.insert(file.path().string());
  ASSERT_GE(files.size(), 3u);
  fs::resize_file(*files.begin(), 300'000 + 400);  // its first entry, and a part of the second
  journal.reset();
  journal = open({folder.path(), 1u << 20});
  const auto left = all_of(*journal, 0);
  ASSERT_FALSE(left.empty());
  EXPECT_EQ(left.front(), all.front());
  const auto lost = static_cast<ptrdiff_t>(all.size() - left.size());
  EXPECT_GT(lost, 0);
  EXPECT_TRUE(std::equal(left.begin() + 1, left.end(), all.begin() + 1 + lost));
}

TEST(Journal, OneThatEndsBeforeASavedStateGoesOnBehindIt) {
  const ScratchFolder folder;
  auto journal = open({folder.path()});
  put(*journal, "first");
  const uint64_t cut = journal->end();
  put(*journal, "gone");
  const uint64_t saved = journal->end() + (5u << 20);
  const std::string path = fs::directory_iterator(folder.path())->path().string();
  journal.reset();
  fs::resize_file(path, 16 + cut + 7);
  JournalOptions options;
  options.folder = folder.path();
  options.first_position = saved;
  std::vector<std::string> told;
  journal = open(options, &told);
  EXPECT_EQ(journal->end(), saved);
  EXPECT_NE(told.back().find("goes on there"), std::string::npos) << told.back();
  put(*journal, "second");
  EXPECT_EQ(all_of(*journal, saved), std::vector<std::string>{"second"});
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{"first", "second"}));
  journal.reset();
  journal = open(options, &told);
  EXPECT_EQ(all_of(*journal, 0), (std::vector<std::string>{"first", "second"}));
  EXPECT_GT(journal->end(), saved);
}

RC_GTEST_PROP(JournalProperty, CrashAtAnyByteKeepsWholeEntriesOnly,
              (const std::vector<std::string>& texts, uint16_t cut_at)) {
  RC_PRE(!texts.empty());
  const ScratchFolder folder;
  const auto disk = std::make_shared<LazyDisk>();
  std::vector<uint64_t> ends;
  std::string path;
  {
    auto journal = open({folder.path(), 1u << 20, disk});
    for (const auto& text : texts) ends.push_back(put(*journal, text).next);
    path = fs::directory_iterator(folder.path())->path().string();
  }
  const uint64_t size = fs::file_size(path);
  const uint64_t cut = cut_at % (size + 1);
  fs::resize_file(path, cut);
  std::vector<std::string> want;
  for (size_t i = 0; i < texts.size() && 16 + ends[i] <= cut; ++i) want.push_back(texts[i]);
  auto journal = open({folder.path(), 1u << 20, disk});
  RC_ASSERT(all_of(*journal, 0) == want);
  put(*journal, "after");
  want.emplace_back("after");
  RC_ASSERT(all_of(*journal, 0) == want);
}

}  // namespace
}  // namespace reflex::serve
