// Second pass of the index: the names that declarations read, construct by construct.
#include "compiler/lsp/index_use.h"

#include <algorithm>

namespace reflex::lsp {

using Word = Occurrence::Word;

// ---------------------------------------------------------------- names

SymbolId User::path(const std::vector<Segment>& parts, SymbolKind kind, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? "." : "") + parts[i].text;
  const auto found = index_.find(kind, pack_, text);
  if (found.empty()) return kNoSymbol;
  const Symbol& s = index_.symbol(found[0]);
  const size_t own = static_cast<size_t>(std::count(s.name.begin(), s.name.end(), '.')) + 1;
  index_.use(source::cover(parts[count - own].span, parts[count - 1].span), found[0]);
  if (own < count) {  // through a pack's name
    const auto packs = index_.find(SymbolKind::kPack, pack_, index_.packs_.packs[s.pack].name);
    const Span qualifier = source::cover(parts[0].span, parts[count - own - 1].span);
    const bool written = packs.empty() ? false
                                       : index_.symbol(packs[0]).name ==
                                             text.substr(0, text.size() - s.name.size() - 1);
    if (written) {
      index_.use(qualifier, packs[0]);
    } else {
      index_.word(qualifier, Word::kType);
    }
  }
  return found[0];
}

SymbolId User::name(const ast::Name& n, SymbolKind kind) {
  if (n.empty()) return kNoSymbol;
  const auto parts = segments(index_.session_.sources(), n.span);
  std::string text;
  for (const Segment& part : parts) text += (text.empty() ? "" : ".") + part.text;
  if (text != n.text) return kNoSymbol;
  return path(parts, kind, parts.size());
}

SymbolId User::first_of(const ast::Name& n, std::initializer_list<SymbolKind> kinds) {
  for (const SymbolKind kind : kinds) {
    const SymbolId found = name(n, kind);
    if (found != kNoSymbol) return found;
  }
  return kNoSymbol;
}

SymbolId User::source(const ast::Name& n) {
  if (n.empty()) return kNoSymbol;
  const SymbolId whole = name(n, SymbolKind::kKind);
  if (whole != kNoSymbol) return whole;
  const auto parts = segments(index_.session_.sources(), n.span);
  if (parts.size() < 2) return kNoSymbol;
  const SymbolId kind = path(parts, SymbolKind::kKind, parts.size() - 1);
  if (kind != kNoSymbol) field_at(kind, parts, parts.size() - 1);
  return kind;
}

void User::field_at(SymbolId kind, const std::vector<Segment>& parts, size_t from) {
  if (kind == kNoSymbol) return;
  const SymbolId field = index_.field(kind, parts[from].text);
  if (field != kNoSymbol) index_.use(parts[from].span, field);
}

void User::field_name(SymbolId kind, const ast::Name& n) {
  if (kind == kNoSymbol || n.empty()) return;
  const SymbolId field = index_.field(kind, n.text);
  if (field != kNoSymbol) index_.use(n.span, field);
}

SymbolId User::parameter(const std::string& name) const {
  const auto range = index_.by_name_[static_cast<size_t>(SymbolKind::kParameter)].equal_range(name);
  return range.first == range.second ? kNoSymbol : range.first->second;
}

void User::param_use(const ast::Name& n) {
  const SymbolId p = parameter(n.text);
  if (p != kNoSymbol) index_.use(n.span, p);
}

void User::type(const ast::TypeRef& t) {
  if (t.name.empty()) return;
  const Span at{t.span.file, t.span.begin, t.span.begin + static_cast<uint32_t>(t.name.size())};
  index_.word(at, Word::kType);
  for (const ast::Name& w : t.enum_words) index_.word(w.span, Word::kEnumWord);
  if (t.element) type(*t.element);
  for (const auto& more : t.more) type(more);
}

void User::keys(const std::vector<ast::Name>& on) {
  for (const ast::Name& n : on) index_.word(n.span, Word::kType);
}

SymbolId User::variable_of(SymbolId owner, const ast::Name& n) {
  const auto members = index_.members_.find(owner);
  if (members == index_.members_.end()) return kNoSymbol;
  for (const SymbolId id : members->second) {
    const Symbol& s = index_.symbol(id);
    if (s.kind == SymbolKind::kVariable && s.span.begin == n.span.begin) return id;
  }
  return kNoSymbol;
}

/// Kinds and profiles know what they extend before anything looks at fields.
void User::link_extends() {
  for (Symbol& s : index_.symbols_) {
    if (s.decl == nullptr || s.stale) continue;
    const ast::Name* above = nullptr;
    if (const auto* e = std::get_if<ast::EventDecl>(&s.decl->node)) {
      if (s.kind == SymbolKind::kKind) above = &e->extends;
    } else if (const auto* p = std::get_if<ast::ProfileDecl>(&s.decl->node)) {
      if (s.kind == SymbolKind::kProfile) above = &p->extends;
    }
    if (above == nullptr || above->empty()) continue;
    const auto found = index_.find(s.kind, s.pack, above->text);
    if (!found.empty()) s.of_kind = found[0];
  }
}

// ---------------------------------------------------------------- declarations

void User::module(const ast::Module& m, sema::PackIndex pack) {
  pack_ = pack;
  if (m.head) head(*m.head);
  for (const ast::Decl& d : m.decls) {
    std::visit([&](const auto& declared) { node(declared); }, d.node);
  }
}

void User::head(const ast::PackHead& h) {
  static constexpr SymbolKind kAny[] = {
      SymbolKind::kKind,   SymbolKind::kList,  SymbolKind::kMacro,   SymbolKind::kFeature,
      SymbolKind::kSignal, SymbolKind::kCause, SymbolKind::kIncident};
  for (const ast::Import& i : h.imports) {
    const auto found = index_.find(SymbolKind::kPack, pack_, i.pack.text);
    if (found.empty()) continue;
    index_.use(i.pack.span, found[0]);
    const sema::PackIndex target = index_.symbol(found[0]).pack;
    for (const ast::Name& n : i.only) {
      for (const SymbolKind kind : kAny) {
        const auto range = index_.by_name_[static_cast<size_t>(kind)].equal_range(n.text);
        for (auto it = range.first; it != range.second; ++it) {
          if (index_.symbol(it->second).pack == target) index_.use(n.span, it->second);
        }
      }
    }
    if (!i.as.empty()) index_.word(i.as.span, Word::kType);
  }
}

void User::node(const ast::EventDecl& d) {
  const SymbolId self = name(d.name, SymbolKind::kKind);
  name(d.extends, SymbolKind::kKind);
  for (const ast::FieldDecl& f : d.fields) type(f.type);
  for (const ast::Name& n : d.dedup_fields) field_name(self, n);
}

void User::param(const ast::ProfileParam& p) {
  if (p.type.name.empty()) {
    param_use(p.name);
  } else {
    type(p.type);
  }
  expr(p.value, {});
  for (const ast::Setting& s : p.adaptive_settings) {
    if (s.name.text == "from" && s.value && s.value->kind == ast::ExprKind::kName) {
      name({s.value->text, s.value->span}, SymbolKind::kFeature);
    }
  }
}

void User::node(const ast::ProfileDecl& d) {
  name(d.extends, SymbolKind::kProfile);
  expr(d.matches, {});
  for (const ast::ProfileParam& p : d.params) param(p);
  for (const auto& scale : d.prior_scales) name(scale.fault, SymbolKind::kCause);
}

void User::node(const ast::ListDecl& d) {
  type(d.type);
  expr(d.value, {});
}

void User::node(const ast::MacroDecl& d) {
  Scope scope;
  const SymbolId self = name(d.name, SymbolKind::kMacro);
  for (const auto& p : d.params) {
    const SymbolId kind = name(p.type, SymbolKind::kKind);
    if (kind == kNoSymbol) index_.word(p.type.span, Word::kType);
    const SymbolId variable = variable_of(self, p.name);
    if (variable == kNoSymbol) continue;
    index_.symbols_[variable].of_kind = kind;
    scope.variables.push_back({p.name.text, variable, kind});
  }
  expr(d.body, scope);
}

void User::node(const ast::DecoderDecl& d) {
  for (const auto& line : d.lines) {
    if (line.kind.empty()) continue;
    const SymbolId kind = name(line.kind, SymbolKind::kKind);
    for (const auto& assign : line.assigns) {
      field_name(kind, assign.field);
      expr(assign.value, {});
    }
  }
}

void User::node(const ast::SignalDecl& d) {
  const SymbolId self = name(d.name, SymbolKind::kSignal);
  keys(d.on);
  Scope scope;
  for (const ast::Step& step : d.steps) {
    const SymbolId kind = pattern(step.pattern, scope, &step.variable, self);
    const SymbolId variable = variable_of(self, step.variable);
    if (variable != kNoSymbol) scope.variables.push_back({step.variable.text, variable, kind});
  }
  for (const ast::Unless& u : d.unless) {
    pattern(u.pattern, scope, &u.variable, self);
    for (const ast::Name* between : {&u.between_first, &u.between_second}) {
      for (const Scope::Variable& v : scope.variables) {
        if (v.name == between->text) index_.use(between->span, v.symbol);
      }
    }
  }
  for (const auto& guard : d.guards) aggregate(*guard, scope);
  if (d.count && d.count->aggregate) {
    aggregate(*d.count->aggregate, {});
    expr(d.count->threshold, {});
  }
  expr(d.when, {});
  expr(d.clear, {});
  expr(d.leak, {});
  keys(d.exception_keys);
}

void User::node(const ast::FeatureDecl& d) {
  keys(d.on);
  if (d.value) aggregate(*d.value, {});
  for (const ast::KindPattern& p : d.resets) pattern(p, {}, nullptr, kNoSymbol);
}

void User::node(const ast::FaultDecl& d) {
  keys(d.on);
  expr(d.prior, {});
  for (const ast::Name* word : {&d.severity, &d.remedy}) index_.word(word->span, Word::kEnumWord);
}

void User::node(const ast::CausesDecl& d) {
  first_of(d.cause, {SymbolKind::kCause, SymbolKind::kSignal});
  for (const ast::Name& effect : d.effects) {
    first_of(effect, {SymbolKind::kSignal, SymbolKind::kCause});
  }
  expr(d.p, {});
  if (!d.scope.empty()) index_.word(d.scope.span, Word::kEnumWord);
  if (!d.on.empty()) index_.word(d.on.span, Word::kType);
}

void User::node(const ast::IncidentDecl& d) {
  keys(d.on);
  for (const ast::KindPattern& p : d.opens_on) {
    if (first_of(p.kind, {SymbolKind::kSignal}) == kNoSymbol) {
      pattern(p, {}, nullptr, kNoSymbol);
    } else {
      expr(p.where, {});
    }
  }
}

void User::event(const ast::TestDecl::Event& e) {
  for (const auto& t : e.targets) index_.word(t.span, Word::kTarget);
  if (e.kind.text == "log") return;
  const SymbolId kind = name(e.kind, SymbolKind::kKind);
  for (const auto& [field, value] : e.fields) {
    field_name(kind, field);
    if (value && value->kind == ast::ExprKind::kName) {
      index_.word(value->span, Word::kEnumWord);
    }
  }
}

void User::expect(const ast::TestDecl::Expect& e) {
  if (!e.verdict) {
    name(e.signal, SymbolKind::kSignal);
    if (e.target) index_.word(e.target->span, Word::kTarget);
    return;
  }
  name(e.incident, SymbolKind::kIncident);
  index_.word(e.job.span, Word::kTarget);
  for (const auto& clause : e.clauses) {
    const bool of_signals = clause.what == "because" || clause.what == "silent";
    for (const ast::Name& n : clause.names) {
      if (of_signals) {
        first_of(n, {SymbolKind::kSignal, SymbolKind::kCause});
      } else {
        first_of(n, {SymbolKind::kCause, SymbolKind::kSignal});
      }
    }
    for (const auto& t : clause.targets) index_.word(t.span, Word::kTarget);
  }
}

void User::node(const ast::TestDecl& d) {
  for (const auto& n : d.nodes) {
    index_.word(n.target.span, Word::kTarget);
    name(n.profile, SymbolKind::kProfile);
  }
  for (const auto& job : d.jobs) index_.word(job.name.span, Word::kTarget);
  for (const auto& e : d.events) event(e);
  for (const auto& e : d.expects) expect(e);
  for (const auto& [variable, value] : d.row) expr(value, {});
}

void User::entry(const ast::OverlayEntry& e) {
  using Verb = ast::OverlayEntry::Verb;
  switch (e.verb) {
    case Verb::kExtendList:
      name(e.target, SymbolKind::kList);
      expr(e.value, {});
      return;
    case Verb::kSetProfile:
      name(e.target, SymbolKind::kProfile);
      if (e.set) param(*e.set);
      if (e.scale) name(e.scale->fault, SymbolKind::kCause);
      return;
    case Verb::kDisableSignal:
      name(e.target, SymbolKind::kSignal);
      return;
    case Verb::kExcept: {
      const SymbolId signal = name(e.target, SymbolKind::kSignal);
      const auto members = index_.members_.find(signal);
      if (members == index_.members_.end()) return;
      for (const SymbolId id : members->second) {
        const Symbol& s = index_.symbol(id);
        if (s.kind == SymbolKind::kException && s.name == e.what.text) index_.use(e.what.span, id);
      }
      keys(e.keys);
      return;
    }
    case Verb::kAliasKind: {
      const SymbolId kind = name(e.target, SymbolKind::kKind);
      for (const auto& assign : e.assigns) field_name(kind, assign.field);
      return;
    }
  }
}

void User::node(const ast::OverlayDecl& d) {
  const auto found = index_.find(SymbolKind::kPack, pack_, d.target.text);
  if (!found.empty()) index_.use(d.target.span, found[0]);
  // The entries are words of the target's pack.
  const sema::PackIndex own = pack_;
  if (!found.empty()) pack_ = index_.symbol(found[0]).pack;
  for (const ast::OverlayEntry& e : d.entries) entry(e);
  pack_ = own;
}

void User::node(const ast::VerdictRuleDecl& d) {
  Scope scope;
  scope.verdict = true;
  const SymbolId self = name(d.name, SymbolKind::kRule);
  name(d.incident, SymbolKind::kIncident);
  const SymbolId variable = variable_of(self, d.variable);
  if (variable != kNoSymbol) scope.variables.push_back({d.variable.text, variable, kNoSymbol});
  expr(d.where, scope);
  expr(d.severity, scope);
  for (const auto& label : d.labels) expr(label.value, scope);
  for (const auto& annotation : d.annotations) {
    for (const auto& part : annotation.parts) expr(part.value, scope);
  }
  for (const auto& action : d.actions) {
    for (const auto& arg : action.args) expr(arg, scope);
  }
}

void User::node(const ast::SuppressDecl& d) {
  for (const ast::Name& n : d.signals) name(n, SymbolKind::kSignal);
  expr(d.where, {});
}

void User::node(const ast::MaintenanceDecl& d) {
  name(d.from, SymbolKind::kKind);
  name(d.until, SymbolKind::kKind);
}

void User::node(const ast::BaselineDecl& d) {
  const SymbolId kind = name(d.kind, SymbolKind::kKind);
  field_name(kind, d.field);
}

void User::node(const ast::SynergyDecl& d) {
  name(d.cause, SymbolKind::kCause);
  for (const ast::Name& n : d.signals) name(n, SymbolKind::kSignal);
}

void use_all(Index& index) {
  User user(index);
  user.link_extends();
  const auto& modules = index.session().modules();
  for (size_t m = 0; m < modules.size(); ++m) {
    user.module(modules[m], index.pack_of(modules[m].file));
  }
}

}  // namespace reflex::lsp
