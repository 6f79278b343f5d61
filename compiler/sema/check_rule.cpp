// Rules on verdicts (A10): `where`, severity, labels, templates and actions over one record, the
// verdict, whose fields are declared here. The runtime fills that record (runtime/policy).
//
// The verdict is no event kind: it has no name that a pattern could read (R310). Its kind is
// abstract in State::kinds, so that expressions are typed against it and nothing else sees it.
#include <algorithm>
#include <array>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;

// Why: an alert that nobody resolves must not stay for ever; a day is longer than any repair.
constexpr int64_t kDefaultResolveNs = int64_t{24} * 3600 * 1'000'000'000;

std::vector<std::string> sorted(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::erase(words, std::string());
  return words;
}

struct Schema {
  State& s;
  KindInfo kind;

  void add(const char* name, abi::Type type, bool optional) {
    type.optional = optional;
    abi::FieldSchema field;
    field.name = name;
    field.type = type;
    field.used = false;
    kind.schema.fields.push_back(std::move(field));
    kind.ranges.push_back({INT64_MIN, INT64_MAX, {}});
  }
  void add(const char* name, Scalar scalar, bool optional = false) {
    abi::Type t;
    t.scalar = scalar;
    add(name, t, optional);
  }
  void add_entity(const char* name, const char* entity, bool optional, bool array = false) {
    abi::Type t;
    t.scalar = array ? Scalar::kArray : Scalar::kEntity;
    t.array_bound = array ? 65535 : 0;
    t.entity = *entity_type_id(s, entity);
    add(name, t, optional);
  }
  void add_word(const char* name, const std::vector<std::string>& words, bool optional) {
    abi::Type t;
    t.scalar = Scalar::kEnum;
    t.enum_id = words.empty() ? uint16_t{0} : enum_id(s, words);
    add(name, t, optional);
  }
};

/// The fields of `v`, in the order of CompiledPack::verdict_fields.
uint32_t declare_verdict(State& s) {
  Schema v{s, {}};
  v.kind.is_abstract = true;
  v.kind.schema.name = "verdict";
  v.kind.check = KindInfo::Check::kDone;
  std::vector<std::string> faults, externals, remedies, profiles;
  for (const CauseInfo& cause : s.causes) {
    faults.push_back(cause.decl->name.text);
    if (cause.decl->external) externals.push_back(cause.decl->name.text);
    remedies.push_back(cause.decl->remedy.text);
  }
  for (const abi::ClassPlan& plan : s.pack.classes) profiles.push_back(plan.name);
  v.add("id", Scalar::kEnum);
  v.add("incident", Scalar::kEnum);
  v.add("type", Scalar::kEnum);
  v.add_entity("job", "job", false);
  v.add("symptom", Scalar::kEnum, true);
  v.add("opened_by", Scalar::kEnum);
  v.add("revision", Scalar::kInt);
  v.add("final", Scalar::kBool);
  v.add_word("level", {"confirmed", "external", "none", "suspected", "undetermined"}, false);
  v.add_word("external", sorted(externals), true);
  v.add("nodes", Scalar::kInt);
  v.add("late_events", Scalar::kInt);
  v.add_entity("culprits", "node", false, true);
  v.add_entity("others", "node", false, true);
  v.add_entity("top.node", "node", true);
  v.add("top.entity", Scalar::kEnum, true);
  v.add_word("top.fault", sorted(faults), true);
  v.add_word("top.fault.remedy", sorted(remedies), true);
  v.add_word("top.fault.severity", {"critical", "info", "warning"}, true);
  v.add("top.p", quantity_type(abi::Unit::kRatio), true);
  v.add_word("top.profile", sorted(profiles), true);
  v.add("top.hazard", Scalar::kReal, true);
  s.pack.verdict_fields = v.kind.schema.fields;
  s.kinds.push_back(std::move(v.kind));
  return static_cast<uint32_t>(s.kinds.size() - 1);
}

/// Names of single verdicts and entities: each value is new, so none of them is a label.
bool is_unbounded(const std::string& field) {
  static constexpr std::array<std::string_view, 4> kFields{"id", "incident", "opened_by",
                                                           "top.entity"};
  return std::find(kFields.begin(), kFields.end(), field) != kFields.end();
}

struct RuleChecker {
  State& s;
  PackIndex pack;
  const ast::VerdictRuleDecl& d;
  abi::RulePlan plan;
  std::vector<std::string> asked;  // fields that `where` reads: they are there when it holds

  [[nodiscard]] Env env() const;
  bool reads_class(const NodePtr& n, Span span);
  void fields_of(const NodePtr& n, std::vector<uint32_t>& out) const;
  void mark_used(const NodePtr& n);
  NodePtr value(const ast::Expr& e, const abi::Type* expected = nullptr);
  void where();
  void severity();
  void label(const ast::VerdictRuleDecl::Label& l);
  void annotation(const ast::VerdictRuleDecl::Annotation& a);
  abi::TemplateText part(const ast::TemplatePart& p);
  bool check_format(const ast::TemplatePart& p, const abi::Type& type);
  void warn_missing(const ast::TemplatePart& p, const NodePtr& n);
  void action(const ast::VerdictRuleDecl::Action& a);
  void action_limit(const ast::VerdictRuleDecl::Action& a, abi::ActionPlan& out);
  int64_t span(const ast::ExprPtr& e, const char* what, int64_t otherwise);
  bool check();
};

Env RuleChecker::env() const {
  Env env;
  env.pack = pack;
  env.record_kind = s.verdict_kind;
  env.record_names = {d.variable.text};
  return env;
}

/// A verdict is of no class: a parameter would be that of the fallback.
bool RuleChecker::reads_class(const NodePtr& n, Span at) {
  if (!reads(n, ir::Op::kParam) && !reads(n, ir::Op::kTable)) return false;
  auto& diag = s.report(Id::kNotHere, at, "a rule on verdicts reads no parameters of profiles");
  diag.help = "the class of the node is " + d.variable.text + ".top.profile";
  return true;
}

void RuleChecker::fields_of(const NodePtr& n, std::vector<uint32_t>& out) const {
  if (n->op == ir::Op::kField) out.push_back(n->index);
  for (const NodePtr& arg : n->args) fields_of(arg, out);
}

void RuleChecker::mark_used(const NodePtr& n) {
  std::vector<uint32_t> fields;
  fields_of(n, fields);
  for (const uint32_t slot : fields) s.pack.verdict_fields[slot].used = true;
}

/// A typed value; a bare word or string takes the expected type. Poison after a report.
NodePtr RuleChecker::value(const ast::Expr& e, const abi::Type* expected) {
  NodePtr n = check_expr(s, env(), e, expected);
  if (is_error(n)) return n;
  if (reads_class(n, e.span)) return poison(e.span);
  if (n->op == ir::Op::kConstText) {
    abi::Type word;
    word.scalar = Scalar::kEnum;
    n = symbol_constant(s, literal_text(s, n), expected != nullptr ? *expected : word, e.span);
  }
  if (n->type.scalar == Scalar::kArray) {
    auto& diag = s.report(Id::kTypeMismatch, e.span, "a list of nodes is no value here");
    diag.help = "write: count(" + d.variable.text + ".others)";
    return poison(e.span);
  }
  mark_used(n);
  return n;
}

void RuleChecker::where() {
  if (!d.where) return;
  const NodePtr n = check_predicate(s, env(), *d.where);
  if (is_error(n) || reads_class(n, d.where->span)) return;
  mark_used(n);
  std::vector<uint32_t> fields;
  fields_of(n, fields);
  for (const uint32_t slot : fields) asked.push_back(s.pack.verdict_fields[slot].name);
  plan.where = emit(s, n, plan.name + ".where");
}

void RuleChecker::severity() {
  if (!d.severity) return;
  abi::Type want;
  want.scalar = Scalar::kEnum;
  want.enum_id = enum_id(s, {"critical", "info", "warning"});
  const NodePtr n = value(*d.severity, &want);
  if (is_error(n)) return;
  if (n->type.scalar != Scalar::kEnum || n->type.enum_id != want.enum_id) {
    auto& diag = s.report(Id::kTypeMismatch, d.severity->span,
                          "a severity is info, warning or critical, this is a " +
                              to_text(s, n->type));
    diag.help = "write: severity " + d.variable.text + ".top.fault.severity, or: severity critical";
    return;
  }
  plan.severity = emit(s, n, plan.name + ".severity");
}

void RuleChecker::label(const ast::VerdictRuleDecl::Label& l) {
  for (const auto& other : plan.labels) {
    if (other.name != l.name.text) continue;
    s.report(Id::kDuplicateName, l.name.span, "label '" + l.name.text + "' is given twice");
    return;
  }
  const NodePtr n = value(*l.value);
  if (is_error(n)) return;
  std::vector<uint32_t> fields;
  fields_of(n, fields);
  const bool single = std::any_of(fields.begin(), fields.end(), [&](uint32_t slot) {
    return is_unbounded(s.pack.verdict_fields[slot].name);
  });
  const Scalar scalar = n->type.scalar;
  const bool word = scalar == Scalar::kEnum || scalar == Scalar::kEntity || scalar == Scalar::kBool;
  if (!word || single) {
    auto& diag = s.report(Id::kUnboundedLabel, l.value->span,
                          "label '" + l.name.text + "' would have a new value for every alert");
    diag.help = "put it into a text: annotate " + l.name.text + " \"{..}\"";
    return;
  }
  plan.labels.push_back({l.name.text, emit(s, n, plan.name + "." + l.name.text)});
}

/// One conversion of printf that fits the type: numbers d f e g, everything else s.
bool RuleChecker::check_format(const ast::TemplatePart& p, const abi::Type& type) {
  if (p.format.empty()) return true;
  size_t i = 1;
  while (i < p.format.size() && std::string_view("-+ 0").find(p.format[i]) != std::string::npos) {
    ++i;
  }
  size_t digits = 0;
  for (; i + 1 < p.format.size(); ++i, ++digits) {
    const char c = p.format[i];
    // Why 6: a width of thousands would be a mistake that fills a page.
    if ((c < '0' || c > '9') && c != '.') break;
  }
  const bool number = is_number(type);
  const std::string_view allowed = number ? "dfeg" : "s";
  const bool ok = i + 1 == p.format.size() && digits <= 6 &&
                  allowed.find(p.format[i]) != std::string_view::npos &&
                  std::count(p.format.begin(), p.format.end(), '.') <= 1;
  if (ok) return true;
  auto& diag = s.report(Id::kBadTemplate, p.span, "the format '" + p.format + "' does not fit a " +
                                                      to_text(s, type));
  diag.help = number ? "write: {v.top.p:%.1f}" : "write: {v.top.node:%s}, or no format";
  return false;
}

void RuleChecker::warn_missing(const ast::TemplatePart& p, const NodePtr& n) {
  std::vector<uint32_t> fields;
  fields_of(n, fields);
  const auto head = [](const std::string& name) { return name.substr(0, name.find('.')); };
  for (const uint32_t slot : fields) {
    const abi::FieldSchema& field = s.pack.verdict_fields[slot];
    const bool sure = std::any_of(asked.begin(), asked.end(), [&](const std::string& other) {
      return head(other) == head(field.name);
    });
    if (!field.type.optional || sure) continue;
    auto& diag = s.report(Id::kMayBeMissing, p.span,
                          "'" + field.name + "' may be missing: the text shows '-' then");
    diag.help = "ask for it in `where`: " + d.variable.text + "." + field.name + " is not missing";
    return;
  }
}

abi::TemplateText RuleChecker::part(const ast::TemplatePart& p) {
  abi::TemplateText out{p.text, kNone32, p.format};
  if (!p.value || p.value->kind == ast::ExprKind::kError) return out;
  const NodePtr n = value(*p.value);
  if (is_error(n) || !check_format(p, n->type)) return out;
  warn_missing(p, n);
  out.expr = emit(s, n, plan.name + ".text");
  return out;
}

void RuleChecker::annotation(const ast::VerdictRuleDecl::Annotation& a) {
  for (const auto& other : plan.annotations) {
    if (other.name != a.name.text) continue;
    s.report(Id::kDuplicateName, a.name.span, "annotation '" + a.name.text + "' is given twice");
    return;
  }
  abi::RulePlan::Annotation out{a.name.text, {}};
  for (const ast::TemplatePart& p : a.parts) out.parts.push_back(part(p));
  plan.annotations.push_back(std::move(out));
}

void RuleChecker::action_limit(const ast::VerdictRuleDecl::Action& a, abi::ActionPlan& out) {
  if (a.limit == 0) return;
  out.limit = static_cast<uint32_t>(std::min<int64_t>(a.limit, UINT32_MAX));
  out.window_ns = span(a.in, "the span of the limit", 0);
  if (a.per.empty()) return;
  const auto slot = slot_of(s.kinds[s.verdict_kind], "top.node");
  const NodePtr node = load(ir::Op::kField, *slot, s.pack.verdict_fields[*slot].type, a.per.span);
  mark_used(node);
  out.per = a.per.text;
  abi::Type word;
  word.scalar = Scalar::kEnum;
  const NodePtr n = a.per.text == "node"  ? node
                    : a.per.text == "job" ? make(ir::Op::kJobOf, word, {node}, a.per.span)
                                          : make(ir::Op::kNodeLabel, word, {node}, a.per.span,
                                                 s.in.symbols->intern(a.per.text));
  out.per_value = emit(s, n, plan.name + "." + a.name.text + ".per");
}

void RuleChecker::action(const ast::VerdictRuleDecl::Action& a) {
  abi::ActionPlan out;
  out.name = a.name.text;
  out.where = s.where(a.name.span);
  for (const ast::ExprPtr& arg : a.args) {
    const NodePtr n = value(*arg);
    if (is_error(n)) return;
    out.args.push_back(emit(s, n, plan.name + "." + a.name.text));
  }
  if (!a.mode.empty() && a.mode.text != "dry_run" && a.mode.text != "live") {
    auto& diag = s.report(Id::kUnknownOption, a.mode.span, "no mode '" + a.mode.text + "'");
    suggest(diag, a.mode.text, {"dry_run", "live"}, a.mode.span);
    return;
  }
  out.live = a.mode.text == "live";
  action_limit(a, out);
  plan.actions.push_back(std::move(out));
}

int64_t RuleChecker::span(const ast::ExprPtr& e, const char* what, int64_t otherwise) {
  if (!e) return otherwise;
  const auto ns = constant_duration(s, pack, *e, what);
  if (ns && *ns == 0) s.report(Id::kBadInterval, e->span, std::string(what) + " must be above 0");
  return ns.value_or(otherwise);
}

bool RuleChecker::check() {
  const size_t before = s.sink.error_count();
  plan.name = s.full_name(pack, d.name.text);
  plan.where_declared = s.where(d.name.span);
  const auto incident = resolve(s, s.incident_names, pack, d.incident, Id::kUnknownIncident);
  plan.incident = incident.value_or(0);
  where();
  severity();
  for (const auto& l : d.labels) label(l);
  for (const auto& a : d.annotations) annotation(a);
  for (const auto& a : d.actions) action(a);
  plan.repeat_ns = span(d.repeat_every, "`repeat every`", 0);
  // Why 1 s: an open alert is sent again and again; nobody reads more, and days of replay would
  // write gigabytes.
  if (d.repeat_every && plan.repeat_ns > 0 && plan.repeat_ns < kNsPerSecond) {
    s.report(Id::kBadInterval, d.repeat_every->span, "`repeat every` must be at least 1s");
  }
  plan.resolve_ns = span(d.resolve_after, "`resolve after`", kDefaultResolveNs);
  return s.sink.error_count() == before;
}

}  // namespace

void check_rules(State& s) {
  std::map<std::string, Span> names;
  for_each<ast::VerdictRuleDecl>(
      s, [&](DeclRef ref, const ast::VerdictRuleDecl& d, const ast::Decl&) {
        if (s.verdict_kind == kNone32) s.verdict_kind = declare_verdict(s);
        const auto [first, fresh] = names.emplace(s.full_name(ref.pack, d.name.text), d.name.span);
        if (!fresh) {
          auto& diag = s.report(Id::kDuplicateName, d.name.span,
                                "rule '" + d.name.text + "' is declared twice");
          diag.notes.push_back({first->second, "first declared here"});
          return;
        }
        RuleChecker checker{s, ref.pack, d, {}, {}};
        if (checker.check()) s.pack.rules.push_back(std::move(checker.plan));
      });
}

}  // namespace reflex::sema
