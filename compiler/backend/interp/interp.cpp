// The reference evaluator: one switch over the flat IR, one value at a time. Slow and obvious.
//
// It reads class parameters from the plan of the class itself instead of running specialised IR,
// so that the JIT's specialisation is checked against something independent.
// Ownership: a Code belongs to its set; Evaluator::self points to it.
#include <algorithm>
#include <array>

#include "compiler/backend/backend.h"
#include "compiler/backend/pattern_source.h"
#include "compiler/ir/semantics.h"
#include "runtime/builtin/lookup.h"
#include "runtime/builtin/numeric.h"
#include "runtime/builtin/text.h"

namespace reflex::backend {
namespace {

using abi::EvalContext;
using abi::Record;
using abi::Value;
using ir::Inst;
using ir::Op;
using ir::Rep;

/// The parameters of one hardware class as values.
using Params = std::vector<Value>;

/// One function for one hardware class (`params` null: parameters come from the context).
struct Code {
  const ir::Module* module = nullptr;
  const ir::Function* function = nullptr;
  const builtin::PatternTable* patterns = nullptr;
  const Params* params = nullptr;
};

Value truth(uint64_t v, uint64_t known) { return known != 0 ? Value{v != 0, 1} : Value{}; }

/// Canonical form of something that was loaded.
Value loaded(uint64_t bits, bool known, Rep rep) {
  if (!known) return Value::unknown();
  return rep == Rep::kBool ? truth(bits, 1) : Value{bits, 1};
}
Value loaded(const Value& v, Rep rep) { return loaded(v.bits, v.known != 0, rep); }

const abi::Text* text_of(const Value& v) { return reinterpret_cast<const abi::Text*>(v.bits); }
const abi::IntArray* array_of(const Value& v) {
  return reinterpret_cast<const abi::IntArray*>(v.bits);
}

Value load(const Code& code, const Inst& inst, const Record* record, const EvalContext* context) {
  switch (inst.op) {
    case Op::kConstText:
      return {reinterpret_cast<uint64_t>(rfx_const_text(code.patterns, inst.index)), 1};
    case Op::kField:
      return loaded(record->slots()[inst.index], record->has(inst.index), inst.rep);
    case Op::kCapture:
      return loaded(context->captures[inst.index], inst.rep);
    case Op::kFeature:
      return loaded(context->features[inst.index], inst.rep);
    case Op::kTable:
      return loaded(context->table[inst.index], inst.rep);
    case Op::kParam: {
      if (code.params == nullptr || inst.rep == Rep::kText) {
        return loaded(context->class_params[inst.index], inst.rep);
      }
      return inst.index < code.params->size() ? loaded((*code.params)[inst.index], inst.rep)
                                              : Value::unknown();
    }
    case Op::kEntityKey:
      return {context->entity[inst.index], 1};
    case Op::kNow:
      return Value::of_i64(context->now_ns);
    case Op::kTimestamp:
      return Value::of_i64(record->ts_ns);
    case Op::kRepeats:
      return Value::of_i64(record->repeats);
    case Op::kPeers:
      return rfx_peers(context, inst.index);
    default:
      return ir::constant_value(inst);
  }
}

Value array_at(const Value& array, int64_t index) {
  if (array.known == 0) return Value::unknown();
  const abi::IntArray* a = array_of(array);
  if (index < 0 || index >= int64_t{a->count}) return Value::unknown();
  return Value::of_i64(a->data()[index]);
}

/// Operations that call builtins, and arrays.
Value call(const Code& code, const Inst& inst, const EvalContext* context, Value a, Value b) {
  switch (inst.op) {
    case Op::kLog: {
      if (a.known == 0 || !(a.f64() > 0)) return Value::unknown();
      const double v = rfx_log(a.f64());
      return v - v == 0 ? Value::of(v) : Value::unknown();  // finite
    }
    case Op::kArrayAt:
      return array_at(a, inst.imm);
    case Op::kArrayCount:
      return a.known != 0 ? Value::of_i64(array_of(a)->count) : Value::unknown();
    case Op::kTextEq:
      return truth(rfx_text_eq(code.patterns, inst.index, text_of(a)), a.known);
    case Op::kTextLike:
      return truth(rfx_text_like(code.patterns, inst.index, text_of(a)), a.known);
    case Op::kTextMatches:
      return truth(rfx_text_matches(code.patterns, inst.index, text_of(a)), a.known);
    case Op::kTextSame:
      return truth(rfx_text_same(text_of(a), text_of(b)), a.known & b.known);
    case Op::kSymbolLike:
      return truth(rfx_symbol_like(code.patterns, inst.index, a.i64()), a.known);
    case Op::kJobOf:
      return rfx_job_of(context, a.i64(), a.known);
    case Op::kNodeLabel:
      return rfx_node_label(context, a.i64(), a.known, inst.index);
    case Op::kNodesInJob:
      return rfx_nodes_in_job(context, a.i64(), a.known);
    case Op::kGpuAt:
      return rfx_gpu_at(context, a.i64(), text_of(b), a.known & b.known);
    case Op::kInMaintenance:
      return rfx_in_maintenance(context, a.i64(), a.known);
    default:
      RFX_CHECK(false && "operation without an evaluation");
  }
  return Value::unknown();
}

Value evaluate(const Code& code, const Record* record, const EvalContext* context) {
  const std::vector<Inst>& insts = code.function->insts;
  constexpr size_t kInline = 64;  // Why: nearly every rule is shorter; longer ones allocate
  std::array<Value, kInline> small;
  std::vector<Value> large(insts.size() > kInline ? insts.size() : 0);
  Value* values = large.empty() ? small.data() : large.data();
  for (size_t i = 0; i < insts.size(); ++i) {
    const Inst& inst = insts[i];
    const unsigned count = ir::operand_count(inst.op);
    const Value a = count > 0 ? values[inst.a] : Value{};
    const Value b = count > 1 ? values[inst.b] : Value{};
    const Value c = count > 2 ? values[inst.c] : Value{};
    if (count == 0)
      values[i] = load(code, inst, record, context);
    else if (!ir::is_scalar_op(inst.op))
      values[i] = call(code, inst, context, a, b);
    else
      values[i] = ir::scalar_op(*code.module, inst, insts[inst.a].rep, a, b, c);
  }
  return values[insts.size() - 1];
}

uint32_t run_predicate(const void* self, const Record* record, const EvalContext* context,
                       uint64_t*) {
  const Value v = evaluate(*static_cast<const Code*>(self), record, context);
  return v.known == 0 ? abi::kUnknown : v.bits != 0 ? abi::kTrue : abi::kFalse;
}

uint32_t run_value(const void* self, const Record* record, const EvalContext* context,
                   uint64_t* out) {
  const Value v = evaluate(*static_cast<const Code*>(self), record, context);
  *out = v.known != 0 ? v.bits : 0;
  return v.known != 0 ? abi::kTrue : abi::kUnknown;
}

/// The predicates of a chunk for one class; null = always true.
struct ChunkCode {
  std::vector<const Code*> predicates;
};

uint32_t run_chunk(const void* self, const Record* record, const EvalContext* context,
                   uint32_t* hits) {
  const auto* chunk = static_cast<const ChunkCode*>(self);
  uint32_t count = 0;
  for (uint32_t i = 0; i < chunk->predicates.size(); ++i) {
    const Code* code = chunk->predicates[i];
    if (code == nullptr || run_predicate(code, record, context, nullptr) == abi::kTrue) {
      hits[count++] = i;
    }
  }
  return count;
}

class InterpSet final : public abi::EvaluatorSet {
 public:
  InterpSet(const CodegenInput& input, std::shared_ptr<const builtin::PatternTable> patterns)
      : module_(input.ir), patterns_(std::move(patterns)) {
    const abi::CompiledPack& plans = *input.plans;
    class_count_ = std::max<size_t>(plans.classes.size(), 1);
    for (const abi::ClassPlan& c : plans.classes) params_.push_back(params_of(c));
    codes_.resize(class_count_ * module_->functions.size());
    for (size_t e = 0; e < module_->functions.size(); ++e) {
      const bool per_class = !plans.classes.empty() && plans.exprs[e].reads_class;
      for (size_t c = 0; c < class_count_; ++c) {
        codes_[e * class_count_ + c] = {module_.get(), &module_->functions[e], patterns_.get(),
                                        per_class ? &params_[c] : nullptr};
      }
    }
    for (const abi::Chunk& chunk : plans.chunks) {
      for (size_t c = 0; c < class_count_; ++c) {
        ChunkCode code;
        for (const abi::LeafId leaf : chunk.leaves) {
          const abi::ExprId e = plans.leaves[leaf].predicate;
          code.predicates.push_back(e == abi::kNone32 ? nullptr : &codes_[e * class_count_ + c]);
        }
        chunks_.push_back(std::move(code));
      }
    }
  }

  [[nodiscard]] abi::Evaluator expr(abi::ExprId id, abi::ClassId hw_class) const override {
    RFX_CHECK(id < module_->functions.size() && hw_class < class_count_);
    const Code& code = codes_[id * class_count_ + hw_class];
    const bool predicate = code.function->type.scalar == abi::Scalar::kBool;
    return {predicate ? &run_predicate : &run_value, &code};
  }
  [[nodiscard]] abi::ChunkEvaluator chunk(uint32_t id, abi::ClassId hw_class) const override {
    const size_t at = id * class_count_ + hw_class;
    RFX_CHECK(at < chunks_.size() && hw_class < class_count_);
    return {&run_chunk, &chunks_[at]};
  }
  [[nodiscard]] std::string_view backend() const override { return "interp"; }

 private:
  static Params params_of(const abi::ClassPlan& c) {
    Params out(c.params.size());
    for (size_t i = 0; i < out.size(); ++i) {
      if (i < c.params_known.size() && c.params_known[i] != 0) out[i] = {c.params[i], 1};
    }
    return out;
  }

  std::shared_ptr<const ir::Module> module_;
  std::shared_ptr<const builtin::PatternTable> patterns_;
  size_t class_count_ = 1;
  std::vector<Params> params_;     // [ClassId]
  std::vector<Code> codes_;        // [ExprId * class_count_ + ClassId]
  std::vector<ChunkCode> chunks_;  // [chunk * class_count_ + ClassId]
};

}  // namespace

Result<std::shared_ptr<const abi::EvaluatorSet>> make_interp(const CodegenInput& input) {
  RFX_CHECK(input.ir != nullptr && input.plans != nullptr);
  RFX_CHECK(input.plans->exprs.size() == input.ir->functions.size());
  auto patterns = builtin::PatternTable::make(pattern_source(*input.ir), input.symbols);
  if (!patterns.ok()) return patterns.error();
  return std::shared_ptr<const abi::EvaluatorSet>(
      std::make_shared<InterpSet>(input, patterns.value()));
}

}  // namespace reflex::backend
