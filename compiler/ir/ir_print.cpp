// The text form of the IR: one line an instruction, value numbers in order, constants resolved.
#include <charconv>

#include "compiler/ir/semantics.h"

namespace reflex::ir {
namespace {

std::string_view rep_text(Rep rep) {
  switch (rep) {
    case Rep::kBool:
      return "bool";
    case Rep::kI64:
      return "i64";
    case Rep::kF64:
      return "f64";
    case Rep::kText:
      return "text";
    case Rep::kArray:
      return "array";
  }
  return "?";
}

/// Shortest text that reads back as the same double.
std::string real_text(uint64_t bits) {
  char buffer[32];
  const double v = abi::Value{bits, 1}.f64();
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return {buffer, end};
}

std::string quoted(const std::vector<std::string>& table, uint32_t index) {
  if (index >= table.size()) return "#" + std::to_string(index) + "?";
  std::string out = "\"";
  for (const char ch : table[index]) {
    if (ch == '"' || ch == '\\') out += '\\';
    if (ch == '\n')
      out += "\\n";
    else
      out += ch;
  }
  return out + "\"";
}

std::string set_text(const Module& module, uint32_t index) {
  if (index >= module.sets.size()) return "#" + std::to_string(index) + "?";
  constexpr size_t kShown = 16;  // Why: a dump line stays readable; large sets are counted
  const std::vector<int64_t>& values = module.sets[index].values;
  std::string out = "{";
  for (size_t i = 0; i < values.size() && i < kShown; ++i) {
    if (i > 0) out += ' ';
    out += std::to_string(values[i]);
  }
  if (values.size() > kShown) out += " ... " + std::to_string(values.size()) + " values";
  return out + "}";
}

std::string payload(const Module& module, const Inst& inst) {
  switch (inst.op) {
    case Op::kConstBool:
      return inst.imm != 0 ? " true" : " false";
    case Op::kConstI64:
    case Op::kAnyBits:
    case Op::kAllBits:
    case Op::kArrayAt:
      return " " + std::to_string(inst.imm);
    case Op::kConstF64:
      return " " + real_text(static_cast<uint64_t>(inst.imm));
    case Op::kConstText:
    case Op::kTextEq:
      return " " + quoted(module.texts, inst.index);
    case Op::kTextLike:
    case Op::kSymbolLike:
      return " " + quoted(module.globs, inst.index);
    case Op::kTextMatches:
      return " " + quoted(module.regexes, inst.index);
    case Op::kInSet:
    case Op::kInRange:
      return " " + set_text(module, inst.index);
    case Op::kField:
    case Op::kCapture:
    case Op::kFeature:
    case Op::kParam:
    case Op::kTable:
    case Op::kEntityKey:
    case Op::kPeers:
    case Op::kNodeLabel:
      return " #" + std::to_string(inst.index);
    default:
      return "";
  }
}

}  // namespace

std::string print(const Module& module, const Function& function) {
  std::string out = "function " + function.name + "\n";
  for (size_t i = 0; i < function.insts.size(); ++i) {
    const Inst& inst = function.insts[i];
    out += "  %" + std::to_string(i) + " " + std::string(rep_text(inst.rep)) + " = " +
           std::string(op_text(inst.op));
    for (unsigned k = 0; k < operand_count(inst.op); ++k) {
      out += " %" + std::to_string(operand(inst, k));
    }
    out += payload(module, inst) + "\n";
  }
  return out;
}

}  // namespace reflex::ir
