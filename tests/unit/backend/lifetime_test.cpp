// Sets come and go: memory stays flat, evaluation goes on in other threads, isolation holds.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/unit/backend/random_ir.h"

namespace reflex::testing {
namespace {

long resident_kib() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

/// slot 0 == n and slot 4 > n / 2: different code for each n.
ir::Function rule(int64_t n) {
  IrBuilder f("rule" + std::to_string(n));
  const auto code = f.load(ir::Op::kField, ir::Rep::kI64, 0);
  const auto equal = f.add(ir::Op::kEq, ir::Rep::kBool, code, f.i64(n));
  const auto value = f.load(ir::Op::kField, ir::Rep::kF64, 4);
  const auto above = f.add(ir::Op::kGt, ir::Rep::kBool, value, f.f64(static_cast<double>(n) / 2));
  f.add(ir::Op::kAnd, ir::Rep::kBool, equal, above);
  return f.done();
}

std::shared_ptr<const abi::EvaluatorSet> rules(int64_t first, int64_t count) {
  ir::Module module;
  for (int64_t i = 0; i < count; ++i) module.functions.push_back(rule(first + i));
  const abi::CompiledPack plans = plans_for(module);
  const auto ir = std::make_shared<const ir::Module>(std::move(module));
  auto set = backend::make_jit({ir, &plans, nullptr, 2});
  RFX_CHECK(set.ok());
  return set.value();
}

TEST(Lifetime, TwoHundredReloadsKeepMemoryFlat) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps freed memory in quarantine";
#endif
  std::shared_ptr<const abi::EvaluatorSet> live;
  long after_warm_up = 0;
  for (int64_t i = 0; i < 200; ++i) {
    live = rules(i * 1000, 20);  // as a reload: the new set is made while the old one lives
    if (i == 20) after_warm_up = resident_kib();
  }
  // Without removal 180 sets of 20 functions keep well over 20 MiB of code, tables and names.
  EXPECT_LT(resident_kib() - after_warm_up, 6 * 1024);
}

TEST(Lifetime, TheEngineCanEndAndStartAgain) {
  for (int64_t i = 0; i < 10; ++i) {
    const auto set = rules(i, 2);
    RecordBox record(kSlots);
    record->set_i64(0, i);
    record->set_f64(4, 1e6);
    const abi::EvalContext context;
    EXPECT_EQ(run(*set, 0, record.get(), &context).status, abi::kTrue);
    EXPECT_EQ(run(*set, 1, record.get(), &context).status, abi::kFalse);
  }
}

TEST(Lifetime, ThreadsEvaluateWhileSetsAreReplaced) {
  std::mutex mutex;
  auto current = rules(0, 8);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> evaluations{0};
  std::atomic<uint64_t> wrong{0};
  const auto evaluate = [&] {
    RecordBox record(kSlots);
    record->set_f64(4, 1e9);
    const abi::EvalContext context;
    while (!stop) {
      std::shared_ptr<const abi::EvaluatorSet> set;
      {
        const std::lock_guard lock(mutex);
        set = current;
      }
      for (int64_t n = 0; n < 8; ++n) {
        record->set_i64(0, n);
        for (abi::ExprId e = 0; e < 8; ++e) {
          const uint32_t got = run(*set, e, record.get(), &context).status;
          wrong += got != (e == n ? abi::kTrue : abi::kFalse);
          ++evaluations;
        }
      }
    }
  };
  std::thread a(evaluate);
  std::thread b(evaluate);
  for (int i = 0; i < 60; ++i) {
    auto next = rules(0, 8);
    const std::lock_guard lock(mutex);
    current = std::move(next);
  }
  stop = true;
  a.join();
  b.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(evaluations, 1000u);
}

TEST(Lifetime, SetsAreMadeFromSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([t, &right] {
      for (int64_t i = 0; i < 10; ++i) {
        const int64_t n = t * 100 + i;
        const auto set = rules(n, 5);
        RecordBox record(kSlots);
        record->set_i64(0, n + 3);
        record->set_f64(4, 1e6);
        const abi::EvalContext context;
        right += run(*set, 3, record.get(), &context).status == abi::kTrue;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 30);
}

/// Rules as of a benchmark: each compares two slots and tests a third; also all in chunks.
double compile_ms(int64_t count) {
  ir::Module module;
  abi::CompiledPack plans;
  for (int64_t i = 0; i < count; ++i) {
    module.functions.push_back(rule(i));
    if (i % 64 == 0) plans.chunks.emplace_back();
    plans.chunks.back().leaves.push_back(static_cast<abi::LeafId>(i));
    abi::LeafPlan leaf;
    leaf.predicate = static_cast<abi::ExprId>(i);
    plans.leaves.push_back(leaf);
  }
  plans.exprs = plans_for(module).exprs;
  const auto ir = std::make_shared<const ir::Module>(std::move(module));
  const auto start = std::chrono::steady_clock::now();
  const auto set = backend::make_jit({ir, &plans, nullptr, 2});
  RFX_CHECK(set.ok());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

TEST(Lifetime, CompileTimeStaysSmall) {
  for (const int64_t count : {10, 100, 1000}) {
    const double ms = compile_ms(count);
    RecordProperty("compile_ms_" + std::to_string(count), std::to_string(ms));
    std::printf("  %5ld predicates and their chunks: %.1f ms\n", static_cast<long>(count), ms);
    // Measured about 0.3 ms each on a quiet machine; ten times that is a regression.
    EXPECT_LT(ms, 100.0 + 3.0 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace reflex::testing
