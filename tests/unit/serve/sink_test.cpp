// Sinks: a file that has everything once, over crashes; one that fails and comes back.
#include "runtime/serve/sinks/sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {
namespace {

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class SinkWorld {
 public:
  SinkWorld() {
    StoreOptions options;
    options.path = folder.file("reflex.db");
    auto opened = Store::open(options);
    EXPECT_TRUE(opened.ok());
    store = std::move(opened).value();
    publisher = std::make_unique<Publisher>(*store);
    publisher->start();
  }
  void say(int number) const {
    auto verdict = std::make_shared<abi::Verdict>();
    verdict->id = "v-" + std::to_string(number);
    verdict->incident = "i" + std::to_string(number);
    Outgoing line;
    line.verdict = std::move(verdict);
    publisher->push(std::move(line));
  }
  void settle() const {
    EXPECT_TRUE(publisher->wait_stored(publisher->pushed(), std::chrono::seconds(30)));
  }
  ScratchFolder folder;
  std::unique_ptr<Store> store;
  std::unique_ptr<Publisher> publisher;
};

bool delivered(const Sink& sink, uint64_t count) {
  for (int i = 0; i < 500; ++i) {
    if (sink.status().delivered >= count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(FileSink, EachVerdictOnceEvenWhenACrashLeftMoreInTheFile) {
  SinkWorld world;
  const std::string path = world.folder.file("out.ndjson");
  for (int i = 0; i < 5; ++i) world.say(i);
  world.say(3);  // a replay
  world.settle();
  {
    Sink sink(*world.store, *world.publisher, {.name = "file"}, file_delivery(path));
    sink.start();
    EXPECT_TRUE(delivered(sink, 5));
  }
  const std::string five = read(path);
  EXPECT_EQ(lines_of(five), 5u);
  // Written, but the cursor did not get into the store.
  std::ofstream(path, std::ios::app) << "{\"half\":";
  world.say(9);
  world.settle();
  {
    Sink sink(*world.store, *world.publisher, {.name = "file"}, file_delivery(path));
    sink.start();
    EXPECT_TRUE(delivered(sink, 1));
  }
  const std::string six = read(path);
  EXPECT_EQ(lines_of(six), 6u);
  EXPECT_EQ(six.substr(0, five.size()), five);
  EXPECT_EQ(six.find("half"), std::string::npos);
}

// The store is new, or the sink has another name: what the file holds stays, and is not written again.
TEST(FileSink, AFileThatTheStoreKnowsNothingOfGoesOnBehindWhatItHolds) {
  SinkWorld world;
  const std::string path = world.folder.file("out.ndjson");
  for (int i = 0; i < 5; ++i) world.say(i);
  world.settle();
  const auto deliver = [&](const std::string& name, uint64_t lines) {
    Sink sink(*world.store, *world.publisher, {.name = name}, file_delivery(path));
    sink.start();
    EXPECT_TRUE(delivered(sink, lines));
  };
  deliver("file", 5);
  const std::string of_before = R"({"schema":"reflex.verdict/1","id":"of a store that is gone"})";
  const std::string five = of_before + "\n" + read(path);
  std::ofstream(path) << five << R"({"schema":"reflex.ver)";
  world.say(9);
  world.settle();
  deliver("renamed", 6);
  EXPECT_EQ(lines_of(read(path)), 7u) << read(path);
  EXPECT_EQ(read(path).substr(0, five.size()), five);
  world.say(10);
  world.settle();
  deliver("renamed", 1);
  EXPECT_EQ(lines_of(read(path)), 8u);
}

TEST(FileSink, AFileOfSomethingElseIsLeftAsItIs) {
  SinkWorld world;
  world.say(1);
  world.settle();
  for (const std::string& other :
       {std::string("root:x:0:0\n"), std::string("{\"a\":1}\n"), std::string("SQLite format 3")}) {
    const std::string path = world.folder.file("other");
    std::ofstream(path) << other;
    Sink sink(*world.store, *world.publisher, {.name = "file"}, file_delivery(path));
    sink.start();
    for (int i = 0; i < 200 && sink.status().failed == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_NE(sink.status().last_error.find("name another file"), std::string::npos);
    sink.stop();
    EXPECT_EQ(read(path), other);
  }
}

/// Fails the first times.
class Flaky final : public Delivery {
 public:
  explicit Flaky(std::vector<std::string>& got) : got_(got) {}
  reflex::Status deliver(const SinkBatch& batch, SinkCursor&) override {
    if (failures_-- > 0) return Error{"not yet"};
    for (const auto& verdict : batch.verdicts) got_.push_back(verdict.id);
    return ok_status();
  }

 private:
  std::vector<std::string>& got_;
  int failures_ = 3;
};

TEST(Sink, AFailingOneIsTriedAgainAndGetsEverythingInOrder) {
  SinkWorld world;
  for (int i = 0; i < 250; ++i) world.say(i);
  world.settle();
  std::vector<std::string> got;
  Sink sink(*world.store, *world.publisher, {.name = "flaky"}, std::make_unique<Flaky>(got));
  sink.start();
  EXPECT_TRUE(delivered(sink, 250));
  sink.stop();
  ASSERT_EQ(got.size(), 250u);
  for (int i = 0; i < 250; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], "v-" + std::to_string(i));
  EXPECT_EQ(sink.status().queued, 0u);
  EXPECT_GE(sink.status().failed, 3u);
}

}  // namespace
}  // namespace reflex::serve
