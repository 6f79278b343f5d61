// Tests (A12): names of kinds, fields, profiles, signals, faults and incidents. The runner
// evaluates the test; here only what can be wrong without running is reported.
#include <algorithm>
#include <array>
#include <map>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using ast::TestDecl;

struct Checker {
  State& s;
  PackIndex pack;
  const TestDecl& d;

  void event(const TestDecl::Event& e);
  void gap_source(const ast::Name& source);
  void gap(const TestDecl::Gap& g);
  void value(const KindInfo& kind, uint16_t slot, const ast::Expr& e);
  void expect(const TestDecl::Expect& e);
  void clause(const TestDecl::Expect::Clause& c);
  void cause(const ast::Name& name);
  void probability(const ast::ExprPtr& p);
  [[nodiscard]] bool declares_target(const ast::TestTarget& t) const;
};

/// The slot that a member of an aliased kind is read into.
std::optional<uint16_t> aliased_slot(const State& s, const KindInfo& kind, const std::string& alias,
                                     const std::string& member) {
  auto own = slot_of(kind, member);
  for (const abi::KindAlias& a : s.pack.kinds[kind.id].aliases) {
    if (a.name != alias) continue;
    for (const auto& rename : a.renames) {
      if (rename.member == member && rename.slot < abi::KindAlias::kSource) return rename.slot;
      if (own && rename.slot == *own) own.reset();  // read under its new name only
    }
  }
  return own;
}

/// Field values: numbers carry units; words of a declared enum are checked.
void Checker::value(const KindInfo& kind, uint16_t slot, const ast::Expr& e) {
  const abi::FieldSchema& f = kind.schema.fields[slot];
  if (f.type.scalar == Scalar::kError || e.kind == ast::ExprKind::kError) return;
  const bool word = e.kind == ast::ExprKind::kName || e.kind == ast::ExprKind::kString;
  auto wrong = [&] {
    s.report(Id::kTypeMismatch, e.span,
             "field '" + f.name + "' of '" + kind.schema.name + "' is a " + to_text(s, f.type));
  };
  switch (f.type.scalar) {
    case Scalar::kEnum:
      if (!word) return wrong();
      if (f.type.enum_id != 0) symbol_constant(s, e.text, f.type, e.span);
      return;
    case Scalar::kString:
      if (!word) wrong();
      return;
    case Scalar::kBool:
      if (e.kind != ast::ExprKind::kBool) wrong();
      return;
    case Scalar::kArray:
      if (e.kind != ast::ExprKind::kList && e.kind != ast::ExprKind::kInt) wrong();
      return;
    case Scalar::kEntity:
      if (f.type.gpu_index ? e.kind != ast::ExprKind::kInt && e.kind != ast::ExprKind::kString
                           : !word && e.kind != ast::ExprKind::kInt) {
        wrong();
      }
      return;
    case Scalar::kInstant:
      return;
    default:
      break;
  }
  Env env;
  env.pack = pack;
  env.constant_only = true;
  abi::Type want = f.type;
  want.counter = false;
  const NodePtr n =
      coerce(s, check_expr(s, env, e, &want), want, ("field '" + f.name + "'").c_str());
  if (is_error(n) || want.scalar != Scalar::kInt || !constant_i64(n)) return;
  const FieldRange& range = kind.ranges[slot];
  if (*constant_i64(n) < range.lo || *constant_i64(n) > range.hi) {
    s.report(Id::kNumberRange, e.span, "the value does not fit field '" + f.name + "'");
  }
}

void Checker::event(const TestDecl::Event& e) {
  auto duration = [&](const ast::ExprPtr& t, const char* what) {
    return t ? constant_duration(s, pack, *t, what) : std::nullopt;
  };
  duration(e.at, "the time");
  duration(e.until, "the time");
  if (duration(e.every, "the interval") == 0) {
    s.report(Id::kBadInterval, e.every->span, "an event every 0s would never end");
  }
  duration(e.repeat_every, "the interval");
  duration(e.late, "the delay");
  if (e.kind.text == "log") return;
  const auto alias = s.alias_kinds.find(e.kind.text);
  const auto kind = alias != s.alias_kinds.end()
                        ? std::optional(alias->second)
                        : resolve(s, s.kind_names, pack, e.kind, Id::kUnknownKind);
  if (!kind) return;
  const KindInfo& info = s.kinds[*kind];
  if (info.is_abstract) {
    s.report(Id::kAbstractUse, e.kind.span, "kind '" + e.kind.text + "' is abstract");
    return;
  }
  for (const auto& [name, v] : e.fields) {
    const auto slot = alias != s.alias_kinds.end() ? aliased_slot(s, info, e.kind.text, name.text)
                                                   : slot_of(info, name.text);
    if (!slot) {
      auto& diag = s.report(Id::kUnknownField, name.span,
                            "'" + info.schema.name + "' has no field '" + name.text + "'");
      suggest(diag, name.text, field_names(info), name.span);
      continue;
    }
    if (v) value(info, *slot, *v);
  }
}

void Checker::gap(const TestDecl::Gap& g) {
  gap_source(g.source);
  const auto from = g.from ? constant_duration(s, pack, *g.from, "the start") : std::nullopt;
  const auto to = g.to ? constant_duration(s, pack, *g.to, "the end") : std::nullopt;
  if (from && to && *from >= *to) {
    s.report(Id::kBadInterval, g.span, "the gap ends before it begins");
  }
  if (g.target.text.empty() || declares_target(g.target)) return;
  auto& diag =
      s.report(Id::kUnknownName, g.target.span, "the test has no node '" + g.target.text + "'");
  diag.help = "declare it: nodes " + g.target.text;
}

/// `gap n1 source gpu.temp`: the source that carries a kind; `source log`: the node's logs.
void Checker::gap_source(const ast::Name& source) {
  if (source.empty() || source.text == "log") return;
  const auto kind = resolve(s, s.kind_names, pack, source, Id::kUnknownKind);
  if (!kind || !s.kinds[*kind].is_abstract) return;
  auto& diag = s.report(Id::kAbstractUse, source.span, "kind '" + source.text + "' is abstract");
  diag.help = "name a kind that has events, or: source log";
}

void Checker::probability(const ast::ExprPtr& p) {
  if (!p) return;
  const auto v = constant_number(s, pack, *p, "p");
  if (v && (*v < 0 || *v > 1)) {
    s.report(Id::kProbabilityRange, p->span, "p must be between 0 and 1");
  }
}

void Checker::cause(const ast::Name& name) {
  resolve(s, s.cause_names, pack, name, Id::kUnknownCause);
}

/// Whether the target names nodes or a job that the test declares.
bool Checker::declares_target(const ast::TestTarget& t) const {
  auto number_in = [](const std::string& text, const ast::TestTarget& range) {
    if (text.rfind(range.base, 0) != 0 || text.size() == range.base.size()) return false;
    int64_t n = 0;
    for (size_t i = range.base.size(); i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9' || n > range.hi) return false;
      n = n * 10 + (text[i] - '0');
    }
    return n >= range.lo && n <= range.hi;
  };
  for (const auto& nodes : d.nodes) {
    const ast::TestTarget& have = nodes.target;
    if (!have.ranged && !t.ranged && have.base == t.base) return true;
    if (have.ranged && t.ranged) {
      if (have.base == t.base && t.lo >= have.lo && t.hi <= have.hi) return true;
    } else if (have.ranged && number_in(t.base, have)) {
      return true;
    }
  }
  for (const auto& job : d.jobs) {
    if (!t.ranged && job.name.text == t.base) return true;
  }
  return false;
}

void Checker::clause(const TestDecl::Expect::Clause& c) {
  static constexpr std::array<std::string_view, 9> kClauses{
      "top", "not", "because", "silent", "none", "external", "undetermined", "suspect", "gpu"};
  if (std::find(kClauses.begin(), kClauses.end(), c.what) == kClauses.end()) {
    auto& diag = s.report(Id::kUnknownOption, c.span, "no clause '" + c.what + "'");
    suggest(diag, c.what, {kClauses.begin(), kClauses.end()}, c.span);
    return;
  }
  probability(c.p);
  if (c.what == "because" || c.what == "silent") {
    for (const ast::Name& n : c.names) resolve(s, s.signal_names, pack, n, Id::kUnknownSignal);
  } else if (c.what == "top" || c.what == "external") {
    for (const ast::Name& n : c.names) cause(n);
  }
  // Only when the test declares nodes: without any, they may come from its log lines and events.
  if (d.nodes.empty() || (c.what != "top" && c.what != "not" && c.what != "suspect")) return;
  for (const ast::TestTarget& t : c.targets) {
    if (declares_target(t)) continue;
    s.report(Id::kUnknownName, t.span, "the test has no node '" + t.text + "'");
  }
}

void Checker::expect(const TestDecl::Expect& e) {
  if (e.at) constant_duration(s, pack, *e.at, "the time");
  if (e.before) constant_duration(s, pack, *e.before, "the time");
  if (e.tolerance) constant_duration(s, pack, *e.tolerance, "the tolerance");
  if (!e.verdict) {
    if (!e.signal.empty()) resolve(s, s.signal_names, pack, e.signal, Id::kUnknownSignal);
    return;
  }
  if (!e.incident.empty()) {
    // `expect no verdict j`: the one word may be the job.
    bool is_job = false;
    for (const auto& job : d.jobs) is_job = is_job || job.name.text == e.incident.text;
    if (!(e.negated && is_job)) {
      resolve(s, s.incident_names, pack, e.incident, Id::kUnknownIncident);
    }
  }
  for (const auto& c : e.clauses) clause(c);
}

void check_test(State& s, PackIndex pack, const TestDecl& d, Span span) {
  Checker c{s, pack, d};
  for (const auto& nodes : d.nodes) {
    if (!nodes.profile.empty()) {
      resolve(s, s.profile_names, pack, nodes.profile, Id::kUnknownProfile);
    }
  }
  for (const auto& job : d.jobs) {
    if (job.at) constant_duration(s, pack, *job.at, "the start");
    if (job.to) constant_duration(s, pack, *job.to, "the end");
    for (const ast::TestTarget& t : job.nodes) {
      if (c.declares_target(t)) continue;
      auto& diag = s.report(Id::kUnknownName, t.span, "the test has no node '" + t.text + "'");
      diag.help = "declare it: nodes " + t.text;
    }
  }
  for (const auto& e : d.events) c.event(e);
  for (const auto& g : d.gaps) {
    c.gap(g);
  }
  bool expects = false;
  for (const auto& e : d.expects) {
    c.expect(e);
    expects = expects || !e.allow;
  }
  if (d.shuffle) constant_count(s, pack, *d.shuffle, "`shuffle`", 1, 10'000);
  if (!expects) {
    auto& diag = s.report(Id::kTestWithoutExpectation, span,
                          "test \"" + d.title + "\" expects nothing: it could not fail");
    diag.help = "add: expect SIGNAL on n1, or: expect no SIGNAL";
  }
}

}  // namespace

void check_tests(State& s) {
  // By pack and title: a title is what `reflex test --only` and reports name a test by.
  std::map<std::pair<PackIndex, std::string>, Span> titles;
  for_each<TestDecl>(s, [&](DeclRef ref, const TestDecl& d, const ast::Decl& decl) {
    // The title's line is enough to find the test; its whole span would fill the screen.
    const Span head{decl.span.file, decl.span.begin, std::min(decl.span.end, decl.span.begin + 4)};
    const auto [first, fresh] = titles.emplace(std::pair{ref.pack, d.title}, head);
    if (!fresh) {
      auto& diag = s.report(Id::kDuplicateName, head,
                            "a test with the title \"" + d.title + "\" exists already");
      diag.notes.push_back({first->second, "the first one is here"});
    }
    check_test(s, ref.pack, d, head);
    if (s.in.include_tests) s.out.tests.emplace_back(ref.module, ref.index);
  });
}

}  // namespace reflex::sema
