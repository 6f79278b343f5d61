// Cause edges (A9): names, probabilities, lags, scopes; and that the graph has no cycle.
#include <algorithm>
#include <cmath>

#include "compiler/sema/phases.h"
#include "runtime/base/time.h"

namespace reflex::sema {

namespace {

using abi::EdgePlan;
using abi::Scope;

// Source: the language reference, A9: an edge without `lag` reaches from 5 s before to 10 min
// after.
constexpr int64_t kDefaultLagLoNs = -5 * kNsPerSecond;
constexpr int64_t kDefaultLagHiNs = 10 * kNsPerMinute;

bool has_key(const State& s, abi::EntityKindId entity, std::string_view key) {
  const auto& keys = s.pack.entity_kinds[entity].keys;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Whether an effect on `to` can be found from a cause on `from` through this scope.
bool reachable(const State& s, Scope scope, abi::EntityKindId from, abi::EntityKindId to) {
  const std::string& head = s.pack.entity_kinds[from].keys[0];
  const bool to_node = has_key(s, to, "node");
  const bool to_job = has_key(s, to, "job");
  const bool from_node = has_key(s, from, "node");
  switch (scope) {
    case Scope::kSelf:
      return s.pack.entity_kinds[to].keys[0] == head;
    case Scope::kPeers:
      return from_node && (to_node || to_job);
    case Scope::kJob:
      return (from_node || has_key(s, from, "job")) && (to_node || to_job);
    case Scope::kRack:
      return (from_node || has_key(s, from, "rack")) && (to_node || has_key(s, to, "rack"));
    case Scope::kTor:
      return (from_node || has_key(s, from, "tor")) && (to_node || has_key(s, to, "tor"));
    case Scope::kPod:
      return (from_node || has_key(s, from, "pod")) && (to_node || has_key(s, to, "pod"));
    case Scope::kZone:
      return (from_node || has_key(s, from, "zone")) && (to_node || has_key(s, to, "zone"));
    case Scope::kClass:
      return (from_node || has_key(s, from, "class")) && to_node;
    case Scope::kAll:
      return true;
  }
  return true;
}

std::string suggested_scope(const State& s, abi::EntityKindId from, abi::EntityKindId to) {
  static constexpr std::pair<Scope, const char*> kScopes[] = {{Scope::kSelf, "self"},
                                                              {Scope::kTor, "tor"},
                                                              {Scope::kRack, "rack"},
                                                              {Scope::kJob, "job"},
                                                              {Scope::kAll, "all"}};
  for (const auto& [scope, name] : kScopes) {
    if (reachable(s, scope, from, to)) return name;
  }
  return "all";
}

struct Builder {
  State& s;
  PackIndex pack;
  const ast::CausesDecl& d;
  EdgePlan edge;
  abi::EntityKindId from_entity = 0;
  bool ok = true;

  void source();
  void strength();
  void probability();
  void lag();
  void scope();
  void effects();
};

void Builder::source() {
  bool ambiguous = false;
  if (find(s, s.cause_names, pack, d.cause.text, &ambiguous)) {
    const auto cause = resolve(s, s.cause_names, pack, d.cause, Id::kUnknownCause);
    if (!cause) {
      ok = false;
      return;
    }
    edge.cause = *cause;
    from_entity = s.pack.causes[*cause].entity_kind;
    return;
  }
  if (find(s, s.signal_names, pack, d.cause.text)) {
    const auto signal = resolve(s, s.signal_names, pack, d.cause, Id::kUnknownCause);
    if (!signal) {
      ok = false;
      return;
    }
    edge.from_signal = true;
    edge.from = *signal;
    from_entity = s.pack.signals[*signal].entity_kind;
    ok = ok && !s.signals[*signal].broken;
    return;
  }
  ok = false;
  if (s.cause_names.by_name.count(d.cause.text)) {
    resolve(s, s.cause_names, pack, d.cause, Id::kUnknownCause);
    return;
  }
  if (declared_in_broken_text(s, s.cause_names, d.cause.text) ||
      declared_in_broken_text(s, s.signal_names, d.cause.text)) {
    return;
  }
  auto& diag = s.report(Id::kUnknownCause, d.cause.span,
                        "no fault, external cause or signal '" + d.cause.text + "'");
  auto names = visible_names(s, s.cause_names, pack);
  const auto signals = visible_names(s, s.signal_names, pack);
  names.insert(names.end(), signals.begin(), signals.end());
  suggest(diag, d.cause.text, names, d.cause.span);
}

void Builder::probability() {
  const ast::Expr& e = *d.p;
  const auto path = flatten(e);
  if (path && path->size() > 1 && (*path)[0].text == "profile") {
    Env env;
    env.pack = pack;
    const NodePtr n = check_expr(s, env, e);
    if (is_error(n)) {
      ok = false;
      return;
    }
    if (n->op == ir::Op::kTable) {
      s.report(Id::kNotConstant, e.span, "p cannot be an adaptive parameter");
      ok = false;
      return;
    }
    for (const abi::ClassPlan& c : s.pack.classes) {
      double p = 0.5;
      const bool known = !c.params_known.empty() && c.params_known[n->index] != 0;
      if (known) {
        const auto bits = static_cast<int64_t>(c.params[n->index]);
        p = n->rep == ir::Rep::kF64 ? bits_to_f64(bits) : static_cast<double>(bits);
        if (p <= 0 || p >= 1) {
          auto& diag = s.report(Id::kProbabilityRange, e.span,
                                "p must be between 0 and 1, it is not for " + c.name);
          diag.notes.push_back({s.params[n->index].span, "the parameter is declared here"});
          ok = false;
        }
      }
      edge.class_p.push_back(p);
    }
    edge.p = edge.class_p.empty() ? 0.5 : edge.class_p[0];
    return;
  }
  const auto p = constant_number(s, pack, e, "p");
  if (!p) {
    ok = false;
    return;
  }
  if (*p <= 0 || *p >= 1) {
    auto& diag = s.report(Id::kProbabilityRange, e.span, "p must be between 0 and 1");
    diag.help = "the share of cases in which the cause makes the signal fire: p 0.9, or p 90%";
    ok = false;
    return;
  }
  if (*p > 0.99) {
    auto& diag = s.report(Id::kProbabilityHigh, e.span,
                          "with p above 0.99 one silent signal outweighs almost everything");
    diag.help = "0.97 is certain enough";
  }
  edge.p = *p;
}

void Builder::strength() {
  if (d.p && d.weight_nats) {
    auto& diag = s.report(Id::kMixedWeight, d.weight_nats->span,
                          "an edge has either `p` or `weight`, not both");
    diag.notes.push_back({d.p->span, "`p` is here"});
    ok = false;
    return;
  }
  if (d.weight_nats) {
    const auto w = constant_number(s, pack, *d.weight_nats, "the weight");
    edge.has_weight = true;
    edge.weight_nats = w.value_or(0);
    // Why: 50 nats are odds of 5e21; beyond it sums of weights lose all other evidence.
    constexpr double kWeightNatsMax = 50;
    if (!(std::abs(edge.weight_nats) <= kWeightNatsMax)) {
      s.report(Id::kProbabilityRange, d.weight_nats->span,
               "a weight must be between -50 and 50 nats");
    }
    ok = ok && w;
  } else if (d.p) {
    probability();
  } else {
    auto& diag = s.report(Id::kIncomplete, d.cause.span, "the edge has no strength");
    diag.help = "write: " + d.cause.text + " causes .. p 0.6";
    ok = false;
  }
}

void Builder::lag() {
  const auto lag = check_lag(s, pack, d);
  ok = ok && lag;
  if (!lag) return;
  edge.lag_lo_ns = lag->lo_ns;
  edge.lag_hi_ns = lag->hi_ns;
}

void Builder::scope() {
  static const std::vector<std::pair<std::string, Scope>> kScopes{
      {"self", Scope::kSelf}, {"peers", Scope::kPeers}, {"rack", Scope::kRack},
      {"tor", Scope::kTor},   {"pod", Scope::kPod},     {"zone", Scope::kZone},
      {"job", Scope::kJob},   {"class", Scope::kClass}, {"all", Scope::kAll}};
  if (d.scope.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : kScopes) {
    names.push_back(name);
    if (name != d.scope.text) continue;
    edge.scope = value;
    return;
  }
  auto& diag = s.report(Id::kUnknownOption, d.scope.span, "no scope '" + d.scope.text + "'");
  suggest(diag, d.scope.text, names, d.scope.span);
  ok = false;
}

void Builder::effects() {
  for (const ast::Name& effect : d.effects) {
    const auto signal = resolve(s, s.signal_names, pack, effect, Id::kUnknownSignal);
    if (!signal || !ok || s.signals[*signal].broken) continue;
    EdgePlan e = edge;
    e.to = *signal;
    e.where = s.where(effect.span);
    const abi::EntityKindId to = s.pack.signals[*signal].entity_kind;
    if (!reachable(s, e.scope, from_entity, to)) {
      auto& diag =
          s.report(Id::kScopeUnreachable, effect.span,
                   "'" + effect.text + "' is on " + entity_text(s, to) +
                       "; that cannot be found from a cause on " + entity_text(s, from_entity) +
                       " by scope " + (d.scope.empty() ? "self" : d.scope.text));
      diag.notes.push_back({s.signals[*signal].decl->name.span, "the signal is declared here"});
      diag.help = "write: scope " + suggested_scope(s, from_entity, to);
      continue;
    }
    s.pack.edges.push_back(std::move(e));
  }
}

/// `SIGNAL explained by maintenance on node`: not an edge, maintenance is no cause of its own.
void check_explained_by_maintenance(State& s, PackIndex pack, const ast::CausesDecl& d) {
  if (d.on.text != "node") {
    auto& diag = s.report(Id::kNotAKey, d.on.empty() ? d.cause.span : d.on.span,
                          "maintenance is of a node");
    diag.help = "write: explained by maintenance on node";
    return;
  }
  if (d.p || d.weight_nats || d.lag_lo || !d.scope.empty() || d.when_at_least) {
    auto& diag = s.report(Id::kNotHere, d.cause.span,
                          "`explained by maintenance` takes no p, weight, lag, scope or when");
    diag.help = "it lasts as long as the maintenance and its grace";
    return;
  }
  const auto signal = resolve(s, s.signal_names, pack, d.effects[0], Id::kUnknownSignal);
  if (!signal || s.signals[*signal].broken) return;
  if (!node_keyed(s, s.pack.signals[*signal].entity_kind)) {
    auto& diag = s.report(Id::kScopeUnreachable, d.effects[0].span,
                          "'" + d.effects[0].text + "' is on " +
                              entity_text(s, s.pack.signals[*signal].entity_kind) +
                              "; maintenance is of a node");
    diag.notes.push_back({s.signals[*signal].decl->name.span, "the signal is declared here"});
    return;
  }
  s.pack.explained_by_maintenance.push_back({*signal, s.where(d.effects[0].span)});
}

void check_edge(State& s, PackIndex pack, const ast::CausesDecl& d) {
  using Verb = ast::CausesDecl::Verb;
  if (d.verb == Verb::kMasks) return check_mask(s, pack, d);
  if (d.verb == Verb::kExplainedBy && d.cause.text == "maintenance") {
    return check_explained_by_maintenance(s, pack, d);
  }
  if (d.when_at_least) {
    auto& diag = s.report(Id::kNotHere, d.when_at_least->span,
                          "`when at least` belongs to `masks`, not to an edge");
    diag.help = "an edge has p, weight, lag and scope";
    return;
  }
  Builder b{s, pack, d, {}, 0, true};
  b.source();
  b.strength();
  b.lag();
  b.scope();
  b.effects();
}

// ---------------------------------------------------------------- cycles

/// Vertices: causes first, then signals.
struct Cycle {
  State& s;
  std::vector<std::vector<uint32_t>> out;  // vertex -> edge indices
  std::vector<int> state;

  [[nodiscard]] uint32_t from(const EdgePlan& e) const {
    return e.from_signal ? static_cast<uint32_t>(s.pack.causes.size()) + e.from : e.cause;
  }
  [[nodiscard]] uint32_t to(const EdgePlan& e) const {
    return static_cast<uint32_t>(s.pack.causes.size()) + e.to;
  }
  [[nodiscard]] std::string name(uint32_t v) const {
    const auto causes = static_cast<uint32_t>(s.pack.causes.size());
    return v < causes ? s.pack.causes[v].name : s.pack.signals[v - causes].name;
  }
  void report(const std::vector<uint32_t>& path, uint32_t last);
  void visit(uint32_t root);
};

void Cycle::report(const std::vector<uint32_t>& path, uint32_t last) {
  const uint32_t head = to(s.pack.edges[last]);
  size_t start = path.size();
  while (start > 0 && from(s.pack.edges[path[start - 1]]) != head) --start;
  std::vector<uint32_t> edges(path.begin() + static_cast<long>(start > 0 ? start - 1 : 0),
                              path.end());
  if (start == 0) edges.clear();
  edges.push_back(last);
  std::string text;
  uint32_t weakest = edges[0];
  for (const uint32_t e : edges) {
    text += name(from(s.pack.edges[e])) + " -> ";
    if (s.pack.edges[e].p < s.pack.edges[weakest].p) weakest = e;
  }
  const EdgePlan& cut = s.pack.edges[weakest];
  const abi::SourceRef& at = s.pack.edges[last].where;
  Span span{};
  for (source::FileId f = 0; f < s.in.sources.file_count(); ++f) {
    if (s.in.sources.path(f) == at.file) span.file = f;
  }
  // The effect's name in the edge that closes the circle.
  for_each<ast::CausesDecl>(s, [&](DeclRef, const ast::CausesDecl& d, const ast::Decl&) {
    for (const ast::Name& effect : d.effects) {
      const abi::SourceRef here = s.where(effect.span);
      if (here.file == at.file && here.line == at.line && here.column == at.column) {
        span = effect.span;
      }
    }
  });
  auto& d = s.report(Id::kCausalCycle, span, "the causes go in a circle: " + text + name(head));
  d.help = "cut the weakest edge: " + name(from(cut)) + " causes " + name(to(cut)) + " (" +
           cut.where.file + ":" + std::to_string(cut.where.line) + ")";
}

/// Depth first without recursion: chains of signals may be long.
void Cycle::visit(uint32_t root) {
  struct Frame {
    uint32_t vertex;
    size_t next;
  };
  std::vector<Frame> stack{{root, 0}};
  std::vector<uint32_t> path;
  state[root] = 1;
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == out[top.vertex].size()) {
      state[top.vertex] = 2;
      stack.pop_back();
      if (!path.empty()) path.pop_back();
      continue;
    }
    const uint32_t edge = out[top.vertex][top.next++];
    const uint32_t target = to(s.pack.edges[edge]);
    if (state[target] == 1) {
      report(path, edge);
    } else if (state[target] == 0) {
      state[target] = 1;
      path.push_back(edge);
      stack.push_back({target, 0});
    }
  }
}

}  // namespace

std::optional<Lag> check_lag(State& s, PackIndex pack, const ast::CausesDecl& d) {
  if (!d.lag_lo || !d.lag_hi) return Lag{kDefaultLagLoNs, kDefaultLagHiNs};
  const auto lo = constant_duration(s, pack, *d.lag_lo, "the lag", true);
  const auto hi = constant_duration(s, pack, *d.lag_hi, "the lag", true);
  if (!lo || !hi) return std::nullopt;
  if (*lo >= *hi) {
    const Span span = source::cover(d.lag_lo->span, d.lag_hi->span);
    auto& report =
        s.report(Id::kBadInterval, span, "the lag must go from the earlier to the later bound");
    if (*lo != *hi) {
      report.help = "write: lag " + reflex::to_text(Duration{*hi}) + " .. " +
                    reflex::to_text(Duration{*lo}) +
                    "; a negative bound means that the signal shows before the cause";
    }
    return std::nullopt;
  }
  return Lag{*lo, *hi};
}

void check_edges(State& s) {
  for_each<ast::CausesDecl>(s, [&](DeclRef ref, const ast::CausesDecl& d, const ast::Decl&) {
    check_edge(s, ref.pack, d);
  });
}

void check_cycles(State& s) {
  const size_t n = s.pack.causes.size() + s.pack.signals.size();
  Cycle c{s, std::vector<std::vector<uint32_t>>(n), std::vector<int>(n, 0)};
  for (uint32_t e = 0; e < s.pack.edges.size(); ++e) c.out[c.from(s.pack.edges[e])].push_back(e);
  for (uint32_t v = 0; v < n; ++v) {
    if (c.state[v] == 0) c.visit(v);
  }
}

}  // namespace reflex::sema
