// Conditions that cannot hold, and alternatives that always do (R209), by intervals of one value.
//
// Looks at every chain of `and` and of `or` in a predicate: comparisons of the same value with
// constants must leave something over, and must not leave everything over. Fields of whole numbers
// in the topmost `and` are the index's matter (lower_leaf.cpp); the rest is found here. Only what
// is certain is told: values that cannot be compared by their text are passed over.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "compiler/ir/semantics.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {
namespace {

using ir::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values from lo to hi; the ends belong to it or not.
struct Span1 {
  double lo = -kInfinity;
  double hi = kInfinity;
  bool lo_in = true;
  bool hi_in = true;
  [[nodiscard]] bool empty() const { return lo > hi || (lo == hi && !(lo_in && hi_in)); }
};

/// What a node computes, as text: equal texts are equal values within one evaluation.
void write(const NodePtr& n, std::string& out) {
  out += std::to_string(static_cast<int>(n->op)) + ":" + std::to_string(n->index) + ":" +
         std::to_string(n->imm) + "(";
  for (const NodePtr& a : n->args) write(a, out);
  out += ")";
}

std::optional<double> number_of(const NodePtr& n) {
  if (n->rep == ir::Rep::kF64) return constant_f64(n);
  if (n->rep != ir::Rep::kI64) return std::nullopt;
  const auto v = constant_i64(n);
  if (!v) return std::nullopt;
  return static_cast<double>(*v);
}

struct Bound {
  std::string key;
  Span1 span;
  bool whole_field = false;  // a field of whole numbers: indexed
};

/// `3 < x` is `x > 3`.
/// `value OP constant`, either way round; nothing for other nodes.
std::optional<Bound> bound_of(const NodePtr& n) {
  const bool ordered = n->op == Op::kLt || n->op == Op::kLe || n->op == Op::kGt || n->op == Op::kGe;
  if ((!ordered && n->op != Op::kEq) || n->args.size() != 2) return std::nullopt;
  const bool right = is_constant(n->args[1]);
  if (right == is_constant(n->args[0])) return std::nullopt;
  const NodePtr& value = n->args[right ? 0 : 1];
  const auto limit = number_of(n->args[right ? 1 : 0]);
  // kUnknown: a parameter of a macro that is checked by itself.
  if (!limit || std::isnan(*limit) || reads(value, Op::kUnknown)) return std::nullopt;
  Bound bound;
  write(value, bound.key);
  bound.whole_field = value->op == Op::kField && value->rep == ir::Rep::kI64;
  Op op = n->op;
  if (!right) op = mirrored(op);
  if (op == Op::kEq || op == Op::kGt || op == Op::kGe) bound.span.lo = *limit;
  if (op == Op::kEq || op == Op::kLt || op == Op::kLe) bound.span.hi = *limit;
  bound.span.lo_in = op != Op::kGt;
  bound.span.hi_in = op != Op::kLt;
  return bound;
}

void chain(const NodePtr& n, Op op, std::vector<NodePtr>& out) {
  if (n->op != op) return out.push_back(n);
  for (const NodePtr& a : n->args) chain(a, op, out);
}

Span1 intersect(const Span1& a, const Span1& b) {
  Span1 out;
  out.lo = std::max(a.lo, b.lo);
  out.hi = std::min(a.hi, b.hi);
  out.lo_in = (a.lo < out.lo || a.lo_in) && (b.lo < out.lo || b.lo_in);
  out.hi_in = (a.hi > out.hi || a.hi_in) && (b.hi > out.hi || b.hi_in);
  return out;
}

/// Whether the spans leave no number out.
bool covers_all(std::vector<Span1> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span1& a, const Span1& b) {
    return std::tuple(a.lo, !a.lo_in) < std::tuple(b.lo, !b.lo_in);
  });
  double end = -kInfinity;
  bool end_in = true;  // -infinity is no value
  for (const Span1& s : spans) {
    if (s.lo > end || (s.lo == end && !s.lo_in && !end_in)) return false;
    if (s.hi > end || (s.hi == end && s.hi_in)) {
      end_in = s.hi == end ? end_in || s.hi_in : s.hi_in;
      end = s.hi;
    }
  }
  return end == kInfinity;
}

void lint_chain(State& s, const NodePtr& n, bool topmost) {
  std::vector<NodePtr> parts;
  chain(n, n->op, parts);
  std::map<std::string, std::vector<Span1>> spans;
  for (const NodePtr& part : parts) {
    const auto bound = bound_of(part);
    if (!bound || (topmost && n->op == Op::kAnd && bound->whole_field)) continue;
    spans[bound->key].push_back(bound->span);
  }
  for (const auto& [key, list] : spans) {
    if (list.size() < 2) continue;
    if (n->op == Op::kOr) {
      if (!covers_all(list)) continue;
      s.report(Id::kConstantPredicate, n->span, "every value satisfies one of these conditions");
      return;
    }
    Span1 left;
    for (const Span1& span : list) left = intersect(left, span);
    if (!left.empty()) continue;
    s.report(Id::kConstantPredicate, n->span, "no value can satisfy all of these conditions");
    return;
  }
}

void visit(State& s, const NodePtr& n, Op above) {
  const bool link = (n->op == Op::kAnd || n->op == Op::kOr) && n->op != above;
  if (link) lint_chain(s, n, above == Op::kUnknown);
  for (const NodePtr& a : n->args) visit(s, a, n->op);
}

}  // namespace

void lint_predicate(State& s, const NodePtr& predicate) { visit(s, predicate, Op::kUnknown); }

}  // namespace reflex::sema
