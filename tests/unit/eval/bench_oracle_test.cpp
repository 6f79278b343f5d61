// The engine must give the exact per-rule counts of the throughput workload, and its speed on it.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <sstream>

#include "runtime/eval/signal_engine.h"
#include "tests/support/bench_workload.h"

namespace reflex::eval {
namespace {

const std::string kData = std::string(REFLEX_SOURCE_DIR) + "/tests/data/bench/";

const std::vector<test::BenchEvent>& events() {
  static const std::vector<test::BenchEvent> kEvents = test::BenchGenerator().run();
  return kEvents;
}

/// CPU time of the process: the wall clock of a shared machine says little.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string counts_of(const SignalEngine& engine) {
  std::ostringstream out;
  const auto fired = engine.firings_by_signal();
  const auto entities = engine.entities_by_signal();
  for (size_t s = 0; s < fired.size(); ++s) {
    out << s << '\t' << fired[s] << '\t' << entities[s] << '\n';
  }
  return out.str();
}

std::string expected(const std::string& size) {
  std::ifstream file(kData + "expected_" + size + ".tsv");
  return {std::istreambuf_iterator<char>(file), {}};
}

void run(const std::string& size, unsigned threads) {
  const auto bench = test::make_bench_pack(kData + "rules_" + size + ".json");
  const test::BenchRecords records(events(), *bench);
  SignalEngine engine(bench->pack, std::make_shared<topology::Topology>(bench->pack),
                      Options{threads, false});
  engine.set_count_only(true);
  std::vector<abi::Firing> firings;
  const auto& all = records.all();
  const double begin = cpu_seconds();
  constexpr size_t kBatch = 4096;
  for (size_t at = 0; at < all.size(); at += kBatch) {
    const size_t n = std::min(kBatch, all.size() - at);
    engine.process({all.data() + at, n}, all[at + n - 1]->ts_ns, firings);
  }
  engine.finish(INT64_MAX, firings);
  const double taken = cpu_seconds() - begin;
  std::printf("[ bench    ] %s rules, %u threads: %.1f ns CPU per event, %.1f MiB\n", size.c_str(),
              threads, taken * 1e9 / static_cast<double>(all.size()),
              static_cast<double>(engine.counters().state_bytes) / (1 << 20));
  EXPECT_TRUE(firings.empty());
  const std::string want = expected(size);
  ASSERT_FALSE(want.empty());
  EXPECT_EQ(counts_of(engine), want);
}

TEST(BenchOracle, TenRules) { run("10", 1); }
TEST(BenchOracle, HundredRules) { run("100", 1); }
TEST(BenchOracle, ThousandRules) { run("1000", 1); }
TEST(BenchOracle, HundredRulesOnTwoThreads) { run("100", 2); }

}  // namespace
}  // namespace reflex::eval
