// Membership, text patterns and bit tests: `in`, `like`, `matches`, `any bits`, `N% of`.
#include <re2/re2.h>

#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using ast::Expr;
using ast::ExprKind;
using ir::Op;

// Why: RE2 compiles to a program whose size bounds both memory and time per byte.
constexpr int kRegexProgramMax = 20'000;

uint32_t intern_set(State& s, std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::string key;
  for (const int64_t v : values) key += std::to_string(v) + ",";
  const auto [it, added] = s.set_ids.emplace(key, static_cast<uint32_t>(s.ir.sets.size()));
  if (added) s.ir.sets.push_back({std::move(values)});
  return it->second;
}

NodePtr negate_if(bool negated, NodePtr n, Span span) {
  return negated ? make(Op::kNot, bool_type(), {std::move(n)}, span) : n;
}

NodePtr any_of(std::vector<NodePtr> tests, Span span) {
  NodePtr all;
  for (NodePtr& t : tests) {
    all = all ? make(Op::kOr, bool_type(), {all, t}, span) : std::move(t);
  }
  return all ? all : const_bool(false, span);
}

NodePtr in_ints(State& s, const NodePtr& x, std::vector<int64_t> values, Span span) {
  if (values.empty()) return const_bool(false, span);
  return make(Op::kInSet, bool_type(), {x}, span, intern_set(s, std::move(values)));
}

NodePtr in_range(State& s, const Env& env, const NodePtr& x, const Expr& range, Span span) {
  const NodePtr lo = check_expr(s, env, *range.args[0], &x->type);
  const NodePtr hi = check_expr(s, env, *range.args[1], &x->type);
  const NodePtr above = compare(s, ast::BinaryOp::kGe, x, lo, range.args[0]->span);
  const NodePtr below = compare(s, ast::BinaryOp::kLe, x, hi, range.args[1]->span);
  if (is_error(above) || is_error(below)) return poison(span);
  const auto a = constant_i64(lo);
  const auto b = constant_i64(hi);
  if (a && b && x->rep == ir::Rep::kI64) {
    if (*a > *b) {
      s.report(Id::kBadInterval, range.span, "the range is empty");
      return poison(span);
    }
    // Bounds are a pair, not a set: equal bounds must stay two values.
    const std::string key = "range " + std::to_string(*a) + ".." + std::to_string(*b);
    const auto [it, added] = s.set_ids.emplace(key, static_cast<uint32_t>(s.ir.sets.size()));
    if (added) s.ir.sets.push_back({{*a, *b}});
    return make(Op::kInRange, bool_type(), {x}, span, it->second);
  }
  return make(Op::kAnd, bool_type(), {above, below}, span);
}

NodePtr in_list_literal(State& s, const Env& env, const NodePtr& x, const Expr& list, Span span) {
  std::vector<int64_t> ints;
  std::vector<NodePtr> tests;
  bool broken = false;
  for (const auto& element : list.args) {
    if (element->kind == ExprKind::kRange) {
      tests.push_back(in_range(s, env, x, *element, element->span));
      broken = broken || is_error(tests.back());
      continue;
    }
    const NodePtr v = check_expr(s, env, *element, &x->type);
    const NodePtr test = compare(s, ast::BinaryOp::kEq, x, v, element->span);
    if (is_error(test)) {
      broken = true;
    } else if (test->op == Op::kEq && test->args[0] == x && test->args[1]->op == Op::kConstI64) {
      ints.push_back(test->args[1]->imm);
    } else {
      tests.push_back(test);
    }
  }
  if (broken) return poison(span);
  if (!ints.empty()) tests.insert(tests.begin(), in_ints(s, x, std::move(ints), span));
  return any_of(std::move(tests), span);
}

bool list_fits(const Type& x, const Type& element) {
  auto index_like = [](const Type& t) {
    return t.scalar == Scalar::kInt || (t.scalar == Scalar::kEntity && t.gpu_index);
  };
  if (index_like(x) && index_like(element)) return true;
  auto word_like = [](const Type& t) {
    return t.scalar == Scalar::kString || (t.scalar == Scalar::kEnum && t.enum_id == 0) ||
           (t.scalar == Scalar::kEntity && !t.gpu_index);
  };
  if (word_like(x) && word_like(element)) {
    return x.scalar != Scalar::kEntity || element.scalar != Scalar::kEntity ||
           x.entity == element.entity;
  }
  return x.scalar == element.scalar && x.enum_id == element.enum_id && x.unit == element.unit &&
         x.per_time == element.per_time;
}

NodePtr in_named_list(State& s, const Env& env, const NodePtr& x, const Expr& e, Span span) {
  const auto path = flatten(e);
  if (!path) {
    s.report(Id::kTypeMismatch, e.span, "after `in` stands a list, a range or a list's name");
    return poison(span);
  }
  std::string text;
  for (const Segment& segment : *path) text += (text.empty() ? "" : ".") + segment.text;
  const auto index = resolve(s, s.list_names, env.pack, {text, e.span}, Id::kUnknownList);
  if (!index) return poison(span);
  const ListInfo& list = s.lists[*index];
  if (list.element.scalar == Scalar::kError) return poison(span);
  if (!list_fits(x->type, list.element)) {
    auto& d = s.report(
        Id::kTypeMismatch, span,
        "a " + to_text(s, x->type) + " is looked for in a list of " + to_text(s, list.element));
    d.notes.push_back({list.decl->name.span, "the list is declared here"});
    return poison(span);
  }
  if (x->rep == ir::Rep::kI64) {
    std::vector<int64_t> values = list.ints;
    for (const std::string& t : list.texts) values.push_back(s.in.symbols->intern(t));
    return in_ints(s, x, std::move(values), span);
  }
  std::vector<NodePtr> tests;
  for (const std::string& t : list.texts) {
    tests.push_back(make(Op::kTextEq, bool_type(), {x}, span, intern_text(s, t)));
  }
  for (const double v : list.reals) {
    tests.push_back(make(Op::kEq, bool_type(), {x, const_f64(v, x->type, span)}, span));
  }
  return any_of(std::move(tests), span);
}

uint32_t intern_pattern(std::map<std::string, uint32_t>& ids, std::vector<std::string>& rows,
                        const std::string& text) {
  const auto [it, added] = ids.emplace(text, static_cast<uint32_t>(rows.size()));
  if (added) rows.push_back(text);
  return it->second;
}

}  // namespace

NodePtr check_membership(State& s, const Env& env, const Expr& e) {
  const NodePtr x = check_expr(s, env, *e.args[0]);
  if (is_error(x)) return poison(e.span);
  const Expr& set = *e.args[1];
  NodePtr n;
  if (set.kind == ExprKind::kList) {
    n = in_list_literal(s, env, x, set, e.span);
  } else if (set.kind == ExprKind::kRange) {
    n = in_range(s, env, x, set, e.span);
  } else {
    n = in_named_list(s, env, x, set, e.span);
  }
  return negate_if(e.kind == ExprKind::kNotIn, n, e.span);
}

NodePtr check_text_match(State& s, const Env& env, const Expr& e) {
  const NodePtr x = check_expr(s, env, *e.args[0]);
  if (is_error(x)) return poison(e.span);
  const bool text = x->type.scalar == Scalar::kString;
  const bool named =
      x->type.scalar == Scalar::kEnum || (x->type.scalar == Scalar::kEntity && !x->type.gpu_index);
  if (!text && !(named && e.kind == ExprKind::kLike)) {
    s.report(Id::kTypeMismatch, e.args[0]->span,
             std::string(e.kind == ExprKind::kLike ? "`like`" : "`matches`") +
                 " needs text, this is a " + to_text(s, x->type));
    return poison(e.span);
  }
  if (e.kind == ExprKind::kLike) {
    const std::string& glob = e.args.size() > 1 ? e.args[1]->text : e.text;
    return make(text ? Op::kTextLike : Op::kSymbolLike, bool_type(), {x}, e.span,
                intern_pattern(s.glob_ids, s.ir.globs, glob));
  }
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 regex(e.text, options);
  if (!regex.ok() || regex.ProgramSize() > kRegexProgramMax) {
    s.report(Id::kBadRegex, e.span,
             regex.ok() ? "the regular expression is too large" : regex.error());
    return poison(e.span);
  }
  return make(Op::kTextMatches, bool_type(), {x}, e.span,
              intern_pattern(s.regex_ids, s.ir.regexes, e.text));
}

NodePtr check_bits(State& s, const Env& env, const Expr& e) {
  const NodePtr x = check_expr(s, env, *e.args[0]);
  if (is_error(x)) return poison(e.span);
  if (x->type.scalar != Scalar::kInt) {
    s.report(Id::kTypeMismatch, e.args[0]->span,
             "a bit test needs an integer, this is a " + to_text(s, x->type));
    return poison(e.span);
  }
  uint64_t mask = 0;
  for (size_t i = 1; i < e.args.size(); ++i) {
    const auto bit = constant_count(s, env.pack, *e.args[i], "a bit number", 0, 1'000'000);
    if (!bit) return poison(e.span);
    if (*bit > 63) {
      s.report(Id::kIndexRange, e.args[i]->span, "bits are numbered 0 to 63");
      return poison(e.span);
    }
    mask |= uint64_t{1} << *bit;
  }
  return make(e.kind == ExprKind::kAnyBits ? Op::kAnyBits : Op::kAllBits, bool_type(), {x}, e.span,
              0, static_cast<int64_t>(mask));
}

NodePtr check_percent_of(State& s, const Env& env, const Expr& e) {
  const NodePtr whole = check_expr(s, env, *e.args[1]);
  if (is_error(whole)) return poison(e.span);
  const Expr& part = *e.args[0];
  const double percent =
      part.kind == ExprKind::kInt ? static_cast<double>(part.int_value) : part.real_value;
  if (whole->type.scalar != Scalar::kInt && whole->type.scalar != Scalar::kReal) {
    s.report(Id::kTypeMismatch, e.args[1]->span,
             "`% of` needs a number, this is a " + to_text(s, whole->type));
    return poison(e.span);
  }
  return make(Op::kMul, real_type(),
              {const_f64(percent / 100.0, real_type(), part.span), to_f64(whole)}, e.span);
}

}  // namespace reflex::sema
