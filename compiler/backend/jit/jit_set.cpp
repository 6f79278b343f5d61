// The JIT's EvaluatorSet: which functions to compile, in which modules, and how to find them.
//
// Variants: an expression that reads class parameters is specialised for every class; variants
// (and different expressions) with equal IR share one compiled function. Functions that a set that
// still lives has compiled are taken from it (code_cache.h).
// Every ExprId of the module is compiled, also predicates that the plans only use in chunks, so
// that expr() always has an answer.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "compiler/backend/backend.h"
#include "compiler/backend/jit/code_cache.h"
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

/// Equal keys = equal code: with the numbers of what it calls for, and the constants of sets.
std::string code_key(const ir::Module& ir, const ir::Function& function) {
  std::string key(1, function.type.scalar == abi::Scalar::kBool ? 'p' : 'v');
  for (const ir::Inst& i : function.insts) {
    key += static_cast<char>(i.op);
    key += static_cast<char>(i.rep);
    for (unsigned k = 0; k < ir::operand_count(i.op); ++k) append_bytes(key, ir::operand(i, k));
    append_bytes(key, i.index);
    append_bytes(key, i.imm);
    if (i.op != ir::Op::kInSet && i.op != ir::Op::kInRange) continue;
    const std::vector<int64_t>& values = ir.sets[i.index].values;
    append_bytes(key, values.size());
    for (const int64_t value : values) append_bytes(key, value);
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
  /// Equal for equal code, in this set or another one.
  [[nodiscard]] std::string key(const Unit& unit) const {
    if (!unit.is_chunk) return *keys_[unit.bodies.front()];
    std::string key(1, 'c');
    for (const uint32_t body : unit.bodies) {
      const std::string_view part = body == abi::kNone32 ? std::string_view() : *keys_[body];
      append_bytes(key, part.size());
      key += part;
    }
    return key;
  }
  [[nodiscard]] size_t class_count() const { return class_count_; }
  [[nodiscard]] const std::vector<uint32_t>& unit_of_expr() const { return unit_of_expr_; }
  [[nodiscard]] const std::vector<uint32_t>& unit_of_chunk() const { return unit_of_chunk_; }

 private:
  void add_body(size_t at, ir::Function function) {
    const auto next = static_cast<uint32_t>(bodies_.size());
    const auto [it, fresh] = body_by_key_.try_emplace(code_key(ir_, function), next);
    if (fresh) {
      bodies_.push_back(std::move(function));
      keys_.push_back(&it->first);
    }
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
  std::unordered_map<std::string, uint32_t> body_by_key_;  // only looked up
  std::vector<const std::string*> keys_;                   // [body]
  std::vector<uint32_t> body_of_;                          // [ExprId * class_count_ + ClassId]
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

/// The code of a set: [unit] a function and the block that it is in.
using Functions = std::vector<CachedFunction>;

/// What blocks of other sets have. Code that would keep much dead code alive is left out: a block
/// of which a quarter is still used at most, and small blocks once there are many of them. So a set
/// that changed a rule a day for years is as compact as a new one, and a reload compiles little.
Functions find_known(const BlockCache& cache, const std::vector<std::string>& keys) {
  constexpr size_t kSmall = kFunctionsPerModule / 4;
  constexpr size_t kSmallBlocksMax = 32;  // Why: some 60 functions, 10 ms to compile
  Functions known;
  std::map<const Block*, size_t> used;  // only looked up
  for (const std::string& key : keys) {
    known.push_back(cache.find(key));
    if (known.back().block != nullptr) ++used[known.back().block.get()];
  }
  size_t small = 0;
  for (const auto& [block, functions] : used) small += functions < kSmall;
  for (CachedFunction& function : known) {
    if (function.block == nullptr) continue;
    const size_t live = used[function.block.get()];
    const bool mostly_dead = live * 4 <= function.block->functions && function.block->functions > 1;
    if (mostly_dead || (live < kSmall && small > kSmallBlocksMax)) function = {};
  }
  return known;
}

/// One module of units [from, ..) out of `wanted`; `from` moves behind its last one.
Result<std::shared_ptr<Block>> begin_block(const std::shared_ptr<Engine>& engine,
                                           const ir::Module& ir, const Layout& layout,
                                           const std::vector<uint32_t>& wanted, size_t& from) {
  auto code = Code::make(engine);
  if (!code.ok()) return code.error();
  auto block = std::make_shared<Block>();
  block->code = std::move(code).value();
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("rules", *context);
  module->setDataLayout(engine->jit().getDataLayout());
  module->setTargetTriple(engine->jit().getTargetTriple().str());
  std::vector<std::string> names;
  for (size_t weight = 0; from < wanted.size(); ++from) {
    const Unit& unit = layout.units()[wanted[from]];
    if (weight > 0 && weight + unit.bodies.size() > kFunctionsPerModule) break;
    weight += std::max<size_t>(unit.bodies.size(), 1);
    emit_unit(*module, ir, layout, unit);
    names.push_back(unit.name);
  }
  block->functions = names.size();
  if (auto added = block->code->add(std::move(module), std::move(context)); !added.ok()) {
    return added.error();
  }
  block->code->begin(names);
  return block;
}

/// Compiles the units that `functions` has no code for.
Status compile_rest(const std::shared_ptr<Engine>& engine, const ir::Module& ir,
                    const Layout& layout, Functions& functions) {
  std::vector<uint32_t> wanted;
  for (uint32_t unit = 0; unit < functions.size(); ++unit) {
    if (functions[unit].block == nullptr) wanted.push_back(unit);
  }
  std::vector<std::shared_ptr<Block>> blocks;
  Status status = ok_status();
  for (size_t from = 0; from < wanted.size() && status.ok();) {
    auto block = begin_block(engine, ir, layout, wanted, from);
    if (block.ok()) {
      blocks.push_back(block.value());
    } else {
      status = block.error();
    }
  }
  size_t next = 0;
  for (const auto& block : blocks) {
    auto addresses = block->code->finish();
    if (!addresses.ok()) {
      if (status.ok()) status = addresses.error();
      continue;  // the others are waited for
    }
    for (void* address : addresses.value()) functions[wanted[next++]] = {block, address};
  }
  return status;
}

class JitSet final : public abi::EvaluatorSet {
 public:
  JitSet(std::shared_ptr<const builtin::PatternTable> patterns, const Layout& layout,
         const Functions& functions)
      : patterns_(std::move(patterns)), class_count_(layout.class_count()) {
    std::set<std::shared_ptr<Block>> blocks;
    for (const CachedFunction& function : functions) blocks.insert(function.block);
    blocks_.assign(blocks.begin(), blocks.end());
    for (const uint32_t unit : layout.unit_of_expr()) {
      exprs_.push_back(reinterpret_cast<abi::EvalFn>(functions[unit].address));
    }
    for (const uint32_t unit : layout.unit_of_chunk()) {
      chunks_.push_back(reinterpret_cast<abi::ChunkFn>(functions[unit].address));
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
  [[nodiscard]] const std::vector<std::shared_ptr<Block>>& blocks() const { return blocks_; }

 private:
  std::shared_ptr<const builtin::PatternTable> patterns_;
  std::vector<std::shared_ptr<Block>> blocks_;
  size_t class_count_;
  std::vector<abi::EvalFn> exprs_;  // [ExprId * class_count_ + ClassId]
  std::vector<abi::ChunkFn> chunks_;
};

Result<std::shared_ptr<const abi::EvaluatorSet>> make_set(const CodegenInput& input) {
  auto patterns = builtin::PatternTable::make(pattern_source(*input.ir), input.symbols);
  if (!patterns.ok()) return patterns.error();
  auto engine = Engine::shared(input.compile_threads);
  if (!engine.ok()) return engine.error();
  const Layout layout(*input.ir, *input.plans);
  // Only make_code_cache() makes any.
  auto* cache = static_cast<BlockCache*>(input.cache.get());
  std::vector<std::string> keys;
  Functions functions(layout.units().size());
  if (cache != nullptr) {
    for (const Unit& unit : layout.units()) keys.push_back(layout.key(unit));
    functions = find_known(*cache, keys);
  }
  const auto missing = static_cast<size_t>(std::count_if(
      functions.begin(), functions.end(), [](const auto& f) { return f.block == nullptr; }));
  if (auto done = compile_rest(engine.value(), *input.ir, layout, functions); !done.ok()) {
    return done.error();
  }
  auto set = std::make_shared<JitSet>(patterns.value(), layout, functions);
  if (cache != nullptr) {
    for (size_t unit = 0; unit < keys.size(); ++unit) cache->put(keys[unit], functions[unit]);
    CodeCache::Last last{functions.size(), missing, set->blocks().size(), 0};
    for (const auto& block : set->blocks()) last.bytes += block->code->bytes();
    cache->end(last);
  }
  return std::shared_ptr<const abi::EvaluatorSet>(std::move(set));
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
