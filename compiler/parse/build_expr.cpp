// Builder: expressions. The grammar gives flat operator lists; precedence is made here.
#include <algorithm>
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {
namespace {

using ast::BinaryOp;
using ast::ExprKind;

// Why: later phases recurse over expressions; 1000 frames fit any stack, and no human writes more.
constexpr uint32_t kExprDepthMax = 1000;

/// Strength of an arithmetic operator: | < & < + - < * / %.
int strength(BinaryOp op) {
  switch (op) {
    case BinaryOp::kBitOr:
      return 1;
    case BinaryOp::kBitAnd:
      return 2;
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return 3;
    default:
      return 4;
  }
}

BinaryOp arithmetic_op(size_t type) {
  switch (type) {
    case Lexer::PIPE:
      return BinaryOp::kBitOr;
    case Lexer::AMP:
      return BinaryOp::kBitAnd;
    case Lexer::PLUS:
      return BinaryOp::kAdd;
    case Lexer::MINUS:
      return BinaryOp::kSub;
    case Lexer::STAR:
      return BinaryOp::kMul;
    case Lexer::SLASH:
      return BinaryOp::kDiv;
    default:
      return BinaryOp::kMod;
  }
}

}  // namespace

ast::Name Builder::name(Rule* ctx) const {
  if (row_.empty()) {
    return {text(ctx), span(ctx)};
  }
  auto* value = bound(text(ctx));
  return {value != nullptr ? word_of(value) : text(ctx), span(ctx)};
}

/// The word that stands for a variable of a table test where a name can stand.
std::string Builder::word_of(Parser::SumContext* value) const {
  std::string word = text(value);
  if (word.size() >= 2 && word.front() == '"') {
    word = word.substr(1, word.size() - 2);
  }
  return word;
}

std::vector<ast::Name> Builder::names(const std::vector<Parser::DottedNameContext*>& list) const {
  std::vector<ast::Name> result;
  result.reserve(list.size());
  for (auto* ctx : list) {
    result.push_back(name(ctx));
  }
  return result;
}

std::vector<ast::Name> Builder::names(const std::vector<Parser::IdentifierContext*>& list) const {
  std::vector<ast::Name> result;
  result.reserve(list.size());
  for (auto* ctx : list) {
    result.push_back(name(ctx));
  }
  return result;
}

std::string Builder::token_text(antlr4::tree::TerminalNode* node) const {
  return std::string(tokens_.text(node->getSymbol()));
}

void Builder::error(source::Span at, std::string message, std::string help) {
  sink_.report(diag::Id::kSyntax, at, std::move(message)).help = std::move(help);
}

void Builder::once(bool already, Rule* ctx, std::string_view what) {
  if (already) {
    error(span(ctx), "'" + std::string(what) + "' is given twice", "remove one of the two");
  }
}

ast::ExprPtr Builder::node(ExprKind kind, source::Span at) const {
  auto e = std::make_unique<ast::Expr>();
  e->kind = kind;
  e->span = at;
  return e;
}

ast::ExprPtr Builder::finish(ast::ExprPtr e) {
  uint32_t deepest = 0;
  for (const auto& arg : e->args) {
    deepest = std::max(deepest, arg->depth);
  }
  if (e->aggregate != nullptr) {
    const ast::Aggregate& a = *e->aggregate;
    deepest = std::max(deepest, a.source.where != nullptr ? a.source.where->depth : 0);
    for (const auto& arg : a.args) {
      deepest = std::max(deepest, arg->depth);
    }
    for (const auto& o : a.options) {
      deepest = std::max(deepest, o.value->depth);
    }
  }
  e->depth = deepest + 1;
  if (e->depth > kExprDepthMax) {
    // Once per expression: the error node starts a new count, so the rest of a long chain is
    // reported again only after another kExprDepthMax operators, at the same place.
    source::Span at{e->span.file, e->span.begin, e->span.begin};
    sink_
        .report(diag::Id::kExpressionTooLarge, at,
                "the expression has a chain of more than " + std::to_string(kExprDepthMax) +
                    " operators")
        .help = "use a list with 'in', or split it with macros";
    return node(ExprKind::kError, e->span);
  }
  return e;
}

ast::ExprPtr Builder::binary(BinaryOp op, source::Span op_span, ast::ExprPtr left,
                             ast::ExprPtr right) {
  auto e = node(ExprKind::kBinary, source::cover(left->span, right->span));
  e->op = op;
  e->op_span = op_span;
  e->args.push_back(std::move(left));
  e->args.push_back(std::move(right));
  return finish(std::move(e));
}

ast::ExprPtr Builder::expr(Parser::ExprContext* ctx) {
  // a or b and c: `group` collects an and-chain, `total` the or-chain of finished groups.
  ast::ExprPtr total, group;
  source::Span or_span, and_span;
  bool join_and = false;
  std::vector<antlr4::Token*> nots;
  for (auto* child : ctx->children) {
    if (auto* terminal = dynamic_cast<antlr4::tree::TerminalNode*>(child)) {
      antlr4::Token* token = terminal->getSymbol();
      if (token->getType() == Lexer::K_NOT) {
        nots.push_back(token);
      } else if (token->getType() == Lexer::K_AND) {
        join_and = true;
        and_span = tokens_.span(token);
      } else {
        total = total ? binary(BinaryOp::kOr, or_span, std::move(total), std::move(group))
                      : std::move(group);
        or_span = tokens_.span(token);
        join_and = false;
      }
      continue;
    }
    ast::ExprPtr operand = comparison(static_cast<Parser::ComparisonContext*>(child));
    for (; !nots.empty(); nots.pop_back()) {
      auto negation = node(ExprKind::kNot, source::cover(tokens_.span(nots.back()), operand->span));
      negation->args.push_back(std::move(operand));
      operand = finish(std::move(negation));
    }
    group = join_and ? binary(BinaryOp::kAnd, and_span, std::move(group), std::move(operand))
                     : std::move(operand);
  }
  return total ? binary(BinaryOp::kOr, or_span, std::move(total), std::move(group))
               : std::move(group);
}

BinaryOp Builder::comparison_op(Parser::ComparisonOpContext* ctx) const {
  switch (ctx->start->getType()) {
    case Lexer::EQ:
      return BinaryOp::kEq;
    case Lexer::NE:
      return BinaryOp::kNe;
    case Lexer::LT:
      return BinaryOp::kLt;
    case Lexer::LE:
      return BinaryOp::kLe;
    case Lexer::GT:
      return BinaryOp::kGt;
    default:
      return BinaryOp::kGe;
  }
}

ast::ExprPtr Builder::comparison(Parser::ComparisonContext* ctx) {
  ast::ExprPtr left = sum(ctx->sum());
  auto* tail = ctx->comparisonTail();
  if (tail == nullptr) {
    return left;
  }
  const auto sums = tail->sum();
  if (tail->comparisonOp() != nullptr) {
    return binary(comparison_op(tail->comparisonOp()), span(tail->comparisonOp()), std::move(left),
                  sum(sums[0]));
  }
  const source::Span whole = source::cover(left->span, span(tail));
  const bool negative = tail->K_NOT() != nullptr;
  auto e = node(ExprKind::kIn, whole);
  e->op_span = tokens_.span(tail->start);
  e->args.push_back(std::move(left));
  bool wrap_not = false;
  if (tail->K_IN() != nullptr) {
    e->kind = negative ? ExprKind::kNotIn : ExprKind::kIn;
    ast::ExprPtr right = sum(sums[0]);
    if (sums.size() > 1) {
      ast::ExprPtr high = sum(sums[1]);
      auto range = node(ExprKind::kRange, source::cover(right->span, high->span));
      range->args.push_back(std::move(right));
      range->args.push_back(std::move(high));
      right = finish(std::move(range));
    }
    e->args.push_back(std::move(right));
  } else if (tail->K_LIKE() != nullptr) {
    e->kind = ExprKind::kLike;
    e->args.push_back(literal(tail->STRING()->getSymbol()));
    wrap_not = negative;
  } else if (tail->MATCHES_RE() != nullptr) {
    e->kind = ExprKind::kMatches;
    e->text = regex_text(tokens_.text(tail->MATCHES_RE()->getSymbol()));
    wrap_not = negative;
  } else if (tail->K_BITS() != nullptr) {
    e->kind = tail->K_ALL() != nullptr ? ExprKind::kAllBits : ExprKind::kAnyBits;
    for (auto* bit : sums) {
      e->args.push_back(sum(bit));
    }
  } else {
    e->kind = ExprKind::kCall;
    e->text = "missing";
    e->arg_names.emplace_back();
    wrap_not = negative;
  }
  e = finish(std::move(e));
  if (wrap_not) {
    auto negation = node(ExprKind::kNot, whole);
    negation->args.push_back(std::move(e));
    e = finish(std::move(negation));
  }
  return e;
}

ast::ExprPtr Builder::sum(Parser::SumContext* ctx) {
  const auto terms = ctx->term();
  if (terms.size() == 1) {
    return term(terms[0]);
  }
  struct Pending {
    BinaryOp op;
    source::Span span;
  };
  std::vector<ast::ExprPtr> operands;
  std::vector<Pending> pending;
  const auto reduce = [&] {
    ast::ExprPtr right = std::move(operands.back());
    operands.pop_back();
    ast::ExprPtr left = std::move(operands.back());
    operands.back() =
        binary(pending.back().op, pending.back().span, std::move(left), std::move(right));
    pending.pop_back();
  };
  const auto ops = ctx->arithmeticOp();
  operands.push_back(term(terms[0]));
  for (size_t i = 0; i < ops.size(); ++i) {
    const BinaryOp op = arithmetic_op(ops[i]->start->getType());
    while (!pending.empty() && strength(pending.back().op) >= strength(op)) {
      reduce();
    }
    pending.push_back({op, span(ops[i])});
    operands.push_back(term(terms[i + 1]));
  }
  while (!pending.empty()) {
    reduce();
  }
  return std::move(operands.front());
}

ast::ExprPtr Builder::term(Parser::TermContext* ctx) {
  ast::ExprPtr e = primary(ctx->primary());
  const auto minuses = ctx->MINUS();
  for (size_t i = minuses.size(); i > 0; --i) {
    e = negated(std::move(e), tokens_.span(minuses[i - 1]->getSymbol()));
  }
  return e;
}

ast::ExprPtr Builder::primary(Parser::PrimaryContext* ctx) {
  if (ctx->access() != nullptr) {
    return access(ctx->access());
  }
  if (ctx->listLiteral() != nullptr) {
    return list(ctx->listLiteral());
  }
  if (ctx->LPAREN() != nullptr) {
    ast::ExprPtr inner = expr(ctx->expr());
    inner->span = span(ctx);
    return inner;
  }
  if (ctx->K_LABEL() != nullptr) {
    auto e = node(ExprKind::kCall, span(ctx));
    e->text = "label";
    auto argument = node(ExprKind::kName, span(ctx->dottedName()));
    argument->text = text(ctx->dottedName());
    e->args.push_back(std::move(argument));
    e->arg_names.emplace_back();
    return finish(std::move(e));
  }
  ast::ExprPtr e = literal(ctx->start);
  if (ctx->unit() != nullptr) {
    set_unit(*e, unit_of(ctx->unit()));
    e->span = span(ctx);
  }
  if (ctx->K_OF() != nullptr) {
    e->unit_text.clear();
    auto percent = node(ExprKind::kPercentOf, span(ctx));
    percent->args.push_back(std::move(e));
    percent->args.push_back(primary(ctx->primary()));
    return finish(std::move(percent));
  }
  return e;
}

ast::ExprPtr Builder::list(Parser::ListLiteralContext* ctx) {
  auto e = node(ExprKind::kList, span(ctx));
  for (auto* element : ctx->listElement()) {
    const auto sums = element->sum();
    ast::ExprPtr value = sum(sums[0]);
    if (sums.size() > 1) {
      const ExprKind kind = element->RANGE() != nullptr ? ExprKind::kRange : ExprKind::kPair;
      auto pair = node(kind, span(element));
      pair->args.push_back(std::move(value));
      pair->args.push_back(sum(sums[1]));
      value = finish(std::move(pair));
    }
    e->args.push_back(std::move(value));
  }
  return finish(std::move(e));
}

ast::ExprPtr Builder::bare_number(Parser::BareNumberContext* ctx) {
  if (ctx->exprName() == nullptr) {
    return literal(ctx->start);
  }
  auto e = node(ExprKind::kName, span(ctx));
  e->text = text(ctx);
  return e;
}

}  // namespace reflex::parse
