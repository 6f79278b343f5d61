// Builder: `at T: KIND TARGETS field value ..` of tests. The grammar gives a flat list of items;
// which of them are targets is decided here:
//   an item with `/part` or `[lo..hi]` is a target; so is a word that names a node or job of the
//   test; so is the first item when it alone makes the number of items odd (a job that the test's
//   own events create). All that follows is pairs of field and value.
#include <utility>

#include "compiler/parse/builder.h"

namespace reflex::parse {
namespace {

using ast::ExprKind;

bool ends_with_number_in(std::string_view name, const ast::TestTarget& range) {
  if (name.size() <= range.base.size() || name.substr(0, range.base.size()) != range.base) {
    return false;
  }
  int64_t number = 0;
  const std::string_view digits = name.substr(range.base.size());
  for (char c : digits) {
    if (c < '0' || c > '9' || number > range.hi) {
      return false;
    }
    number = number * 10 + (c - '0');
  }
  return number >= range.lo && number <= range.hi;
}

bool is_declared(const ast::TestDecl& test, std::string_view name) {
  for (const auto& nodes : test.nodes) {
    const ast::TestTarget& t = nodes.target;
    if (t.ranged ? ends_with_number_in(name, t) : t.base == name) {
      return true;
    }
  }
  for (const auto& job : test.jobs) {
    if (job.name.text == name) {
      return true;
    }
  }
  return false;
}

bool has_target_shape(Parser::TargetContext* ctx) {
  return ctx->RANGE() != nullptr || !ctx->targetPart().empty();
}

}  // namespace

ast::ExprPtr Builder::number_value(Parser::TestNumberContext* ctx) {
  antlr4::Token* token = ctx->MINUS() != nullptr
                             ? tokens_.at(tokens_.position_of(ctx->start->getTokenIndex()) + 1)
                             : ctx->start;
  ast::ExprPtr e = literal(token);
  if (auto* unit = ctx->testUnit()) {
    std::string text_of_unit;
    if (unit->UNIT() != nullptr) {
      text_of_unit = token_text(unit->UNIT());
    } else if (unit->RATE_UNIT() != nullptr) {
      text_of_unit = token_text(unit->RATE_UNIT());
    }
    if (unit->timeWord() != nullptr) {
      text_of_unit += "/" + text(unit->timeWord());
    }
    set_unit(*e, text_of_unit);
    e->span = source::cover(e->span, span(unit));
  }
  return ctx->MINUS() != nullptr ? negated(std::move(e), span(ctx)) : std::move(e);
}

ast::ExprPtr Builder::target_value(Parser::TargetContext* ctx) {
  if (!ctx->targetPart().empty()) {
    error(span(ctx), "a field takes a value, not a target", "targets stand before the fields");
    return node(ExprKind::kError, span(ctx));
  }
  if (ctx->STRING() == nullptr && ctx->RANGE() == nullptr && !row_.empty()) {
    if (auto* value = bound(text(ctx))) {
      return row_value(value);
    }
  }
  ast::TestTarget t = target(ctx);
  if (t.ranged) {
    auto list_of_names = node(ExprKind::kList, t.span);
    for (int64_t i = t.lo; i <= t.hi; ++i) {
      auto member = node(ExprKind::kName, t.span);
      member->text = t.base + std::to_string(i);
      list_of_names->args.push_back(std::move(member));
    }
    return finish(std::move(list_of_names));
  }
  auto e = node(ctx->STRING() != nullptr ? ExprKind::kString : ExprKind::kName, t.span);
  e->text = t.base;
  return e;
}

ast::ExprPtr Builder::item_value(Parser::TestItemContext* ctx) {
  if (ctx->target() != nullptr) {
    return target_value(ctx->target());
  }
  if (ctx->testNumber() != nullptr) {
    return number_value(ctx->testNumber());
  }
  if (ctx->listLiteral() != nullptr) {
    return list(ctx->listLiteral());
  }
  return literal(ctx->start);
}

void Builder::event_items(const ast::TestDecl& t, ast::TestDecl::Event& e,
                          const std::vector<Parser::TestItemContext*>& items) {
  size_t i = 0;
  for (; i < items.size(); ++i) {
    auto* candidate = items[i]->target();
    if (candidate == nullptr) {
      break;
    }
    const bool shaped = has_target_shape(candidate);
    const std::string base = candidate->STRING() != nullptr
                                 ? string_value(candidate->STRING()->getSymbol())
                                 : text(candidate->wordPath());
    const bool odd_first = i == 0 && items.size() % 2 == 1;
    if (!shaped && !odd_first && !is_declared(t, base)) {
      break;
    }
    e.targets.push_back(target(candidate));
  }
  for (; i < items.size(); i += 2) {
    auto* field = items[i]->target();
    if (field == nullptr || field->wordPath() == nullptr || has_target_shape(field)) {
      error(span(items[i]), "expected the name of a field, found '" + text(items[i]) + "'",
            "write 'at 1h: gpu.xid n1/0 code 48'");
      return;
    }
    if (i + 1 == items.size()) {
      error(span(items[i]), "the field '" + text(field) + "' has no value",
            "write '" + text(field) + "' and its value");
      return;
    }
    // A field keeps its name, even where a variable of the row is called so.
    ast::Name field_name{text(field->wordPath()), span(field->wordPath())};
    e.fields.emplace_back(std::move(field_name), item_value(items[i + 1]));
  }
}

void Builder::test_at(ast::TestDecl& t, Parser::TestAtContext* ctx) {
  ast::TestDecl::Event e;
  const auto times = ctx->sum();
  size_t next = 0;
  e.at = sum(times[next++]);
  if (ctx->RANGE() != nullptr) {
    e.until = sum(times[next++]);
  }
  if (ctx->K_EVERY() != nullptr) {
    e.every = sum(times[next]);
  }
  if ((e.until == nullptr) != (e.every == nullptr)) {
    error(span(ctx), "a range of times and 'every' belong together",
          "write 'at 0h..20h every 5h: ..'");
  }
  auto* given = ctx->testEvent();
  e.span = span(ctx);
  if (given->K_LOG() != nullptr) {
    e.kind = {"log", tokens_.span(given->K_LOG()->getSymbol())};
    for (auto* to : given->target()) {
      e.targets.push_back(target(to));
    }
    auto* raw = given->RAW_STRING() != nullptr ? given->RAW_STRING() : given->STRING();
    e.log_text = string_value(raw->getSymbol());
  } else {
    e.kind = name(given->dottedName());
    event_items(t, e, given->testItem());
  }
  for (auto* option : given->eventOption()) {
    if (option->K_LATE() != nullptr) {
      once(e.late != nullptr, option, "late");
      e.late = sum(option->sum());
      continue;
    }
    once(e.repeat != nullptr, option, "x");
    antlr4::Token* repeat = option->REPEAT_COUNT()->getSymbol();
    int64_t count = 0;
    for (char c : tokens_.text(repeat).substr(1)) {
      // Why: a million events of one line are more than any test needs; also bounds the overflow.
      constexpr int64_t kRepeatMax = 1'000'000;
      count = std::min(count * 10 + (c - '0'), kRepeatMax);
    }
    e.repeat = node(ExprKind::kInt, tokens_.span(repeat));
    e.repeat->int_value = count;
    e.repeat_every = opt(option->sum());
  }
  t.events.push_back(std::move(e));
}

}  // namespace reflex::parse
