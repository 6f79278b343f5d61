// Test support: writing IR functions by hand, and a world (record + context) to run them in.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compiler/backend/backend.h"
#include "compiler/ir/semantics.h"

namespace reflex::testing {

/// Appends instructions to a function.
class IrBuilder {
 public:
  explicit IrBuilder(std::string name) { function_.name = std::move(name); }
  ir::ValueId add(ir::Op op, ir::Rep rep, ir::ValueId a = ir::kNoValue,
                  ir::ValueId b = ir::kNoValue, ir::ValueId c = ir::kNoValue, uint32_t index = 0,
                  int64_t imm = 0) {
    function_.insts.push_back({op, rep, a, b, c, index, imm});
    return static_cast<ir::ValueId>(function_.insts.size() - 1);
  }
  ir::ValueId i64(int64_t v) {
    return add(ir::Op::kConstI64, ir::Rep::kI64, ir::kNoValue, ir::kNoValue, ir::kNoValue, 0, v);
  }
  ir::ValueId f64(double v) {
    int64_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    return add(ir::Op::kConstF64, ir::Rep::kF64, ir::kNoValue, ir::kNoValue, ir::kNoValue, 0, bits);
  }
  ir::ValueId load(ir::Op op, ir::Rep rep, uint32_t index) {
    return add(op, rep, ir::kNoValue, ir::kNoValue, ir::kNoValue, index);
  }
  ir::ValueId boolean(abi::Truth t) {
    if (t == abi::kUnknown) return add(ir::Op::kUnknown, ir::Rep::kBool);
    return add(ir::Op::kConstBool, ir::Rep::kBool, ir::kNoValue, ir::kNoValue, ir::kNoValue, 0,
               t == abi::kTrue ? 1 : 0);
  }
  /// The function, typed after its last instruction.
  ir::Function done() {
    function_.type = type_of(function_.insts.back().rep);
    return function_;
  }
  static abi::Type type_of(ir::Rep rep) {
    abi::Type type;
    switch (rep) {
      case ir::Rep::kBool:
        type.scalar = abi::Scalar::kBool;
        break;
      case ir::Rep::kI64:
        type.scalar = abi::Scalar::kInt;
        break;
      case ir::Rep::kF64:
        type.scalar = abi::Scalar::kReal;
        break;
      case ir::Rep::kText:
        type.scalar = abi::Scalar::kString;
        break;
      case ir::Rep::kArray:
        type.scalar = abi::Scalar::kArray;
        break;
    }
    return type;
  }

 private:
  ir::Function function_;
};

/// A record with room for `slots` slots.
class RecordBox {
 public:
  explicit RecordBox(unsigned slots) : words_(sizeof(abi::Record) / 8 + slots) {
    record_ = new (words_.data()) abi::Record;
    record_->slot_count = static_cast<uint16_t>(slots);
  }
  abi::Record* operator->() { return record_; }
  abi::Record* get() { return record_; }

 private:
  std::vector<uint64_t> words_;
  abi::Record* record_;
};

/// Text in the layout of the abi.
class TextBox {
 public:
  explicit TextBox(std::string_view text) : words_((sizeof(abi::Text) + text.size() + 7) / 8) {
    const abi::Text header{static_cast<uint32_t>(text.size())};
    std::memcpy(words_.data(), &header, sizeof header);
    std::memcpy(reinterpret_cast<char*>(words_.data()) + sizeof header, text.data(), text.size());
  }
  [[nodiscard]] uint64_t bits() const { return reinterpret_cast<uint64_t>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

class ArrayBox {
 public:
  explicit ArrayBox(const std::vector<int64_t>& values) : words_(1 + values.size()) {
    const abi::IntArray header{static_cast<uint32_t>(values.size()), 0};
    std::memcpy(words_.data(), &header, sizeof header);
    for (size_t i = 0; i < values.size(); ++i) words_[i + 1] = static_cast<uint64_t>(values[i]);
  }
  [[nodiscard]] uint64_t bits() const { return reinterpret_cast<uint64_t>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

/// Plans that fit `module`: every expression, reads_class where a function has kParam.
inline abi::CompiledPack plans_for(const ir::Module& module) {
  abi::CompiledPack plans;
  for (const ir::Function& f : module.functions) {
    abi::ExprInfo info;
    info.type = f.type;
    for (const ir::Inst& i : f.insts) info.reads_class |= i.op == ir::Op::kParam;
    plans.exprs.push_back(info);
  }
  return plans;
}

/// Both backends over one module.
struct Backends {
  std::shared_ptr<const ir::Module> module;
  std::shared_ptr<const abi::EvaluatorSet> interp;
  std::shared_ptr<const abi::EvaluatorSet> jit;
};

inline Backends make_backends(ir::Module module, const abi::CompiledPack& plans,
                              std::shared_ptr<SymbolTable> symbols = nullptr) {
  Backends out;
  out.module = std::make_shared<const ir::Module>(std::move(module));
  const backend::CodegenInput input{out.module, &plans, std::move(symbols), 2};
  auto interp = backend::make_interp(input);
  auto jit = backend::make_jit(input);
  RFX_CHECK(interp.ok());
  if (!jit.ok()) std::fprintf(stderr, "%s\n", jit.error().message.c_str());
  RFX_CHECK(jit.ok());
  out.interp = interp.value();
  out.jit = jit.value();
  return out;
}

/// Runs a value or predicate; unknown = nothing in `known`.
struct Outcome {
  uint32_t status = 0;
  uint64_t bits = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
/// Text is compared by content: each set has its own copy of a literal. Other results by bits.
inline bool same(const ir::Function& f, const Outcome& a, const Outcome& b) {
  if (f.type.scalar != abi::Scalar::kString || a.status != abi::kTrue) return a == b;
  return a.status == b.status && reinterpret_cast<const abi::Text*>(a.bits)->view() ==
                                     reinterpret_cast<const abi::Text*>(b.bits)->view();
}

inline Outcome run(const abi::EvaluatorSet& set, abi::ExprId id, const abi::Record* record,
                   const abi::EvalContext* context, abi::ClassId hw_class = 0) {
  Outcome out;
  out.bits = 0x5a5a5a5a5a5a5a5a;  // predicates must leave it alone
  out.status = set.expr(id, hw_class)(record, context, &out.bits);
  return out;
}

}  // namespace reflex::testing
