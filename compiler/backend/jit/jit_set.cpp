// The JIT's EvaluatorSet: which functions to compile, in which modules, and how to find them.
//
// Variants: an expression that reads class parameters is specialised for every class; variants
// (and different expressions) with equal IR share one compiled function.
// Every ExprId of the module is compiled, also predicates that the plans only use in chunks, so
// that expr() always has an answer.
#include <algorithm>
#include <map>

#include "compiler/backend/backend.h"
#include "compiler/backend/jit/llvm_jit.h"
#include "compiler/backend/pattern_source.h"
#include "compiler/ir/semantics.h"
#include "compiler/pass/pipeline.h"

namespace reflex::backend {
namespace jit {
namespace {

/// Why: compile time of a module is linear up to here, and every module costs pages of its own;
/// the sum over its chunks counts predicates (toolchain.md 2).
constexpr size_t kFunctionsPerModule = 64;

/// One compiled function: an expression, or a chunk of expressions (kNone32 = always true).
struct Unit {
  std::string name;
  bool is_chunk = false;
  std::vector<uint32_t> bodies;
};

template <typename T>
void append_bytes(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

/// Equal keys = equal code.
std::string code_key(const ir::Function& function) {
  std::string key(1, function.type.scalar == abi::Scalar::kBool ? 'p' : 'v');
  for (const ir::Inst& i : function.insts) {
    key += static_cast<char>(i.op);
    key += static_cast<char>(i.rep);
    for (unsigned k = 0; k < ir::operand_count(i.op); ++k) append_bytes(key, ir::operand(i, k));
    append_bytes(key, i.index);
    append_bytes(key, i.imm);
  }
  return key;
}

/// Decides what is compiled; fills unit numbers by (expression, class) and (chunk, class).
class Layout {
 public:
  Layout(const ir::Module& ir, const abi::CompiledPack& plans)
      : ir_(ir), class_count_(std::max<size_t>(plans.classes.size(), 1)) {
    const size_t expr_count = ir.functions.size();
    body_of_.resize(expr_count * class_count_);
    unit_of_expr_.resize(expr_count * class_count_);
    for (size_t e = 0; e < expr_count; ++e) {
      const bool per_class = !plans.classes.empty() && plans.exprs[e].reads_class;
      for (size_t c = 0; c < class_count_; ++c) {
        const size_t at = e * class_count_ + c;
        if (c > 0 && !per_class)
          body_of_[at] = body_of_[at - 1];
        else if (per_class)
          add_body(at, pass::specialise(ir, ir.functions[e], plans.classes[c]));
        else
          add_body(at, ir.functions[e]);
        unit_of_expr_[at] = expr_unit(body_of_[at]);
      }
    }
    for (const abi::Chunk& chunk : plans.chunks) add_chunk(plans, chunk);
  }

  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }
  [[nodiscard]] const ir::Function& body(uint32_t i) const { return bodies_[i]; }
  [[nodiscard]] size_t class_count() const { return class_count_; }
  [[nodiscard]] const std::vector<uint32_t>& unit_of_expr() const { return unit_of_expr_; }
  [[nodiscard]] const std::vector<uint32_t>& unit_of_chunk() const { return unit_of_chunk_; }

 private:
  void add_body(size_t at, ir::Function function) {
    const auto next = static_cast<uint32_t>(bodies_.size());
    const auto [it, fresh] = body_by_key_.try_emplace(code_key(function), next);
    if (fresh) bodies_.push_back(std::move(function));
    body_of_[at] = it->second;
  }

  uint32_t expr_unit(uint32_t body) {
    const auto [it, fresh] =
        unit_by_bodies_.try_emplace({body}, static_cast<uint32_t>(units_.size()));
    if (fresh) {
      units_.push_back({bodies_[body].name + "." + std::to_string(units_.size()), false, {body}});
    }
    return it->second;
  }

  void add_chunk(const abi::CompiledPack& plans, const abi::Chunk& chunk) {
    RFX_CHECK(chunk.leaves.size() <= kFunctionsPerModule);
    for (size_t c = 0; c < class_count_; ++c) {
      std::vector<uint32_t> bodies;
      for (const abi::LeafId leaf : chunk.leaves) {
        const abi::ExprId e = plans.leaves[leaf].predicate;
        bodies.push_back(e == abi::kNone32 ? e : body_of_[e * class_count_ + c]);
      }
      const auto [it, fresh] =
          chunk_by_bodies_.try_emplace(bodies, static_cast<uint32_t>(units_.size()));
      if (fresh) {
        units_.push_back({"chunk." + std::to_string(units_.size()), true, std::move(bodies)});
      }
      unit_of_chunk_.push_back(it->second);
    }
  }

  const ir::Module& ir_;
  size_t class_count_;
  std::vector<ir::Function> bodies_;
  std::map<std::string, uint32_t> body_by_key_;
  std::vector<uint32_t> body_of_;  // [ExprId * class_count_ + ClassId]
  std::vector<Unit> units_;
  std::map<std::vector<uint32_t>, uint32_t> unit_by_bodies_;
  std::map<std::vector<uint32_t>, uint32_t> chunk_by_bodies_;
  std::vector<uint32_t> unit_of_expr_;   // [ExprId * class_count_ + ClassId]
  std::vector<uint32_t> unit_of_chunk_;  // [chunk * class_count_ + ClassId]
};

void emit_unit(llvm::Module& module, const ir::Module& ir, const Layout& layout, const Unit& unit) {
  if (!unit.is_chunk) {
    emit_expr(module, unit.name, ir, layout.body(unit.bodies.front()));
    return;
  }
  std::vector<const ir::Function*> predicates;
  for (const uint32_t body : unit.bodies) {
    predicates.push_back(body == abi::kNone32 ? nullptr : &layout.body(body));
  }
  emit_chunk(module, unit.name, ir, predicates);
}

/// Emits and links all units; addresses parallel to them.
Result<std::vector<void*>> compile(Code& code, const ir::Module& ir, const Layout& layout) {
  const std::vector<Unit>& units = layout.units();
  std::vector<std::string> names;
  for (size_t i = 0; i < units.size();) {
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("rules." + std::to_string(i), *context);
    module->setDataLayout(code.engine().jit().getDataLayout());
    module->setTargetTriple(code.engine().jit().getTargetTriple().str());
    for (size_t weight = 0; i < units.size(); ++i) {
      if (weight > 0 && weight + units[i].bodies.size() > kFunctionsPerModule) break;
      weight += std::max<size_t>(units[i].bodies.size(), 1);
      emit_unit(*module, ir, layout, units[i]);
      names.push_back(units[i].name);
    }
    if (auto added = code.add(std::move(module), std::move(context)); !added.ok()) {
      return added.error();
    }
  }
  return code.link(names);
}

class JitSet final : public abi::EvaluatorSet {
 public:
  JitSet(std::shared_ptr<const builtin::PatternTable> patterns, std::unique_ptr<Code> code,
         const Layout& layout, const std::vector<void*>& addresses)
      : patterns_(std::move(patterns)), code_(std::move(code)), class_count_(layout.class_count()) {
    for (const uint32_t unit : layout.unit_of_expr()) {
      exprs_.push_back(reinterpret_cast<abi::EvalFn>(addresses[unit]));
    }
    for (const uint32_t unit : layout.unit_of_chunk()) {
      chunks_.push_back(reinterpret_cast<abi::ChunkFn>(addresses[unit]));
    }
  }

  [[nodiscard]] abi::Evaluator expr(abi::ExprId id, abi::ClassId hw_class) const override {
    const size_t at = id * class_count_ + hw_class;
    RFX_CHECK(at < exprs_.size() && hw_class < class_count_);
    return {exprs_[at], patterns_.get()};
  }
  [[nodiscard]] abi::ChunkEvaluator chunk(uint32_t id, abi::ClassId hw_class) const override {
    const size_t at = id * class_count_ + hw_class;
    RFX_CHECK(at < chunks_.size() && hw_class < class_count_);
    return {chunks_[at], patterns_.get()};
  }
  [[nodiscard]] std::string_view backend() const override { return "jit"; }

 private:
  std::shared_ptr<const builtin::PatternTable> patterns_;
  std::unique_ptr<Code> code_;
  size_t class_count_;
  std::vector<abi::EvalFn> exprs_;  // [ExprId * class_count_ + ClassId]
  std::vector<abi::ChunkFn> chunks_;
};

Result<std::shared_ptr<const abi::EvaluatorSet>> make_set(const CodegenInput& input) {
  auto patterns = builtin::PatternTable::make(pattern_source(*input.ir), input.symbols);
  if (!patterns.ok()) return patterns.error();
  auto engine = Engine::shared(input.compile_threads);
  if (!engine.ok()) return engine.error();
  auto code = Code::make(engine.value());
  if (!code.ok()) return code.error();
  const Layout layout(*input.ir, *input.plans);
  auto addresses = compile(*code.value(), *input.ir, layout);
  if (!addresses.ok()) return addresses.error();
  return std::shared_ptr<const abi::EvaluatorSet>(std::make_shared<JitSet>(
      patterns.value(), std::move(code.value()), layout, addresses.value()));
}

}  // namespace
}  // namespace jit

Result<std::shared_ptr<const abi::EvaluatorSet>> make_jit(const CodegenInput& input) {
  RFX_CHECK(input.ir != nullptr && input.plans != nullptr);
  RFX_CHECK(input.plans->exprs.size() == input.ir->functions.size());
  try {
    return jit::make_set(input);
  } catch (const std::exception& e) {
    return Error{std::string("compiling rules: ") + e.what()};
  }
}

}  // namespace reflex::backend
