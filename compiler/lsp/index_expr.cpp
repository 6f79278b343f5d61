// Names in expressions, as sema's check_path reads them: variables, the record, parameters,
// features, last values; and the words of calls.
#include <algorithm>

#include "compiler/lsp/index_use.h"

namespace reflex::lsp {

using ast::ExprKind;
using Word = Occurrence::Word;

namespace {

Span cover_from(const std::vector<Segment>& parts, size_t from) {
  return source::cover(parts[from].span, parts.back().span);
}

std::string joined(const std::vector<Segment>& parts, size_t from, size_t to) {
  std::string text;
  for (size_t i = from; i < to; ++i) text += (i > from ? "." : "") + parts[i].text;
  return text;
}

/// A name inside a string template or a row of a table test may stand elsewhere than its text says.
bool reads_as(const std::vector<Segment>& parts, const std::string& text) {
  return !parts.empty() && joined(parts, 0, parts.size()) == text;
}

}  // namespace

void User::path_expr(const ast::Expr& e, const Scope& scope) {
  const auto parts = segments(index_.session_.sources(), e.span);
  if (!reads_as(parts, e.text)) return;
  const std::string& head = parts[0].text;
  for (const Scope::Variable& v : scope.variables) {
    if (v.name != head) continue;
    index_.use(parts[0].span, v.symbol);
    if (parts.size() == 1) return;
    if (v.kind != kNoSymbol) {
      field_at(v.kind, parts, 1);
    } else if (scope.verdict) {
      index_.word(cover_from(parts, 1), Word::kVariable);
    }
    return;
  }
  const auto& names = scope.record_names;
  if (std::find(names.begin(), names.end(), head) != names.end()) {
    index_.word(parts[0].span, Word::kVariable);
    if (parts.size() > 1) field_at(scope.record, parts, 1);
    return;
  }
  if (head == "profile" && parts.size() > 1) {
    const SymbolId p = parameter(joined(parts, 1, parts.size()));
    if (p != kNoSymbol) index_.use(cover_from(parts, 1), p);
    return;
  }
  for (const SymbolKind kind : {SymbolKind::kFeature, SymbolKind::kList, SymbolKind::kProfile}) {
    if (path(parts, kind, parts.size()) != kNoSymbol) return;
  }
  if (parts.size() > 1) {
    const auto kinds = index_.find(SymbolKind::kKind, pack_, joined(parts, 0, parts.size() - 1));
    if (!kinds.empty()) {
      const SymbolId kind = path(parts, SymbolKind::kKind, parts.size() - 1);
      field_at(kind, parts, parts.size() - 1);
      return;
    }
  }
  // An aggregate over events alone: rate(gpu.throttle, 6h).
  if (path(parts, SymbolKind::kKind, parts.size()) != kNoSymbol) return;
  for (const SymbolKind kind : {SymbolKind::kCause, SymbolKind::kSignal}) {
    if (path(parts, kind, parts.size()) != kNoSymbol) return;
  }
  if (parts.size() == 1) index_.word(parts[0].span, Word::kEnumWord);
}

void User::call(const ast::Expr& e, const Scope& scope) {
  const auto parts = segments(index_.session_.sources(), e.span);
  std::string callee = e.text;
  if (!callee.empty() && callee.back() == '?') callee.pop_back();
  if (reads_as(parts, callee)) {
    if (path(parts, SymbolKind::kMacro, parts.size()) == kNoSymbol) {
      index_.word(source::cover(parts.front().span, parts.back().span), Word::kFunction);
    }
  }
  // `label(node, site)`, `label gpu.product`: the name of a label is a word of the inventory.
  const size_t last = callee == "label" && !e.args.empty() ? e.args.size() - 1 : e.args.size();
  SymbolId kind = kNoSymbol;
  if (!e.args.empty() && e.args[0] && e.args[0]->kind == ExprKind::kName) {
    const auto first = index_.find(SymbolKind::kKind, pack_, e.args[0]->text);
    if (!first.empty()) kind = first[0];
  }
  Scope inner = scope;
  if (kind != kNoSymbol) {
    inner.record = kind;
    inner.record_names = {"it"};
  }
  for (size_t i = 0; i < last; ++i) expr(e.args[i], inner);
}

void User::expr(const ast::Expr& e, const Scope& scope) {
  switch (e.kind) {
    case ExprKind::kName:
      path_expr(e, scope);
      return;
    case ExprKind::kCall:
      call(e, scope);
      return;
    case ExprKind::kAggregate:
      if (e.aggregate) aggregate(*e.aggregate, scope);
      return;
    default:
      break;
  }
  for (const auto& arg : e.args) expr(arg, scope);
  if (e.aggregate) aggregate(*e.aggregate, scope);
}

/// The name of a function at the beginning of an aggregate, and the one inside of it.
void User::function_words(const ast::Aggregate& a) {
  const std::string_view text = index_.session_.sources().text(a.span.file);
  if (a.fn.empty() || a.span.end > text.size()) return;
  const std::string_view own = text.substr(a.span.begin, a.span.end - a.span.begin);
  if (!own.starts_with(a.fn)) return;
  const auto size = static_cast<uint32_t>(a.fn.size());
  index_.word({a.span.file, a.span.begin, a.span.begin + size}, Word::kFunction);
  const size_t inner =
      a.inner_fn.empty() ? std::string_view::npos : own.find(a.inner_fn + "(", size);
  if (inner == std::string_view::npos) return;
  const auto at = a.span.begin + static_cast<uint32_t>(inner);
  index_.word({a.span.file, at, at + static_cast<uint32_t>(a.inner_fn.size())}, Word::kFunction);
}

void User::aggregate(const ast::Aggregate& a, const Scope& scope) {
  function_words(a);
  const SymbolId kind = a.source.kind.empty() ? kNoSymbol : source(a.source.kind);
  Scope inner = scope;
  if (kind != kNoSymbol) {
    inner.record = kind;
    inner.record_names = {"it"};
  }
  expr(a.source.where, inner);
  for (const auto& arg : a.args) expr(arg, scope);
  for (const auto& option : a.options) expr(option.value, scope);
  if (!a.distinct_of.empty() && kind != kNoSymbol) field_name(kind, a.distinct_of);
}

SymbolId User::pattern(const ast::KindPattern& p, Scope scope, const ast::Name* variable,
                       SymbolId owner) {
  const SymbolId kind = source(p.kind);
  scope.record = kind;
  scope.record_names = {"it"};
  if (variable != nullptr && !variable->empty()) {
    const SymbolId symbol = variable_of(owner, *variable);
    if (symbol != kNoSymbol) {
      index_.symbols_[symbol].of_kind = kind;
      scope.variables.push_back({variable->text, symbol, kind});
    }
  }
  expr(p.where, scope);
  return kind;
}

}  // namespace reflex::lsp
