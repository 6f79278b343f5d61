// Tails: rotation, truncation, partial lines, restarts; every line once and whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/serve/sources/source.h"
#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {
namespace {

namespace fs = std::filesystem;

class TailWorld {
 public:
  TailWorld() { open(); }
  void open() {
    tail_.reset();
    ingest_.reset();
    std::vector<std::string> found;
    auto journal = Journal::open({folder_.file("journal"), 1u << 20}, found);
    ASSERT_TRUE(journal.ok());
    journal_ = std::move(journal).value();
    ingest_ = std::make_unique<Ingest>(*journal_, limits, [this] { return journal_->end(); });
    ASSERT_TRUE(ingest_->begin({}, 0).ok());
    SourceOptions options;
    options.type = "tail";
    options.name = options.path = path();
    options.node = "n1";
    tail_ = make_tail(options, *ingest_, {});
    tail_->start();
  }
  void close() {
    tail_->stop();
    tail_.reset();
    ingest_.reset();
    journal_.reset();
  }
  [[nodiscard]] std::string path() const { return folder_.file("log"); }
  void write(const std::string& text, std::ios::openmode mode = std::ios::app) const {
    std::ofstream(path(), mode | std::ios::out) << text;
  }
  /// What has been accepted, once it is `want` or time is up.
  std::string text(const std::string& want) {
    std::string all;
    for (int i = 0; i < 200; ++i) {
      all.clear();
      Journal::Reader reader(*journal_, 0);
      for (Entry entry; reader.next(entry);) {
        const auto body = read_body(entry.payload);
        all += body ? body->text : "?";
      }
      if (all == want) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return all;
  }
  IngestLimits limits;

 private:
  ScratchFolder folder_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<Source> tail_;
};

TEST(Tail, LinesThatGrowAndALastLineWithoutItsEnd) {
  TailWorld world;
  world.write("a\nb\npart");
  EXPECT_EQ(world.text("a\nb\n"), "a\nb\n");
  world.write("ial\n");
  EXPECT_EQ(world.text("a\nb\npartial\n"), "a\nb\npartial\n");
}

TEST(Tail, RotationByRenameReadsTheOldFileToItsEnd) {
  TailWorld world;
  world.write("1\n");
  EXPECT_EQ(world.text("1\n"), "1\n");
  fs::rename(world.path(), world.path() + ".1");
  std::ofstream(world.path() + ".1", std::ios::app) << "2\nlast";
  world.write("3\n");
  EXPECT_EQ(world.text("1\n2\nlast3\n"), "1\n2\nlast3\n");
}

TEST(Tail, TruncationAndCopytruncateBeginAnew) {
  TailWorld world;
  world.write("one\ntwo\n");
  EXPECT_EQ(world.text("one\ntwo\n"), "one\ntwo\n");
  world.write("x\n", std::ios::trunc);
  EXPECT_EQ(world.text("one\ntwo\nx\n"), "one\ntwo\nx\n");
}

TEST(Tail, ARestartGoesOnWhereItWas) {
  TailWorld world;
  world.write("1\n2\nha");
  EXPECT_EQ(world.text("1\n2\n"), "1\n2\n");
  world.close();
  world.write("lf\n4\n");
  world.open();
  EXPECT_EQ(world.text("1\n2\nhalf\n4\n"), "1\n2\nhalf\n4\n");
  world.close();
  fs::remove(world.path());
  world.write("new file\n");
  world.open();
  EXPECT_EQ(world.text("1\n2\nhalf\n4\nnew file\n"), "1\n2\nhalf\n4\nnew file\n");
}

}  // namespace
}  // namespace reflex::serve
