// Signals spread over workers by node, attribution by job: the same verdicts, byte for byte, as one
// process. Every message goes through its byte form; messages are sent twice now and then.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "compiler/driver/compile.h"
#include "runtime/cluster/attribution_worker.h"
#include "runtime/cluster/outcome_exchange.h"
#include "runtime/cluster/partition.h"
#include "runtime/cluster/router.h"
#include "runtime/cluster/signal_worker.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"
#include "runtime/explain/explain.h"
#include "tests/property/cluster_world.h"

namespace reflex {
namespace {

/// Messages to one worker, in order; some come twice.
class Mailbox {
 public:
  void put(const std::string& message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    if (++count_ % 5 == 0) messages_.push_back(message);
    arrived_.notify_one();
  }
  std::string take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !messages_.empty(); });
    std::string message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> messages_;
  size_t count_ = 0;
};

/// All workers of a run, one thread each. Every worker compiles the packs itself, as processes do.
class Cluster {
 public:
  /// `restarts`: workers are now and then made anew from their saved state.
  Cluster(uint32_t partitions, uint32_t workers, bool restarts = false)
      : partitions_(partitions),
        restarts_(restarts),
        events_(partitions),
        limits_(partitions),
        signals_(workers),
        exchanges_(workers) {}

  Verdicts run(const std::vector<std::string>& lines, size_t lines_a_message) {
    std::vector<std::jthread> threads;
    for (uint32_t w = 0; w < signals_.size(); ++w) {
      auto pack = compile_pack();
      auto codec = std::make_shared<cluster::MessageCodec>(pack);
      exchanges_[w] = std::make_shared<cluster::OutcomeExchange>(
          w, static_cast<uint32_t>(signals_.size()),
          [this, codec, w](const cluster::OutcomeNotice& n) { tell(w, codec->encode(n)); });
      packs_.push_back(pack);
    }
    for (uint32_t w = 0; w < signals_.size(); ++w) {
      threads.emplace_back([this, w] { attribute(w); });
    }
    for (uint32_t p = 0; p < partitions_; ++p) threads.emplace_back([this, p] { evaluate(p); });
    feed(lines, lines_a_message);
    threads.clear();  // joins
    std::sort(verdicts_.begin(), verdicts_.end());
    return verdicts_;
  }
  [[nodiscard]] int restarted() const { return restarted_; }
  [[nodiscard]] size_t limit_tables() const { return limit_tables_; }
  [[nodiscard]] const std::set<uint32_t>& speakers() const { return speakers_; }

 private:
  void feed(const std::vector<std::string>& lines, size_t lines_a_message) {
    const auto pack = compile_pack();
    cluster::Router router(pack, partitions_);
    stream::NdjsonDecoder decoder(pack);
    const SymbolId source = pack->symbols->intern("TRACE");
    const auto send = [&](const std::vector<std::string>& messages) {
      for (uint32_t p = 0; p < partitions_; ++p) events_[p].put(messages[p]);
    };
    for (size_t i = 0; i < lines.size(); i += lines_a_message) {
      std::string text;
      for (size_t k = i; k < std::min(i + lines_a_message, lines.size()); ++k) {
        text += lines[k] + "\n";
      }
      const size_t size = text.size();
      text.resize(size + 64);
      stream::RecordBatch batch;
      batch.input = source;
      decoder.decode(std::string_view(text).substr(0, size), source, i + 1, batch);
      send(router.split(batch));
    }
    send(router.end());
  }

  void evaluate(uint32_t partition) {
    const auto pack = compile_pack();
    const cluster::MessageCodec codec(pack);
    auto owned = std::make_unique<cluster::SignalWorker>(pack, partition, partitions_);
    std::mt19937 random(partition);
    const auto give = [&](cluster::SignalBatch&& batch) {
      const std::string bytes = codec.encode(batch);
      for (Mailbox& to : signals_) to.put(bytes);
    };
    while (!owned->ended()) {
      if (restarts_ && random() % 3 == 0 && owned->is_settled()) {
        StateWriter out(*pack->symbols);
        owned->save(out);
        const std::string state = out.take();
        owned = std::make_unique<cluster::SignalWorker>(pack, partition, partitions_);
        StateReader in(state, *pack->symbols);
        const auto loaded = owned->load(in);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        ++restarted_;
      }
      cluster::SignalWorker& worker = *owned;
      if (worker.waits_for_ns() != kNoTimeNs) {
        auto table = codec.limit_table(limits_[partition].take());
        ASSERT_TRUE(table.ok()) << table.error().message;
        worker.set_limits(table.value());
      } else {
        auto batch = codec.event_batch(events_[partition].take());
        ASSERT_TRUE(batch.ok()) << batch.error().message;
        ASSERT_TRUE(worker.push(std::move(batch).value()));
      }
      worker.advance(give);
    }
  }

  void attribute(uint32_t w) {
    const auto& pack = packs_[w];
    const cluster::MessageCodec codec(pack);
    engine::EngineOptions options;
    options.elsewhere = exchanges_[w];
    engine::EngineSinks sinks;
    sinks.verdict = [&](abi::Verdict&& v) {
      const std::lock_guard lock(mutex_);
      verdicts_.push_back(explain::to_json(v, false));
      speakers_.insert(w);
    };
    const auto limits = [&](const cluster::LimitTable& table) {
      if (w != 0) return;
      ++limit_tables_;
      for (Mailbox& to : limits_) to.put(codec.encode(table));
    };
    auto worker = cluster::AttributionWorker::create(pack, partitions_, options, sinks, limits);
    ASSERT_TRUE(worker.ok());
    std::mt19937 random(w + 100);
    while (!worker.value()->ended()) {
      if (restarts_ && random() % 5 == 0) {
        StateWriter out(*pack->symbols);
        worker.value()->save(out);
        const std::string state = out.take();
        worker = cluster::AttributionWorker::create(pack, partitions_, options, sinks, limits);
        ASSERT_TRUE(worker.ok());
        StateReader in(state, *pack->symbols);
        const auto loaded = worker.value()->load(in);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        ++restarted_;
      }
      auto batch = codec.signal_batch(signals_[w].take());
      ASSERT_TRUE(batch.ok()) << batch.error().message;
      ASSERT_TRUE(worker.value()->push(std::move(batch).value()));
      worker.value()->advance();
    }
  }

  void tell(uint32_t from, const std::string& bytes) {
    for (uint32_t w = 0; w < exchanges_.size(); ++w) {
      if (w == from) continue;
      const cluster::MessageCodec codec(packs_[w]);
      auto notice = codec.outcome(bytes);
      ASSERT_TRUE(notice.ok());
      exchanges_[w]->accept(std::move(notice).value());
    }
  }

  uint32_t partitions_;
  bool restarts_;
  std::atomic<int> restarted_ = 0;
  std::vector<Mailbox> events_;   // [partition]
  std::vector<Mailbox> limits_;   // [partition]
  std::vector<Mailbox> signals_;  // [attribution worker]
  std::vector<std::shared_ptr<cluster::OutcomeExchange>> exchanges_;
  std::vector<std::shared_ptr<const abi::CompiledPack>> packs_;
  std::mutex mutex_;
  Verdicts verdicts_;
  std::set<uint32_t> speakers_;
  size_t limit_tables_ = 0;
};

TEST(Cluster, AnyNumberOfWorkersGivesTheVerdictsOfOneProcess) {
  const auto lines = make_stream(7);
  const Verdicts expected = run_whole(compile_pack(), lines);
  ASSERT_GT(expected.size(), 20u);
  for (const auto& [partitions, workers, lines_a_message] : {std::tuple{1u, 1u, size_t{500}},
                                                             {2u, 1u, size_t{61}},
                                                             {4u, 2u, size_t{500}},
                                                             {3u, 4u, size_t{7}}}) {
    SCOPED_TRACE(fmt::format("{} signal workers, {} attribution workers, {} lines a message",
                             partitions, workers, lines_a_message));
    Cluster cluster(partitions, workers);
    ASSERT_EQ(first_difference(cluster.run(lines, lines_a_message), expected), "");
    EXPECT_EQ(cluster.limit_tables(), 5u);
    EXPECT_EQ(cluster.speakers().size(), std::min(workers, 4u));
  }
}

TEST(Cluster, WorkersThatGoOnFromTheirStateGiveTheSameVerdicts) {
  const auto lines = make_stream(8);
  const Verdicts expected = run_whole(compile_pack(), lines);
  for (const auto& [partitions, workers, lines_a_message] :
       {std::tuple{1u, 1u, size_t{53}}, {3u, 2u, size_t{17}}, {2u, 4u, size_t{101}}}) {
    SCOPED_TRACE(fmt::format("{} signal workers, {} attribution workers, {} lines a message",
                             partitions, workers, lines_a_message));
    Cluster cluster(partitions, workers, /*restarts=*/true);
    ASSERT_EQ(first_difference(cluster.run(lines, lines_a_message), expected), "");
    EXPECT_GT(cluster.restarted(), 20);
  }
}

TEST(Cluster, AMessageThatIsMissingIsSeen) {
  const auto pack = compile_pack();
  cluster::SignalWorker worker(pack, 0, 1);
  cluster::EventBatch batch;
  batch.number = 1;
  EXPECT_TRUE(worker.push(std::move(batch)));
  batch = {};
  batch.number = 1;
  EXPECT_TRUE(worker.push(std::move(batch)));  // sent again
  batch = {};
  batch.number = 3;
  EXPECT_FALSE(worker.push(std::move(batch)));
}

TEST(Cluster, AMessageOfOtherPacksIsRefused) {
  const auto pack = compile_pack();
  auto other = compiler::compile_text({{"other/pack.rfx", "pack other 1.0.0\n"}}, {});
  ASSERT_TRUE(other.ok());
  const cluster::MessageCodec mine(pack);
  const cluster::MessageCodec theirs(other.value()->pack);
  const auto refused = theirs.event_batch(mine.encode(cluster::EventBatch{}));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("same packs"), std::string::npos);
  std::string bytes = mine.encode(cluster::SignalBatch{});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(mine.signal_batch(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
}

TEST(Cluster, PartitionsAreEven) {
  std::vector<int> counts(8);
  for (int n = 0; n < 8000; ++n) ++counts[cluster::partition_of(fmt::format("node-{}", n), 8)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace reflex
