// Brute force: random small incidents, log-odds and posteriors by the definition (README.md of
// runtime/attribution), written without the index, tables and grouping of the product code.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/explain/explain.h"
#include "tests/unit/attribution/world.h"

namespace reflex::attribution {
namespace {

// Full range from the first case on: these worlds are small anyway.
int pick(int lo, int hi) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(lo, hi + 1));
}

// Signals: a, b on (node, gpu); c, d on (node); e on (job). Edges at random.
void random_world(World& w) {
  const std::vector<abi::SignalId> s{
      w.signal("a", {"node", "gpu"}), w.signal("b", {"node", "gpu"}, 0.02),
      w.signal("c", {"node"}, 0.3), w.signal("d", {"node"}), w.signal("e", {"job"})};
  const std::vector<abi::CauseId> c{w.fault("f1", {"node", "gpu"}, 2e-4), w.fault("f2", {"node"}),
                                    w.external("x1", {"tor"}), w.external("x2", {"job"})};
  const abi::Scope scopes[] = {abi::Scope::kSelf, abi::Scope::kPeers, abi::Scope::kRack,
                               abi::Scope::kTor,  abi::Scope::kJob,   abi::Scope::kAll};
  for (abi::CauseId cause : c) {
    for (abi::SignalId signal : s) {
      for (int k = pick(0, 2); k > 0; --k) {
        const int lo = pick(-60, 20);
        auto& e = w.edge(cause, signal, 0.05 + 0.1 * pick(0, 9), lo, lo + pick(1, 200),
                         scopes[pick(0, 5)]);
        if (pick(0, 5) == 0) e.has_weight = true, e.weight_nats = 0.5 * pick(1, 6);
        if (pick(0, 3) == 0) e.class_p = {0.1, 0.5, 0.9};
      }
    }
  }
  for (size_t from = 0; from + 1 < s.size(); ++from) {
    if (pick(0, 1) == 0) continue;
    const size_t to = static_cast<size_t>(pick(static_cast<int>(from) + 1, 4));
    w.signal_edge(s[from], s[to], 0.1 * pick(1, 9), pick(-20, 0), pick(1, 100), scopes[pick(0, 5)]);
  }
  const int nodes = pick(1, 5);
  for (int i = 0; i < nodes; ++i) {
    auto& v = w.node("n" + std::to_string(i), i % 2 ? "r1" : "r0", i < 3 ? "t0" : "");
    v.hw_class = static_cast<abi::ClassId>(pick(0, 2));
    v.in_job = i == 0 || pick(0, 4) > 0;
    v.hazard = pick(0, 2) == 0 ? 3 : 1;
    for (abi::SignalId signal : s) {
      if (pick(0, 5) == 0) w.blind(signal, "n" + std::to_string(i));
    }
  }
  for (int k = pick(0, 10); k > 0; --k) {
    const size_t at = static_cast<size_t>(pick(0, 4));
    const std::string n = "n" + std::to_string(pick(0, nodes - 1));
    const int t = pick(-100, 100);
    if (at < 2)
      w.fire(s[at], {n, std::to_string(pick(0, 1))}, t);
    else if (at < 4)
      w.fire(s[at], {n}, t);
    else
      w.fire(s[at], {"j1"}, t);
  }
  w.input.now_ns = pick(100, 300) * kS;
}

// One hypothesis by the definition.
struct Oracle {
  World& w;
  abi::CauseId cause;
  const NodeView* node;  // null: external
  int64_t gpu;           // -1: any
  SymbolId tor;          // external on a tor

  struct Seen {
    int64_t onset, last;
    const Evidence* ev;
  };

  const std::vector<std::string>& keys(abi::SignalId s) const {
    return w.pack->entity_kinds[w.pack->signals[s].entity_kind].keys;
  }
  static bool on_node(const std::vector<std::string>& k) { return k[0] == "node"; }

  std::vector<Seen> seen(abi::SignalId s, const NodeView* on, int64_t want_gpu) const {
    std::vector<Seen> out;
    for (const Evidence& ev : w.input.evidence) {
      if (ev.signal != s) continue;
      if (on && ev.entity.values[0] != on->node) continue;
      if (want_gpu >= 0 && keys(s).size() > 1 &&
          static_cast<int64_t>(ev.entity.values[1]) != want_gpu) {
        continue;
      }
      for (const auto& ep : ev.episodes) {
        const int64_t last = std::max(ep.onset_ns, ep.end_ns - w.pack->signals[s].holds_ns);
        if (ep.onset_ns <= w.input.now_ns) out.push_back({ep.onset_ns, last, &ev});
      }
    }
    return out;
  }

  // The nodes that an edge reaches from (own node, tor of an external cause).
  std::vector<const NodeView*> reach(abi::Scope scope) const {
    std::vector<const NodeView*> out;
    for (const NodeView& v : w.input.nodes) {
      bool in = false;
      if (scope == abi::Scope::kAll)
        in = true;
      else if (scope == abi::Scope::kJob)
        in = v.in_job;
      else if (!node)
        in = tor ? v.tor == tor : v.in_job;
      else if (scope == abi::Scope::kSelf)
        in = &v == node;
      else if (scope == abi::Scope::kPeers)
        in = v.in_job && &v != node;
      else if (scope == abi::Scope::kRack)
        in = node->rack && v.rack == node->rack;
      else if (scope == abi::Scope::kTor)
        in = node->tor && v.tor == node->tor;
      if (in) out.push_back(&v);
    }
    return out;
  }

  double leak(const abi::EdgePlan& e) const {
    double rate = w.pack->signals[e.to].leak_per_hour;
    if (rate == 0) rate = 1e-3;
    const double hours = std::max(60.0, double(e.lag_hi_ns - e.lag_lo_ns) / 1e9) / 3600;
    return 1 - std::exp(-rate * hours);
  }
  double p(const abi::EdgePlan& e, abi::ClassId c) const {
    if (e.has_weight) {
      const double l = leak(e);
      return (std::min(0.9999, l * std::exp(e.weight_nats)) - l) / (1 - l);
    }
    return e.class_p.empty() ? e.p : e.class_p[c];
  }

  bool parent_fired(const abi::EdgePlan& e, const Seen& v, const NodeView* on) const {
    for (const Seen& u : seen(e.from, nullptr, -1)) {
      if (v.onset < u.onset + e.lag_lo_ns || v.onset > u.last + e.lag_hi_ns) continue;
      if (!on || !on_node(keys(e.from))) return true;
      const NodeView* at = nullptr;
      for (const NodeView& x : w.input.nodes) {
        if (x.node == u.ev->entity.values[0]) at = &x;
      }
      bool in = e.scope == abi::Scope::kJob || e.scope == abi::Scope::kAll;
      if (e.scope == abi::Scope::kPeers) in = at != on;
      if (e.scope == abi::Scope::kRack) in = on->rack && at->rack == on->rack;
      if (e.scope == abi::Scope::kTor) in = on->tor && at->tor == on->tor;
      if (e.scope == abi::Scope::kSelf) {
        const bool both = keys(e.from).size() > 1 && keys(e.to).size() > 1;
        in = at == on && (!both || u.ev->entity.values[1] == v.ev->entity.values[1]);
      }
      if (in) return true;
    }
    return false;
  }

  double term(const abi::EdgePlan& e, const NodeView* on, int64_t want_gpu, int64_t t) const {
    double best = 0;
    bool fired = false;
    const abi::ClassId c = on ? on->hw_class : abi::ClassId{0};
    for (const Seen& v : seen(e.to, on, want_gpu)) {
      if (v.onset > t + e.lag_hi_ns || v.last < t + e.lag_lo_ns) continue;
      double base = 1 - leak(e);
      bool explained = false;
      for (const auto& pe : w.pack->edges) {
        if (!pe.from_signal || pe.to != e.to || !parent_fired(pe, v, on)) continue;
        base *= 1 - p(pe, c);
        explained = true;
      }
      double nats = std::log((1 - base * (1 - p(e, c))) / (1 - base));
      if (e.has_weight) nats = explained ? std::min(nats, e.weight_nats) : e.weight_nats;
      best = fired ? std::max(best, nats) : nats;
      fired = true;
    }
    if (fired) return best;
    bool observed = false;
    for (const NodeView& x : w.input.nodes) {
      if (on ? &x == on : x.in_job) observed |= !w.blinds.contains({e.to, x.node});
    }
    if (!observed || e.has_weight) return 0;
    double share = 1;
    if (t + e.lag_hi_ns > w.input.now_ns) {
      share = std::clamp(
          double(w.input.now_ns - t - e.lag_lo_ns) / double(e.lag_hi_ns - e.lag_lo_ns), 0.0, 1.0);
    }
    return std::log(1 - p(e, c) * share);
  }

  std::vector<const abi::EdgePlan*> edges() const {
    std::vector<const abi::EdgePlan*> out;
    for (const auto& e : w.pack->edges) {
      if (!e.from_signal && e.cause == cause) out.push_back(&e);
    }
    std::stable_sort(out.begin(), out.end(), [](auto* a, auto* b) {
      return std::make_pair(a->scope, a->where.line) < std::make_pair(b->scope, b->where.line);
    });
    return out;
  }

  double weight(int64_t t) const {
    double sum = 0;
    std::map<abi::SignalId, std::vector<const NodeView*>> claimed;
    std::vector<abi::SignalId> job_done;
    for (const abi::EdgePlan* e : edges()) {
      if (!on_node(keys(e->to))) {
        if (std::find(job_done.begin(), job_done.end(), e->to) != job_done.end()) continue;
        job_done.push_back(e->to);
        sum += term(*e, nullptr, -1, t);
        continue;
      }
      auto& done = claimed[e->to];
      for (const NodeView* v : reach(e->scope)) {
        if (std::find(done.begin(), done.end(), v) != done.end()) continue;
        done.push_back(v);
        sum += term(*e, v, e->scope == abi::Scope::kSelf ? gpu : -1, t);
      }
    }
    return sum;
  }

  double prior() const {
    const double hazard = node ? node->hazard : 1;
    return std::log(w.pack->causes[cause].prior * hazard / w.plan.unexplained_prior);
  }
};

void compare(World& w) {
  const abi::Verdict v = w.run();
  size_t compared = 0;
  double z = 1;
  for (const abi::Hypothesis& h : v.hypotheses) {
    if (h.what == abi::Hypothesis::What::kNone) continue;
    Oracle o{w, 0, nullptr, -1, kNoSymbol};
    for (abi::CauseId c = 0; c < w.pack->causes.size(); ++c) {
      if (w.pack->causes[c].name == h.cause) o.cause = c;
    }
    for (const NodeView& n : w.input.nodes) {
      if (w.pack->symbols->name(n.node) == h.node) o.node = &n;
    }
    const size_t slash = h.entity.find('/');
    if (slash != std::string::npos) o.gpu = std::stoll(h.entity.substr(slash + 1));
    if (h.entity.rfind("tor ", 0) == 0) o.tor = w.sym(h.entity.substr(4));
    RC_ASSERT(std::abs(h.prior_nats - o.prior()) < 1e-8);
    RC_ASSERT(std::abs(h.log_odds_nats - o.prior() - o.weight(h.onset_ns)) < 1e-6);
    // No onset among the opening and the episodes' own onsets explains the evidence better, and
    // the sum of the contributions is the evidence.
    RC_ASSERT(o.weight(w.input.opened_ns) < o.weight(h.onset_ns) + 1e-6);
    std::vector<abi::SignalId> narrower;  // a second edge on the same entities does not count
    for (const abi::EdgePlan* e : o.edges()) {
      if (std::find(narrower.begin(), narrower.end(), e->to) != narrower.end()) continue;
      narrower.push_back(e->to);
      if (!o.node || e->scope != abi::Scope::kSelf || !Oracle::on_node(o.keys(e->to))) continue;
      for (const auto& s : o.seen(e->to, o.node, o.gpu)) {
        const int64_t t = s.onset - std::clamp<int64_t>(0, e->lag_lo_ns, e->lag_hi_ns);
        RC_ASSERT(o.weight(t) < o.weight(h.onset_ns) + 1e-6);
      }
    }
    double sum = h.prior_nats;
    for (const auto& c : h.contributions) sum += c.nats;
    RC_ASSERT(std::abs(sum - h.log_odds_nats) < 1e-9);
    const size_t and_at = h.entity.find(" and ");
    const double alike = and_at == std::string::npos ? 0 : std::stod(h.entity.substr(and_at + 5));
    z += std::exp(h.log_odds_nats) * (1 + alike);
    ++compared;
  }
  // Every (fault, node of the job) has at least one hypothesis, alone or in a group.
  size_t tors = 0;
  for (const NodeView& n : w.input.nodes) tors |= n.tor != kNoSymbol ? 1 : 0;
  RC_ASSERT(compared >= 1 + tors + 2);
  // Posteriors when no further culprit was accepted.
  double total = 0;
  for (const auto& h : v.hypotheses) total += h.p;
  if (std::abs(total - 1) < 1e-9) {
    for (const auto& h : v.hypotheses) {
      if (h.what != abi::Hypothesis::What::kNone) continue;
      RC_ASSERT(std::abs(h.p - 1 / z) < 1e-6);
    }
  } else {
    RC_ASSERT(total > 1);
  }
}

RC_GTEST_PROP(Oracle, log_odds_and_posteriors_follow_the_definition, ()) {
  for (int i = 0; i < 10; ++i) {
    World w;
    random_world(w);
    compare(w);
  }
}

RC_GTEST_PROP(Oracle, order_of_the_input_does_not_matter, ()) {
  World w;
  random_world(w);
  const std::string before = explain::to_json(w.run(), false);
  std::reverse(w.input.nodes.begin(), w.input.nodes.end());
  std::rotate(w.input.evidence.begin(),
              w.input.evidence.begin() + pick(0, static_cast<int>(w.input.evidence.size())),
              w.input.evidence.end());
  RC_ASSERT(explain::to_json(w.run(), false) == before);
}

RC_GTEST_PROP(Oracle, json_round_trip, ()) {
  World w;
  random_world(w);
  const std::string line = explain::to_json(w.run(), true);
  const auto back = explain::from_json(line);
  RC_ASSERT(back.ok());
  RC_ASSERT(explain::to_json(back.value(), true) == line);
}

}  // namespace
}  // namespace reflex::attribution
