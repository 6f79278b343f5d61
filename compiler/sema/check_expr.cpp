// Expressions: literals, the dispatch over forms, constants for clauses.
#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using ast::Expr;
using ast::ExprKind;
using ir::Op;

NodePtr as_literal(const NodePtr& node, bool bare) {
  auto n = std::make_shared<Node>(*node);
  n->literal = true;
  n->bare = bare;
  return n;
}

/// "min" -> "m": how people write the units of durations elsewhere. Empty: none of these.
std::string_view duration_unit(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kWords = {{
      {"msec", "ms"},
      {"millis", "ms"},
      {"sec", "s"},
      {"secs", "s"},
      {"second", "s"},
      {"seconds", "s"},
      {"min", "m"},
      {"mins", "m"},
      {"minute", "m"},
      {"minutes", "m"},
      {"hr", "h"},
      {"hrs", "h"},
      {"hour", "h"},
      {"hours", "h"},
      {"day", "d"},
      {"days", "d"},
      {"week", "w"},
      {"weeks", "w"},
  }};
  for (const auto& [written, meant] : kWords) {
    if (written == word) return meant;
  }
  return {};
}

/// The words for what is wanted here; all of them where nothing certain is.
std::vector<std::string> unit_candidates(const Type* expected) {
  if (expected != nullptr && expected->scalar == Scalar::kDuration) {
    return {"ns", "us", "ms", "s", "m", "h", "d", "w"};
  }
  std::vector<std::string> words = unit_words();
  if (expected != nullptr && expected->scalar == Scalar::kQuantity) {
    std::erase_if(words, [&](const std::string& word) {
      const auto unit = parse_unit(word);
      return !unit || unit->type.scalar != Scalar::kQuantity || unit->type.unit != expected->unit;
    });
  }
  return words;
}

void report_unit(State& s, const Expr& e, const Type* expected) {
  auto& d = s.report(Id::kUnitMismatch, e.span, "no unit '" + e.unit_text + "'");
  std::string meant(duration_unit(e.unit_text));
  if (meant.empty()) {
    meant = diag::did_you_mean(e.unit_text, unit_candidates(expected)).value_or("");
  }
  if (!meant.empty()) {
    d.help = "did you mean '" + meant + "'?";
  } else if (expected != nullptr && expected->scalar == Scalar::kDuration) {
    d.help = "durations are written like 30s, 10m, 1h30m or 3d";
  }
}

NodePtr check_number(State& s, const Expr& e, const Type* expected) {
  const bool integer = e.kind == ExprKind::kInt;
  if (e.unit_text.empty()) {
    return as_literal(integer ? const_i64(e.int_value, int_type(), e.span)
                              : const_f64(e.real_value, real_type(), e.span),
                      true);
  }
  const auto unit = parse_unit(e.unit_text);
  if (!unit) {
    report_unit(s, e, expected);
    return poison(e.span);
  }
  const double value = integer ? static_cast<double>(e.int_value) : e.real_value;
  const double base = value * unit->multiply / unit->divide;
  if (unit->type.scalar == Scalar::kInt) {  // 200k
    return as_literal(const_i64(static_cast<int64_t>(std::llround(base)), int_type(), e.span),
                      true);
  }
  return as_literal(const_f64(base, unit->type, e.span), unit->type.scalar == Scalar::kReal);
}

NodePtr check_string(State& s, const Expr& e, const Type* expected) {
  if (expected != nullptr && (expected->scalar == Scalar::kEnum ||
                              (expected->scalar == Scalar::kEntity && !expected->gpu_index))) {
    return symbol_constant(s, e.text, *expected, e.span);
  }
  Type t;
  t.scalar = Scalar::kString;
  return load(Op::kConstText, intern_text(s, e.text), t, e.span);
}

/// `wait_of[e.code]`: the value that the map has for the key; unknown when it has none.
NodePtr map_value(State& s, const Env& env, const ListInfo& map, const Expr& e) {
  const NodePtr x = check_expr(s, env, *e.args[1], &map.element);
  if (is_error(x) || map.element.scalar == Scalar::kError) return poison(e.span);
  Type type = map.value_type;
  type.optional = true;
  std::vector<NodePtr> values;
  for (const ListInfo::Pair& pair : map.pairs) {
    const NodePtr same = compare(s, ast::BinaryOp::kEq, x, pair.key, e.args[1]->span);
    if (is_error(same)) return poison(e.span);
    const NodePtr none = load(Op::kUnknown, 0, type, e.span);
    values.push_back(make(Op::kSelect, type, {same, retype(pair.value, type), none}, e.span));
  }
  if (values.empty()) return load(Op::kUnknown, 0, type, e.span);
  // Balanced, so that a long map does not make a deep tree. At most one of them is known.
  while (values.size() > 1) {
    std::vector<NodePtr> half;
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      half.push_back(make(Op::kCoalesce, type, {values[i], values[i + 1]}, e.span));
    }
    if (values.size() % 2 == 1) half.push_back(values.back());
    values = std::move(half);
  }
  return values[0];
}

/// The map that `name[..]` reads, when the name is one.
std::optional<uint32_t> map_named(State& s, const Env& env, const Expr& name) {
  if (name.kind != ExprKind::kName || !find(s, s.list_names, env.pack, name.text)) return {};
  const auto index = resolve(s, s.list_names, env.pack, {name.text, name.span}, Id::kUnknownList);
  return index && s.lists[*index].is_map ? index : std::nullopt;
}

NodePtr check_index(State& s, const Env& env, const Expr& e) {
  if (const auto map = map_named(s, env, *e.args[0])) return map_value(s, env, s.lists[*map], e);
  const NodePtr array = check_expr(s, env, *e.args[0]);
  if (is_error(array)) return poison(e.span);
  if (array->type.scalar != Scalar::kArray) {
    s.report(Id::kTypeMismatch, e.args[0]->span,
             "only arrays can be indexed, this is a " + to_text(s, array->type));
    return poison(e.span);
  }
  const auto index = constant_count(s, env.pack, *e.args[1], "an index", 0, 65535);
  if (!index) return poison(e.span);
  if (*index >= array->type.array_bound) {
    s.report(Id::kIndexRange, e.args[1]->span,
             "index " + std::to_string(*index) + " is outside of the array: it holds at most " +
                 std::to_string(array->type.array_bound) + " values");
    return poison(e.span);
  }
  Type t = array->type;
  t.scalar = array->type.entity != 0 ? Scalar::kEntity : Scalar::kInt;
  t.array_bound = 0;
  return make(Op::kArrayAt, t, {array}, e.span, 0, *index);
}

NodePtr check_negate(State& s, const Env& env, const Expr& e, const Type* expected) {
  const NodePtr x = check_expr(s, env, *e.args[0], expected);
  if (is_error(x)) return x;
  if (!is_number(x->type) && x->type.scalar != Scalar::kDuration) {
    s.report(Id::kTypeMismatch, e.span, "'-' needs a number, this is a " + to_text(s, x->type));
    return poison(e.span);
  }
  Type t = x->type;
  t.optional = false;
  const NodePtr n = make(Op::kNeg, t, {x}, e.span);
  return x->literal ? as_literal(n, x->bare) : n;
}

NodePtr check_not(State& s, const Env& env, const Expr& e) {
  const NodePtr x = check_expr(s, env, *e.args[0]);
  if (is_error(x)) return x;
  if (x->type.scalar != Scalar::kBool) {
    s.report(Id::kTypeMismatch, e.args[0]->span,
             "'not' needs a truth value, this is a " + to_text(s, x->type));
    return poison(e.span);
  }
  return make(Op::kNot, bool_type(), {x}, e.span);
}

/// peers(job by ..).median: the one access whose base is a call.
NodePtr check_member(State& s, const Env& env, const Expr& e, const Type* expected) {
  if (const auto path = flatten(e)) return check_path(s, env, *path, e.span, expected);
  const Expr& base = *e.args[0];
  if (base.kind == ExprKind::kCall && base.text == "peers") {
    return check_peers(s, env, &base, {e.text, e.span}, e.span);
  }
  s.report(Id::kTypeMismatch, e.span, "only events and peers(..) have members");
  return poison(e.span);
}

}  // namespace

std::optional<std::vector<Segment>> flatten(const Expr& e) {
  std::vector<Segment> out;
  if (e.kind == ExprKind::kName) {
    uint32_t at = e.span.begin;
    size_t from = 0;
    while (from <= e.text.size()) {
      size_t dot = e.text.find('.', from);
      if (dot == std::string::npos) dot = e.text.size();
      const auto size = static_cast<uint32_t>(dot - from);
      // Spans are exact when the path is written without blanks, which it nearly always is.
      const uint32_t end = std::min(at + size, e.span.end);
      out.push_back({e.text.substr(from, size), {e.span.file, std::min(at, end), end}});
      at += size + 1;
      from = dot + 1;
    }
    return out;
  }
  if (e.kind != ExprKind::kMember) return std::nullopt;
  auto base = flatten(*e.args[0]);
  if (!base) return std::nullopt;
  const auto size = static_cast<uint32_t>(e.text.size());
  const uint32_t begin = e.span.end > size ? e.span.end - size : e.span.begin;
  base->push_back({e.text, {e.span.file, begin, e.span.end}});
  return base;
}

NodePtr check_expr(State& s, const Env& env, const Expr& e, const Type* expected) {
  switch (e.kind) {
    case ExprKind::kInt:
    case ExprKind::kReal:
      return check_number(s, e, expected);
    case ExprKind::kDuration:
      return as_literal(const_i64(e.int_value, duration_type(), e.span), false);
    case ExprKind::kString:
      return check_string(s, e, expected);
    case ExprKind::kBool:
      return const_bool(e.int_value != 0, e.span);
    case ExprKind::kName:
      return check_path(s, env, *flatten(e), e.span, expected);
    case ExprKind::kMember:
      return check_member(s, env, e, expected);
    case ExprKind::kIndex:
      return check_index(s, env, e);
    case ExprKind::kCall:
      return check_call(s, env, e);
    case ExprKind::kNot:
      return check_not(s, env, e);
    case ExprKind::kNegate:
      return check_negate(s, env, e, expected);
    case ExprKind::kBinary:
      return check_binary(s, env, e);
    case ExprKind::kIn:
    case ExprKind::kNotIn:
      return check_membership(s, env, e);
    case ExprKind::kLike:
    case ExprKind::kMatches:
      return check_text_match(s, env, e);
    case ExprKind::kAnyBits:
    case ExprKind::kAllBits:
      return check_bits(s, env, e);
    case ExprKind::kPercentOf:
      return check_percent_of(s, env, e);
    case ExprKind::kAggregate:
      return check_feature_call(s, env, feature_call(*e.aggregate));
    case ExprKind::kList:
    case ExprKind::kPair:
    case ExprKind::kRange: {
      auto& d = s.report(Id::kNotHere, e.span, "a list or range stands only after `in`");
      d.help = "write: x in [..]";
      return poison(e.span);
    }
    case ExprKind::kError:
      return poison(e.span);
  }
  return poison(e.span);
}

NodePtr check_predicate(State& s, const Env& env, const Expr& e) {
  s.expansions = 0;
  const NodePtr node = check_expr(s, env, e);
  if (is_error(node)) return node;
  if (node->type.scalar != Scalar::kBool) {
    s.report(Id::kTypeMismatch, e.span,
             "a condition must be true or false, this is a " + to_text(s, node->type));
    return poison(e.span);
  }
  // Why: the backend's and the interpreter's cost is linear in this; 20,000 is far beyond reading.
  if (node_count(node, 20'001) > 20'000) {
    s.report(Id::kExpressionTooLarge, e.span, "the expression has more than 20,000 operations");
    return poison(e.span);
  }
  if (const auto v = constant_bool(node)) {
    s.report(Id::kConstantPredicate, e.span,
             std::string("the condition is always ") + (*v ? "true" : "false"));
  } else {
    lint_predicate(s, node);
  }
  return node;
}

// ---------------------------------------------------------------- constants of clauses

namespace {

NodePtr constant_node(State& s, PackIndex pack, const Expr& e, const Type* expected = nullptr) {
  Env env;
  env.pack = pack;
  env.constant_only = true;
  return check_expr(s, env, e, expected);
}

}  // namespace

std::optional<int64_t> constant_duration(State& s, PackIndex pack, const Expr& e, const char* what,
                                         bool allow_negative) {
  const Type wanted = duration_type();
  const NodePtr node = constant_node(s, pack, e, &wanted);
  if (is_error(node)) return std::nullopt;
  const auto v = constant_i64(node);
  const bool zero = v && *v == 0;
  if (!v || (node->type.scalar != Scalar::kDuration && !zero)) {
    auto& d = s.report(Id::kNotConstant, e.span, std::string(what) + " must be a duration");
    d.help = "such as 30s, 10m, 1h30m or 3d";
    return std::nullopt;
  }
  if (*v < 0 && !allow_negative) {
    s.report(Id::kBadInterval, e.span, std::string(what) + " cannot be negative");
    return std::nullopt;
  }
  return v;
}

void report_no_half_life(State& s, Span span) {
  auto& d = s.report(Id::kBadInterval, span, "half_life must be above 0");
  d.help = "such as 3d or 30d";
}

std::optional<double> constant_number(State& s, PackIndex pack, const Expr& e, const char* what) {
  const NodePtr node = constant_node(s, pack, e);
  if (is_error(node)) return std::nullopt;
  const auto v = constant_f64(node);
  const bool plain = node->type.scalar == Scalar::kInt || node->type.scalar == Scalar::kReal ||
                     (node->type.scalar == Scalar::kQuantity &&
                      node->type.unit == abi::Unit::kRatio && !node->type.per_time);
  if (!v || !plain) {
    s.report(Id::kNotConstant, e.span, std::string(what) + " must be a number");
    return std::nullopt;
  }
  return v;
}

std::optional<int64_t> constant_count(State& s, PackIndex pack, const Expr& e, const char* what,
                                      int64_t lo, int64_t hi) {
  const NodePtr node = constant_node(s, pack, e);
  if (is_error(node)) return std::nullopt;
  const auto v = constant_i64(node);
  if (!v || node->type.scalar != Scalar::kInt) {
    s.report(Id::kNotConstant, e.span, std::string(what) + " must be a whole number");
    return std::nullopt;
  }
  if (*v < lo || *v > hi) {
    s.report(Id::kNumberRange, e.span,
             std::string(what) + " must be in " + std::to_string(lo) + " .. " + std::to_string(hi));
    return std::nullopt;
  }
  return v;
}

std::string literal_text(const State& s, const NodePtr& node) { return s.ir.texts[node->index]; }

uint32_t intern_text(State& s, const std::string& text) {
  const auto [it, added] = s.text_ids.emplace(text, static_cast<uint32_t>(s.ir.texts.size()));
  if (added) s.ir.texts.push_back(text);
  return it->second;
}

NodePtr symbol_constant(State& s, const std::string& word, const Type& type, Span span) {
  if (type.scalar == Scalar::kEnum && type.enum_id != 0) {
    const auto& words = s.pack.enums[type.enum_id].words;
    if (std::find(words.begin(), words.end(), word) == words.end() && word != "other") {
      auto& d = s.report(Id::kUnknownEnumWord, span,
                         "'" + word + "' is not a word of " + to_text(s, type));
      suggest(d, word, words, span);
      return poison(span);
    }
  }
  Type t = type;
  t.optional = false;
  return const_i64(s.in.symbols->intern(word), t, span);
}

}  // namespace reflex::sema
