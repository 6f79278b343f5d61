// The oracle: a million generated events through the whole pipeline must give, for every rule, the
// counts of the reference (tests/data/bench/expected_*.tsv: results and distinct nodes).
//
// The same numbers in arrival order and sorted, with 1 and 2 threads, by interpreter and JIT, with
// firings counted only or materialised. The events are generated once into a temporary folder.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "tests/bench/replay_measure.h"
#include "tests/bench/workload_rules.h"

namespace reflex::bench {
namespace {

namespace fs = std::filesystem;

/// The generated events; removed at the end of the run.
class Workload : public testing::Environment {
 public:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("reflex_oracle_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    const std::string command =
        std::string(REFLEX_BENCH_GEN) + " " + folder_.string() + " > /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string events(bool sorted) {
    return (folder_ / (sorted ? "events_sorted.jsonl" : "events.jsonl")).string();
  }

 private:
  static inline fs::path folder_;
};

[[maybe_unused]] const auto* const kWorkload =
    testing::AddGlobalTestEnvironment(new Workload);  // gtest owns it

struct Expected {
  std::vector<uint64_t> results;
  std::vector<uint64_t> nodes;
};

Expected read_expected(uint32_t rules) {
  const std::string path = std::string(REFLEX_SOURCE_DIR) + "/tests/data/bench/expected_" +
                           std::to_string(rules) + ".tsv";
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  Expected out;
  uint64_t id = 0;
  uint64_t results = 0;
  uint64_t nodes = 0;
  while (file >> id >> results >> nodes) {
    EXPECT_EQ(id, out.results.size());
    out.results.push_back(results);
    out.nodes.push_back(nodes);
  }
  EXPECT_EQ(out.results.size(), rules);
  return out;
}

/// Compiles each (size, backend) once.
const Compiled& compiled(uint32_t rules, compiler::Backend backend) {
  static std::map<std::pair<uint32_t, int>, Compiled> cache;
  const auto key = std::pair(rules, static_cast<int>(backend));
  auto found = cache.find(key);
  if (found == cache.end()) {
    auto made = compile_pack(to_rfx(make_rules(rules)), backend);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    found = cache.emplace(key, made.ok() ? made.value() : Compiled{}).first;
  }
  return found->second;
}

void expect_counts(const Result<RunResult>& run, uint32_t rules) {
  ASSERT_TRUE(run.ok()) << run.error().message;
  const RunResult& got = run.value();
  EXPECT_EQ(got.events, 1'000'000u);
  EXPECT_EQ(got.late, 0u);
  EXPECT_EQ(got.rejected, 0u);
  const Expected expected = read_expected(rules);
  const std::vector<WorkloadRule> shapes = make_rules(rules);
  size_t differences = 0;
  ASSERT_EQ(got.results.size(), expected.results.size());
  for (size_t i = 0; i < expected.results.size(); ++i) {
    if (got.results[i] == expected.results[i] && got.nodes[i] == expected.nodes[i]) continue;
    if (++differences <= 5) {
      ADD_FAILURE() << "rule " << i << " (shape " << shapes[i].shape << "): " << got.results[i]
                    << " results on " << got.nodes[i] << " nodes, expected " << expected.results[i]
                    << " on " << expected.nodes[i];
    }
  }
  EXPECT_EQ(differences, 0u) << "rules that differ";
}

/// rules, sorted, threads, backend
using Case = std::tuple<uint32_t, bool, unsigned, compiler::Backend>;

class Oracle : public testing::TestWithParam<Case> {};

TEST_P(Oracle, CountsAreExact) {
  const auto& [rules, sorted, threads, backend] = GetParam();
  const Compiled& set = compiled(rules, backend);
  ASSERT_NE(set.pack, nullptr);
  expect_counts(run_whole(set.pack, Workload::events(sorted), threads), rules);
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const auto& [rules, sorted, threads, backend] = info.param;
  return std::to_string(rules) + (sorted ? "_sorted_" : "_arrival_") + std::to_string(threads) +
         (backend == compiler::Backend::kJit ? "_jit" : "_interp");
}

INSTANTIATE_TEST_SUITE_P(
    AllOrders, Oracle,
    testing::Combine(testing::Values(10u, 100u, 1000u), testing::Bool(), testing::Values(1u, 2u),
                     testing::Values(compiler::Backend::kJit, compiler::Backend::kInterp)),
    case_name);

TEST(OracleMaterialised, FiringsHandedOutAreTheSame) {
  const Compiled& set = compiled(100, compiler::Backend::kJit);
  ASSERT_NE(set.pack, nullptr);
  expect_counts(run_materialised(set.pack, Workload::events(false), 2), 100);
}

TEST(OracleEvaluation, EvaluateOnlyPathIsTheSame) {
  const Compiled& set = compiled(100, compiler::Backend::kJit);
  ASSERT_NE(set.pack, nullptr);
  expect_counts(run_evaluation(set.pack, Workload::events(false), 1), 100);
}

}  // namespace
}  // namespace reflex::bench
