// Diagnosis latency under a storm, open loop: 1,024 incidents that open within one second on 2,000
// nodes, with the standard packs and every look, revision and counterfactual.
//
// Method. The trace has a time for every event. History of three days is read first, off the clock.
// Then a generator releases each event at its instant whatever the engine does, so that an engine
// that falls behind is charged for the wait (no coordinated omission). Time is complete up to where
// the generator is; it looks at the clock every millisecond, and that is within the latency.
// The latency of a first verdict is from the instant of the event that opens the incident to the call
// of the verdict sink. That of a later revision is from the instant at which it is due in event time
// (a look, the end of the settle window).
//   wall:    the generator is a thread with the machine's clock. Needs two idle cores.
//   virtual: the engine's clock is its thread's CPU time, and it waits for nothing else: what the wall
//            clock shows on an idle machine, also on a busy one.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "runtime/engine/engine.h"
#include "runtime/engine/inventory.h"
#include "runtime/eval/crew.h"
#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/reorder.h"
#include "tests/bench/replay_measure.h"

namespace reflex::bench {
namespace {

constexpr uint32_t kNodes = 2000;
constexpr uint32_t kJobs = 1024;
constexpr uint32_t kJobNodes = 16;  // jobs overlap: a node has eight of them
constexpr int64_t kOpensNs = 1'767'488'400 * kNsPerSecond;
constexpr int64_t kTickNs = kNsPerMs;
// Why: the settle window of 30 s, and what is given out at its end.
constexpr int64_t kStormNs = 34 * kNsPerSecond;

std::string node_name(uint32_t i) { return fmt::format("n{:04}", i); }
uint32_t node_of(uint32_t job, uint32_t k) { return (job * 2 + k) % kNodes; }

std::string inventory() {
  std::string text = R"({"nodes":[)";
  for (uint32_t i = 0; i < kNodes; ++i) {
    text += fmt::format(R"({}{{"node":"{}","labels":{{"hw":"H100","rack":"r{}","tor":"t{}"}}}})",
                        i > 0 ? "," : "", node_name(i), i / 8, i / 32);
  }
  text += R"(],"jobs":[)";
  for (uint32_t j = 0; j < kJobs; ++j) {
    text += fmt::format(R"({}{{"job":"j{:04}","start":"2026-01-01T00:00:00Z","nodes":[)",
                        j > 0 ? "," : "", j);
    for (uint32_t k = 0; k < kJobNodes; ++k) {
      text += fmt::format(R"({}"{}")", k > 0 ? "," : "", node_name(node_of(j, k)));
    }
    text += "]}";
  }
  return text + "]}";
}

/// Three days of weak signals; then 128 nodes lose a GPU, which ends the eight jobs of each, and half
/// of the other nodes say that they wait.
std::string events() {
  std::mt19937_64 random(20260101);
  const auto up_to = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  std::string text;
  const auto add = [&](int64_t ts_ns, const std::string& rest) {
    text += fmt::format(R"({{"ts":"{}",{}}})", to_rfc3339(EventTime{ts_ns}), rest);
    text += '\n';
  };
  constexpr const char* kWeak[] = {"gpu.ecc_ce", "pcie.aer_corr", "dcgm.warn"};
  for (int i = 0; i < 16'000; ++i) {
    const int64_t ts = kOpensNs - kNsPerMinute - up_to(3 * kNsPerDay);
    const auto node = static_cast<uint32_t>(up_to(kNodes));
    add(ts, fmt::format(R"("kind":"{}","node":"{}","gpu":{})", kWeak[i % 3], node_name(node),
                        up_to(8)));
  }
  for (uint32_t node = kJobNodes / 2; node < kNodes; node += kJobNodes) {
    add(kOpensNs - kNsPerSecond - up_to(20 * kNsPerSecond),
        fmt::format(R"("kind":"gpu.xid","node":"{}","gpu":1,"code":79)", node_name(node)));
  }
  for (uint32_t node = 0; node < kNodes; node += 2) {
    add(kOpensNs - 3 * kNsPerSecond + up_to(10 * kNsPerSecond),
        fmt::format(R"("kind":"nccl.timeout","node":"{}")", node_name(node + 1)));
  }
  for (uint32_t j = 0; j < kJobs; ++j) {
    add(kOpensNs + up_to(kNsPerSecond),
        fmt::format(R"("kind":"incident.open","job":"j{:04}","incident":"i{:04}",)"
                    R"("symptom":"crash")",
                    j, j));
  }
  return text;
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

class Storm {
 public:
  explicit Storm(std::shared_ptr<const abi::CompiledPack> pack)
      : pack_(std::move(pack)), reorder_(pack_, {}) {}

  Status load() {
    engine::EngineSinks sinks;
    sinks.verdict = [this](abi::Verdict&& v) { note(v); };
    auto made = engine::Engine::create(pack_, {}, std::move(sinks));
    if (!made.ok()) return made.error();
    engine_ = std::move(made).value();
    auto loaded = engine::load_inventory_text(inventory(), *pack_->symbols, engine_->topology());
    if (!loaded.ok()) return loaded.error();
    text_ = events();
    const size_t size = text_.size();
    text_.append(256, ' ');  // the decoder reads past the end
    stream::NdjsonDecoder decoder(pack_);
    stream::RecordBatch batch;
    const SymbolId source = pack_->symbols->intern("storm");
    reorder_.add_source(source, false);
    decoder.decode(std::string_view(text_).substr(0, size), source, 1, batch);
    if (decoder.counters().rejected_total() > 0) return Error{"the storm has bad lines"};
    // One source far out of order: the whole of it is known, so nothing is late.
    std::stable_sort(batch.records.begin(), batch.records.end(),
                     [](const auto* a, const auto* b) { return a->ts_ns < b->ts_ns; });
    reorder_.push(std::move(batch));
    reorder_.finish(released_);
    const auto first = std::find_if(released_.records.begin(), released_.records.end(),
                                    [](const auto* r) { return r->ts_ns >= begin_ns(); });
    next_ = static_cast<size_t>(first - released_.records.begin());
    engine_->process(std::span(released_.records).first(next_), begin_ns() - 1);
    return ok_status();
  }

  StormTimes run_virtual() {
    int64_t now_ns = begin_ns();
    while (now_ns < end_ns()) {
      now_ns += kTickNs - now_ns % kTickNs;  // the next look of the generator
      const double begin_s = thread_seconds();
      clock_ = [now_ns, begin_s] {
        return now_ns + static_cast<int64_t>((thread_seconds() - begin_s) * 1e9);
      };
      release(now_ns);
      now_ns = clock_();
    }
    return take();
  }

  StormTimes run_wall() {
    eval::ThreadCrew crew(2);
    engine_->set_crew(&crew);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now() + std::chrono::milliseconds(20);
    clock_ = [start] { return begin_ns() + (Clock::now() - start) / std::chrono::nanoseconds(1); };
    // The generator owns the schedule: it only ever looks at the clock, never at the engine.
    std::atomic<int64_t> released_ns{begin_ns()};
    std::thread generator([&] {
      for (int64_t at = begin_ns(); at < end_ns(); at += kTickNs) {
        std::this_thread::sleep_until(start + std::chrono::nanoseconds(at - begin_ns()));
        released_ns.store(at, std::memory_order_release);
        released_ns.notify_one();
      }
      released_ns.store(end_ns(), std::memory_order_release);
      released_ns.notify_one();
    });
    for (int64_t done = begin_ns(); done < end_ns();) {
      released_ns.wait(done, std::memory_order_acquire);
      done = released_ns.load(std::memory_order_acquire);
      release(done);
    }
    generator.join();
    engine_->set_crew(nullptr);
    return take();
  }

 private:
  static constexpr int64_t begin_ns() { return kOpensNs - 30 * kNsPerSecond; }
  static constexpr int64_t end_ns() { return kOpensNs + kStormNs; }

  /// Everything up to and including `at_ns` is there.
  void release(int64_t at_ns) {
    const std::span<const abi::Record* const> all(released_.records);
    size_t end = next_;
    while (end < all.size() && all[end]->ts_ns <= at_ns) ++end;
    const auto slice = all.subspan(next_, end - next_);
    next_ = end;
    engine_->process(slice, at_ns);
  }

  void note(const abi::Verdict& v) {
    if (!clock_) return;  // in the history
    const double ms = static_cast<double>(clock_() - v.ts_ns) * 1e-6;
    (v.revision == 1 ? first_ms_ : later_ms_).push_back(ms);
    if (v.final_revision && v.level == "confirmed") ++confirmed_;
  }

  static Latencies latencies(std::vector<double>& ms) {
    std::sort(ms.begin(), ms.end());
    const auto at = [&](double q) {
      return ms.empty() ? 0 : ms[static_cast<size_t>(q * static_cast<double>(ms.size() - 1))];
    };
    return {ms.size(), at(0.5), at(0.99), at(1)};
  }
  StormTimes take() { return {latencies(first_ms_), latencies(later_ms_), confirmed_}; }

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::unique_ptr<engine::Engine> engine_;
  std::string text_;
  stream::Reorder reorder_;
  stream::Released released_;
  size_t next_ = 0;
  std::function<int64_t()> clock_;  // event time that a verdict is given at
  std::vector<double> first_ms_;
  std::vector<double> later_ms_;
  size_t confirmed_ = 0;
};

}  // namespace

Result<StormTimes> measure_storm(const std::shared_ptr<const abi::CompiledPack>& pack, bool wall) {
  Storm storm(pack);
  if (auto status = storm.load(); !status.ok()) return status.error();
  return wall ? storm.run_wall() : storm.run_virtual();
}

}  // namespace reflex::bench
