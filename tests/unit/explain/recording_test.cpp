// The recording interpreter: the same answers, and the value under every sub-expression.
#include "compiler/backend/interp/recording.h"

#include <gtest/gtest.h>

namespace reflex::backend {
namespace {

struct Seen final : Recorder {
  bool on = true;
  std::vector<std::vector<abi::Value>> runs;
  bool wants(abi::ExprId, const abi::Record*, const abi::EvalContext*) override { return on; }
  void evaluated(abi::ExprId, const abi::Record*, const abi::EvalContext*,
                 std::span<const abi::Value> values) override {
    runs.emplace_back(values.begin(), values.end());
  }
};

/// entity[0] + 2 > entity[1]: no record is needed.
struct Fixture {
  Fixture() {
    auto module = std::make_shared<ir::Module>();
    ir::Function f;
    f.name = "f";
    f.type.scalar = abi::Scalar::kBool;
    using ir::Op;
    using ir::Rep;
    const auto inst = [](Op op, Rep rep, ir::ValueId a, ir::ValueId b, uint32_t index,
                         int64_t imm) { return ir::Inst{op, rep, a, b, ir::kNoValue, index, imm}; };
    f.insts = {inst(Op::kEntityKey, Rep::kI64, ir::kNoValue, ir::kNoValue, 0, 0),
               inst(Op::kConstI64, Rep::kI64, ir::kNoValue, ir::kNoValue, 0, 2),
               inst(Op::kAdd, Rep::kI64, 0, 1, 0, 0),
               inst(Op::kEntityKey, Rep::kI64, ir::kNoValue, ir::kNoValue, 1, 0),
               inst(Op::kGt, Rep::kBool, 2, 3, 0, 0)};
    module->functions = {f, f};
    pack.symbols = std::make_shared<SymbolTable>();
    abi::ExprInfo info;
    info.type.scalar = abi::Scalar::kBool;
    pack.exprs = {info, info};
    input.ir = module;
    input.plans = &pack;
    input.symbols = pack.symbols;
  }
  uint32_t run(const abi::EvaluatorSet& set, abi::ExprId e, uint64_t a, uint64_t b) {
    abi::EvalContext context;
    context.entity[0] = a;
    context.entity[1] = b;
    uint64_t out = 0;
    return set.expr(e, 0)(nullptr, &context, &out);
  }
  abi::CompiledPack pack;
  CodegenInput input;
};

TEST(Recording, hands_over_every_sub_expression_of_watched_ones_only) {
  Fixture fx;
  Seen seen;
  const auto set = make_recording(fx.input, {1}, seen);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(fx.run(*set.value(), 0, 5, 6), abi::kTrue);
  EXPECT_TRUE(seen.runs.empty());  // expression 0 is not watched
  EXPECT_EQ(fx.run(*set.value(), 1, 5, 6), abi::kTrue);
  EXPECT_EQ(fx.run(*set.value(), 1, 5, 7), abi::kFalse);
  ASSERT_EQ(seen.runs.size(), 2u);
  ASSERT_EQ(seen.runs[1].size(), 5u);
  EXPECT_EQ(seen.runs[1][0].i64(), 5);
  EXPECT_EQ(seen.runs[1][2].i64(), 7);
  EXPECT_EQ(seen.runs[1][3].i64(), 7);
  EXPECT_EQ(seen.runs[0][4].bits, 1u);
  EXPECT_EQ(seen.runs[1][4].bits, 0u);
  EXPECT_EQ(seen.runs[1][4].known, 1u);
}

TEST(Recording, answers_like_the_interpreter_and_is_silent_when_not_wanted) {
  Fixture fx;
  Seen seen;
  seen.on = false;
  const auto recording = make_recording(fx.input, {0, 1}, seen);
  const auto plain = make_interp(fx.input);
  ASSERT_TRUE(recording.ok() && plain.ok());
  for (uint64_t a = 0; a < 5; ++a) {
    for (uint64_t b = 0; b < 8; ++b) {
      EXPECT_EQ(fx.run(*recording.value(), 1, a, b), fx.run(*plain.value(), 1, a, b));
    }
  }
  EXPECT_TRUE(seen.runs.empty());
}

}  // namespace
}  // namespace reflex::backend
