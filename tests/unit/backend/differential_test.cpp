// Interpreter == JIT, bit for bit, over random IR; also through the passes and per class.
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/pass/pipeline.h"
#include "tests/unit/backend/random_ir.h"

namespace reflex::testing {
namespace {

constexpr size_t kFunctionCount = 600;
constexpr uint64_t kWorldCount = 80;

/// REFLEX_SEED=n replays a run.
uint64_t first_seed() {
  const char* text = std::getenv("REFLEX_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20'260'101;
}

struct Sample {
  ir::Module module;
  abi::CompiledPack plans;
};

Sample sample(uint64_t seed, bool predicates_only) {
  Sample s{world_module(), {}};
  RandomIr random(seed);
  for (size_t i = 0; i < kFunctionCount; ++i) {
    s.module.functions.push_back(
        random.function("f" + std::to_string(i), predicates_only || i % 3 != 0));
  }
  s.plans = plans_for(s.module);
  s.plans.classes = world_classes();
  return s;
}

void expect_same(const abi::EvaluatorSet& expected, const abi::EvaluatorSet& actual,
                 const ir::Module& module, const ir::Module& actual_module, uint64_t seed) {
  for (uint64_t w = 0; w < kWorldCount; ++w) {
    World world(seed * 1000 + w);
    for (abi::ExprId e = 0; e < module.functions.size(); ++e) {
      for (abi::ClassId c = 0; c < 3; ++c) {
        const Outcome a = run(expected, e, world.record(), world.context(), c);
        const Outcome b = run(actual, e, world.record(), world.context(), c);
        ASSERT_TRUE(same(module.functions[e], a, b))
            << a.status << " " << a.bits << " against " << b.status << " " << b.bits << "; seed "
            << seed << " world " << w << " class " << c << "\n"
            << ir::print(module, module.functions[e])
            << ir::print(actual_module, actual_module.functions[e]);
      }
    }
  }
}

TEST(Differential, GeneratedFunctionsAreWellFormedAndReachEveryOperation) {
  const ir::Module module = world_module();
  RandomIr random(first_seed());
  for (size_t i = 0; i < kFunctionCount; ++i) {
    const ir::Function f = random.function("f", i % 3 != 0);
    ASSERT_EQ(ir::verify(module, f), "") << ir::print(module, f);
  }
#define RFX_IR_OP(name, operands, text) \
  EXPECT_GT(random.uses().count(ir::Op::name), 0u) << text << " was never generated";
#include "compiler/ir/ops.def"
#undef RFX_IR_OP
}

TEST(Differential, JitEqualsInterpreter) {
  for (uint64_t seed = first_seed(); seed < first_seed() + 2; ++seed) {
    const Sample s = sample(seed, false);
    const Backends b = make_backends(s.module, s.plans, world_symbols());
    expect_same(*b.interp, *b.jit, s.module, s.module, seed);
  }
}

TEST(Differential, EveryPassKeepsMeaning) {
  const uint64_t seed = first_seed() + 100;
  const Sample s = sample(seed, false);
  const Backends plain = make_backends(s.module, s.plans, world_symbols());
  std::vector<ir::Module> variants;
  for (const pass::Pass& p : pass::passes()) {
    variants.push_back(s.module);
    for (ir::Function& f : variants.back().functions) f = p.run(s.module, f);
  }
  variants.push_back(s.module);
  pass::run_all(variants.back());
  for (const ir::Module& v : variants) {
    for (const ir::Function& f : v.functions) ASSERT_EQ(ir::verify(v, f), "") << ir::print(v, f);
    // Same plans: a pass may fold all parameters away, which makes the variants equal.
    const auto shared = std::make_shared<const ir::Module>(v);
    const auto interp = backend::make_interp({shared, &s.plans, world_symbols(), 2});
    ASSERT_TRUE(interp.ok());
    expect_same(*plain.interp, *interp.value(), s.module, v, seed);
  }
  const Backends passed = make_backends(variants.back(), s.plans, world_symbols());
  expect_same(*plain.interp, *passed.jit, s.module, variants.back(), seed);
}

TEST(Differential, ChunkHitsAreThePredicatesThatHold) {
  const uint64_t seed = first_seed() + 200;
  Sample s = sample(seed, true);
  for (abi::ExprId e = 0; e < s.module.functions.size(); ++e) {
    if (e % 64 == 0) s.plans.chunks.emplace_back();
    abi::LeafPlan leaf;
    leaf.predicate = e % 50 == 7 ? abi::kNone32 : e;  // some are always true
    s.plans.chunks.back().leaves.push_back(static_cast<abi::LeafId>(s.plans.leaves.size()));
    s.plans.leaves.push_back(leaf);
  }
  const Backends b = make_backends(s.module, s.plans, world_symbols());
  size_t hit_count = 0;
  for (uint64_t w = 0; w < kWorldCount; ++w) {
    World world(seed * 1000 + w);
    for (uint32_t k = 0; k < s.plans.chunks.size(); ++k) {
      for (abi::ClassId c = 0; c < 3; ++c) {
        std::vector<uint32_t> expected;
        const auto& leaves = s.plans.chunks[k].leaves;
        for (uint32_t i = 0; i < leaves.size(); ++i) {
          const abi::ExprId e = s.plans.leaves[leaves[i]].predicate;
          if (e == abi::kNone32 ||
              run(*b.interp, e, world.record(), world.context(), c).status == abi::kTrue) {
            expected.push_back(i);
          }
        }
        for (const auto& set : {b.interp, b.jit}) {
          std::vector<uint32_t> hits(leaves.size());
          const abi::ChunkEvaluator code = set->chunk(k, c);
          hits.resize(code.fn(code.self, world.record(), world.context(), hits.data()));
          ASSERT_EQ(hits, expected) << set->backend() << " world " << w << " chunk " << k;
          hit_count += hits.size();
        }
      }
    }
  }
  EXPECT_GT(hit_count, 1000u);
}

}  // namespace
}  // namespace reflex::testing
