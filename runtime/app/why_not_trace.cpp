// From flat IR back to something that reads like the rule; see why_not_trace.h.
#include "runtime/app/why_not_trace.h"

#include <fmt/format.h>

#include <set>

#include "compiler/ir/semantics.h"
#include "runtime/base/time.h"

namespace reflex::app {
namespace {

using ir::Op;
using ir::ValueId;

class Tracer {
 public:
  Tracer(const abi::CompiledPack& pack, const ir::Module& module, const ir::Function& function,
         const abi::Record* record, std::span<const abi::Value> values)
      : pack_(pack), module_(module), f_(function), record_(record), values_(values) {}

  std::vector<std::string> run() {
    line(static_cast<ValueId>(f_.insts.size() - 1), 0);
    return std::move(out_);
  }

 private:
  [[nodiscard]] const ir::Inst& at(ValueId v) const { return f_.insts[v]; }

  static std::string_view truth(const abi::Value& v) {
    return v.known == 0 ? "unknown" : v.bits != 0 ? "true" : "false";
  }

  void line(ValueId v, int depth) {
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    const ir::Inst& inst = at(v);
    if (inst.op == Op::kAnd || inst.op == Op::kOr) {
      out_.push_back(fmt::format("{}{}: {}", indent, inst.op == Op::kAnd ? "all of" : "any of",
                                 truth(values_[v])));
      operands(v, inst.op, depth + 1);
    } else if (inst.op == Op::kNot) {
      out_.push_back(fmt::format("{}not: {}", indent, truth(values_[v])));
      line(inst.a, depth + 1);
    } else {
      std::set<ValueId> loads;
      collect(v, loads);
      std::string read;
      for (const ValueId l : loads) {
        if (l == v) continue;
        read += (read.empty() ? "" : ", ") + text(l) + " = " + shown(l);
      }
      out_.push_back(fmt::format("{}{}: {}{}", indent, text(v), shown(v),
                                 read.empty() ? "" : " (" + read + ")"));
    }
  }

  /// `a and b and c` is one list, however the chain is built.
  void operands(ValueId v, Op op, int depth) {
    for (const ValueId child : {at(v).a, at(v).b}) {
      if (at(child).op == op)
        operands(child, op, depth);
      else
        line(child, depth);
    }
  }

  void collect(ValueId v, std::set<ValueId>& loads) const {
    const ir::Inst& inst = at(v);
    const unsigned n = ir::operand_count(inst.op);
    const bool constant = ir::is_constant_op(inst.op) || inst.op == Op::kConstText;
    if ((n == 0 && !constant) || inst.op == Op::kJobOf || inst.op == Op::kNodeLabel ||
        inst.op == Op::kArrayAt) {
      loads.insert(v);
    }
    for (unsigned i = 0; i < n; ++i) collect(ir::operand(inst, i), loads);
  }

  [[nodiscard]] const abi::FieldSchema* field(ValueId v) const {
    if (at(v).op != Op::kField || !record_ || record_->kind >= pack_.kinds.size()) return nullptr;
    const auto& fields = pack_.kinds[record_->kind].fields;
    return at(v).index < fields.size() ? &fields[at(v).index] : nullptr;
  }

  /// Whether the value of an instruction is a SymbolId.
  [[nodiscard]] bool is_symbol(ValueId v) const {
    const ir::Inst& inst = at(v);
    if (inst.op == Op::kJobOf || inst.op == Op::kNodeLabel) return true;
    const auto symbolic = [](const abi::Type& t) {
      return t.scalar == abi::Scalar::kEnum || (t.scalar == abi::Scalar::kEntity && !t.gpu_index);
    };
    if (const auto* f = field(v)) return symbolic(f->type);
    if (inst.op == Op::kParam) {
      return inst.index < pack_.params.size() && symbolic(pack_.params[inst.index].type);
    }
    return false;
  }

  [[nodiscard]] std::string symbol(uint64_t bits) const {
    return std::string(pack_.symbols->name(static_cast<SymbolId>(bits)));
  }

  [[nodiscard]] std::string shown(ValueId v) const {
    const abi::Value& value = values_[v];
    if (const auto* f = field(v); f && f->redact) return "(redacted)";
    if (value.known == 0) return "unknown";
    switch (at(v).rep) {
      case ir::Rep::kBool:
        return std::string(truth(value));
      case ir::Rep::kF64:
        return fmt::format("{:.6g}", value.f64());
      case ir::Rep::kText:
        return fmt::format("\"{}\"", reinterpret_cast<const abi::Text*>(value.bits)->view());
      case ir::Rep::kArray:
        return fmt::format("{} items", reinterpret_cast<const abi::IntArray*>(value.bits)->count);
      case ir::Rep::kI64:
        break;
    }
    if (is_symbol(v)) return symbol(value.bits);
    const auto* f = field(v);
    if (f && f->type.scalar == abi::Scalar::kDuration) return to_text(Duration{value.i64()});
    return std::to_string(value.i64());
  }

  [[nodiscard]] std::string constant(ValueId v, bool as_symbol) const {
    const ir::Inst& inst = at(v);
    if (inst.op == Op::kConstText) return fmt::format("\"{}\"", module_.texts[inst.index]);
    if (inst.op == Op::kUnknown) return "unknown";
    if (as_symbol) return symbol(static_cast<uint64_t>(inst.imm));
    if (inst.rep == ir::Rep::kBool) return inst.imm != 0 ? "true" : "false";
    if (inst.rep == ir::Rep::kF64) {
      return fmt::format("{:.6g}", abi::Value{static_cast<uint64_t>(inst.imm), 1}.f64());
    }
    return std::to_string(inst.imm);
  }

  [[nodiscard]] std::string set_text(ValueId v) const {
    constexpr size_t kShown = 8;
    const auto& values = module_.sets[at(v).index].values;
    std::string out;
    for (size_t i = 0; i < std::min(values.size(), kShown); ++i) {
      out += (i > 0 ? ", " : "") + (is_symbol(at(v).a) ? symbol(static_cast<uint64_t>(values[i]))
                                                       : std::to_string(values[i]));
    }
    return "{" + out + (values.size() > kShown ? ", .." : "") + "}";
  }

  [[nodiscard]] std::string load(ValueId v) const {
    const ir::Inst& inst = at(v);
    switch (inst.op) {
      case Op::kField:
        return field(v) ? field(v)->name : "field#" + std::to_string(inst.index);
      case Op::kFeature: {
        const auto& name = pack_.features[inst.index].name;
        return name.empty() ? "feature at " + pack_.features[inst.index].where.file + ":" +
                                  std::to_string(pack_.features[inst.index].where.line)
                            : name;
      }
      case Op::kParam:
        return "profile." + pack_.params[inst.index].name;
      case Op::kTable:
        return inst.index < pack_.adaptives.size() ? "profile." + pack_.adaptives[inst.index].name
                                                   : "table#" + std::to_string(inst.index);
      case Op::kPeers:
        return "peers(" + pack_.peers[inst.index].scope +
               (pack_.peers[inst.index].by.empty() ? ")" : " by ..)");
      case Op::kCapture:
        return "field of an earlier step";
      default:
        return std::string(ir::op_text(inst.op));
    }
  }

  [[nodiscard]] static std::string_view infix(Op op) {
    switch (op) {
      case Op::kAdd:
        return "+";
      case Op::kSub:
        return "-";
      case Op::kMul:
        return "*";
      case Op::kDiv:
        return "/";
      case Op::kEq:
        return "==";
      case Op::kNe:
        return "!=";
      case Op::kLt:
        return "<";
      case Op::kLe:
        return "<=";
      case Op::kGt:
        return ">";
      case Op::kGe:
        return ">=";
      default:
        return "";
    }
  }

  [[nodiscard]] std::string text(ValueId v) const {
    const ir::Inst& inst = at(v);
    if (ir::is_constant_op(inst.op) || inst.op == Op::kConstText) return constant(v, false);
    const unsigned n = ir::operand_count(inst.op);
    if (n == 0) return load(v);
    if (inst.op == Op::kToF64 || inst.op == Op::kToI64) return text(inst.a);
    const std::string a = text(inst.a);
    if (inst.op == Op::kInSet) return a + " in " + set_text(v);
    if (inst.op == Op::kInRange) {
      const auto& range = module_.sets[inst.index].values;
      if (range.front() == range.back())
        return a + " == " + set_text(v).substr(1, set_text(v).size() - 2);
      return fmt::format("{} in {}..{}", a, range.front(), range.back());
    }
    if (inst.op == Op::kTextEq) return fmt::format("{} == \"{}\"", a, module_.texts[inst.index]);
    if (inst.op == Op::kTextLike || inst.op == Op::kSymbolLike) {
      return fmt::format("{} like \"{}\"", a, module_.globs[inst.index]);
    }
    if (inst.op == Op::kTextMatches)
      return fmt::format("{} matches /{}/", a, module_.regexes[inst.index]);
    if (inst.op == Op::kNodeLabel) {
      return fmt::format("label({}, {})", a, pack_.symbols->name(inst.index));
    }
    if (n == 2 && !infix(inst.op).empty()) {
      const bool symbols = is_symbol(inst.a) || is_symbol(inst.b);
      const auto side = [&](ValueId s) {
        return ir::is_constant_op(at(s).op) ? constant(s, symbols) : text(s);
      };
      return fmt::format("{} {} {}", side(inst.a), infix(inst.op), side(inst.b));
    }
    std::string out = std::string(ir::op_text(inst.op)) + "(" + a;
    for (unsigned i = 1; i < n; ++i) out += ", " + text(ir::operand(inst, i));
    return out + ")";
  }

  const abi::CompiledPack& pack_;
  const ir::Module& module_;
  const ir::Function& f_;
  const abi::Record* record_;
  std::span<const abi::Value> values_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> trace_lines(const abi::CompiledPack& pack, const ir::Module& module,
                                     const ir::Function& function, const abi::Record* record,
                                     std::span<const abi::Value> values) {
  return Tracer(pack, module, function, record, values).run();
}

}  // namespace reflex::app
