// Test support: the random IR and worlds of random_ir.h.
#include "tests/unit/backend/random_ir.h"

#include <cmath>
#include <limits>

namespace reflex::testing {
namespace {

using abi::Value;
using ir::Op;
using ir::Rep;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

const char* const kTexts[] = {"",       "NVRM: Xid 48",  "NVIDIA H100 80GB", "abc",
                              "abcabc", "link\nis down", "0000:3b:00",       "NVRM: Xid (79)"};

// ---- host services: pure functions of their arguments, sometimes unknown, sometimes odd
Value mix(int64_t now, uint64_t a, uint64_t b) {
  const uint64_t h =
      (static_cast<uint64_t>(now) ^ (a * 0x9e3779b97f4a7c15u) ^ (b << 7)) * 0xbf58476d1ce4e5b9u;
  return {h >> 40, (h >> 33) % 4 != 0 ? 1u : 0u};  // unknown with garbage bits
}
Value job_of(void*, int64_t now, SymbolId node) noexcept { return mix(now, node, 1); }
Value node_label(void*, int64_t now, SymbolId node, SymbolId label) noexcept {
  return mix(now, node, label + 10);
}
Value nodes_in_job(void*, int64_t now, SymbolId job) noexcept { return mix(now, job, 2); }
Value gpu_at(void*, int64_t now, SymbolId node, const abi::Text* pci) noexcept {
  return mix(now, node, pci->size);
}
Value in_maintenance(void*, int64_t now, SymbolId node) noexcept { return mix(now, node, 3); }
Value peers(void*, const abi::EvalContext* context, uint32_t query) noexcept {
  if (query == 0) return {0x7ff8000000000000u, 1};  // a NaN that claims to be known
  return Value::of(static_cast<double>(context->now_ns) / 3.0 + query);
}
constexpr abi::HostServices kHost{job_of, node_label, nodes_in_job, gpu_at, in_maintenance, peers};

}  // namespace

int64_t random_integer(std::mt19937_64& rng) {
  static constexpr int64_t kSpecial[] = {0,
                                         1,
                                         -1,
                                         2,
                                         5,
                                         31,
                                         48,
                                         63,
                                         64,
                                         79,
                                         100,
                                         kMax,
                                         kMin,
                                         kMin + 1,
                                         kMax - 1,
                                         int64_t{1} << 32,
                                         int64_t{1} << 53};
  switch (rng() % 4) {
    case 0:
      return static_cast<int64_t>(rng());
    case 1:
      return static_cast<int64_t>(rng() % 200) - 20;
    default:
      return kSpecial[rng() % std::size(kSpecial)];
  }
}

double random_real(std::mt19937_64& rng) {
  // Zeros of both signs often: they are equal but not the same. An infinity may only be loaded.
  static constexpr double kSpecial[] = {0.0,
                                        -0.0,
                                        0.0,
                                        -0.0,
                                        1.0,
                                        -1.0,
                                        0.1,
                                        1e308,
                                        -1e308,
                                        5e-324,
                                        1e-300,
                                        9.3e18,
                                        -9.3e18,
                                        4503599627370497.5,
                                        2.5,
                                        1e19,
                                        std::numeric_limits<double>::infinity()};
  switch (rng() % 3) {
    case 0:
      return static_cast<double>(static_cast<int64_t>(rng())) / 1e15;
    case 1:
      return static_cast<double>(rng() % 100);
    default:
      return kSpecial[rng() % std::size(kSpecial)];
  }
}

Rep slot_rep(unsigned slot) {
  return slot < 4    ? Rep::kI64
         : slot < 7  ? Rep::kF64
         : slot == 7 ? Rep::kBool
         : slot < 10 ? Rep::kText
                     : Rep::kArray;
}
Rep feature_rep(unsigned feature) { return feature < 4 ? Rep::kF64 : Rep::kI64; }
Rep param_rep(unsigned param) {
  constexpr Rep kReps[] = {Rep::kI64, Rep::kF64, Rep::kBool, Rep::kText};
  return kReps[param];
}

ir::Module world_module() {
  ir::Module m;
  m.sets = {{{}},
            {{48}},
            {{1, 2}},
            {{2, 3, 4, 5, 6}},
            {{kMin, -1, 48, kMax}},
            {{-5, 0, 31, 48, 50, 58}},
            {{0, 63}},
            {{kMin, kMax}},
            {{-20, 60}},
            {{}}};
  for (int64_t i = -30; i < 400; i += 3) m.sets.back().values.push_back(i);
  m.texts.assign(std::begin(kTexts), std::end(kTexts));
  m.globs = {"*", "", "NVIDIA H100*", "*Xid*", "a?c", "*b*c", "n?", "no such"};
  m.regexes = {"Xid.*(48|79)", "^$", "(abc)+$", "\\bdown\\b"};
  return m;
}

std::vector<abi::ClassPlan> world_classes() {
  std::vector<abi::ClassPlan> classes(3);
  const auto bits = [](double v) { return Value::of(v).bits; };
  classes[0].name = "hw.unknown";
  classes[0].params = {0, 0, 0, 0};
  classes[0].params_known = {0, 0, 0, 0};
  classes[1].name = "hw.a";
  classes[1].params = {48, bits(2.5), 1, 0};
  classes[1].params_known = {1, 1, 1, 0};
  classes[2].name = "hw.b";
  classes[2].params = {static_cast<uint64_t>(kMin), bits(-0.0), 0, 0};
  classes[2].params_known = {1, 1, 0, 0};
  return classes;
}

std::shared_ptr<SymbolTable> world_symbols() {
  auto symbols = std::make_shared<SymbolTable>();
  for (int i = 0; i < 60; ++i) symbols->intern("n" + std::to_string(i));
  for (const char* text : kTexts) symbols->intern(text);
  return symbols;
}

ir::Function RandomIr::function(const std::string& name, bool predicate) {
  constexpr unsigned kOps = static_cast<unsigned>(Op::kPeers) + 1;
  insts_.clear();
  const size_t length = 6 + below(50);
  // Long functions need many loads to be interesting; then operations, until the result fits.
  while (insts_.size() < 4) try_leaf(static_cast<Op>(below(kOps)));
  while (insts_.size() < length) try_add(static_cast<Op>(below(kOps)));
  while (predicate && insts_.back().rep != Rep::kBool) try_add(static_cast<Op>(below(kOps)));
  ir::Function f{name, insts_, IrBuilder::type_of(insts_.back().rep)};
  for (const ir::Inst& inst : insts_) ++uses_[inst.op];
  return f;
}

/// False when there is no operand of a wanted representation yet.
bool RandomIr::add(Op op, Rep rep, std::initializer_list<Rep> operands, uint32_t index,
                   int64_t imm) {
  ir::Inst inst{op, rep, ir::kNoValue, ir::kNoValue, ir::kNoValue, index, imm};
  unsigned k = 0;
  for (const Rep want : operands) {
    std::vector<ir::ValueId> fitting;
    for (size_t i = 0; i < insts_.size(); ++i) {
      if (insts_[i].rep == want) fitting.push_back(static_cast<ir::ValueId>(i));
    }
    if (fitting.empty()) return false;
    // Recent values first: otherwise most of the function would be dead.
    const size_t reach = std::min<size_t>(fitting.size(), below(3) == 0 ? 100 : 3);
    const ir::ValueId id = fitting[fitting.size() - 1 - below(reach)];
    (k == 0 ? inst.a : k == 1 ? inst.b : inst.c) = id;
    ++k;
  }
  insts_.push_back(inst);
  return true;
}

bool RandomIr::try_leaf(Op op) {
  const auto slot = static_cast<uint32_t>(below(kSlots));
  const auto feature = static_cast<uint32_t>(below(kFeatures));
  const auto param = static_cast<uint32_t>(below(kParams));
  switch (op) {
    case Op::kConstBool:
      return add(op, Rep::kBool, {}, 0, static_cast<int64_t>(below(2)));
    case Op::kConstI64:
      return add(op, Rep::kI64, {}, 0, random_integer(rng_));
    case Op::kConstF64:
      return add(op, Rep::kF64, {}, 0, Value::of(random_real(rng_)).i64());
    case Op::kConstText:
      return add(op, Rep::kText, {}, static_cast<uint32_t>(below(8)));
    case Op::kUnknown:
      return add(op, any_rep(), {});
    case Op::kField:
    case Op::kCapture:
      return add(op, slot_rep(slot), {}, slot);
    case Op::kFeature:
    case Op::kTable:
      return add(op, feature_rep(feature), {}, feature);
    case Op::kParam:
      return add(op, param_rep(param), {}, param);
    case Op::kEntityKey:
      return add(op, Rep::kI64, {}, static_cast<uint32_t>(below(3)));
    case Op::kNow:
    case Op::kTimestamp:
    case Op::kRepeats:
      return add(op, Rep::kI64, {});
    case Op::kPeers:
      return add(op, Rep::kF64, {}, static_cast<uint32_t>(below(3)));
    default:
      return false;
  }
}

bool RandomIr::try_numeric(Op op) {
  const Rep n = number();
  switch (op) {
    case Op::kToF64:
      return add(op, Rep::kF64, {Rep::kI64});
    case Op::kToI64:
      return add(op, Rep::kI64, {Rep::kF64});
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMin:
    case Op::kMax:
      return add(op, n, {n, n});
    case Op::kMod:
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kShr:
      return add(op, Rep::kI64, {Rep::kI64, Rep::kI64});
    case Op::kNeg:
    case Op::kAbs:
      return add(op, n, {n});
    case Op::kLog:
      return add(op, Rep::kF64, {Rep::kF64});
    case Op::kEq:
    case Op::kNe: {
      const Rep r = below(4) == 0 ? Rep::kBool : n;
      return add(op, Rep::kBool, {r, r});
    }
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return add(op, Rep::kBool, {n, n});
    case Op::kInSet:
      return add(op, Rep::kBool, {Rep::kI64}, static_cast<uint32_t>(below(10)));
    case Op::kInRange:
      return add(op, Rep::kBool, {Rep::kI64}, static_cast<uint32_t>(6 + below(3)));
    case Op::kAnyBits:
    case Op::kAllBits:
      return add(op, Rep::kBool, {Rep::kI64}, 0, random_integer(rng_));
    default:
      return false;
  }
}

bool RandomIr::try_call(Op op) {
  const auto some = static_cast<uint32_t>(below(8));
  switch (op) {
    case Op::kArrayAt:
      return add(op, Rep::kI64, {Rep::kArray}, 0, static_cast<int64_t>(below(6)) - 1);
    case Op::kArrayCount:
      return add(op, Rep::kI64, {Rep::kArray});
    case Op::kTextEq:
    case Op::kTextLike:
      return add(op, Rep::kBool, {Rep::kText}, some);
    case Op::kTextMatches:
      return add(op, Rep::kBool, {Rep::kText}, some / 2);
    case Op::kTextSame:
      return add(op, Rep::kBool, {Rep::kText, Rep::kText});
    case Op::kSymbolLike:
      return add(op, Rep::kBool, {Rep::kI64}, some);
    case Op::kJobOf:
    case Op::kNodesInJob:
      return add(op, Rep::kI64, {Rep::kI64});
    case Op::kNodeLabel:
      return add(op, Rep::kI64, {Rep::kI64}, some);
    case Op::kGpuAt:
      return add(op, Rep::kI64, {Rep::kI64, Rep::kText});
    case Op::kInMaintenance:
      return add(op, Rep::kBool, {Rep::kI64});
    default:
      return false;
  }
}

bool RandomIr::try_add(Op op) {
  const Rep r = any_rep();
  switch (op) {
    case Op::kAnd:
    case Op::kOr:
      return add(op, Rep::kBool, {Rep::kBool, Rep::kBool});
    case Op::kNot:
      return add(op, Rep::kBool, {Rep::kBool});
    case Op::kIsMissing:
      return add(op, Rep::kBool, {r});
    case Op::kCoalesce:
      return add(op, r, {r, r});
    case Op::kSelect:
      return add(op, r, {Rep::kBool, r, r});
    default:
      break;
  }
  if (ir::operand_count(op) > 0) return try_numeric(op) || try_call(op);
  return try_leaf(op);
}

Value World::value(Rep rep) {
  Value v;
  switch (rep) {
    case Rep::kBool:
      v = {rng_() % 2, 1};
      break;
    case Rep::kI64:
      v = Value::of_i64(random_integer(rng_));
      break;
    case Rep::kF64:
      v = Value::of(random_real(rng_));
      break;
    case Rep::kText:
      texts_.push_back(std::make_unique<TextBox>(kTexts[rng_() % std::size(kTexts)]));
      v = {texts_.back()->bits(), 1};
      break;
    case Rep::kArray: {
      std::vector<int64_t> values(rng_() % 5);
      for (int64_t& x : values) x = random_integer(rng_);
      arrays_.push_back(std::make_unique<ArrayBox>(values));
      v = {arrays_.back()->bits(), 1};
      break;
    }
  }
  // Unknown with bits that are no pointer and a NaN: nobody may look at them.
  if (rng_() % 4 == 0) v = {rng_() % 2 == 0 ? 0 : 0xfff8dead0000beefu, 0};
  return v;
}

World::World(uint64_t seed) : rng_(seed) {
  record_->ts_ns = random_integer(rng_);
  record_->repeats = static_cast<uint32_t>(rng_());
  for (unsigned i = 0; i < kSlots; ++i) {
    const Value v = value(slot_rep(i));
    if (v.known != 0) record_->set_i64(i, v.i64());  // an absent slot holds 0
    captures_[i] = value(slot_rep(i));
  }
  for (unsigned i = 0; i < kFeatures; ++i) {
    features_[i] = value(feature_rep(i));
    table_[i] = value(feature_rep(i));
  }
  for (unsigned i = 0; i < kParams; ++i) params_[i] = value(param_rep(i));
  context_.captures = captures_.data();
  context_.features = features_.data();
  context_.table = table_.data();
  context_.class_params = params_.data();
  context_.host = rng_() % 8 == 0 ? nullptr : &kHost;
  context_.now_ns = static_cast<int64_t>(rng_() % 1000);
  for (uint64_t& key : context_.entity) key = static_cast<uint64_t>(random_integer(rng_));
}

}  // namespace reflex::testing
