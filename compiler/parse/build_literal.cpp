// Builder: literals: numbers with units, durations, strings, patterns; ranges are checked.
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "compiler/parse/builder.h"
#include "runtime/base/time.h"

namespace reflex::parse {
namespace {

using ast::ExprKind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Nanoseconds of one unit word of a duration.
int64_t unit_ns(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, int64_t>, 8> kUnits = {{
      {"ns", 1},
      {"us", kNsPerUs},
      {"ms", kNsPerMs},
      {"s", kNsPerSecond},
      {"m", kNsPerMinute},
      {"h", kNsPerHour},
      {"d", kNsPerDay},
      {"w", 7 * kNsPerDay},
  }};
  for (const auto& [name, ns] : kUnits) {
    if (name == unit) {
      return ns;
    }
  }
  return 0;
}

// Why: instants reach to 2262; ten years leave room to add several durations to one.
constexpr int64_t kDurationMaxNs = int64_t{3650} * 24 * 3600 * 1'000'000'000;

/// "1h30m", "1.5s" -> ns; false when it does not fit.
bool parse_duration(std::string_view text, int64_t& total) {
  total = 0;
  size_t i = 0;
  while (i < text.size()) {
    int64_t whole = 0, fraction = 0, scale = 1;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      if (__builtin_mul_overflow(whole, 10, &whole) ||
          __builtin_add_overflow(whole, text[i] - '0', &whole)) {
        return false;
      }
    }
    if (i < text.size() && text[i] == '.') {
      for (++i; i < text.size() && is_digit(text[i]); ++i) {
        if (scale < 1'000'000) {  // Why: finer than a microsecond of a second is noise here
          fraction = fraction * 10 + (text[i] - '0');
          scale *= 10;
        }
      }
    }
    size_t end = i;
    while (end < text.size() && !is_digit(text[end])) {
      ++end;
    }
    const int64_t ns = unit_ns(text.substr(i, end - i));
    i = end;
    // fraction < 10^6 and ns <= 6.048e14 (a week): the product needs 128 bits only beyond d.
    const auto part =
        static_cast<int64_t>(static_cast<long double>(fraction) * static_cast<long double>(ns) /
                             static_cast<long double>(scale));
    int64_t product = 0;
    if (__builtin_mul_overflow(whole, ns, &product) ||
        __builtin_add_overflow(total, product, &total) ||
        __builtin_add_overflow(total, part, &total)) {
      return false;
    }
  }
  return true;
}

bool parse_int(std::string_view text, int base, int64_t& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  return result.ec == std::errc() && result.ptr == end;
}

bool parse_real(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end && std::isfinite(value);
}

/// "5", "2.5", with the unit left to the caller; false when out of range.
bool parse_number(std::string_view text, ast::Expr& e) {
  if (text.find_first_of(".eE") == std::string_view::npos) {
    e.kind = ExprKind::kInt;
    return parse_int(text, 10, e.int_value);
  }
  e.kind = ExprKind::kReal;
  return parse_real(text, e.real_value);
}

/// `200k`, `3M`: plain multipliers. False when the product does not fit.
bool scale_number(ast::Expr& e, int64_t factor) {
  if (e.kind == ExprKind::kReal) {
    e.real_value *= static_cast<double>(factor);
    return std::isfinite(e.real_value);
  }
  return !__builtin_mul_overflow(e.int_value, factor, &e.int_value);
}

/// A number with its unit directly behind it: "512MiB", "200k".
bool parse_quantity(std::string_view text, ast::Expr& e) {
  size_t split = 0;
  while (split < text.size() && (is_digit(text[split]) || text[split] == '.')) {
    ++split;
  }
  const std::string_view unit = text.substr(split);
  if (!parse_number(text.substr(0, split), e)) {
    return false;
  }
  if (unit == "k" || unit == "K") {
    return scale_number(e, 1000);
  }
  if (unit == "M") {
    return scale_number(e, 1'000'000);
  }
  e.unit_text = unit;
  return true;
}

void append_escape(std::string& out, char c) {
  switch (c) {
    case 'n':
      out += '\n';
      break;
    case 't':
      out += '\t';
      break;
    case 'r':
      out += '\r';
      break;
    default:  // \" \\ ; any other keeps its backslash, as in a glob or a path
      if (c != '"' && c != '\\') {
        out += '\\';
      }
      out += c;
  }
}

}  // namespace

int64_t Builder::integer(antlr4::Token* token) {
  int64_t value = 0;
  if (!parse_int(tokens_.text(token), 10, value)) {
    sink_.report(diag::Id::kNumberRange, tokens_.span(token),
                 "the number " + std::string(tokens_.text(token)) + " does not fit in 64 bits");
  }
  return value;
}

std::string Builder::string_value(antlr4::Token* token) {
  const std::string_view raw = tokens_.text(token);
  if (token->getType() == Lexer::RAW_STRING) {
    std::string_view inner = raw.substr(3, raw.size() - 6);
    // The line end after the opening quotes belongs to the layout, not to the text.
    if (inner.substr(0, 2) == "\r\n") {
      inner.remove_prefix(2);
    } else if (inner.substr(0, 1) == "\n") {
      inner.remove_prefix(1);
    }
    std::string out;
    for (size_t i = 0; i < inner.size(); ++i) {
      if (!(inner[i] == '\r' && i + 1 < inner.size() && inner[i + 1] == '\n')) {
        out += inner[i];
      }
    }
    return out;
  }
  std::string out;
  for (size_t i = 1; i + 1 < raw.size(); ++i) {
    if (raw[i] == '\\' && i + 2 < raw.size()) {
      append_escape(out, raw[++i]);
    } else {
      out += raw[i];
    }
  }
  return out;
}

std::string Builder::regex_text(std::string_view token) {
  std::string out;
  for (size_t i = token.find('/') + 1; i + 1 < token.size(); ++i) {
    if (token[i] != '\\') {
      out += token[i];
      continue;
    }
    // A backslash and its character stay together, so that an escaped one does not escape what
    // follows.
    const char next = token[++i];
    out += next == '/' ? std::string(1, next) : std::string{'\\', next};
  }
  return out;
}

ast::ExprPtr Builder::literal(antlr4::Token* token) {
  auto e = node(ExprKind::kInt, tokens_.span(token));
  const std::string_view raw = tokens_.text(token);
  bool fits = true;
  switch (token->getType()) {
    case Lexer::INT:
    case Lexer::REAL:
      fits = parse_number(raw, *e);
      break;
    case Lexer::HEX:
      fits = parse_int(raw.substr(2), 16, e->int_value);
      break;
    case Lexer::QUANTITY:
      fits = parse_quantity(raw, *e);
      break;
    case Lexer::PERCENT:
      fits = parse_number(raw.substr(0, raw.size() - 1), *e);
      e->unit_text = "%";
      break;
    case Lexer::DURATION:
      e->kind = ExprKind::kDuration;
      fits = parse_duration(raw, e->int_value) && e->int_value <= kDurationMaxNs;
      break;
    case Lexer::K_TRUE:
    case Lexer::K_FALSE:
      e->kind = ExprKind::kBool;
      e->int_value = token->getType() == Lexer::K_TRUE ? 1 : 0;
      break;
    case Lexer::DATE:
      e->kind = ExprKind::kString;
      e->text = raw;
      break;
    default:
      e->kind = ExprKind::kString;
      e->text = string_value(token);
  }
  if (!fits) {
    sink_.report(diag::Id::kNumberRange, e->span,
                 token->getType() == Lexer::DURATION
                     ? "the duration " + std::string(raw) + " is longer than ten years"
                     : "the number " + std::string(raw) + " does not fit in 64 bits");
    e->kind = ExprKind::kError;
  }
  return e;
}

void Builder::set_unit(ast::Expr& e, const std::string& unit) const {
  if (e.kind == ExprKind::kInt || e.kind == ExprKind::kReal) {
    e.unit_text = unit;
  }
}

std::string Builder::unit_of(Parser::UnitContext* ctx) const {
  std::string unit;
  if (ctx->UNIT() != nullptr) {
    unit = token_text(ctx->UNIT());
  } else if (ctx->RATE_UNIT() != nullptr) {
    unit = token_text(ctx->RATE_UNIT());
  } else if (ctx->K_COUNT() != nullptr) {
    unit = "count";
  }
  if (ctx->timeWord() != nullptr) {
    unit += "/" + text(ctx->timeWord());
  }
  return unit;
}

ast::ExprPtr Builder::negated(ast::ExprPtr e, source::Span at) {
  const source::Span whole = source::cover(at, e->span);
  switch (e->kind) {
    case ExprKind::kInt:
    case ExprKind::kDuration:
      e->int_value = -e->int_value;
      e->span = whole;
      return e;
    case ExprKind::kReal:
      e->real_value = -e->real_value;
      e->span = whole;
      return e;
    default:
      break;
  }
  auto result = node(ExprKind::kNegate, whole);
  result->args.push_back(std::move(e));
  return finish(std::move(result));
}

}  // namespace reflex::parse
