// Signals spread over workers by node, attribution by job: the same verdicts, byte for byte, as one
// process. Every message goes through its byte form; messages are sent twice now and then.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
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

namespace reflex {
namespace {

constexpr int64_t kStartMs = 1'760'000'400'000;
constexpr int kJobs = 6;
constexpr int kNodes = 24;

// Signals of nodes, of jobs, of peers and with a shared `unless`; a limit that follows the class.
constexpr const char* kPack = R"rfx(
pack spread 1.0.0
clock { lateness 5s }
event gpu.xid { key node: node  key gpu: gpu_index  job: job?  code: u16 }
event gpu.temp { key node: node  key gpu: gpu_index  value: celsius }
event nic.state { key node: node  key nic: nic  up: bool }
event nic.peer { key node: node  key peer: node  job: job? }
event nccl.timeout { key node: node  key job: job  rank: u32 }
event fabric.work { up: bool }

profile sp.base fallback {
  adaptive xid_limit: per<hour> { from xid_rate quantile 0.9 over 7d  default 40  floor 1  ceiling 400  min_samples 50 }
}
feature xid_rate on node = rate(gpu.xid, 1h)
signal xid_hw on (node, gpu) { e: gpu.xid where e.code in [48, 79, 95] } leak 1e-4 per hour
signal xid_many on node { when xid_rate > profile.xid_limit } leak 1e-3 per hour
signal xid_then_timeout on node within 90s {
  a: gpu.xid where a.code == 48
  then b: nccl.timeout where b.node == a.node
}
signal nic_stuck on (node, nic) {
  d: nic.state where not d.up
  then absent u: nic.state where u.up for 20s
} leak 1e-3 per hour
signal blamed on node { count nic.peer where it.peer == node >= 3 within 10m }
signal hotter_than_peers on (node, gpu) {
  when gpu.temp.value > peers(job).median + 6 * max(peers(job).mad, 0.5 celsius)
  peers at least 3
}
signal timed_out on node { e: nccl.timeout } leak 1e-3 per hour
signal job_timeouts on job { count distinct node of nccl.timeout >= 3 within 60s }

fault gpu_memory on (node, gpu) { prior 2e-4 per job  severity critical  remedy drain }
fault nic_port on (node, nic) { prior 1e-4 per job  remedy drain }
external app_bug on job { prior 1e-3 per job }
gpu_memory causes xid_hw p 0.9 lag -30s .. 5m scope self
gpu_memory causes timed_out p 0.8 lag -5s .. 5m scope peers
nic_port causes nic_stuck p 0.9 lag -1m .. 5m scope self
nic_port causes timed_out p 0.8 lag -5s .. 5m scope peers
app_bug causes timed_out p 0.5 lag -5s .. 5m scope job
incident job_hang on job { opens on job_timeouts  settle 60s  merge for 5m }
)rfx";

std::shared_ptr<const abi::CompiledPack> compile_pack() {
  auto compiled = compiler::compile_text({{"spread/pack.rfx", kPack}}, {});
  EXPECT_TRUE(compiled.ok());
  auto& compilation = *compiled.value();
  EXPECT_FALSE(compilation.sink.has_errors())
      << diag::render_text(compilation.sink.sorted(), compilation.sources, {});
  return compilation.pack;
}

/// Five hours of six jobs, with a silence in the middle; many events share a stamp.
std::vector<std::string> make_stream(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<std::pair<int64_t, std::string>> lines;
  const auto add = [&](int64_t t, const std::string& rest) {
    lines.emplace_back(t, fmt::format("{{\"ts\":{},{}}}", kStartMs + t, rest));
  };
  for (int job = 0; job < kJobs; ++job) {
    std::string nodes;
    for (int n = 0; n < kNodes / kJobs; ++n) {
      nodes += fmt::format("{}\"n{}\"", n ? "," : "", job * (kNodes / kJobs) + n);
    }
    add(0, fmt::format("\"kind\":\"job.start\",\"job\":\"j{}\",\"nodes\":[{}]", job, nodes));
  }
  for (int i = 0; i < 4000; ++i) {
    int64_t t = 1 + below(5 * 3600) * 1000 + (below(3) == 0 ? below(1000) : 0);
    if (t > 7'200'000 && t < 9'000'000) t = 7'200'000;  // exactly at a whole hour of the trace
    const int64_t n = below(kNodes);
    const int64_t gpu = below(4);
    switch (below(8)) {
      case 0: {
        const int codes[] = {31, 31, 13, 48, 79, 43};
        add(t, fmt::format("\"kind\":\"gpu.xid\",\"node\":\"n{}\",\"gpu\":{},\"code\":{}", n, gpu,
                           codes[below(6)]));
        break;
      }
      case 1:
      case 2:
        add(t, fmt::format("\"kind\":\"gpu.temp\",\"node\":\"n{}\",\"gpu\":{},\"value\":{}.5", n,
                           gpu, 70 + below(28)));
        break;
      case 3:
        add(t, fmt::format("\"kind\":\"nic.state\",\"node\":\"n{}\",\"nic\":\"mlx5_{}\",\"up\":{}",
                           n, below(2), below(2) ? "true" : "false"));
        break;
      case 4:
        add(t, fmt::format("\"kind\":\"nic.peer\",\"node\":\"n{}\",\"peer\":\"n{}\"", n,
                           below(kNodes)));
        break;
      case 5:
        add(t, fmt::format("\"kind\":\"fabric.work\",\"up\":{}", below(2) ? "true" : "false"));
        break;
      default: {  // a storm of one job
        const int64_t job = n / (kNodes / kJobs);
        for (int k = 0; k < 4; ++k) {
          const int64_t node = job * (kNodes / kJobs) + below(kNodes / kJobs);
          add(t + below(3) * 500,
              fmt::format("\"kind\":\"nccl.timeout\",\"node\":\"n{}\",\"job\":\"j{}\",\"rank\":{}",
                          node, job, below(64)));
        }
      }
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (auto& [t, line] : lines) out.push_back(std::move(line));
  return out;
}

using Verdicts = std::vector<std::string>;

Verdicts run_whole(const std::shared_ptr<const abi::CompiledPack>& pack,
                   const std::vector<std::string>& lines) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("reflex_cluster_{}.ndjson", getpid());
  {
    std::ofstream file(path);
    for (const auto& line : lines) file << line << '\n';
  }
  Verdicts verdicts;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) { verdicts.push_back(explain::to_json(v, false)); };
  auto engine = engine::Engine::create(pack, {}, sinks);
  EXPECT_TRUE(engine.ok());
  engine::PipelineOptions options;
  options.events = {path.string()};
  EXPECT_TRUE(engine::run_pipeline(pack, *engine.value(), options, {}).ok());
  for (auto& line : verdicts) {
    for (size_t p; (p = line.find(path.string())) != std::string::npos;) {
      line.replace(p, path.string().size(), "TRACE");
    }
  }
  std::filesystem::remove(path);
  std::sort(verdicts.begin(), verdicts.end());
  return verdicts;
}

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
  Cluster(uint32_t partitions, uint32_t workers)
      : partitions_(partitions),
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
    cluster::SignalWorker worker(pack, partition, partitions_);
    const auto give = [&](cluster::SignalBatch&& batch) {
      const std::string bytes = codec.encode(batch);
      for (Mailbox& to : signals_) to.put(bytes);
    };
    while (!worker.ended()) {
      if (worker.waits_for_ns() != kNoTimeNs) {
        auto table = codec.limit_table(limits_[partition].take());
        ASSERT_TRUE(table.ok()) << table.error().message;
        worker.set_limits(table.value());
      } else {
        auto batch = codec.event_batch(events_[partition].take());
        ASSERT_TRUE(batch.ok()) << batch.error().message;
        worker.push(std::move(batch).value());
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
    while (!worker.value()->ended()) {
      auto batch = codec.signal_batch(signals_[w].take());
      ASSERT_TRUE(batch.ok()) << batch.error().message;
      worker.value()->push(std::move(batch).value());
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

std::string first_difference(const Verdicts& got, const Verdicts& expected) {
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (got[i] != expected[i]) return fmt::format("got      {}\nexpected {}", got[i], expected[i]);
  }
  return got.size() == expected.size()
             ? ""
             : fmt::format("{} verdicts, expected {}", got.size(), expected.size());
}

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
