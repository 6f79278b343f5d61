// The same events and packs give byte-identical verdicts: for 1, 2 and 4 threads, batches of 1 and
// 4096, any arrival order within lateness, for the interpreter as for the JIT, and however often the
// state is saved and loaded on the way, into an engine of any number of threads.
//
// Runs the whole path from NDJSON files to verdict lines. Seeds are fixed and printed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "compiler/driver/compile.h"
#include "runtime/explain/explain.h"
#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"

namespace reflex {
namespace {

constexpr int64_t kStartMs = 1'760'000'000'000;
constexpr int64_t kLatenessMs = 5'000;

// Every shape of signal, node-keyed and global, with several edges between them.
constexpr const char* kPack = R"rfx(
pack prop.all 1.0.0
clock { lateness 5s }
event gpu.xid { key node: node  key gpu: gpu_index  job: job?  code: u16 }
event gpu.temp { key node: node  key gpu: gpu_index  value: celsius }
event nic.state { key node: node  key nic: nic  up: bool }
event nccl.timeout { key node: node  key job: job  rank: u32 }
event gpu.ecc { key node: node  key gpu: gpu_index  counter total: u64 }

signal xid_hw on (node, gpu) { e: gpu.xid where e.code in [48, 79, 95] } leak 1e-4 per hour
signal xid_then_timeout on node within 90s {
  a: gpu.xid where a.code == 48
  then b: nccl.timeout where b.node == a.node
}
signal xid_burst on (node, gpu) { count gpu.xid where it.code == 31 >= 3 within 60s }
signal xid_spread on node { count distinct gpu of gpu.xid where it.code == 31 >= 2 within 120s }
signal nic_stuck on (node, nic) {
  d: nic.state where not d.up
  then absent u: nic.state where u.up for 20s
} leak 1e-3 per hour
signal hot on (node, gpu) { when gpu.temp.value > 90 celsius for 10s  clear below 85 celsius }
signal hotter_than_peers on (node, gpu) {
  when gpu.temp.value > peers(job).median + 6 * max(peers(job).mad, 0.5 celsius)
  peers at least 3
}
feature ecc_wear on (node, gpu) = decayed(increase(gpu.ecc.total), half_life 1h)
signal ecc_worn on (node, gpu) { when ecc_wear > 20 }
signal timed_out on node { e: nccl.timeout } holds 10m leak 1e-3 per hour
signal job_timeouts on job { count distinct node of nccl.timeout >= 3 within 60s }

fault gpu_memory on (node, gpu) { prior 2e-4 per job  severity critical  remedy drain }
fault nic_port on (node, nic) { prior 1e-4 per job  remedy drain }
external app_bug on job { prior 1e-3 per job }
gpu_memory causes xid_hw p 0.9 lag -30s .. 5m scope self
gpu_memory causes ecc_worn p 0.3 lag -1h .. 10m scope self
gpu_memory causes timed_out p 0.8 lag -5s .. 5m scope peers
nic_port causes nic_stuck p 0.9 lag -1m .. 5m scope self
nic_port causes timed_out p 0.8 lag -5s .. 5m scope peers
app_bug causes xid_spread p 0.7 lag -1m .. 5m scope job
app_bug causes timed_out p 0.5 lag -5s .. 5m scope job
incident job_hang on job { opens on job_timeouts  settle 60s  merge for 5m }
)rfx";

struct Line {
  int64_t ts_ms;
  std::string text;
};

std::vector<Line> make_stream(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<Line> lines;
  const auto add = [&](int64_t t, const std::string& rest) {
    lines.push_back({kStartMs + t, fmt::format("{{\"ts\":{},{}}}", kStartMs + t, rest)});
  };
  for (int job = 0; job < 3; ++job) {
    std::string nodes;
    for (int n = 0; n < 6; ++n) nodes += fmt::format("{}\"n{}\"", n ? "," : "", job * 6 + n);
    add(0, fmt::format("\"kind\":\"job.start\",\"job\":\"j{}\",\"nodes\":[{}]", job, nodes));
  }
  for (int i = 0; i < 1500; ++i) {
    const int64_t t = 1 + below(600) * 1000 + (below(3) == 0 ? below(1000) : 0);  // many ties
    const int64_t n = below(18);
    const int64_t gpu = below(4);
    switch (below(6)) {
      case 0: {
        const int codes[] = {31, 31, 31, 48, 79, 43};
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
        add(t, fmt::format("\"kind\":\"nccl.timeout\",\"node\":\"n{}\",\"job\":\"j{}\",\"rank\":{}",
                           n, n / 6, below(64)));
        break;
      default:
        add(t, fmt::format("\"kind\":\"gpu.ecc\",\"node\":\"n{}\",\"gpu\":{},\"total\":{}", n, gpu,
                           below(500)));
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.ts_ms < b.ts_ms; });
  return lines;
}

/// An arrival order in which no event comes after one that is `lateness` younger.
std::vector<Line> shuffle_within_lateness(const std::vector<Line>& lines, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<int64_t, const Line*>> arrivals;
  for (const auto& line : lines) {
    arrivals.emplace_back(line.ts_ms + static_cast<int64_t>(random() % (kLatenessMs - 1)), &line);
  }
  std::sort(arrivals.begin(), arrivals.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->text < b.second->text;
  });
  std::vector<Line> result;
  for (const auto& [at, line] : arrivals) result.push_back(*line);
  return result;
}

class Trace {
 public:
  explicit Trace(const std::vector<Line>& lines)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("reflex_determinism_{}_{}.ndjson", getpid(), counter_++)) {
    std::ofstream file(path_);
    for (const auto& line : lines) file << line.text << '\n';
  }
  ~Trace() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  static inline int counter_ = 0;
  std::filesystem::path path_;
};

std::shared_ptr<const abi::CompiledPack> compile_pack(compiler::Backend backend) {
  compiler::Options options;
  options.backend = backend;
  auto compiled = compiler::compile_text({{"prop/pack.rfx", kPack}}, options);
  EXPECT_TRUE(compiled.ok());
  auto& compilation = *compiled.value();
  EXPECT_FALSE(compilation.sink.has_errors())
      << diag::render_text(compilation.sink.sorted(), compilation.sources, {});
  return compilation.pack;
}

/// The first line that differs, cut to a readable length; empty when equal.
std::string difference(const std::string& got, const std::string& expected) {
  if (got == expected) return "";
  size_t i = 0;
  size_t line = 0;
  for (; i < std::min(got.size(), expected.size()) && got[i] == expected[i]; ++i) {
    if (expected[i] == '\n') line = i + 1;
  }
  const size_t begin = std::max(line, i > 200 ? i - 200 : 0);
  return fmt::format("expected ...{}\n  got    ...{}\n", expected.substr(begin, 400),
                     got.substr(begin, 400));
}

struct Setting {
  unsigned threads = 1;
  size_t batch = 4096;
  size_t chunk_bytes = 1u << 20;
  size_t restore_every = 0;       // pieces
  unsigned restore_threads = 1;  // of the engines that go on
};

std::string run(const std::shared_ptr<const abi::CompiledPack>& pack, const std::string& path,
                const Setting& setting) {
  // A step of the engine hands out its firings, then its verdicts: each list has its own order.
  std::string out;
  std::string firings;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) { out += explain::to_json(v, false) + "\n"; };
  sinks.firing = [&](const abi::Firing& f) {
    firings += fmt::format("{} {} {} {} {} {}\n", f.ts_ns, f.onset_ns, pack->signals[f.signal].name,
                           pack->symbols->name(static_cast<SymbolId>(f.entity.values[0])),
                           f.entity.count > 1 ? f.entity.values[1] : 0, static_cast<int>(f.change));
  };
  engine::EngineOptions engine_options;
  engine_options.threads = setting.threads;
  auto engine = engine::Engine::create(pack, engine_options, sinks);
  EXPECT_TRUE(engine.ok());
  engine::PipelineOptions options;
  options.restore_every = setting.restore_every;
  std::vector<std::unique_ptr<engine::Engine>> restored;
  engine::PipelineHooks hooks;
  hooks.fresh_engine = [&] {
    engine_options.threads = restored.size() % 2 == 0 ? setting.restore_threads : setting.threads;
    auto next = engine::Engine::create(pack, engine_options, sinks);
    EXPECT_TRUE(next.ok());
    restored.push_back(std::move(next).value());
    return restored.back().get();
  };
  options.events = {path};
  options.threads = setting.threads;
  options.batch_events = setting.batch;
  options.chunk_bytes = setting.chunk_bytes;
  auto summary = engine::run_pipeline(pack, *engine.value(), options, hooks);
  EXPECT_TRUE(summary.ok()) << (summary.ok() ? "" : summary.error().message);
  EXPECT_EQ(setting.restore_every == 0, restored.empty());
  EXPECT_EQ(summary.value().counters.rejected_total(), 0u);
  out += firings;
  // The event source names the file; every arrangement has its own.
  for (size_t p; (p = out.find(path)) != std::string::npos;) out.replace(p, path.size(), "TRACE");
  return out;
}

TEST(Determinism, ThreadsBatchesAndChunksGiveTheSameBytes) {
  const auto pack = compile_pack(compiler::Backend::kJit);
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(fmt::format("stream seed {}", seed));
    const Trace trace(shuffle_within_lateness(make_stream(seed), seed + 100));
    const std::string expected = run(pack, trace.path(), {});
    ASSERT_NE(expected.find("\"final\":true"), std::string::npos) << "the stream opens no incident";
    for (const unsigned threads : {1u, 2u, 4u}) {
      for (const size_t batch : {size_t{1}, size_t{4096}}) {
        for (const size_t chunk : {size_t{700}, size_t{1} << 20}) {
          SCOPED_TRACE(fmt::format("threads {} batch {} chunk {}", threads, batch, chunk));
          ASSERT_EQ(difference(run(pack, trace.path(), {threads, batch, chunk}), expected), "");
        }
      }
    }
  }
}

// What a node does just before its job hangs is known to its habits, also while a look at another job's
// hang waits for the threads. The rates of a week later tell.
TEST(Determinism, HabitsBeforeAnOpeningAreCountedWhileAnotherLookWaits) {
  const auto pack = compile_pack(compiler::Backend::kInterp);
  std::vector<Line> lines;
  const auto add = [&](int64_t t, const std::string& rest) {
    lines.push_back({kStartMs + t, fmt::format("{{\"ts\":{},{}}}", kStartMs + t, rest)});
  };
  const auto timeout = [&](int64_t t, int node) {
    add(t, fmt::format("\"kind\":\"nccl.timeout\",\"node\":\"n{}\",\"job\":\"j{}\",\"rank\":0", node,
                       node / 6));
  };
  const auto hang = [&](int64_t t, int first_node) {
    for (int i = 0; i < 3; ++i) timeout(t + i * 1500, first_node + i);
    // After the end: whether it goes on from the one before the opening, that one decides.
    timeout(t + 120'000, first_node);
  };
  for (int job = 0; job < 3; ++job) {
    std::string nodes;
    for (int n = 0; n < 6; ++n) nodes += fmt::format("{}\"n{}\"", n ? "," : "", job * 6 + n);
    add(0, fmt::format("\"kind\":\"job.start\",\"job\":\"j{}\",\"nodes\":[{}]", job, nodes));
  }
  for (int n = 0; n < 18; ++n) {
    timeout(60'000, n);
  }
  for (int hour = 1; hour < 8 * 24; ++hour) {
    const int64_t t = hour * 3'600'000LL;
    add(t, R"("kind":"gpu.temp","node":"n0","gpu":0,"value":50.5)");  // in a silence nothing is counted
    if (hour % 24 != 1) continue;
    hang(t, 0);
    hang(t + 4000, 6);  // the look at j0's hang waits
    hang(t + 8000, 12);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.ts_ms < b.ts_ms; });
  const Trace trace(lines);
  const std::string expected = run(pack, trace.path(), {});
  ASSERT_NE(expected.find("\"final\":true"), std::string::npos);
  for (const unsigned threads : {2u, 3u}) {
    SCOPED_TRACE(fmt::format("threads {}", threads));
    EXPECT_EQ(difference(run(pack, trace.path(), {threads}), expected), "");
  }
}

TEST(Determinism, SavedAndLoadedOnTheWayGivesTheSameBytes) {
  const auto pack = compile_pack(compiler::Backend::kJit);
  for (const uint64_t seed : {1u, 2u}) {
    const Trace trace(shuffle_within_lateness(make_stream(seed), seed + 100));
    const std::string expected = run(pack, trace.path(), {});
    const auto size = static_cast<size_t>(std::filesystem::file_size(trace.path()));
    for (const auto& setting : {Setting{1, 4096, size / 2, 1, 1}, Setting{1, 64, size / 7, 1, 4},
                                Setting{4, 4096, size / 20, 3, 1}, Setting{2, 1, 2000, 1, 2}}) {
      SCOPED_TRACE(fmt::format("seed {} threads {} then {}, every {} bytes", seed, setting.threads,
                               setting.restore_threads, setting.chunk_bytes * setting.restore_every));
      ASSERT_EQ(difference(run(pack, trace.path(), setting), expected), "");
    }
  }
}

TEST(Determinism, ArrivalOrderWithinLatenessGivesTheSameBytes) {
  const auto pack = compile_pack(compiler::Backend::kJit);
  for (const uint64_t seed : {11u, 12u}) {
    const auto stream = make_stream(seed);
    const Trace in_order(stream);
    const std::string expected = run(pack, in_order.path(), {});
    for (uint64_t order = 0; order < 5; ++order) {
      SCOPED_TRACE(fmt::format("stream seed {} order seed {}", seed, order));
      const Trace trace(shuffle_within_lateness(stream, order));
      ASSERT_EQ(difference(run(pack, trace.path(), {2, 64, 5000}), expected), "");
    }
  }
}

TEST(Determinism, InterpreterAndJitGiveTheSameBytes) {
  const auto jit = compile_pack(compiler::Backend::kJit);
  const auto interp = compile_pack(compiler::Backend::kInterp);
  const Trace trace(make_stream(21));
  ASSERT_EQ(difference(run(interp, trace.path(), {}), run(jit, trace.path(), {})), "");
}

}  // namespace
}  // namespace reflex
