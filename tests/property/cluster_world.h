// A run that a cluster must give again: packs, a stream, and the verdicts of one process.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"
#include "runtime/explain/explain.h"

namespace reflex {

inline constexpr int64_t kStartMs = 1'760'000'400'000;
inline constexpr int kJobs = 6;
inline constexpr int kNodes = 24;

// Signals of nodes, of jobs, of peers and with a shared `unless`; a limit that follows the class.
inline constexpr const char* kPack = R"rfx(
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

inline std::shared_ptr<const abi::CompiledPack> compile_pack() {
  auto compiled = compiler::compile_text({{"spread/pack.rfx", kPack}}, {});
  EXPECT_TRUE(compiled.ok());
  auto& compilation = *compiled.value();
  EXPECT_FALSE(compilation.sink.has_errors())
      << diag::render_text(compilation.sink.sorted(), compilation.sources, {});
  return compilation.pack;
}

/// Five hours of six jobs, with a silence in the middle; many events share a stamp.
inline std::vector<std::string> make_stream(uint64_t seed) {
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

inline Verdicts run_whole(const std::shared_ptr<const abi::CompiledPack>& pack,
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

inline std::string first_difference(const Verdicts& got, const Verdicts& expected) {
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (got[i] != expected[i]) return fmt::format("got      {}\nexpected {}", got[i], expected[i]);
  }
  return got.size() == expected.size()
             ? ""
             : fmt::format("{} verdicts, expected {}", got.size(), expected.size());
}

}  // namespace reflex
