// See world.h.
#include "tests/unit/attribution/world.h"

#include <algorithm>

namespace reflex::attribution {
namespace {

bool is_observed(const void* state, abi::SignalId signal, SymbolId node) {
  return !static_cast<const World*>(state)->blinds.contains({signal, node});
}

}  // namespace

World::World() : pack(std::make_shared<abi::CompiledPack>()) {
  pack->symbols = std::make_shared<SymbolTable>();
  for (int i = 0; i < 3; ++i) {
    abi::ClassPlan c;
    c.name = "hw.c" + std::to_string(i);
    pack->classes.push_back(c);
  }
  plan.name = "job_hang";
  input.now_ns = 3600 * kS;
  input.job = sym("j1");
  input.plan = &plan;
  input.observed = is_observed;
  input.observed_state = this;
  input.hypotheses_max = 1000;
}

abi::EntityKindId World::entity_kind(std::vector<std::string> keys) {
  for (size_t i = 0; i < pack->entity_kinds.size(); ++i) {
    if (pack->entity_kinds[i].keys == keys) return static_cast<abi::EntityKindId>(i);
  }
  pack->entity_kinds.push_back({std::move(keys)});
  return static_cast<abi::EntityKindId>(pack->entity_kinds.size() - 1);
}

abi::SignalId World::signal(const std::string& name, std::vector<std::string> keys,
                            double leak_per_hour) {
  abi::SignalPlan s;
  s.name = name;
  s.entity_kind = entity_kind(std::move(keys));
  s.holds_ns = 3600 * kS;
  s.leak_per_hour = leak_per_hour;
  pack->signals.push_back(s);
  return static_cast<abi::SignalId>(pack->signals.size() - 1);
}

abi::CauseId World::fault(const std::string& name, std::vector<std::string> keys, double prior) {
  abi::CausePlan c;
  c.name = name;
  c.entity_kind = entity_kind(std::move(keys));
  c.prior = prior;
  c.severity = "critical";
  c.remedy = "drain";
  pack->causes.push_back(c);
  return static_cast<abi::CauseId>(pack->causes.size() - 1);
}

abi::CauseId World::external(const std::string& name, std::vector<std::string> keys, double prior) {
  const abi::CauseId id = fault(name, std::move(keys), prior);
  pack->causes[id].kind = abi::CauseKind::kExternal;
  return id;
}

abi::EdgePlan& World::edge(abi::CauseId from, abi::SignalId to, double p, int64_t lo_s,
                           int64_t hi_s, abi::Scope scope) {
  abi::EdgePlan e;
  e.cause = from;
  e.to = to;
  e.p = p;
  e.lag_lo_ns = lo_s * kS;
  e.lag_hi_ns = hi_s * kS;
  e.scope = scope;
  e.where = {"test.rfx", static_cast<uint32_t>(pack->edges.size() + 1), 1};
  pack->edges.push_back(e);
  return pack->edges.back();
}

abi::EdgePlan& World::signal_edge(abi::SignalId from, abi::SignalId to, double p, int64_t lo_s,
                                  int64_t hi_s, abi::Scope scope) {
  abi::EdgePlan& e = edge(abi::kNone32, to, p, lo_s, hi_s, scope);
  e.from_signal = true;
  e.from = from;
  return e;
}

NodeView& World::node(const std::string& name, const std::string& rack, const std::string& tor) {
  NodeView v;
  v.node = sym(name);
  v.rack = rack.empty() ? kNoSymbol : sym(rack);
  v.tor = tor.empty() ? kNoSymbol : sym(tor);
  input.nodes.push_back(v);
  return input.nodes.back();
}

Evidence& World::fire(abi::SignalId signal, const std::vector<std::string>& names,
                      int64_t onset_s) {
  Evidence e;
  e.signal = signal;
  e.entity.kind = pack->signals[signal].entity_kind;
  e.entity.count = static_cast<uint8_t>(names.size());
  const auto& keys = pack->entity_kinds[e.entity.kind].keys;
  for (size_t i = 0; i < names.size(); ++i) {
    e.entity.values[i] = keys[i] == "gpu" ? std::stoull(names[i]) : sym(names[i]);
  }
  Evidence::Episode ep;
  ep.onset_ns = onset_s * kS;
  ep.end_ns = (onset_s + 3600) * kS;
  ep.value = abi::Value::of(3);
  ep.events.push_back(
      {sym("log"), static_cast<uint64_t>(input.evidence.size() + 1), ep.onset_ns, ""});
  e.episodes.push_back(ep);
  input.evidence.push_back(e);
  return input.evidence.back();
}

void World::blind(abi::SignalId signal, const std::string& node) {
  blinds.insert({signal, sym(node)});
}

std::unique_ptr<Graph> World::graph() const {
  auto g = Graph::build(pack);
  RFX_CHECK(g.ok());
  return std::move(g).value();
}

abi::Verdict World::run() { return graph()->attribute(input); }

const abi::Hypothesis* find_hypothesis(const abi::Verdict& v, const std::string& cause,
                                       const std::string& node) {
  for (const auto& h : v.hypotheses) {
    if (h.cause == cause && h.node == node) return &h;
  }
  return nullptr;
}

double node_p(const abi::Verdict& v, const std::string& node) {
  for (const auto& n : v.nodes) {
    if (n.node == node) return n.p;
  }
  return 0;
}

}  // namespace reflex::attribution
