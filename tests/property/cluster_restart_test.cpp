// Processes of a cluster that end and are begun again from their states, after the broker has
// forgotten the messages before them: the same verdicts, byte for byte, as one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/cluster/feed.h"
#include "runtime/cluster/ingest_piece.h"
#include "runtime/cluster/roles.h"
#include "runtime/cluster/router.h"
#include "runtime/cluster/subjects.h"
#include "tests/property/cluster_world.h"

namespace reflex {
namespace {

/// In memory; forgets when told to, as retention does.
class MemoryBroker : public broker::Broker {
 public:
  Status publish(const std::string& subject, const std::string&, std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    subjects_[subject].push_back({++position_, std::string(bytes)});
    changed_.notify_all();
    return ok_status();
  }
  Result<std::unique_ptr<broker::Reader>> read(const std::string& subject,
                                               uint64_t position) override {
    return std::unique_ptr<broker::Reader>(
        std::make_unique<MemoryReader>(*this, subject, position));
  }
  Result<std::optional<broker::Message>> oldest(const std::string& subject) override {
    const std::lock_guard lock(mutex_);
    const auto& messages = subjects_[subject];
    if (messages.empty()) return std::optional<broker::Message>();
    return std::optional(messages.front());
  }
  Status put_value(const std::string& name, std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    if (!crashed_) values_[name] = bytes;
    return ok_status();
  }
  Result<std::optional<std::string>> value(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto it = values_.find(name);
    if (it == values_.end()) return std::optional<std::string>();
    return std::optional(it->second);
  }
  /// Whoever asks has all of it.
  Result<std::unique_ptr<broker::Shares>> share(const std::string&, uint32_t count) override {
    class All : public broker::Shares {
     public:
      explicit All(uint32_t count) : count_(count) {}
      Result<std::set<uint32_t>> mine(std::chrono::milliseconds) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::set<uint32_t> all;
        for (uint32_t unit = 0; unit < count_; ++unit) all.insert(unit);
        return all;
      }

     private:
      uint32_t count_;
    };
    return std::unique_ptr<broker::Shares>(std::make_unique<All>(count));
  }
  /// All messages but those of subjects that end so.
  void forget(const std::string& but) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, messages] : subjects_) {
      if (name.find(but) == std::string::npos) messages.clear();
    }
  }
  /// From now on no state is taken: what ends does so as if it were killed.
  void crash(bool on) {
    const std::lock_guard lock(mutex_);
    crashed_ = on;
  }
  size_t count(const std::string& subject) {
    const std::lock_guard lock(mutex_);
    return subjects_[subject].size();
  }
  size_t values() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  class MemoryReader : public broker::Reader {
   public:
    MemoryReader(MemoryBroker& broker, std::string subject, uint64_t position)
        : broker_(broker), subject_(std::move(subject)), position_(position) {}
    Result<bool> next(broker::Message& out, std::chrono::milliseconds patience) override {
      std::unique_lock lock(broker_.mutex_);
      const auto find = [&] {
        for (const auto& message : broker_.subjects_[subject_]) {
          if (message.position <= position_) continue;
          out = message;
          return true;
        }
        return false;
      };
      if (!broker_.changed_.wait_for(lock, patience, find)) return false;
      position_ = out.position;
      return true;
    }

   private:
    MemoryBroker& broker_;
    std::string subject_;
    uint64_t position_;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::deque<broker::Message>> subjects_;
  std::map<std::string, std::string> values_;
  uint64_t position_ = 0;
  bool crashed_ = false;
};

constexpr uint32_t kPartitions = 3;
constexpr uint32_t kShares = 2;

/// All processes of a run, until they have ended or `stop`.
class Processes {
 public:
  Processes(MemoryBroker& broker, std::chrono::milliseconds state_every) {
    for (uint32_t p = 0; p < kPartitions; ++p) {
      start(broker, state_every,
            [p](const cluster::RoleContext& own) { return cluster::signals(own, p); });
    }
    options_.workers = kShares;
    options_.line = [](const abi::Verdict& v) { return explain::to_json(v, false); };
    for (uint32_t w = 0; w < kShares; ++w) {
      start(broker, state_every, [this, w](const cluster::RoleContext& own) {
        return cluster::attribute(own, w, options_, {});
      });
    }
  }
  void stop() { stop_ = true; }
  /// Errors of processes, one line each.
  std::string join() {
    threads_.clear();
    return errors_;
  }

 private:
  template <typename Role>
  void start(MemoryBroker& broker, std::chrono::milliseconds state_every, Role role) {
    threads_.emplace_back([this, &broker, state_every, role] {
      cluster::RoleContext own;
      own.pack = compile_pack();  // each process has its own
      own.broker = &broker;
      own.partitions = kPartitions;
      own.state_every = state_every;
      own.stop = &stop_;
      own.inventory = [](topology::Topology&) { return ok_status(); };
      auto ended = role(own);
      const std::lock_guard lock(mutex_);
      if (!ended.ok()) errors_ += ended.error().message + "\n";
    });
  }
  std::atomic<bool> stop_ = false;
  cluster::AttributionOptions options_;
  std::mutex mutex_;
  std::string errors_;
  std::vector<std::jthread> threads_;
};

class Feed {
 public:
  explicit Feed(const std::vector<std::string>& lines)
      : lines_(lines),
        pack_(compile_pack()),
        router_(pack_, kPartitions),
        decoder_(pack_),
        subjects_("REFLEX", *pack_, kPartitions) {}
  /// Up to a line; the last part with the end.
  void feed(MemoryBroker& broker, size_t to) {
    const SymbolId source = pack_->symbols->intern("TRACE");
    while (at_ < to) {
      const size_t end = std::min(at_ + 40, to);
      std::string text;
      for (size_t k = at_; k < end; ++k) text += lines_[k] + "\n";
      const size_t size = text.size();
      text.resize(size + 64);
      stream::RecordBatch batch;
      batch.input = source;
      decoder_.decode(std::string_view(text).substr(0, size), source, at_ + 1, batch);
      send(broker, router_.split(batch));
      at_ = end;
    }
    if (to == lines_.size()) send(broker, router_.end());
  }
  [[nodiscard]] const cluster::Subjects& subjects() const { return subjects_; }
  Verdicts collected(MemoryBroker& broker) {
    std::atomic<bool> stop = false;
    cluster::RoleContext own;
    own.pack = pack_;
    own.broker = &broker;
    own.partitions = kPartitions;
    own.stop = &stop;
    Verdicts out;
    EXPECT_TRUE(cluster::collect(own, kShares, [&](const std::string& line) {
                  out.push_back(line);
                  return ok_status();
                }).ok());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  void send(MemoryBroker& broker, const std::vector<std::string>& messages) {
    for (uint32_t p = 0; p < kPartitions; ++p) {
      ASSERT_TRUE(broker.publish(subjects_.events(p), "", messages[p]).ok());
    }
  }
  const std::vector<std::string>& lines_;
  std::shared_ptr<const abi::CompiledPack> pack_;
  cluster::Router router_;
  stream::NdjsonDecoder decoder_;
  cluster::Subjects subjects_;
  size_t at_ = 0;
};

void wait_quiet(MemoryBroker& broker, const cluster::Subjects& subjects) {
  size_t before = SIZE_MAX;
  for (int quiet = 0; quiet < 8;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    size_t now = broker.count(subjects.limits()) + broker.count(subjects.outcomes());
    for (uint32_t p = 0; p < kPartitions; ++p) now += broker.count(subjects.signals(p));
    for (uint32_t w = 0; w < kShares; ++w) now += broker.count(subjects.verdicts(w));
    quiet = now == before ? quiet + 1 : 0;
    before = now;
  }
}

TEST(ClusterRestart, StatesGoOnWhenTheBrokerHasForgottenAllMessagesBeforeThem) {
  const auto lines = make_stream(9);
  const Verdicts expected = run_whole(compile_pack(), lines);
  ASSERT_GT(expected.size(), 20u);
  MemoryBroker broker;
  Feed run(lines);
  for (size_t part = 1; part <= 4; ++part) {
    Processes processes(broker, std::chrono::hours(1));  // states only when they are told to stop
    run.feed(broker, lines.size() * part / 4);
    if (part < 4) {
      wait_quiet(broker, run.subjects());
      processes.stop();
    }
    ASSERT_EQ(processes.join(), "");
    if (part < 4) broker.forget("verdicts");
  }
  EXPECT_EQ(broker.values(), kPartitions + kShares);
  const Verdicts got = run.collected(broker);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]);
}

TEST(ClusterRestart, KilledProcessesSayAgainWhatFollowsTheirLastState) {
  const auto lines = make_stream(10);
  const Verdicts expected = run_whole(compile_pack(), lines);
  MemoryBroker broker;
  Feed run(lines);
  for (size_t part = 1; part <= 5; ++part) {
    broker.crash(false);
    Processes processes(broker, std::chrono::milliseconds(1));
    run.feed(broker, lines.size() * part / 5);
    if (part < 5) {
      // Some are in the middle of it; from now on no state is taken.
      std::this_thread::sleep_for(std::chrono::milliseconds(60 * part));
      broker.crash(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      processes.stop();
    }
    ASSERT_EQ(processes.join(), "");
  }
  const Verdicts got = run.collected(broker);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]);
}

/// Lines as pieces of a file; now and then one comes again with a part of the next, as when a
/// feeder died before it had kept its place.
void publish_pieces(MemoryBroker& broker, const abi::CompiledPack& pack,
                    const std::vector<std::string>& lines, size_t from, size_t to) {
  static constexpr size_t kLines = 30;
  const auto publish = [&](size_t begin, size_t end) {
    cluster::IngestPiece piece;
    piece.sources.push_back({"TRACE", false, ""});
    piece.file = "1:2:0";
    for (size_t i = 0; i < begin; ++i) piece.offset += lines[i].size() + 1;
    for (size_t i = begin; i < end; ++i) piece.text += lines[i] + "\n";
    piece.end = piece.offset + piece.text.size();
    ASSERT_TRUE(broker.publish("REFLEX.ingest", "", cluster::encode(piece, pack)).ok());
  };
  for (size_t at = from; at < to; at += kLines) {
    publish(at, std::min(at + kLines, to));
    if (at / kLines % 5 == 0) publish(at, std::min(at + kLines / 2, to));
    if (at / kLines % 7 == 0) publish(at, std::min(at + 2 * kLines, to));
  }
}

TEST(ClusterRestart, ALiveRouterThatIsKilledSaysTheSameAgain) {
  const auto lines = make_stream(12);
  const Verdicts expected = run_whole(compile_pack(), lines);
  MemoryBroker broker;
  Feed run(lines);
  Processes processes(broker, std::chrono::hours(1));
  for (size_t part = 1; part <= 4; ++part) {
    broker.crash(false);
    std::atomic<bool> stop = false;
    std::jthread router([&] {
      cluster::RoleContext own;
      own.pack = compile_pack();
      own.broker = &broker;
      own.partitions = kPartitions;
      own.state_every = std::chrono::milliseconds(20);
      own.stop = &stop;
      own.inventory = [](topology::Topology&) { return ok_status(); };
      const auto status = cluster::route_live(own, {}, /*ticks=*/false);
      EXPECT_TRUE(status.ok()) << status.error().message;
    });
    const auto pack = compile_pack();
    publish_pieces(broker, *pack, lines, lines.size() * (part - 1) / 4, lines.size() * part / 4);
    if (part == 4) {
      cluster::IngestPiece end;
      end.what = cluster::IngestPiece::What::kEnd;
      ASSERT_TRUE(broker.publish("REFLEX.ingest", "", cluster::encode(end, *pack)).ok());
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(50 * part));
      broker.crash(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stop = true;
    }
  }
  ASSERT_EQ(processes.join(), "");
  const Verdicts got = run.collected(broker);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]);
}

TEST(ClusterRestart, WhatOthersPublishIsReadAndWhatNobodyCanReadIsTold) {
  const auto pack = compile_pack();
  const auto raw = cluster::read_piece("{\"ts\":1}\n", *pack);
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(raw.value().sources.at(0).name, "ingest");
  EXPECT_EQ(raw.value().text, "{\"ts\":1}\n");
  cluster::IngestPiece piece;
  piece.what = cluster::IngestPiece::What::kTick;
  piece.wall_ns = 77;
  const std::string bytes = cluster::encode(piece, *pack);
  EXPECT_EQ(cluster::read_piece(bytes, *pack).value().wall_ns, 77);
  for (size_t size = 1; size + 1 < bytes.size(); ++size) {
    EXPECT_FALSE(cluster::read_piece(std::string_view(bytes).substr(0, size), *pack).ok()) << size;
  }
}

TEST(ClusterRestart, WithoutAStateMissingMessagesAreAnError) {
  const auto lines = make_stream(9);
  MemoryBroker broker;
  Feed run(lines);
  run.feed(broker, 400);
  broker.forget("nothing of it");
  run.feed(broker, 800);
  Processes processes(broker, std::chrono::hours(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  processes.stop();
  EXPECT_NE(processes.join().find("are not kept any more, and there is no state"),
            std::string::npos);
}

}  // namespace
}  // namespace reflex
