// Text forms of expressions (print_expr.h). Numbers are printed shortest round-trip.
#include "compiler/ast/print_expr.h"

#include <charconv>

namespace reflex::ast {
namespace {

std::string real_text(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, result.ptr);
  // A real stays one when it is read again.
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// Largest unit that divides: 90s, 24h, -250ms.
std::string duration_text(int64_t ns) {
  struct Unit {
    int64_t ns;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{86'400'000'000'000, "d"}, {3'600'000'000'000, "h"},
                                    {60'000'000'000, "m"},     {1'000'000'000, "s"},
                                    {1'000'000, "ms"},         {1'000, "us"}};
  if (ns == 0) {
    return "0s";
  }
  for (const Unit& unit : kUnits) {
    if (ns % unit.ns == 0) {
      return std::to_string(ns / unit.ns) + unit.name;
    }
  }
  return std::to_string(ns) + "ns";
}

std::string number_text(const Expr& e) {
  const std::string digits =
      e.kind == ExprKind::kInt ? std::to_string(e.int_value) : real_text(e.real_value);
  if (e.unit_text.empty() || e.unit_text == "%") {
    return digits + e.unit_text;
  }
  return digits + " " + e.unit_text;
}

std::string operation(const std::string& head, const Expr& e) {
  std::string out = "(" + head;
  for (const auto& arg : e.args) {
    out += " " + print(*arg);
  }
  return out + ")";
}

}  // namespace

std::string print_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '"':
      case '\\':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out + "\"";
}

std::string to_text(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return "or";
    case BinaryOp::kAnd:
      return "and";
    case BinaryOp::kEq:
      return "==";
    case BinaryOp::kNe:
      return "!=";
    case BinaryOp::kLt:
      return "<";
    case BinaryOp::kLe:
      return "<=";
    case BinaryOp::kGt:
      return ">";
    case BinaryOp::kGe:
      return ">=";
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kBitAnd:
      return "&";
    case BinaryOp::kBitOr:
      return "|";
  }
  return "?";
}

std::string print(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kInt:
    case ExprKind::kReal:
      return number_text(e);
    case ExprKind::kDuration:
      return duration_text(e.int_value);
    case ExprKind::kString:
      return print_string(e.text);
    case ExprKind::kBool:
      return e.int_value != 0 ? "true" : "false";
    case ExprKind::kName:
      return e.text;
    case ExprKind::kMember:
      return "(. " + print(*e.args[0]) + " " + e.text + ")";
    case ExprKind::kIndex:
      return operation("index", e);
    case ExprKind::kCall:
      return operation("call " + e.text, e);
    case ExprKind::kNot:
      return operation("not", e);
    case ExprKind::kNegate:
      return operation("negate", e);
    case ExprKind::kBinary:
      return operation(to_text(e.op), e);
    case ExprKind::kIn:
      return operation("in", e);
    case ExprKind::kNotIn:
      return operation("not-in", e);
    case ExprKind::kLike:
      return operation("like", e);
    case ExprKind::kMatches:
      return "(matches " + print(*e.args[0]) + " " + print_string(e.text) + ")";
    case ExprKind::kAnyBits:
      return operation("any-bits", e);
    case ExprKind::kAllBits:
      return operation("all-bits", e);
    case ExprKind::kList:
      return operation("list", e);
    case ExprKind::kRange:
      return operation("range", e);
    case ExprKind::kPercentOf:
      return operation("percent-of", e);
    case ExprKind::kPair:
      return operation("pair", e);
    case ExprKind::kAggregate:
      return print(*e.aggregate);
    case ExprKind::kError:
      return "(error)";
  }
  return "(error)";
}

std::string print(const KindPattern& pattern) {
  if (pattern.where == nullptr) {
    return pattern.kind.text;
  }
  return "(" + pattern.kind.text + " :where " + print(*pattern.where) + ")";
}

std::string print(const Aggregate& a) {
  std::string out = "(" + a.fn;
  if (!a.distinct_of.empty()) {
    out += " " + a.distinct_of.text + " :of";
  }
  out += a.inner_fn.empty() ? " " : " :" + a.inner_fn + " ";
  out += print(a.source);
  for (const auto& arg : a.args) {
    out += " " + print(*arg);
  }
  for (const auto& option : a.options) {
    out += " :" + option.name + " " + print(*option.value);
  }
  return out + ")";
}

std::string print(const TypeRef& type) {
  std::string out = type.name;
  if (!type.enum_words.empty()) {
    out += "(";
    for (size_t i = 0; i < type.enum_words.size(); ++i) {
      out += (i == 0 ? "" : ", ") + type.enum_words[i].text;
    }
    out += ")";
  }
  if (type.element != nullptr) {
    out += "<" + print(*type.element);
    for (const TypeRef& more : type.more) {
      out += ", " + print(more);
    }
    out += type.bound != 0 ? ", " + std::to_string(type.bound) + ">" : ">";
  }
  return out + (type.optional ? "?" : "");
}

}  // namespace reflex::ast
