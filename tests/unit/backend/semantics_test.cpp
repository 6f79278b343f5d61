// Kleene tables, saturation, unknowns, text and arrays, on both backends; verify, print, passes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "compiler/pass/pipeline.h"
#include "runtime/builtin/lookup.h"
#include "runtime/builtin/numeric.h"
#include "runtime/builtin/text.h"
#include "tests/unit/backend/ir_builder.h"

namespace reflex::testing {
namespace {

using abi::kFalse;
using abi::kTrue;
using abi::kUnknown;
using ir::Op;
using ir::Rep;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
__extension__ typedef __int128 Wide;  // g++ and clang have it, ISO C++ does not

/// Functions with their expected outcome; all run in one set of each backend, and folded.
class Table {
 public:
  ir::Module module;
  void expect(const ir::Function& f, uint32_t status, uint64_t bits = 0) {
    module.functions.push_back(f);
    expected_.push_back({status, f.type.scalar == abi::Scalar::kBool ? 0x5a5a5a5a5a5a5a5a : bits});
  }
  void expect_i64(const ir::Function& f, std::optional<int64_t> v) {
    expect(f, v ? kTrue : kUnknown, static_cast<uint64_t>(v.value_or(0)));
  }
  void expect_f64(const ir::Function& f, std::optional<double> v) {
    expect(f, v ? kTrue : kUnknown, v ? abi::Value::of(*v).bits : 0);
  }
  void check(const abi::Record* record = nullptr) {
    const abi::EvalContext context;
    const abi::CompiledPack plans = plans_for(module);
    ir::Module folded = module;
    pass::run_all(folded);
    for (const ir::Function& f : module.functions) ASSERT_EQ(ir::verify(module, f), "");
    const Backends plain = make_backends(module, plans);
    const Backends after = make_backends(folded, plans);
    for (abi::ExprId e = 0; e < expected_.size(); ++e) {
      for (const auto& set : {plain.interp, plain.jit, after.interp, after.jit}) {
        const Outcome got = run(*set, e, record, &context);
        EXPECT_EQ(got, expected_[e])
            << set->backend() << ": " << got.status << " " << got.bits << "\n"
            << ir::print(module, module.functions[e]);
      }
    }
  }

 private:
  std::vector<Outcome> expected_;
};

ir::Function logic(Op op, abi::Truth a, abi::Truth b) {
  IrBuilder f("logic");
  const auto x = f.boolean(a);
  const auto y = f.boolean(b);
  f.add(op, Rep::kBool, x, y);
  return f.done();
}

TEST(Semantics, LogicIsKleene) {
  Table t;
  constexpr abi::Truth kAll[] = {kFalse, kTrue, kUnknown};
  constexpr abi::Truth kAnd[3][3] = {
      {kFalse, kFalse, kFalse}, {kFalse, kTrue, kUnknown}, {kFalse, kUnknown, kUnknown}};
  constexpr abi::Truth kOr[3][3] = {
      {kFalse, kTrue, kUnknown}, {kTrue, kTrue, kTrue}, {kUnknown, kTrue, kUnknown}};
  for (const abi::Truth a : kAll) {
    for (const abi::Truth b : kAll) {
      t.expect(logic(Op::kAnd, a, b), kAnd[a][b]);
      t.expect(logic(Op::kOr, a, b), kOr[a][b]);
    }
    IrBuilder n("not");
    n.add(Op::kNot, Rep::kBool, n.boolean(a));
    t.expect(n.done(), a == kUnknown ? kUnknown : a == kTrue ? kFalse : kTrue);
    IrBuilder m("missing");
    m.add(Op::kIsMissing, Rep::kBool, m.boolean(a));
    t.expect(m.done(), a == kUnknown ? kTrue : kFalse);
    IrBuilder c("coalesce");
    const auto x = c.boolean(a);
    const auto y = c.boolean(kTrue);
    c.add(Op::kCoalesce, Rep::kBool, x, y);
    t.expect(c.done(), a == kFalse ? kFalse : kTrue);
  }
  t.check();
}

std::vector<std::pair<Op, std::optional<int64_t>>> integer_cases(int64_t a, int64_t b) {
  // The reference is 128-bit arithmetic, clamped.
  const auto clamp = [](Wide v) {
    return static_cast<int64_t>(v > kMax ? Wide{kMax} : v < kMin ? Wide{kMin} : v);
  };
  const Wide x = a;
  const Wide y = b;
  std::vector<std::pair<Op, std::optional<int64_t>>> out = {
      {Op::kAdd, clamp(x + y)}, {Op::kSub, clamp(x - y)}, {Op::kMul, clamp(x * y)}};
  out.emplace_back(Op::kDiv, b == 0 ? std::nullopt : std::optional(clamp(x / y)));
  out.emplace_back(Op::kMod, b == 0 ? std::nullopt : std::optional(clamp(x % y)));
  return out;
}

TEST(Semantics, IntegersSaturateAndDivisionByZeroIsUnknown) {
  RecordBox record(2);
  constexpr int64_t kValues[] = {0, 1, -1, 2, -7, 1'000'000'007, kMax, kMax - 1, kMin, kMin + 1};
  for (const int64_t a : kValues) {
    for (const int64_t b : kValues) {
      record->set_i64(0, a);
      record->set_i64(1, b);
      Table t;
      for (const auto& [op, want] : integer_cases(a, b)) {
        IrBuilder f("i64");
        const auto x = f.load(Op::kField, Rep::kI64, 0);
        const auto y = f.load(Op::kField, Rep::kI64, 1);
        f.add(op, Rep::kI64, x, y);
        t.expect_i64(f.done(), want);
        IrBuilder constant("i64.constant");
        const auto cx = constant.i64(a);
        const auto cy = constant.i64(b);
        constant.add(op, Rep::kI64, cx, cy);
        t.expect_i64(constant.done(), want);
      }
      if (b == 0) {
        IrBuilder n("neg");
        n.add(Op::kNeg, Rep::kI64, n.load(Op::kField, Rep::kI64, 0));
        t.expect_i64(n.done(), a == kMin ? kMax : -a);
        IrBuilder m("abs");
        m.add(Op::kAbs, Rep::kI64, m.load(Op::kField, Rep::kI64, 0));
        t.expect_i64(m.done(), a == kMin ? kMax : std::abs(a));
      }
      t.check(record.get());
    }
  }
}

ir::Function real(Op op, double a, double b, Rep result = Rep::kF64) {
  IrBuilder f("f64");
  const auto x = f.f64(a);
  const auto y = f.f64(b);
  if (ir::operand_count(op) == 1)
    f.add(op, result, x);
  else
    f.add(op, result, x, y);
  return f.done();
}

TEST(Semantics, RealsThatAreNotFiniteAreUnknown) {
  Table t;
  t.expect_f64(real(Op::kDiv, 1, 0), std::nullopt);
  t.expect_f64(real(Op::kDiv, 0, 0), std::nullopt);
  t.expect_f64(real(Op::kMul, 1e308, 10), std::nullopt);
  t.expect_f64(real(Op::kAdd, 0.1, 0.2), 0.1 + 0.2);
  t.expect_f64(real(Op::kMin, 0.0, -0.0), 0.0);
  t.expect_f64(real(Op::kMax, -0.0, 0.0), -0.0);
  t.expect_f64(real(Op::kLog, 0, 0), std::nullopt);
  t.expect_f64(real(Op::kLog, -1, 0), std::nullopt);
  t.expect_f64(real(Op::kLog, 2, 0), std::log(2.0));
  t.expect_i64(real(Op::kToI64, 1e30, 0, Rep::kI64), kMax);
  t.expect_i64(real(Op::kToI64, -1e30, 0, Rep::kI64), kMin);
  t.expect_i64(real(Op::kToI64, -1.9, 0, Rep::kI64), -1);
  t.expect(real(Op::kEq, 0.0, -0.0, Rep::kBool), kTrue);
  t.expect(real(Op::kNe, 1, 1, Rep::kBool), kFalse);
  t.check();
}

TEST(Semantics, ProductsAndSumsRoundSeparately) {
  // With a fused multiply-add this difference is not 0 (toolchain.md trap 10).
  const double a = 1.0 + 0x1p-30;
  RecordBox record(2);
  record->set_f64(0, a);
  record->set_f64(1, a * a);
  IrBuilder f("contraction");
  const auto x = f.load(Op::kField, Rep::kF64, 0);
  const auto y = f.load(Op::kField, Rep::kF64, 1);
  f.add(Op::kSub, Rep::kF64, f.add(Op::kMul, Rep::kF64, x, x), y);
  Table t;
  t.expect_f64(f.done(), 0.0);
  t.check(record.get());
}

TEST(Semantics, TextAndArrays) {
  const TextBox text("NVRM: Xid (79)");
  const ArrayBox array({7, 8});
  RecordBox record(3);
  record->set_i64(0, static_cast<int64_t>(text.bits()));
  record->set_i64(1, static_cast<int64_t>(array.bits()));
  Table t;
  t.module.texts = {"NVRM: Xid (79)", "NVRM"};
  t.module.globs = {"NVRM*", "*(7?)", "NVRM"};
  t.module.regexes = {"Xid \\((\\d+)\\)", "^Xid"};
  const auto text_op = [&](Op op, uint32_t index, uint32_t slot) {
    IrBuilder f("text");
    f.add(op, Rep::kBool, f.load(Op::kField, Rep::kText, slot), ir::kNoValue, ir::kNoValue, index);
    return f.done();
  };
  t.expect(text_op(Op::kTextEq, 0, 0), kTrue);
  t.expect(text_op(Op::kTextEq, 1, 0), kFalse);
  t.expect(text_op(Op::kTextLike, 0, 0), kTrue);
  t.expect(text_op(Op::kTextLike, 1, 0), kTrue);
  t.expect(text_op(Op::kTextLike, 2, 0), kFalse);
  t.expect(text_op(Op::kTextMatches, 0, 0), kTrue);
  t.expect(text_op(Op::kTextMatches, 1, 0), kFalse);
  t.expect(text_op(Op::kTextMatches, 0, 2), kUnknown);  // slot 2 is absent
  const std::pair<int64_t, std::optional<int64_t>> elements[] = {
      {0, 7}, {1, 8}, {2, std::nullopt}, {-1, std::nullopt}};
  for (const auto& [index, want] : elements) {
    IrBuilder f("array");
    f.add(Op::kArrayAt, Rep::kI64, f.load(Op::kField, Rep::kArray, 1), ir::kNoValue, ir::kNoValue,
          0, index);
    t.expect_i64(f.done(), want);
  }
  IrBuilder count("count");
  count.add(Op::kArrayCount, Rep::kI64, count.load(Op::kField, Rep::kArray, 1));
  t.expect_i64(count.done(), 2);
  t.check(record.get());
}

TEST(Semantics, BadRegularExpressionIsAnError) {
  ir::Module module;
  IrBuilder f("bad");
  f.add(Op::kTextMatches, Rep::kBool, f.load(Op::kField, Rep::kText, 0));
  module.functions = {f.done()};
  const abi::CompiledPack plans = plans_for(module);
  for (const char* pattern : {"(", "((a{100}){10}){10}"}) {
    module.regexes = {pattern};
    const auto ir = std::make_shared<const ir::Module>(module);
    for (const auto make : {&backend::make_interp, &backend::make_jit}) {
      const auto set = make({ir, &plans, nullptr, 2});
      ASSERT_FALSE(set.ok()) << pattern;
      EXPECT_NE(set.error().message.find(pattern), std::string::npos) << set.error().message;
    }
  }
}

TEST(Builtins, GlobMatchesWholeText) {
  using builtin::glob_match;
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_TRUE(glob_match("**", ""));
  EXPECT_TRUE(glob_match("a*b*c", "a--b-c-b--c"));
  EXPECT_FALSE(glob_match("a*b*c", "a--b-c-b--"));
  EXPECT_TRUE(glob_match("?*?", "ab"));
  EXPECT_FALSE(glob_match("?*?", "a"));
  // No exponential case: the last star alone is retried.
  EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*b", std::string(20'000, 'a')));
}

template <typename R, typename... A>
constexpr bool cannot_throw(R (*)(A...) noexcept) {
  return true;
}
template <typename R, typename... A>
constexpr bool cannot_throw(R (*)(A...)) {
  return false;
}

TEST(Builtins, EveryBuiltinIsNoexcept) {
  // An exception through JIT frames would terminate: they have no unwind tables.
#define RFX_BUILTIN(name) static_assert(cannot_throw(&name), #name " must be noexcept");
#include "runtime/builtin/builtins.def"
#undef RFX_BUILTIN
  static_assert(!cannot_throw(+[](int) { return 1; }), "the check itself works");
}

TEST(Verify, RejectsBrokenFunctions) {
  ir::Module module;
  module.sets = {{{1, 2, 3}}, {{}}};
  module.texts = {"x"};
  const auto broken = [&](std::vector<ir::Inst> insts, Rep result = Rep::kBool) {
    return ir::verify(module, {"f", std::move(insts), IrBuilder::type_of(result)});
  };
  const ir::Inst one{Op::kConstI64, Rep::kI64, ir::kNoValue, ir::kNoValue, ir::kNoValue, 0, 1};
  const ir::Inst yes{Op::kConstBool, Rep::kBool, ir::kNoValue, ir::kNoValue, ir::kNoValue, 0, 1};
  const auto inst = [](Op op, Rep rep, ir::ValueId a, ir::ValueId b = ir::kNoValue,
                       uint32_t index = 0) {
    return ir::Inst{op, rep, a, b, ir::kNoValue, index, 0};
  };
  EXPECT_EQ(broken({yes}), "");
  EXPECT_EQ(broken({}), "f: no instruction");
  EXPECT_EQ(broken({one}), "f: %0: the result is not of the function's type");
  EXPECT_EQ(broken({inst(Op::kNot, Rep::kBool, 0)}), "f: %0: operand is not an earlier value");
  EXPECT_EQ(broken({yes, inst(Op::kNot, Rep::kBool, ir::kNoValue)}),
            "f: %1: operand is not an earlier value");
  EXPECT_EQ(broken({one, inst(Op::kNot, Rep::kBool, 0)}), "f: %1: wrong operand representation");
  EXPECT_EQ(broken({one, inst(Op::kLt, Rep::kI64, 0, 0)}), "f: %1: wrong result representation");
  EXPECT_EQ(broken({yes, inst(Op::kLt, Rep::kBool, 0, 0)}), "f: %1: operands cannot be compared");
  EXPECT_EQ(broken({one, yes, inst(Op::kAdd, Rep::kI64, 0, 1)}, Rep::kI64),
            "f: %2: wrong operand representation");
  EXPECT_EQ(broken({one, inst(Op::kInSet, Rep::kBool, 0, ir::kNoValue, 2)}),
            "f: %1: index out of bounds");
  EXPECT_EQ(broken({one, inst(Op::kInRange, Rep::kBool, 0, ir::kNoValue, 0)}),
            "f: %1: a range has two bounds");
  EXPECT_EQ(broken({inst(Op::kConstText, Rep::kText, ir::kNoValue, ir::kNoValue, 1)}, Rep::kText),
            "f: %0: index out of bounds");
  EXPECT_EQ(broken({inst(Op::kField, Rep::kBool, ir::kNoValue, ir::kNoValue, 64)}),
            "f: %0: index out of bounds");
  EXPECT_EQ(broken({inst(Op::kEntityKey, Rep::kI64, ir::kNoValue, ir::kNoValue, 3)}, Rep::kI64),
            "f: %0: index out of bounds");
}

/// field #0 > param #1 and missing(field #2) and 1 + 1 == 2
ir::Function temp_rule() {
  IrBuilder f("temp");
  const auto value = f.load(Op::kField, Rep::kF64, 0);
  const auto hot = f.add(Op::kGt, Rep::kBool, value, f.load(Op::kParam, Rep::kF64, 1));
  const auto missing = f.add(Op::kIsMissing, Rep::kBool, f.load(Op::kField, Rep::kI64, 2));
  const auto one = f.i64(1);
  const auto two = f.add(Op::kAdd, Rep::kI64, one, f.i64(1));
  const auto same = f.add(Op::kEq, Rep::kBool, two, f.i64(2));
  f.add(Op::kAnd, Rep::kBool, f.add(Op::kAnd, Rep::kBool, hot, missing), same);
  return f.done();
}

TEST(Passes, PrintIsStableAndPassesShorten) {
  ir::Module module;
  EXPECT_EQ(ir::print(module, pass::run(module, temp_rule())),
            "function temp\n"
            "  %0 f64 = field #0\n"
            "  %1 f64 = param #1\n"
            "  %2 bool = gt %0 %1\n"
            "  %3 i64 = field #2\n"
            "  %4 bool = is.missing %3\n"
            "  %5 bool = and %2 %4\n");
}

TEST(Passes, SpecialisationPutsClassParametersIn) {
  ir::Module module;
  abi::ClassPlan hw;
  hw.params = {0, abi::Value::of(87.5).bits};
  hw.params_known = {0, 1};
  EXPECT_EQ(ir::print(module, pass::specialise(module, temp_rule(), hw)),
            "function temp\n"
            "  %0 f64 = field #0\n"
            "  %1 f64 = const.f64 87.5\n"
            "  %2 bool = gt %0 %1\n"
            "  %3 i64 = field #2\n"
            "  %4 bool = is.missing %3\n"
            "  %5 bool = and %2 %4\n");
  hw.params_known[1] = 0;
  const ir::Function unset = pass::specialise(module, temp_rule(), hw);
  EXPECT_EQ(ir::print(module, unset),
            "function temp\n"
            "  %0 bool = unknown\n"
            "  %1 i64 = field #2\n"
            "  %2 bool = is.missing %1\n"
            "  %3 bool = and %0 %2\n");
}

TEST(Passes, APassCanBeSwitchedOff) {
  ir::Module module;
  const ir::Function f = pass::run(module, temp_rule(), {{"fold", "share", "prune"}});
  EXPECT_EQ(f.insts, temp_rule().insts);
  EXPECT_GT(pass::run(module, temp_rule(), {{"fold"}}).insts.size(), 6u);
}

TEST(Dumps, ShowOneBranchlessFunctionWithoutAddresses) {
  ir::Module module;
  module.functions = {temp_rule()};
  abi::CompiledPack plans = plans_for(module);
  plans.classes.resize(1);
  plans.classes[0].name = "hw.h100";
  plans.classes[0].params = {0, abi::Value::of(87.5).bits};
  plans.classes[0].params_known = {0, 1};
  const backend::CodegenInput input{std::make_shared<const ir::Module>(module), &plans, nullptr, 2};
  const auto text = backend::dump_llvm(input, 0, 0);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text.value().find("define i32 @\"temp@hw.h100\""), std::string::npos) << text.value();
  EXPECT_NE(text.value().find("8.750000e+01"), std::string::npos) << text.value();
  EXPECT_EQ(text.value().find("br "), std::string::npos) << text.value();
  EXPECT_EQ(text.value().find("call "), std::string::npos) << text.value();
  EXPECT_EQ(text.value().find("inttoptr"), std::string::npos) << text.value();
  const auto assembly = backend::dump_asm(input, 0, 0);
  ASSERT_TRUE(assembly.ok());
  EXPECT_NE(assembly.value().find("ret"), std::string::npos);
  EXPECT_EQ(assembly.value().find(".cfi"), std::string::npos) << "unwind tables are not wanted";
}

}  // namespace
}  // namespace reflex::testing
