// FakeDaemon: see fake_daemon.h.
#include "tests/unit/serve_http/fake_daemon.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "compiler/driver/compile.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"
#include "runtime/explain/explain.h"

namespace reflex::serve {
namespace {

constexpr const char* kPack = R"rfx(
pack site 1.2.0
event gpu.xid { key node: node  key gpu: gpu  code: u16 }
event gpu.temp { key node: node  value: celsius }
event nccl.stall { key node: node }
feature heat on node = mean(gpu.temp.value, last 8)
signal xid_fatal on (node, gpu) { e: gpu.xid where e.code == 79 } leak 1e-4 per hour
signal remapped on (node, gpu) { e: gpu.xid where e.code == 63 } holds 20m leak 1e-3 per hour
signal hot on node { when heat > profile.heat_limit } leak 1e-3 per hour
signal stall on node { e: nccl.stall } leak 1e-3 per hour
fault gpu_dead on (node, gpu) { prior 2e-4 per job severity critical remedy drain }
fault gpu_memory on (node, gpu) { prior 2e-4 per job severity warning remedy reset }
external fabric on job { prior 1e-4 per job }
gpu_dead causes xid_fatal p 0.8 lag -1m .. 5m
gpu_dead causes stall p 0.5 lag -1m .. 5m scope peers
gpu_memory causes remapped p 0.7 lag -1h .. 5m
gpu_memory causes hot p 0.2 lag -1h .. 5m
fabric causes stall p 0.6 lag -1m .. 5m scope job
incident job_hang on job { opens on incident.open  settle 30s  merge for 2m }
)rfx";

constexpr const char* kProfiles = R"rfx(
profile hw.base abstract {
  gpus: int = 8
  temp_hot: celsius = 85 within 70 .. 95
  adaptive heat_limit: celsius { from heat quantile 0.99 over 7d  default 85  floor 60  ceiling 95  min_samples 200 }
}
profile hw.h100 extends hw.base matches label hw == "h100" { temp_hot = 87 }
profile hw.a100 extends hw.base matches label hw == "a100" { temp_hot = 83 }
profile hw.unknown extends hw.base fallback { }
)rfx";

// 2026-03-01T00:00:00Z in ms.
constexpr int64_t kStartMs = 1'772'323'200'000;
constexpr int64_t kDays = 3;

/// Twelve nodes of two classes over three days; four hangs, one of them of nobody's fault.
std::string events() {
  std::mt19937_64 random(7);
  std::vector<std::pair<int64_t, std::string>> lines;
  const auto at = [&](int64_t ms, const std::string& rest) {
    lines.emplace_back(ms, fmt::format("{{\"ts\":{},{}}}\n", kStartMs + ms, rest));
  };
  std::string names;
  for (int n = 0; n < 12; ++n) {
    at(n, fmt::format(R"("kind":"node.labels","node":"n{:02}","labels":{{"hw":"{}","rack":"r{}"}})",
                      n, n < 8 ? "h100" : "a100", n / 4));
    names += fmt::format("{}\"n{:02}\"", n == 0 ? "" : ",", n);
  }
  at(100, fmt::format(R"("kind":"job.start","job":"llm-70b","nodes":[{}])", names));
  for (int64_t minute = 1; minute < kDays * 24 * 60; minute += 2) {
    for (int n = 0; n < 12; ++n) {
      const int64_t ms = minute * 60'000 + static_cast<int64_t>(random() % 60'000);
      const double base = n < 8 ? 62 : 70;
      at(ms, fmt::format(R"("kind":"gpu.temp","node":"n{:02}","value":{:.1f})", n,
                         base + static_cast<double>(random() % 120) / 10));
    }
  }
  const auto hang = [&](int64_t ms, int node, int code, const std::string& incident) {
    at(ms, fmt::format(R"("kind":"gpu.xid","node":"n{:02}","gpu":5,"code":{})", node, code));
    for (int n = 0; n < 12; ++n) {
      if (n != node)
        at(ms + 2'000 + n * 40, fmt::format(R"("kind":"nccl.stall","node":"n{:02}")", n));
    }
    at(ms + 4'000,
       fmt::format(R"("kind":"incident.open","incident":"{}","job":"llm-70b","symptom":"hang")",
                   incident));
  };
  constexpr int64_t kHour = 3'600'000;
  hang(20 * kHour, 3, 79, "i-0001");
  hang(40 * kHour, 9, 63, "i-0002");
  hang(55 * kHour, 3, 79, "i-0003");
  hang(kDays * 24 * kHour - 30'000, 6, 79, "i-0004");
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const auto& [ms, line] : lines) out += line;
  return out;
}

}  // namespace

FakeDaemon::FakeDaemon(Store& store, bool bare) : store_(store) {
  state.ready = true;
  state.started = "a fake daemon";
  state.live.set_sha256 = "0123";
  if (!bare) run_engine();
}

FakeDaemon::~FakeDaemon() = default;

void FakeDaemon::run_engine() {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  auto compiled = compiler::compile_text(
      {{"site/pack.rfx", kPack}, {"hwprofiles/site.rfx", kProfiles}}, options);
  if (!compiled.ok() || !compiled.value()->pack) {
    ADD_FAILURE() << (compiled.ok() ? diag::render_text(compiled.value()->sink.sorted(),
                                                        compiled.value()->sources, {})
                                    : compiled.error().message);
    return;
  }
  pack_ = compiled.value()->pack;
  engine::EngineSinks sinks;
  sinks.verdict = [this](abi::Verdict&& v) { made_.push_back(std::move(v)); };
  auto engine = engine::Engine::create(pack_, {}, sinks);
  ASSERT_TRUE(engine.ok());
  engine_ = std::move(engine).value();
  std::string name = (std::filesystem::temp_directory_path() / "reflex-fake-XXXXXX").string();
  const int fd = mkstemp(name.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(name) << events();
  engine::PipelineOptions pipeline;
  pipeline.events = {name};
  const auto summary = engine::run_pipeline(pack_, *engine_, pipeline, {});
  std::filesystem::remove(name);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  // The last incident stays open: its job still hangs.
  for (const abi::Verdict& v : made_) {
    if (!(v.incident == "i-0004" && v.final_revision)) publish(v);
  }
  state.live.set_sha256 = pack_->set_sha256;
  state.live.packs = pack_->packs;
  state.live.events = summary.value().events_evaluated;
  state.live.watermark_ns = engine_->last_event_ns();
  state.live.incidents_open = 1;
  const auto fired = engine_->signals().firings_by_signal();
  for (size_t i = 0; i < fired.size(); ++i) {
    state.live.firings_by_signal.emplace_back(pack_->signals[i].name, fired[i]);
  }
  SourceStatus source;
  source.name = "http/collector";
  source.lines = state.live.events;
  source.newest_ns = state.live.watermark_ns;
  source.lag_s = 0.4;
  state.sources = {source};
  state.reloads_ok = 2;
  state.reloads_failed = 1;
  state.last_reload_ok = false;
  state.last_reload_wall_ns = (kStartMs + 50 * 3'600'000) * kNsPerMs;
}

uint64_t FakeDaemon::publish(const abi::Verdict& verdict) {
  LiveVerdict live;
  live.verdict = std::make_shared<abi::Verdict>(verdict);
  live.json = std::make_shared<std::string>(explain::to_json(verdict, false));
  WriteBatch batch;
  batch.verdicts.push_back({live.verdict.get(), *live.json});
  const auto written = store_.write(batch);
  EXPECT_TRUE(written.ok()) << (written ? "" : written.error().message);
  if (!written) return 0;
  live.sequence = written.value().verdicts[0];
  const std::lock_guard lock(mutex);
  for (const auto& [id, told] : told_) told(live);
  return live.sequence;
}

void FakeDaemon::hang_again(const std::string& incident) {
  for (abi::Verdict v : made_) {
    if (v.incident != "i-0004" || v.final_revision) continue;
    v.id = "v-" + incident + "-" + std::to_string(v.revision);
    v.incident = incident;
    publish(v);
    break;
  }
}

IngestAnswer FakeDaemon::accept(IngestBody&& body) {
  const std::lock_guard lock(mutex);
  IngestAnswer answer = next_ingest;
  if (answer.outcome != IngestAnswer::Outcome::kAccepted) return answer;
  for (const IngestBody& earlier : bodies) {
    if (!body.key.empty() && earlier.key == body.key) {
      answer.outcome = IngestAnswer::Outcome::kRepeated;
      answer.position = position_;
      return answer;
    }
  }
  answer.lines = static_cast<uint64_t>(std::count(body.text.begin(), body.text.end(), '\n'));
  if (!body.text.ends_with('\n')) ++answer.lines;
  answer.position = position_ += body.text.size();
  bodies.push_back(std::move(body));
  return answer;
}

bool FakeDaemon::ask(const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look,
                     std::chrono::milliseconds) {
  const std::lock_guard lock(mutex);
  if (!answers || engine_ == nullptr) return false;
  look(*engine_, *pack_);
  return true;
}

Status FakeDaemon::status() {
  const std::lock_guard lock(mutex);
  return state;
}

ReloadAnswer FakeDaemon::reload() {
  const std::lock_guard lock(mutex);
  return next_reload;
}

ReloadAnswer FakeDaemon::start_shadow(const std::vector<std::string>& paths) {
  const std::lock_guard lock(mutex);
  shadow_paths = paths;
  state.shadow = std::make_shared<LaneStatus>();
  return next_reload;
}

ReloadAnswer FakeDaemon::promote() {
  const std::lock_guard lock(mutex);
  if (state.shadow != nullptr) return next_reload;
  ReloadAnswer answer;
  answer.outcome = ReloadAnswer::Outcome::kNoShadow;
  return answer;
}

reflex::Status FakeDaemon::drop_shadow() {
  const std::lock_guard lock(mutex);
  if (!fails.empty()) return Error{fails};
  state.shadow = nullptr;
  return ok_status();
}

reflex::Status FakeDaemon::snapshot() {
  const std::lock_guard lock(mutex);
  return fails.empty() ? ok_status() : reflex::Status(Error{fails});
}

reflex::Status FakeDaemon::feedback(const Feedback& feedback) {
  const std::lock_guard lock(mutex);
  if (!fails.empty()) return Error{fails};
  feedbacks.push_back(feedback);
  return ok_status();
}

reflex::Status FakeDaemon::suppress(const SuppressionOrder& order) {
  const std::lock_guard lock(mutex);
  if (!fails.empty()) return Error{fails};
  orders.push_back(order);
  return ok_status();
}

uint64_t FakeDaemon::subscribe(std::function<void(const LiveVerdict&)> told) {
  const std::lock_guard lock(mutex);
  told_[next_subscription_] = std::move(told);
  return next_subscription_++;
}

void FakeDaemon::unsubscribe(uint64_t subscription) {
  const std::lock_guard lock(mutex);
  told_.erase(subscription);
}

std::vector<std::pair<double, uint64_t>> FakeDaemon::diagnosis_latency() {
  return {{0.01, 3}, {0.1, 4}, {INFINITY, 5}};
}

}  // namespace reflex::serve
