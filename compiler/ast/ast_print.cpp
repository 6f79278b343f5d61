// Deterministic text form of a module: one S-expression per declaration, for `check --emit ast`
// and golden tests. Everything of the tree is shown but spans.
#include "compiler/ast/print_expr.h"

namespace reflex::ast {
namespace {

std::string names(const std::vector<Name>& list) {
  std::string out = "(";
  for (size_t i = 0; i < list.size(); ++i) {
    out += (i == 0 ? "" : " ") + list[i].text;
  }
  return out + ")";
}

/// Builds "(head part part ..)": parts are skipped when their value is absent.
class Form {
 public:
  explicit Form(std::string head) : out_("(" + std::move(head)) {}
  Form& word(const std::string& text) {
    if (!text.empty()) {
      out_ += " " + text;
    }
    return *this;
  }
  Form& flag(bool on, const char* text) { return on ? word(text) : *this; }
  Form& text(const char* key, const std::string& value) {
    return value.empty() ? *this : word(std::string(":") + key + " " + value);
  }
  Form& quoted(const char* key, const std::string& value) {
    return value.empty() ? *this : text(key, print_string(value));
  }
  Form& expr(const char* key, const ExprPtr& value) {
    return value == nullptr ? *this : text(key, print(*value));
  }
  Form& list(const char* key, const std::vector<Name>& value) {
    return value.empty() ? *this : text(key, names(value));
  }
  /// A nested form on a line of its own.
  Form& line(const std::string& form) {
    out_ += "\n  " + form;
    return *this;
  }
  std::string done() { return out_ + ")"; }

 private:
  std::string out_;
};

std::string settings(const std::vector<Setting>& list) {
  std::string out = "(";
  for (size_t i = 0; i < list.size(); ++i) {
    out += (i == 0 ? "(" : " (") + list[i].name.text + " " + print(*list[i].value);
    out += list[i].suffix.empty() ? ")" : " " + list[i].suffix + ")";
  }
  return out + ")";
}

std::string form(const EventDecl& e) {
  Form f("event " + e.name.text);
  f.flag(e.abstract_kind, ":abstract").text("extends", e.extends.text);
  f.list("dedup", e.dedup_fields).expr("dedup-for", e.dedup_for);
  for (const FieldDecl& field : e.fields) {
    f.line(Form("field " + field.name.text)
               .word(print(field.type))
               .flag(field.key, ":key")
               .flag(field.counter, ":counter")
               .flag(field.redact, ":redact")
               .done());
  }
  return f.done();
}

std::string form(const ProfileParam& param) {
  Form line("param " + param.name.text);
  line.word(param.type.name.empty() ? "" : print(param.type)).flag(param.adaptive, ":adaptive");
  line.expr("value", param.value).expr("within", param.within);
  if (!param.adaptive_settings.empty()) {
    line.text("settings", settings(param.adaptive_settings));
  }
  return line.done();
}

std::string form(const ProfileDecl& p) {
  Form f("profile " + p.name.text);
  f.text("extends", p.extends.text).flag(p.abstract_profile, ":abstract");
  f.flag(p.fallback, ":fallback").expr("matches", p.matches);
  for (const ProfileParam& param : p.params) {
    f.line(form(param));
  }
  for (const auto& scale : p.prior_scales) {
    f.line(Form("prior_scale " + scale.fault.text).word(print(*scale.value)).done());
  }
  return f.done();
}

std::string form(const ListDecl& l) {
  Form f("list " + l.name.text);
  f.word(l.type.name.empty() ? "" : print(l.type)).expr("value", l.value);
  if (!l.from_file.empty()) {
    f.quoted("from", l.from_file).text("column", std::to_string(l.column));
  }
  return f.done();
}

std::string form(const MacroDecl& m) {
  Form f("macro " + m.name.text);
  for (const auto& param : m.params) {
    f.word("(" + param.name.text + (param.type.empty() ? "" : " " + param.type.text) + ")");
  }
  return f.line(print(*m.body)).done();
}

std::string form(const DecoderDecl& d) {
  Form f("decoder " + d.name.text);
  f.text("for", d.input.text).text("prefix", d.prefix);
  for (const auto& line : d.lines) {
    Form l("line " + print_string(line.regex));
    l.flag(line.ignore, ":ignore").word(line.kind.text);
    l.text("fold", line.fold == 1 ? "" : std::to_string(line.fold));
    for (const auto& assign : line.assigns) {
      l.word("(= " + assign.field.text + " " + print(*assign.value) + ")");
    }
    f.line(l.done());
  }
  return f.done();
}

std::string form(const Step& s) {
  static constexpr const char* kModes[] = {"step", "then", "then-strictly", "then-either",
                                           "then-absent"};
  Form f(kModes[static_cast<size_t>(s.mode)]);
  f.word(s.variable.text).word(print(s.pattern));
  return f.expr("tolerance", s.tolerance).expr("for", s.absent_for).done();
}

void add_condition(Form& f, const SignalDecl& s) {
  f.expr("when", s.when).expr("for", s.for_span).expr("keep-for", s.keep_span);
  f.text("clear", s.clear_op).expr("clear-at", s.clear).text("nodata", s.nodata);
  f.expr("nodata-for", s.nodata_for).expr("peers-at-least", s.peers_at_least);
}

void add_count(Form& f, const CountCondition& c) {
  Form line("condition");
  line.word(print(*c.aggregate));
  if (c.graded) {
    line.expr("within", c.within).flag(true, ":graded").expr("extra", c.graded_extra);
    f.line(line.text("shape", c.graded_shape).done());
    return;
  }
  line.word(to_text(c.op)).word(print(*c.threshold));
  line.expr("within", c.within).flag(c.each, ":each").expr("rearm", c.rearm);
  f.line(line.flag(c.exact, ":exact").expr("max", c.exact_max).done());
}

std::string form(const SignalDecl& s) {
  Form f("signal " + s.name.text);
  f.list("on", s.on).expr("within", s.within);
  for (const Step& step : s.steps) {
    f.line(form(step));
  }
  for (const Unless& u : s.unless) {
    Form line("unless");
    line.word(u.variable.text).word(print(u.pattern));
    if (!u.between_first.empty()) {
      line.text("between", "(" + u.between_first.text + " " + u.between_second.text + ")");
    }
    f.line(line.done());
  }
  for (const auto& guard : s.guards) {
    f.line(print(*guard));
  }
  f.text("keep", s.keep_mode).expr("keep-max", s.keep_max).quoted("after-match", s.after_match);
  if (s.count.has_value()) {
    add_count(f, *s.count);
  }
  add_condition(f, s);
  f.expr("holds", s.holds).text("exceptions", s.exceptions.text);
  f.list("exception-keys", s.exception_keys).expr("leak", s.leak).text("leak-per", s.leak_per);
  return f.flag(s.learn, ":learn").text("was", s.was.text).quoted("doc", s.doc).done();
}

std::string form(const FeatureDecl& d) {
  Form f("feature " + d.name.text);
  f.list("on", d.on).word(print(*d.value));
  for (const KindPattern& reset : d.resets) {
    f.text("reset", print(reset));
  }
  return f.text("was", d.was.text).done();
}

std::string form(const FaultDecl& d) {
  Form f((d.external ? "external " : "fault ") + d.name.text);
  f.list("on", d.on).expr("prior", d.prior).text("per", d.prior_per);
  f.expr("half-life", d.half_life).text("severity", d.severity.text);
  return f.text("remedy", d.remedy.text).done();
}

std::string form(const CausesDecl& d) {
  static constexpr const char* kVerbs[] = {"causes", "masks", "explained-by"};
  Form f(kVerbs[static_cast<size_t>(d.verb)]);
  f.word(d.cause.text).word(names(d.effects)).expr("p", d.p).expr("weight", d.weight_nats);
  f.expr("lag-lo", d.lag_lo).expr("lag-hi", d.lag_hi).text("scope", d.scope.text);
  f.expr("at-least", d.when_at_least).expr("in", d.when_in).text("on", d.on.text);
  return f.flag(d.learn, ":learn").done();
}

std::string form(const IncidentDecl& d) {
  Form f("incident " + d.name.text);
  f.list("on", d.on);
  for (const KindPattern& opens : d.opens_on) {
    f.text("opens", print(opens));
  }
  f.expr("settle", d.settle).expr("merge", d.merge_for).expr("confirm", d.confirm);
  return f.expr("suspect", d.suspect).expr("unexplained", d.unexplained).done();
}

std::string form(const TestTarget& t) {
  std::string out = print_string(t.base);
  if (t.ranged) {
    out += "[" + std::to_string(t.lo) + ".." + std::to_string(t.hi) + "]";
  }
  for (const ExprPtr& sub : t.sub) {
    out += "/" + print(*sub);
  }
  return out;
}

std::string targets(const std::vector<TestTarget>& list) {
  std::string out = "(";
  for (size_t i = 0; i < list.size(); ++i) {
    out += (i == 0 ? "" : " ") + form(list[i]);
  }
  return out + ")";
}

std::string form(const TestDecl::Event& e) {
  Form f("at " + print(*e.at));
  f.expr("until", e.until).expr("every", e.every).word(e.kind.text).word(targets(e.targets));
  for (const auto& [field, value] : e.fields) {
    f.word("(" + field.text + " " + print(*value) + ")");
  }
  f.quoted("log", e.log_text).expr("repeat", e.repeat).expr("repeat-every", e.repeat_every);
  return f.expr("late", e.late).done();
}

std::string form(const TestDecl::Expect& e) {
  Form f(e.allow ? "allow" : "expect");
  f.flag(e.negated, ":no").flag(e.verdict, ":verdict").word(e.signal.text).word(e.incident.text);
  f.text("on", e.target ? form(*e.target) : "").text("job", e.job.text.empty() ? "" : form(e.job));
  f.expr("at", e.at).expr("tolerance", e.tolerance).expr("before", e.before);
  for (const auto& clause : e.clauses) {
    Form line(clause.what);
    line.text("targets", clause.targets.empty() ? "" : targets(clause.targets));
    line.list("names", clause.names);
    if (clause.p != nullptr) {
      line.text("p", to_text(clause.p_op) + " " + print(*clause.p));
    }
    f.word(line.done());
  }
  return f.done();
}

std::string form(const TestDecl& t) {
  Form f("test " + print_string(t.title));
  for (const auto& [variable, value] : t.row) {
    f.word("(for " + variable.text + " " + print(*value) + ")");
  }
  for (const auto& nodes : t.nodes) {
    Form line("nodes");
    line.word(form(nodes.target)).text("as", nodes.profile.text);
    for (const auto& [label, value] : nodes.labels) {
      line.word("(" + label.text + " " + print(*value) + ")");
    }
    f.line(line.done());
  }
  for (const auto& job : t.jobs) {
    f.line(Form("job " + job.name.text)
               .word(targets(job.nodes))
               .expr("from", job.at)
               .expr("to", job.to)
               .done());
  }
  for (const auto& event : t.events) {
    f.line(form(event));
  }
  for (const auto& gap : t.gaps) {
    f.line(Form("gap")
               .word(form(gap.target))
               .text("source", gap.source.text)
               .expr("from", gap.from)
               .expr("to", gap.to)
               .done());
  }
  for (const auto& expect : t.expects) {
    f.line(form(expect));
  }
  return f.expr("shuffle", t.shuffle).flag(t.strict, ":strict").done();
}

const char* verb(OverlayEntry::Verb verb) {
  switch (verb) {
    case OverlayEntry::Verb::kExtendList:
      return "extend-list";
    case OverlayEntry::Verb::kSetProfile:
      return "set-profile";
    case OverlayEntry::Verb::kDisableSignal:
      return "disable-signal";
    case OverlayEntry::Verb::kExcept:
      return "except";
    case OverlayEntry::Verb::kAliasKind:
      return "alias-kind";
  }
  return "?";
}

std::string form(const OverlayDecl& o) {
  Form f("overlay " + o.name.text);
  f.text("for", o.target.text).text("range", o.range);
  for (const OverlayEntry& entry : o.entries) {
    Form line(verb(entry.verb));
    line.word(entry.target.text).word(entry.what.text).list("keys", entry.keys);
    line.expr("value", entry.value);
    for (const ExprPtr& row : entry.rows) {
      line.word(print(*row));
    }
    if (entry.set.has_value()) {
      line.word(form(*entry.set));
    }
    if (entry.scale.has_value()) {
      line.word("(prior_scale " + entry.scale->fault.text + " " + print(*entry.scale->value) + ")");
    }
    for (const auto& assign : entry.assigns) {
      line.word("(= " + assign.field.text + " " + print(*assign.value) + ")");
    }
    f.line(line.quoted("reason", entry.reason).text("until", entry.until).done());
  }
  return f.done();
}

std::string form(const VerdictRuleDecl::Annotation& a) {
  Form line("annotate " + a.name.text);
  for (const TemplatePart& part : a.parts) {
    if (part.value == nullptr) {
      line.word(print_string(part.text));
    } else {
      line.word(Form("of").word(print(*part.value)).quoted("format", part.format).done());
    }
  }
  return line.done();
}

std::string form(const VerdictRuleDecl::Action& a) {
  Form line("action " + a.name.text);
  for (const ExprPtr& arg : a.args) {
    line.word(print(*arg));
  }
  line.text("limit", a.limit == 0 ? "" : std::to_string(a.limit)).text("per", a.per.text);
  return line.expr("in", a.in).text("mode", a.mode.text).done();
}

std::string form(const VerdictRuleDecl& r) {
  Form f("rule " + r.name.text);
  f.text("variable", r.variable.text).text("of", r.incident.text).expr("where", r.where);
  f.expr("severity", r.severity).expr("repeat", r.repeat_every).expr("resolve", r.resolve_after);
  for (const auto& label : r.labels) {
    f.line("(label " + label.name.text + " " + print(*label.value) + ")");
  }
  for (const auto& annotation : r.annotations) {
    f.line(form(annotation));
  }
  for (const auto& action : r.actions) {
    f.line(form(action));
  }
  return f.done();
}

std::string form(const SuppressDecl& s) {
  Form f("suppress " + s.name.text);
  f.list("signals", s.signals).expr("where", s.where).text("until", s.until);
  return f.quoted("reason", s.reason).done();
}

std::string form(const BaselineDecl& b) {
  return Form(b.repair ? "repair" : "cohort")
      .text("from", b.kind.text)
      .text("by", b.field.text)
      .text("on", b.on.text)
      .done();
}

std::string form(const MaintenanceDecl& m) {
  return Form("maintenance")
      .text("from", m.from.text)
      .text("until", m.until.text)
      .text("on", m.on.text)
      .expr("grace", m.grace)
      .done();
}

std::string form(const SynergyDecl& s) {
  Form f("synergy " + s.cause.text);
  return f.list("from", s.signals).expr("weight", s.weight_nats).done();
}

std::string form(const PackHead& head) {
  Form f("pack " + head.name.text);
  f.word(head.version).text("engine", head.engine_range).text("dsl", std::to_string(head.dsl));
  for (const Import& import : head.imports) {
    f.line(Form("import " + import.pack.text)
               .text("range", import.range)
               .text("as", import.as.text)
               .list("only", import.only)
               .done());
  }
  if (!head.clock.empty()) {
    f.line(Form("clock").word(settings(head.clock)).done());
  }
  if (!head.limits.empty()) {
    f.line(Form("limits").word(settings(head.limits)).done());
  }
  return f.done();
}

}  // namespace

std::string print_decl(const Decl& decl) {
  const std::string text = std::visit([](const auto& node) { return form(node); }, decl.node);
  return (decl.exported ? "export " : "") + text;
}

std::string print(const Module& module) {
  std::string out;
  if (module.head.has_value()) {
    out += form(*module.head) + "\n";
  }
  for (const Decl& decl : module.decls) {
    out += print_decl(decl) + "\n";
  }
  return out;
}

}  // namespace reflex::ast
