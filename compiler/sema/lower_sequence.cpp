// Sequences (A5): steps, captures and joins, unless, absent, none-guards.
//
// A step's predicate is split into its conjuncts: those that read fields of other steps become the
// join (evaluated per partial match), the rest the leaf (evaluated once per event). An unless that
// cannot be judged when its event comes is deferred (abi::UnlessPlan).
#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::SequencePlan;
using abi::StepMode;
using abi::StepPlan;

// Why: partial matches are stored per key; more than this is a mistake, not a pattern.
constexpr int64_t kPartialsMax = 4096;

struct Split {
  NodePtr leaf;
  NodePtr join;
  std::map<std::string, uint16_t> joined;  // key name -> slot that is equal to a step's key
  bool ok = true;
};

struct Builder {
  State& s;
  const SignalContext& c;
  abi::SignalPlan& plan;
  CaptureTable captures;
  std::vector<uint32_t> step_kinds;  // kind index per step
  bool ok = true;

  SequencePlan& seq() { return plan.sequence; }
  std::optional<uint32_t> pattern_kind(const ast::KindPattern& p);
  Env env_of(uint32_t kind, const ast::Name& variable);
  Split split(const Env& env, uint32_t kind, const ast::Expr* where);
  void note_equality(const NodePtr& n, uint32_t kind, Split& out) const;
  [[nodiscard]] std::optional<uint16_t> last_step_read(const NodePtr& n) const;
  void join_entity_parts(Split& parts) const;
  bool no_features(const NodePtr& n);
  bool defer(Split& parts, const ast::Unless& d, uint32_t kind, abi::UnlessPlan& out);
  bool between(const ast::Unless& d, abi::UnlessPlan& out);
  void step(size_t index);
  void unless(size_t index);
  void spans();
  void deferred_windows();
  void assign_captures();
};

std::optional<uint32_t> Builder::pattern_kind(const ast::KindPattern& p) {
  const auto kind = resolve(s, s.kind_names, c.pack, p.kind, Id::kUnknownKind);
  if (!kind) return std::nullopt;
  if (!s.kinds[*kind].is_abstract) return kind;
  auto& d = s.report(Id::kAbstractUse, p.kind.span,
                     "kind '" + p.kind.text + "' is abstract: no event has it");
  std::vector<std::string> names;
  for (const uint32_t k : concrete_kinds(s, *kind)) names.push_back(s.kinds[k].schema.name);
  suggest(d, p.kind.text, names, p.kind.span);
  return std::nullopt;
}

Env Builder::env_of(uint32_t kind, const ast::Name& variable) {
  Env env;
  env.pack = c.pack;
  env.record_kind = kind;
  if (!variable.empty()) env.record_names.push_back(variable.text);
  env.record_names.push_back("it");
  env.has_entity = true;
  env.entity_kind = c.entity;
  env.features_allowed = true;
  env.captures = &captures;
  return env;
}

/// `b.host == a.node` gives b its key, if `node` is a key of the signal.
void Builder::note_equality(const NodePtr& n, uint32_t, Split& out) const {
  if (n->op != ir::Op::kEq) return;
  const NodePtr* field = &n->args[0];
  const NodePtr* capture = &n->args[1];
  if ((*field)->op != ir::Op::kField) std::swap(field, capture);
  if ((*field)->op != ir::Op::kField || (*capture)->op != ir::Op::kCapture) return;
  const CaptureTable::Entry& entry = captures.entries[(*capture)->index];
  const std::string& key = s.kinds[step_kinds[entry.step]].schema.fields[entry.slot].name;
  out.joined.emplace(key, static_cast<uint16_t>((*field)->index));
}

Split Builder::split(const Env& env, uint32_t kind, const ast::Expr* where) {
  Split out;
  if (where == nullptr) return out;
  const NodePtr predicate = check_predicate(s, env, *where);
  if (is_error(predicate)) {
    out.ok = false;
    return out;
  }
  std::vector<NodePtr> parts;
  conjuncts(predicate, parts);
  std::vector<NodePtr> leaf;
  std::vector<NodePtr> join;
  for (const NodePtr& part : parts) {
    const bool joins = reads(part, ir::Op::kCapture);
    (joins ? join : leaf).push_back(part);
    if (joins) note_equality(part, kind, out);
  }
  out.leaf = conjunction(leaf);
  out.join = conjunction(join);
  return out;
}

StepMode mode_of(ast::Step::Mode mode) {
  switch (mode) {
    case ast::Step::Mode::kFirst:
      return StepMode::kFirst;
    case ast::Step::Mode::kThen:
      return StepMode::kThen;
    case ast::Step::Mode::kThenStrictly:
      return StepMode::kThenStrictly;
    case ast::Step::Mode::kThenEither:
      return StepMode::kThenEither;
    case ast::Step::Mode::kThenAbsent:
      return StepMode::kAbsent;
  }
  return StepMode::kFirst;
}

void Builder::step(size_t index) {
  const ast::Step& d = c.decl.steps[index];
  step_kinds.push_back(0);
  StepPlan out;
  out.variable = d.variable.text;
  out.mode = mode_of(d.mode);
  const auto kind = pattern_kind(d.pattern);
  if (!kind) {
    ok = false;
    seq().steps.push_back(std::move(out));
    step_kinds.back() = kNone32;
    return;
  }
  step_kinds.back() = *kind;
  out.kind = s.kinds[*kind].id;
  Env env = env_of(*kind, d.variable);
  for (size_t i = 0; i < index; ++i) {
    const ast::Step& earlier = c.decl.steps[i];
    if (earlier.variable.empty()) continue;
    if (earlier.variable.text == d.variable.text) {
      auto& diag = s.report(Id::kDuplicateName, d.variable.span,
                            "step '" + d.variable.text + "' is declared twice");
      diag.notes.push_back({earlier.variable.span, "first declared here"});
      ok = false;
    }
    const bool readable = earlier.mode != ast::Step::Mode::kThenAbsent && step_kinds[i] != kNone32;
    if (readable) {
      env.steps.push_back({earlier.variable.text, step_kinds[i], static_cast<uint32_t>(i)});
    }
  }
  Split parts = split(env, *kind, d.pattern.where.get());
  ok = ok && parts.ok;
  const auto stated = take_stated_keys(s, *kind, c.entity, parts.leaf);
  const auto key =
      derive_key(s, *kind, c.entity, d.pattern.kind.span, true, &parts.joined, &stated);
  if (d.tolerance) {
    const auto ns = constant_duration(s, c.pack, *d.tolerance, "the tolerance of `then ~`");
    out.tolerance_ns = ns.value_or(0);
    ok = ok && ns;
  }
  if (d.absent_for) {
    const auto ns = constant_duration(s, c.pack, *d.absent_for, "the span of `absent`");
    out.absent_ns = ns.value_or(0);
    ok = ok && ns;
    if (ns) note_window(s, *ns, d.absent_for->span);
  }
  if (!key) ok = false;
  if (key && parts.ok) {
    out.key = *key;
    const std::string name =
        c.name + "." + (out.variable.empty() ? std::to_string(index) : out.variable);
    out.leaf = intern_leaf(s, *kind, parts.leaf, c.entity, name, d.span);
    if (parts.join) out.join = emit(s, parts.join, name + ".join");
  }
  listen(s, plan, *kind);
  seq().steps.push_back(std::move(out));
}

/// The last step whose fields `n` reads; nothing when it reads none.
std::optional<uint16_t> Builder::last_step_read(const NodePtr& n) const {
  std::optional<uint16_t> last;
  if (n == nullptr) return last;
  if (n->op == ir::Op::kCapture) {
    last = static_cast<uint16_t>(captures.entries[n->index].step);
  }
  for (const NodePtr& a : n->args) {
    if (const auto inner = last_step_read(a)) last = std::max(last.value_or(0), *inner);
  }
  return last;
}

/// Parts that read the entity or its class cannot be decided where there is no entity.
void Builder::join_entity_parts(Split& parts) const {
  if (!parts.leaf) return;
  std::vector<NodePtr> all;
  conjuncts(parts.leaf, all);
  std::vector<NodePtr> leaf;
  std::vector<NodePtr> join;
  for (const NodePtr& part : all) {
    const bool entity = reads(part, ir::Op::kEntityKey) || reads(part, ir::Op::kParam) ||
                        reads(part, ir::Op::kTable);
    (entity ? join : leaf).push_back(part);
  }
  if (parts.join) conjuncts(parts.join, join);
  parts.leaf = conjunction(leaf);
  parts.join = conjunction(join);
}

/// What is judged later than it happened cannot read features: they would be those of later.
bool Builder::no_features(const NodePtr& n) {
  if (n == nullptr) return true;
  if (n->op == ir::Op::kFeature || n->op == ir::Op::kPeers) {
    auto& d = s.report(Id::kNotHere, n->span,
                       "the event is compared with a step only when that step has come: a feature "
                       "would have its later value");
    d.help = "compare with fields of the event and of the steps";
    return false;
  }
  return std::all_of(n->args.begin(), n->args.end(),
                     [&](const NodePtr& a) { return no_features(a); });
}

/// Whether the event can be judged when it comes. If not, it is kept: when it has no key of the
/// signal, when it is compared with a step after `after_step`, or when the order of the two steps
/// is open (`then ~2s`).
bool Builder::defer(Split& parts, const ast::Unless& d, uint32_t kind, abi::UnlessPlan& out) {
  auto key = derive_key(s, kind, c.entity, d.pattern.kind.span, false, &parts.joined);
  if (!key) {
    join_entity_parts(parts);
    if (!parts.join) {  // related to nothing: reports that
      derive_key(s, kind, c.entity, d.pattern.kind.span, true, &parts.joined);
      return false;
    }
    out.shared = true;
  } else {
    out.key = *key;
  }
  const uint16_t last = last_step_read(parts.join).value_or(0);
  out.at_close = last > out.after_step;
  for (uint16_t i = out.after_step + 1u; i <= out.before_step; ++i) {
    if (c.decl.steps[i].mode == ast::Step::Mode::kThenEither) out.at_close = true;
  }
  out.check_step = std::max(last, out.before_step);
  out.deferred = out.shared || out.at_close;
  if (!out.deferred) return true;
  return no_features(parts.join) && (!out.shared || no_features(parts.leaf));
}

bool Builder::between(const ast::Unless& d, abi::UnlessPlan& out) {
  auto step_of = [&](const ast::Name& name, uint16_t otherwise) {
    if (name.empty()) return otherwise;
    std::vector<std::string> names;
    for (size_t i = 0; i < c.decl.steps.size(); ++i) {
      if (c.decl.steps[i].variable.text == name.text) return static_cast<uint16_t>(i);
      names.push_back(c.decl.steps[i].variable.text);
    }
    auto& diag = s.report(Id::kUnknownName, name.span, "no step '" + name.text + "'");
    suggest(diag, name.text, names, name.span);
    ok = false;
    return otherwise;
  };
  const auto last = static_cast<uint16_t>(c.decl.steps.empty() ? 0 : c.decl.steps.size() - 1);
  out.after_step = step_of(d.between_first, 0);
  out.before_step = step_of(d.between_second, last);
  if (ok && out.after_step >= out.before_step) {
    s.report(Id::kBadSequence, d.span, "`between` must name an earlier and a later step");
    ok = false;
  }
  return ok;
}

void Builder::unless(size_t index) {
  const ast::Unless& d = c.decl.unless[index];
  const auto kind = pattern_kind(d.pattern);
  abi::UnlessPlan out;
  const bool placed = between(d, out);
  if (!kind) {
    ok = false;
    return;
  }
  out.kind = s.kinds[*kind].id;
  Env env = env_of(*kind, d.variable);
  for (size_t i = 0; i < c.decl.steps.size(); ++i) {
    const ast::Step& st = c.decl.steps[i];
    if (st.variable.empty() || st.mode == ast::Step::Mode::kThenAbsent) continue;
    if (i < step_kinds.size() && step_kinds[i] != kNone32) {
      env.steps.push_back({st.variable.text, step_kinds[i], static_cast<uint32_t>(i)});
    }
  }
  Split parts = split(env, *kind, d.pattern.where.get());
  if (!placed || !parts.ok || !defer(parts, d, *kind, out)) {
    ok = false;
    return;
  }
  const std::string name = c.name + ".unless" + std::to_string(index);
  out.leaf = intern_leaf(s, *kind, parts.leaf, c.entity, name, d.span);
  if (parts.join) out.join = emit(s, parts.join, name + ".join");
  // Coverage of a signal on node asks each of its kinds for the node; this one has none.
  if (!out.shared) listen(s, plan, *kind);
  seq().unless.push_back(std::move(out));
}

void Builder::spans() {
  const ast::SignalDecl& d = c.decl;
  size_t positive = 0;
  for (const StepPlan& st : seq().steps) positive += st.mode != StepMode::kAbsent;
  if (d.steps.front().mode == ast::Step::Mode::kThenAbsent) {
    auto& diag = s.report(Id::kBadSequence, d.steps.front().span,
                          "nothing happens before `absent`: it would hold always");
    diag.help = "write a first step: d: KIND where ..";
    ok = false;
  }
  for (size_t i = 1; i < d.steps.size(); ++i) {
    if (d.steps[i - 1].mode != ast::Step::Mode::kThenAbsent) continue;
    s.report(Id::kBadSequence, d.steps[i].span, "`absent` must be the last step");
    ok = false;
  }
  if (d.within) {
    const auto ns = constant_duration(s, c.pack, *d.within, "`within`");
    seq().within_ns = ns.value_or(0);
    ok = ok && ns;
    if (ns) note_window(s, *ns, d.within->span);
    // "within 0s" means the same timestamp; 0 in the plan means unbounded.
    if (ns && *ns == 0 && positive > 1) seq().within_ns = 1;
  } else if (positive > 1) {
    auto& diag =
        s.report(Id::kIncomplete, d.name.span, "a sequence of several steps needs a window");
    diag.help = "write: signal " + d.name.text + " on .. within 10m { .. }";
    ok = false;
  }
  seq().partials_max = s.pack.limits.partials_per_key;
  if (d.keep_mode == "latest") seq().keep = abi::KeepMode::kLatest;
  if (d.keep_mode == "all") seq().keep = abi::KeepMode::kAll;
  if (d.keep_max) {
    const auto n = constant_count(s, c.pack, *d.keep_max, "`keep all max`", 1, kPartialsMax);
    seq().partials_max = static_cast<uint32_t>(n.value_or(1));
    ok = ok && n;
  }
}

/// How long after its event a deferred unless may still be asked for.
void Builder::deferred_windows() {
  int64_t window = seq().within_ns;
  for (const StepPlan& st : seq().steps) window += st.absent_ns;
  for (abi::UnlessPlan& u : seq().unless) {
    if (u.deferred) u.window_ns = window;
  }
}

void Builder::assign_captures() {
  seq().capture_count = static_cast<uint16_t>(captures.entries.size());
  for (uint16_t i = 0; i < captures.entries.size(); ++i) {
    const CaptureTable::Entry& e = captures.entries[i];
    seq().steps[e.step].captures.push_back({e.slot, i});
  }
}

}  // namespace

bool lower_sequence(State& s, const SignalContext& c, abi::SignalPlan& plan) {
  Builder b{s, c, plan, {}, {}, true};
  for (size_t i = 0; i < c.decl.steps.size(); ++i) b.step(i);
  for (size_t i = 0; i < c.decl.unless.size(); ++i) b.unless(i);
  b.spans();
  if (!lower_guards(s, c, plan.sequence.guards)) b.ok = false;
  for (const abi::NoneGuard& g : plan.sequence.guards) plan.kinds.push_back(g.kind);
  if (!b.ok) return false;
  b.deferred_windows();
  b.assign_captures();
  const SequencePlan& q = plan.sequence;
  for (uint32_t i = 0; i < q.steps.size(); ++i) {
    add_owner(s, q.steps[i].leaf, abi::OwnerKind::kSequenceStep, c.id, i);
  }
  for (uint32_t i = 0; i < q.unless.size(); ++i) {
    add_owner(s, q.unless[i].leaf, abi::OwnerKind::kSequenceUnless, c.id, i);
  }
  return true;
}

bool lower_guards(State& s, const SignalContext& c, std::vector<abi::NoneGuard>& out) {
  bool ok = true;
  for (size_t i = 0; i < c.decl.guards.size(); ++i) {
    const ast::Aggregate& d = *c.decl.guards[i];
    const auto kind = resolve(s, s.kind_names, c.pack, d.source.kind, Id::kUnknownKind);
    if (!kind) {
      ok = false;
      continue;
    }
    if (s.kinds[*kind].is_abstract) {
      s.report(Id::kAbstractUse, d.source.kind.span,
               "kind '" + d.source.kind.text + "' is abstract: no event has it");
      ok = false;
      continue;
    }
    Env env;
    env.pack = c.pack;
    env.record_kind = *kind;
    env.record_names = {"it"};
    for (size_t k = 0; k < c.decl.steps.size(); ++k) {
      const ast::Step& st = c.decl.steps[k];
      const auto step_kind = find(s, s.kind_names, c.pack, st.pattern.kind.text);
      // Known by name, so that reading one gets its own message (R317).
      if (!st.variable.empty() && step_kind) {
        env.steps.push_back({st.variable.text, *step_kind, static_cast<uint32_t>(k)});
      }
    }
    NodePtr predicate;
    if (d.source.where) predicate = check_predicate(s, env, *d.source.where);
    const auto key = derive_key(s, *kind, c.entity, d.source.kind.span);
    abi::NoneGuard guard;
    guard.kind = s.kinds[*kind].id;
    for (const auto& o : d.options) {
      const auto ns = constant_duration(s, c.pack, *o.value, "the span of `none`");
      guard.window_ns = ns.value_or(0);
      ok = ok && ns;
      if (ns) note_window(s, *ns, o.span);
    }
    if (!key || (predicate && is_error(predicate))) {
      ok = false;
      continue;
    }
    guard.key = *key;
    guard.leaf =
        intern_leaf(s, *kind, predicate, c.entity, c.name + ".none" + std::to_string(i), d.span);
    add_owner(s, guard.leaf, abi::OwnerKind::kSignalGuard, c.id, static_cast<uint32_t>(i));
    out.push_back(std::move(guard));
  }
  return ok;
}

void listen(State& s, abi::SignalPlan& plan, uint32_t kind) {
  const abi::KindId id = s.kinds[kind].id;
  if (std::find(plan.kinds.begin(), plan.kinds.end(), id) == plan.kinds.end()) {
    plan.kinds.push_back(id);
  }
}

}  // namespace reflex::sema
