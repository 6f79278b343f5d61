// Suppressions (A11) and the ends (`until`) that they and overlays have.
//
// An end is compared with event time by the runtime, so a replay of old data gives what the pack
// gave then. Here the wall clock only decides about the warning that an end has passed.
#include "compiler/sema/phases.h"
#include "runtime/base/time.h"

namespace reflex::sema {

namespace {

void check_suppress(State& s, PackIndex pack, const ast::SuppressDecl& d) {
  abi::SuppressPlan plan;
  plan.name = s.full_name(pack, d.name.text);
  plan.reason = d.reason;
  plan.where_declared = s.where(d.name.span);
  bool ok = true;
  if (d.until.empty() || d.reason.empty()) {
    auto& diag = s.report(Id::kNoExpiry, d.name.span,
                          "suppression '" + d.name.text + "' has no " +
                              (d.until.empty() ? "`until`" : "`reason`"));
    diag.help = "what is suppressed forever is forgotten: until 2027-03-31 reason \"..\"";
    ok = false;
  } else {
    const auto end = until_ns(s, d.until, d.name.span);
    ok = end.has_value();
    plan.until_ns = end.value_or(0);
  }
  for (const ast::Name& name : d.signals) {
    const auto signal = resolve(s, s.signal_names, pack, name, Id::kUnknownSignal);
    if (signal) plan.signals.push_back(*signal);
    ok = ok && signal;
  }
  if (d.where) {
    Env env;
    env.pack = pack;
    env.has_entity = true;
    env.entity_kind = entity_kind_of(s, {"node"});
    const NodePtr n = check_predicate(s, env, *d.where);
    if (is_error(n)) return;
    plan.where = emit(s, n, plan.name + ".where");
  } else if (d.signals.empty()) {
    auto& diag = s.report(Id::kIncomplete, d.name.span,
                          "suppression '" + d.name.text + "' does not say what it suppresses");
    diag.help = "write: signals a, b  or: where label(node, site) == \"lab\"";
    return;
  }
  if (ok) s.pack.suppressions.push_back(std::move(plan));
}

}  // namespace

std::optional<int64_t> until_ns(State& s, const std::string& text, Span span) {
  const bool date = text.size() == 10;
  const auto at = parse_rfc3339(date ? text + "T00:00:00Z" : text);
  if (!at) {
    auto& diag = s.report(Id::kNotConstant, span, "'" + text + "' is not a date");
    diag.help = "write: until 2027-03-31 (00:00 UTC), or until \"2027-03-31T18:00:00Z\"";
    return std::nullopt;
  }
  if (s.in.now_ns != 0 && at->ns < s.in.now_ns) {
    auto& diag = s.report(Id::kExpired, span, "ended at " + to_rfc3339(*at));
    diag.help = "remove the statement, or move its end";
  }
  return at->ns;
}

void check_suppressions(State& s) {
  for_each<ast::SuppressDecl>(s, [&](DeclRef ref, const ast::SuppressDecl& d, const ast::Decl&) {
    check_suppress(s, ref.pack, d);
  });
}

}  // namespace reflex::sema
