// Machine code that sets share: the same answers as the interpreter, little compiled for a small
// change, nothing kept that nobody uses.
#include <gtest/gtest.h>

#include "tests/unit/backend/random_ir.h"

namespace reflex::testing {
namespace {

struct Cached {
  std::shared_ptr<backend::CodeCache> cache = backend::make_code_cache();
  std::shared_ptr<const abi::EvaluatorSet> live;  // as a reload: the old set lives meanwhile

  void load(const ir::Module& module, const abi::CompiledPack& plans) {
    const auto ir = std::make_shared<const ir::Module>(module);
    auto set = backend::make_jit({ir, &plans, world_symbols(), 2, cache});
    ASSERT_TRUE(set.ok()) << set.error().message;
    live = set.value();
  }
  void expect_as_interpreter(const ir::Module& module, const abi::CompiledPack& plans) const {
    const auto ir = std::make_shared<const ir::Module>(module);
    const auto interp = backend::make_interp({ir, &plans, world_symbols(), 2, nullptr});
    ASSERT_TRUE(interp.ok());
    for (uint64_t w = 0; w < 20; ++w) {
      World world(7000 + w);
      for (abi::ExprId e = 0; e < module.functions.size(); ++e) {
        for (abi::ClassId c = 0; c < 3; ++c) {
          const Outcome a = run(*interp.value(), e, world.record(), world.context(), c);
          const Outcome b = run(*live, e, world.record(), world.context(), c);
          ASSERT_TRUE(same(module.functions[e], a, b)) << ir::print(module, module.functions[e]);
        }
      }
    }
  }
};

/// 200 functions, predicates first: the first 64 are one chunk.
struct Rules {
  ir::Module module = world_module();
  abi::CompiledPack plans;
  RandomIr random{20'261'130};

  Rules() {
    for (size_t i = 0; i < 200; ++i) module.functions.push_back(random.function("f", i < 100));
    remake();
  }
  void change(size_t at) {
    module.functions[at] = random.function("g", at < 100);
    remake();
  }
  void remake() {
    plans = plans_for(module);
    plans.classes = world_classes();
    plans.chunks.emplace_back();
    for (abi::ExprId e = 0; e < 64; ++e) {
      abi::LeafPlan leaf;
      leaf.predicate = e;
      plans.chunks.back().leaves.push_back(static_cast<abi::LeafId>(plans.leaves.size()));
      plans.leaves.push_back(leaf);
    }
  }
};

TEST(CodeCache, EditedSetsComputeWhatTheInterpreterDoes) {
  Rules rules;
  Cached cached;
  cached.load(rules.module, rules.plans);
  const size_t all = cached.cache->last().functions;
  EXPECT_EQ(cached.cache->last().compiled, all);
  EXPECT_GT(cached.cache->last().bytes, 1000u);
  size_t compiled = 0;
  for (const size_t at : {150u, 3u, 199u, 100u}) {
    rules.change(at);
    cached.load(rules.module, rules.plans);
    // One function, once a class, and the chunk of the predicate.
    EXPECT_LE(cached.cache->last().compiled, 6u) << at;
    compiled += cached.cache->last().compiled;
    cached.expect_as_interpreter(rules.module, rules.plans);
  }
  EXPECT_GT(compiled, 3u);
  // Another set of constants behind the same index is other code.
  for (ir::IntSet& set : rules.module.sets) {
    for (int64_t& value : set.values) value += value < INT64_MAX ? 1 : 0;
  }
  cached.load(rules.module, rules.plans);
  EXPECT_GT(cached.cache->last().compiled, 0u);
  cached.expect_as_interpreter(rules.module, rules.plans);
}

TEST(CodeCache, KeepsNothingThatNoSetUses) {
  Rules rules;
  Cached cached;
  cached.load(rules.module, rules.plans);
  cached.load(rules.module, rules.plans);
  EXPECT_EQ(cached.cache->last().compiled, 0u);
  cached.live.reset();
  cached.load(rules.module, rules.plans);
  EXPECT_EQ(cached.cache->last().compiled, cached.cache->last().functions);
}

TEST(CodeCache, ManySmallChangesStayCompact) {
  Rules rules;
  Cached cached;
  cached.load(rules.module, rules.plans);
  const backend::CodeCache::Last fresh = cached.cache->last();
  size_t blocks_max = 0;
  uint64_t bytes_max = 0;
  for (size_t i = 0; i < 300; ++i) {
    rules.change(i * 37 % 200);
    cached.load(rules.module, rules.plans);
    blocks_max = std::max(blocks_max, cached.cache->last().blocks);
    bytes_max = std::max(bytes_max, cached.cache->last().bytes);
  }
  EXPECT_LT(blocks_max, fresh.blocks + 48);
  EXPECT_LT(bytes_max, fresh.bytes * 4);
  cached.expect_as_interpreter(rules.module, rules.plans);
}

}  // namespace
}  // namespace reflex::testing
