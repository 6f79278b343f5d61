// Brute force: random small incidents, log-odds and posteriors by the definition (README.md of
// runtime/attribution), written without the index, tables and grouping of the product code.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/attribution/graded.h"
#include "runtime/attribution/latent.h"
#include "runtime/attribution/ranking.h"
#include "runtime/explain/explain.h"
#include "tests/unit/attribution/world.h"

namespace reflex::attribution {
namespace {

__extension__ using Wide = __int128;  // lags are added to the end of what has no end

// Full range from the first case on: these worlds are small anyway.
int pick(int lo, int hi) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(lo, hi + 1));
}

// Signals: a, b on (node, gpu); c, d on (node); e on (job). Edges at random.
void random_world(World& w) {
  const std::vector<abi::SignalId> s{
      w.signal("a", {"node", "gpu"}), w.signal("b", {"node", "gpu"}, 0.02),
      w.signal("c", {"node"}, 0.3),   w.signal("d", {"node"}),
      w.signal("e", {"job"}),         w.signal("g", {"node"}, 0.02)};
  auto& count = w.pack->signals[s[5]];
  count.shape = abi::SignalShape::kCount;
  count.count.window_ns = 72 * 3600 * kS;
  count.count.graded.on = true;
  count.leak_probability = 0.02;
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
        if (signal == s[5]) {
          e.lag_lo_ns = -72 * 3600 * kS;
        } else if (pick(0, 5) == 0) {
          e.has_weight = true, e.weight_nats = 0.5 * pick(1, 6);
        }
        if (pick(0, 3) == 0) e.class_p = {0.1, 0.5, 0.9};
      }
    }
  }
  if (pick(0, 1) == 0) {
    abi::MaskPlan mask;
    mask.cause = c[2];
    mask.signals = {s[2], s[3]};
    mask.lag_lo_ns = -10 * kS;
    mask.lag_hi_ns = pick(0, 1) * 100 * kS;
    mask.at_least = 0.3 * pick(1, 3);
    mask.within_ns = pick(1, 100) * kS;
    w.pack->masks.push_back(mask);
  }
  if (pick(0, 1) == 0) w.pack->synergies.push_back({c[1], {s[2], s[5]}, 1.5, {}});
  if (pick(0, 1) == 0) w.pack->synergies.push_back({c[0], {s[0], s[1]}, -0.5, {}});
  for (size_t from = 0; from + 2 < s.size(); ++from) {
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
    if (pick(0, 4) == 0) v.repaired_ns = -pick(1, 100) * 3600 * kS;
    for (abi::SignalId signal : s) {
      if (pick(0, 5) == 0) w.blind(signal, "n" + std::to_string(i));
    }
  }
  std::set<std::string> graded;  // one episode a node
  for (int k = pick(0, 14); k > 0; --k) {
    const size_t at = static_cast<size_t>(pick(0, 5));
    const std::string n = "n" + std::to_string(pick(0, nodes - 1));
    const int t = pick(-100, 100);
    if (at == 5 && !graded.insert(n).second) continue;
    auto& ev = at < 2    ? w.fire(s[at], {n, std::to_string(pick(0, 1))}, t)
               : at == 4 ? w.fire(s[at], {"j1"}, t)
                         : w.fire(s[at], {n}, t);
    if (at == 5) {
      for (auto& c_b : ev.episodes[0].lead_counts) c_b = static_cast<uint16_t>(pick(0, 3));
    }
    if (pick(0, 4) == 0) ev.episodes[0].end_ns = INT64_MAX;  // it still holds
    if (pick(0, 7) == 0 && at != 4) {
      ev.episodes[0].suppressed_by = pick(0, 1) == 0 ? "maintenance" : "suppress lab: burn-in";
    }
  }
  w.input.now_ns = pick(100, 300) * kS;
}

// Benign rates of some nodes and signals, none of others.
class RandomTable final : public abi::TableSnapshot {
 public:
  RandomTable() : salt_(pick(0, 1000)) {}
  uint64_t version() const override { return 7; }
  int64_t valid_from_ns() const override { return 0; }
  const abi::Value* row(abi::ClassId) const override { return nullptr; }
  abi::TableOrigin origin(abi::AdaptiveId, abi::ClassId, SymbolId) const override { return {}; }
  abi::BenignRate benign(abi::SignalId s, abi::ClassId, SymbolId node) const override {
    abi::BenignRate r;
    const unsigned x = (s * 7u + node * 13u + static_cast<unsigned>(salt_)) % 5u;
    if (x == 0) return r;
    r.node_hours = 1000;
    r.onsets_per_hour = 0.01 * x;
    r.mean_hours = 0.1 * x;
    r.firings_per_hour = 0.05 * x;
    r.from = abi::TableOrigin::From::kNode;
    return r;
  }

 private:
  int salt_;
};

// A model that states some numbers and leaves others to the author.
void random_model(const World& w, abi::Model& m) {
  const auto some = [](double x) { return pick(0, 1) == 0 ? std::nan("") : x; };
  for (size_t i = 0; i < w.pack->edges.size(); ++i) m.edge_p.push_back(some(0.1 * pick(1, 9)));
  for (size_t i = 0; i < w.pack->signals.size(); ++i) {
    m.leak_per_hour.push_back(0.01 * pick(1, 9));
    m.signal_multiplier.push_back(0.5 * pick(0, 3));
    m.graded_extra.push_back(pick(2, 9));
    m.episode_leak.push_back(0.01 * pick(1, 9));
  }
  for (size_t i = 0; i < w.pack->causes.size(); ++i)
    m.cause_prior.push_back(some(1e-4 * pick(1, 9)));
  for (size_t i = 0; i < w.pack->synergies.size(); ++i) m.synergy_nats.push_back(0.5 * pick(-2, 4));
  m.temperature = 0.5 * pick(1, 4);
  m.none_shift_nats = 0.5 * pick(-2, 2);
  m.ailing_multiplier = 0.5 * pick(0, 3);
  m.history_multiplier = 0.5 * pick(0, 3);
}

struct RandomWorld : World {
  abi::Model model;
  RandomWorld();
};

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

  uint32_t index(const abi::EdgePlan& e) const {
    return static_cast<uint32_t>(&e - w.pack->edges.data());
  }
  static double hours(const abi::EdgePlan& e) {
    return std::max(60.0, double(e.lag_hi_ns - e.lag_lo_ns) / 1e9) / 3600;
  }
  double author_leak(const abi::EdgePlan& e) const {
    const double rate = w.pack->signals[e.to].leak_per_hour;
    if (rate > 0) return 1 - std::exp(-rate * hours(e));
    return std::max(3e-4, 1 - std::exp(-1e-3 * hours(e)));
  }
  double leak(const abi::EdgePlan& e, const NodeView* on) const {
    const double author = author_leak(e);
    if (e.has_weight) return author;
    const abi::Model* m = w.input.model;
    if (w.input.tables && on) {
      const abi::BenignRate r = w.input.tables->benign(e.to, on->hw_class, on->node);
      if (r.node_hours > 0) {
        const double measured = 1 - std::exp(-r.onsets_per_hour * (hours(e) + r.mean_hours));
        // A chance of incident windows, learned or stated, is a lower bound.
        return std::max(measured, m && m->leak_per_hour[e.to] > 0
                                      ? 1 - std::exp(-m->leak_per_hour[e.to] * hours(e))
                                      : std::min(3e-4, author));
      }
    }
    if (m && m->leak_per_hour[e.to] > 0) return 1 - std::exp(-m->leak_per_hour[e.to] * hours(e));
    return author;
  }
  // What the job's other nodes show at the opening.
  double relative_leak(const abi::EdgePlan& e, double plain) const {
    if (spreads(e.to)) return plain;  // the graph says how it does
    double nodes = 0, fired = 0;
    for (const NodeView& v : w.input.nodes) {
      if (!v.in_job) continue;
      ++nodes;
      bool shows = false;
      for (const Seen& s : seen(e.to, &v, -1)) {
        shows |= s.ev->episodes[0].suppressed_by.empty() && in_window(e, s, w.input.opened_ns);
      }
      fired += shows ? 1 : 0;
    }
    if (fired < 3 || fired < 0.2 * nodes || nodes < 4) return plain;
    return std::max(plain, (fired - 1 + 0.3) / (nodes - 1 + 0.6));
  }
  static bool in_window(const abi::EdgePlan& e, const Seen& v, int64_t t) {
    return v.onset <= t + e.lag_hi_ns && v.last >= Wide{t} + e.lag_lo_ns;
  }
  double p(const abi::EdgePlan& e, abi::ClassId c) const {
    if (e.has_weight) {
      const double l = author_leak(e);
      return (std::min(0.9999, l * std::exp(e.weight_nats)) - l) / (1 - l);
    }
    if (w.input.model && !std::isnan(w.input.model->edge_p[index(e)])) {
      return w.input.model->edge_p[index(e)];
    }
    return e.class_p.empty() ? e.p : e.class_p[c];
  }
  double scale(const abi::EdgePlan& e) const {
    const abi::Model* m = w.input.model;
    return m ? m->signal_multiplier[e.to] / m->temperature : 1;
  }
  double temperature() const { return w.input.model ? w.input.model->temperature : 1; }

  bool graded(abi::SignalId s) const { return w.pack->signals[s].count.graded.on; }
  double episode_leak() const { return w.input.model ? w.input.model->episode_leak[5] : 0.02; }
  double soft(abi::SignalId s, const NodeView* on, const LeadCounts& counts, double survive) const {
    const abi::CountPlan& plan = w.pack->signals[s].count;
    GradedLaw law;
    law.extra_mean = w.input.model ? w.input.model->graded_extra[s] : plan.graded.extra_mean;
    law.profile = plan.graded.profile;
    law.window_hours = law.seen_hours = double(plan.window_ns) / 3.6e12;
    if (on && on->repaired_ns != kNoTimeNs) {
      law.seen_hours =
          std::clamp(double(w.input.opened_ns - on->repaired_ns) / 3.6e12, 0.0, law.window_hours);
    }
    double rate = w.input.model ? w.input.model->leak_per_hour[s] : 0.02;
    if (w.input.tables && on) {
      const abi::BenignRate r = w.input.tables->benign(s, on->hw_class, on->node);
      if (r.node_hours > 0) rate = r.firings_per_hour;
    }
    const double a = std::exp(graded_log_ratio(law, counts, rate));
    const double benign = 1 - (1 - episode_leak()) * survive;
    return a / (1 - benign + benign * a);
  }

  bool parent_fired(const abi::EdgePlan& e, const Seen& v, const NodeView* on) const {
    for (const Seen& u : seen(e.from, nullptr, -1)) {
      if (!u.ev->episodes[0].suppressed_by.empty()) continue;
      if (v.onset < u.onset + e.lag_lo_ns || v.onset > Wide{u.last} + e.lag_hi_ns) continue;
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

  // Maintenance is somebody's doing, so an external cause may explain it; nothing else does.
  bool held(const Seen& v) const {
    const std::string& by = v.ev->episodes[0].suppressed_by;
    const bool external = w.pack->causes[cause].kind == abi::CauseKind::kExternal;
    return !by.empty() && !(external && by == "maintenance");
  }

  // One member: what it shows as a likelihood ratio "active : benign".
  struct Member {
    bool counts = false, fired = false;
    double ratio = 1;
  };
  enum class As { kOwn, kMember };
  Member member(const abi::EdgePlan& e, const NodeView* on, int64_t want_gpu, int64_t t, As as,
                bool exempt) const {
    Member m;
    for (const Seen& v : seen(e.to, on, want_gpu)) {
      if (!in_window(e, v, t)) continue;
      double survive = 1;
      for (const auto& pe : w.pack->edges) {
        if (!pe.from_signal || pe.to != e.to || !parent_fired(pe, v, on)) continue;
        survive *= 1 - p(pe, on ? on->hw_class : abi::ClassId{0});
      }
      if (on && !exempt) survive *= mask_survive(e.to, v, on);
      double ratio = 1;
      if (held(v)) {
        ratio = 1;
      } else if (graded(e.to)) {
        ratio = soft(e.to, on, v.ev->episodes[0].lead_counts, survive);
      } else {
        double l = leak(e, on);
        if (as == As::kOwn) l = relative_leak(e, l);
        ratio = 1 / (1 - (1 - l) * survive);
      }
      if (!m.fired || ratio > m.ratio) m.ratio = ratio;
      m.fired = m.counts = true;
    }
    if (m.fired) return m;
    for (const NodeView& x : w.input.nodes) {
      if (on ? &x == on : x.in_job) m.counts |= !w.blinds.contains({e.to, x.node});
    }
    if (!m.counts || e.has_weight) return m;
    if (graded(e.to)) {
      m.ratio = soft(e.to, as == As::kMember ? nullptr : on, {}, 1);
      return m;
    }
    double share = 1;
    if (t + e.lag_hi_ns > w.input.now_ns) {
      share = std::clamp(
          double(w.input.now_ns - t - e.lag_lo_ns) / double(e.lag_hi_ns - e.lag_lo_ns), 0.0, 1.0);
    }
    m.ratio = 1 - share;
    return m;
  }
  double nats(const abi::EdgePlan& e, double strength, const Member& m) const {
    if (!m.counts) return 0;
    const double x = std::log(1 - strength + strength * m.ratio);
    if (!e.has_weight) return x;
    return m.fired && m.ratio != 1 ? std::min(x, e.weight_nats) : 0;
  }

  // The tor with a mask in which `v` lies: (1 - hit)^2, hit = members that show it together.
  double mask_survive(abi::SignalId s, const Seen& v, const NodeView* on) const {
    double best = 1;
    for (const abi::MaskPlan& mask : w.pack->masks) {
      if (std::find(mask.signals.begin(), mask.signals.end(), s) == mask.signals.end()) continue;
      std::vector<const NodeView*> members;
      for (const NodeView& n : w.input.nodes) {
        if (on->tor && n.tor == on->tor) members.push_back(&n);
      }
      if (members.size() < 3) continue;
      std::vector<int64_t> starts;
      std::map<int64_t, size_t> count;
      for (abi::SignalId x : mask.signals) {
        for (const NodeView* n : members) {
          for (const Seen& u : seen(x, n, -1)) {
            if (u.ev->episodes[0].suppressed_by.empty()) starts.push_back(u.onset);
          }
        }
      }
      int64_t at = 0;
      size_t most = 0;
      std::sort(starts.begin(), starts.end());
      for (int64_t t : starts) {  // windows that begin with a firing
        size_t n = 0;
        for (const NodeView* m : members) {
          bool shows = false;
          for (abi::SignalId x : mask.signals) {
            for (const Seen& u : seen(x, m, -1)) {
              shows |= u.ev->episodes[0].suppressed_by.empty() && u.onset >= t &&
                       u.onset <= t + mask.within_ns;
            }
          }
          n += shows ? 1 : 0;
        }
        if (n > most) most = n, at = t;
      }
      if (most < 2 || double(most) < mask.at_least * double(members.size())) continue;
      if (v.onset < at + std::min<int64_t>(0, mask.lag_lo_ns)) continue;
      if (v.onset > at + std::max(mask.within_ns, mask.lag_hi_ns)) continue;
      const double hit = std::min(0.97, double(most) / double(members.size()));
      best = std::min(best, (1 - hit) * (1 - hit));
    }
    return best;
  }

  // sum_q w_q(p) prod_m (1 - theta_q + theta_q ratio_m), in logs.
  static double shared(const Levels& log_weights, const std::vector<Member>& members) {
    double sum = 0;
    for (size_t q = 0; q < kLevels; ++q) {
      double product = std::exp(log_weights[q]);
      for (const Member& m : members) {
        if (m.counts) product *= 1 - level_grid()[q] + level_grid()[q] * m.ratio;
      }
      sum += product;
    }
    return std::log(sum);
  }
  // How the group's nodes would look to a hypothesis that does not have them.
  std::vector<Member> others(const abi::EdgePlan& e, const std::vector<const NodeView*>& in,
                             int64_t t) const {
    std::vector<Member> out;
    for (const NodeView* v : in) out.push_back(member(e, v, -1, t, As::kMember, false));
    return out;
  }
  bool spreads(abi::SignalId s) const {
    for (const auto& x : w.pack->edges) {
      const bool external = !x.from_signal && x.cause >= 2;
      if (x.to == s && (external || x.scope != abi::Scope::kSelf)) return true;
    }
    return false;
  }
  double own_in_storm(const abi::EdgePlan& e, int64_t t, double own) const {
    std::vector<const NodeView*> everybody;
    for (const NodeView& v : w.input.nodes) everybody.push_back(&v);
    double ratio = 0, fired = 0;
    for (const Member& m : others(e, everybody, t)) {
      if (m.fired) ratio += std::log(m.ratio), ++fired;
    }
    if (!spreads(e.to) || fired < 2) return own;
    const double g = std::clamp(std::exp(-ratio / fired), std::exp(-20.0), std::exp(-0.7));
    const double storm = std::exp(shared(storm_weights(), others(e, everybody, t)));
    return std::log(((1 - g) * std::exp(own) + g * storm) / (1 - g + g * storm));
  }
  // `own`: the weight of the self edge to the same signal, when there is one.
  double group(const abi::EdgePlan& e, int64_t t, bool own_claimed, double own) const {
    // The strength that all share is the mean over the whole group, the own node included.
    const std::vector<const NodeView*> all =
        reach(node && e.scope == abi::Scope::kPeers ? abi::Scope::kJob : e.scope);
    const bool minus_own = own_claimed || (node && e.scope == abi::Scope::kPeers);
    const bool exempt =
        !node && tor != kNoSymbol && e.scope != abi::Scope::kJob && e.scope != abi::Scope::kAll;
    std::vector<Member> members;
    double plain = 0, mean = 0, observed = 0;
    for (const NodeView* v : all) {
      const double strength = p(e, v->hw_class);
      if (!w.blinds.contains({e.to, v->node})) mean += strength, ++observed;
      if (minus_own && v == node) continue;
      members.push_back(member(e, v, -1, t, As::kMember, exempt && masked_by(cause)));
      plain += nats(e, strength, members.back());
    }
    if (e.has_weight) return plain;
    if (all.empty()) return 0;
    const NodeView* first = all[0];  // rows stand by name
    for (const NodeView* v : all) {
      if (w.pack->symbols->name(v->node) < w.pack->symbols->name(first->node)) first = v;
    }
    mean = observed > 0 ? mean / observed : p(e, first->hw_class);
    bool any = false;
    for (const Member& m : members) any |= m.counts;
    if (!any) return 0;
    std::vector<const NodeView*> everybody;
    for (const NodeView& v : w.input.nodes) {
      const bool free = minus_own && !own_claimed && &v == node && node->in_job;
      if (!free) everybody.push_back(&v);
    }
    double ratio = 0, fired = 0;
    for (const Member& m : others(e, everybody, t)) {
      if (m.fired) ratio += std::log(m.ratio), ++fired;
    }
    const double calm = shared(level_weights(mean), members);
    if (fired == 0) return calm;
    // The same without the cause: a benign storm of any size, about as rare as a benign firing.
    const double g = std::clamp(std::exp(-ratio / fired), std::exp(-20.0), std::exp(-0.7));
    const double storm = std::exp(shared(storm_weights(), others(e, everybody, t)));
    return std::log(((1 - g) * std::exp(calm + own) + g * storm) / (1 - g + g * storm)) - own;
  }
  bool masked_by(abi::CauseId c) const {
    for (const abi::MaskPlan& m : w.pack->masks) {
      if (m.cause == c) return true;
    }
    return false;
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
    std::map<abi::SignalId, int> groups;
    std::map<abi::SignalId, double> own_nats;
    std::vector<abi::SignalId> job_done;
    const auto all_edges = edges();
    for (const abi::EdgePlan* e : all_edges) {
      if (!on_node(keys(e->to))) {
        if (std::find(job_done.begin(), job_done.end(), e->to) != job_done.end()) continue;
        job_done.push_back(e->to);
        const Member m = member(*e, nullptr, -1, t, As::kMember, false);
        sum += scale(*e) * nats(*e, p(*e, 0), m);
        continue;
      }
      auto& done = claimed[e->to];
      if (node && e->scope == abi::Scope::kSelf) {
        if (!done.empty()) continue;
        done.push_back(node);
        const Member m = member(*e, node, gpu, t, As::kOwn, false);
        double x = nats(*e, p(*e, node->hw_class), m);
        const bool beside = std::any_of(all_edges.begin(), all_edges.end(), [&](const auto* o) {
          return o->to == e->to && o->scope != abi::Scope::kSelf && labelled(o->scope);
        });
        if (!e->has_weight) own_nats[e->to] = x;
        if (!e->has_weight && !beside && m.fired && m.ratio > 1) x = own_in_storm(*e, t, x);
        sum += scale(*e) * x;
        continue;
      }
      if (!labelled(e->scope)) continue;
      if (groups[e->to]++ == 0) {
        const bool own = node && std::find(done.begin(), done.end(), node) != done.end();
        sum += scale(*e) * group(*e, t, own, own ? own_nats[e->to] : 0);
        for (const NodeView* v : reach(e->scope)) done.push_back(v);
        continue;
      }
      // What narrower edges have left of a further group.
      std::vector<Member> rest;
      double plain = 0, mean = 0, counted = 0;
      for (const NodeView* v : reach(e->scope)) {
        if (std::find(done.begin(), done.end(), v) != done.end()) continue;
        done.push_back(v);
        const bool exempt = !node && tor != kNoSymbol && e->scope != abi::Scope::kJob &&
                            e->scope != abi::Scope::kAll && masked_by(cause);
        rest.push_back(member(*e, v, -1, t, As::kMember, exempt));
        const double strength = p(*e, v->hw_class);
        plain += nats(*e, strength, rest.back());
        if (rest.back().counts) mean += strength, ++counted;
      }
      if (e->has_weight)
        sum += scale(*e) * plain;
      else if (counted > 0)
        sum += scale(*e) * shared(level_weights(mean / counted), rest);
    }
    for (size_t i = 0; i < w.pack->synergies.size(); ++i) {
      const abi::SynergyPlan& plan = w.pack->synergies[i];
      if (plan.cause != cause) continue;
      const bool fired = std::all_of(plan.signals.begin(), plan.signals.end(), [&](auto signal) {
        for (const abi::EdgePlan* e : all_edges) {
          if (e->to != signal) continue;
          if (!node || e->scope != abi::Scope::kSelf) return false;
          const Member m = member(*e, node, gpu, t, As::kOwn, false);
          return m.fired && m.ratio > 1;
        }
        return false;
      });
      const double nats = w.input.model ? w.input.model->synergy_nats[i] : plan.weight_nats;
      if (fired) sum += nats / temperature();
    }
    return sum + ailing();
  }
  bool labelled(abi::Scope scope) const {
    if (!node) return true;
    if (scope == abi::Scope::kRack) return node->rack != kNoSymbol;
    if (scope == abi::Scope::kTor) return node->tor != kNoSymbol;
    return true;
  }
  // -log((1 - g) + g mean_f exp(M_f)), M_f over the graded self edges of each fault.
  double ailing() const {
    if (!node || w.pack->causes[cause].kind != abi::CauseKind::kFault) return 0;
    double sum = 0, faults = 0;
    for (abi::CauseId f = 0; f < w.pack->causes.size(); ++f) {
      if (w.pack->causes[f].kind != abi::CauseKind::kFault) continue;
      double m = 0;
      bool any = false;
      for (const auto& e : w.pack->edges) {
        if (e.from_signal || e.cause != f || e.scope != abi::Scope::kSelf || !graded(e.to))
          continue;
        any = true;
        double ratio = soft(e.to, node, {}, 1);
        for (const Seen& s : seen(e.to, node, -1)) {
          if (!s.ev->episodes[0].suppressed_by.empty()) continue;
          ratio = std::max(ratio, soft(e.to, node, s.ev->episodes[0].lead_counts, 1));
        }
        const double strength = p(e, node->hw_class);
        m += std::log(1 - strength + strength * ratio);
      }
      if (!any) continue;
      sum += std::exp(m);
      ++faults;
    }
    if (faults == 0) return 0;
    const double multiplier = w.input.model ? w.input.model->ailing_multiplier : 1;
    return -std::log(1 - 0.006 + 0.006 * sum / faults) * multiplier / temperature();
  }

  double prior() const {
    const abi::Model* m = w.input.model;
    const double hazard = node ? std::pow(node->hazard, m ? m->history_multiplier : 1) : 1;
    double prior = w.pack->causes[cause].prior;
    double shift = 0;
    if (m) {
      if (!std::isnan(m->cause_prior[cause])) prior = m->cause_prior[cause];
      if (w.pack->causes[cause].kind == abi::CauseKind::kFault) shift = m->none_shift_nats;
    }
    return (std::log(prior * hazard / w.plan.unexplained_prior) + shift) / temperature();
  }
};

RandomWorld::RandomWorld() {
  random_world(*this);
  if (pick(0, 1) == 0) input.tables = std::make_shared<RandomTable>();
  if (pick(0, 1) == 0) {
    random_model(*this, model);
    input.model = &model;
  }
}

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
    RandomWorld w;
    compare(w);
  }
}

RC_GTEST_PROP(Oracle, order_of_the_input_does_not_matter, ()) {
  RandomWorld w;
  const std::string before = explain::to_json(w.run(), false);
  std::reverse(w.input.nodes.begin(), w.input.nodes.end());
  std::rotate(w.input.evidence.begin(),
              w.input.evidence.begin() + pick(0, static_cast<int>(w.input.evidence.size())),
              w.input.evidence.end());
  RC_ASSERT(explain::to_json(w.run(), false) == before);
}

// A ranking with evidence left out that weighs only what can have changed, against one that weighs
// everything; and its lists of spans against those of an input without the evidence.
void compare_left_out(RandomWorld& w) {
  w.input.counterfactual = true;  // keeps what is taken over
  const auto graph = build_cause_graph(*w.pack);
  RC_ASSERT(graph.ok());
  const EvidenceField field(*w.pack, graph.value(), w.input);
  Scorer scorer(field, graph.value());
  const Ranking whole = rank(field, graph.value(), scorer, 10);
  WholeRanking known{field, scorer, {}};
  known.candidates.resize(whole.candidates.size());
  for (const Candidate& c : whole.candidates) known.candidates[c.id] = c;

  std::vector<uint8_t> skip(w.input.evidence.size(), 0);
  for (auto& s : skip) s = pick(0, 2) == 0 ? 1 : 0;
  const EvidenceField without(field, skip);
  Scorer again(without, graph.value(), &scorer);
  Scorer anew(without, graph.value());
  const Ranking a = rank_again(without, graph.value(), again, 10, known);
  const Ranking b = rank(without, graph.value(), anew, 10);
  RC_ASSERT(a.candidates.size() == b.candidates.size());
  std::vector<const Candidate*> of_a(a.candidates.size()), of_b(b.candidates.size());
  for (const Candidate& c : a.candidates) of_a[c.id] = &c;
  for (const Candidate& c : b.candidates) of_b[c.id] = &c;
  for (size_t i = 0; i < of_a.size(); ++i) {
    RC_ASSERT(of_a[i]->cause == of_b[i]->cause);
    RC_ASSERT(of_a[i]->row == of_b[i]->row);
    RC_ASSERT(of_a[i]->entity == of_b[i]->entity);
    RC_ASSERT(of_a[i]->alike == of_b[i]->alike);
    RC_ASSERT(of_a[i]->like == of_b[i]->like);
    RC_ASSERT(of_a[i]->log_odds == of_b[i]->log_odds);
    RC_ASSERT(of_a[i]->onset_ns == of_b[i]->onset_ns);
  }
  RC_ASSERT(a.node_p == b.node_p);
  RC_ASSERT(a.p_none == b.p_none);
  RC_ASSERT(a.same_answer(b));

  Input less = w.input;
  less.evidence.clear();
  for (size_t i = 0; i < skip.size(); ++i) {
    if (!skip[i]) less.evidence.push_back(w.input.evidence[i]);
  }
  const EvidenceField fresh(*w.pack, graph.value(), less);
  for (abi::SignalId s = 0; s < w.pack->signals.size(); ++s) {
    const auto mine = without.spans(s), theirs = fresh.spans(s);
    RC_ASSERT(mine.size() == theirs.size());
    for (size_t i = 0; i < mine.size(); ++i) {
      RC_ASSERT(mine[i].onset_ns == theirs[i].onset_ns);
      RC_ASSERT(mine[i].node == theirs[i].node);
      RC_ASSERT(mine[i].survive == theirs[i].survive);
      RC_ASSERT((mine[i].mask == abi::kNone32) == (theirs[i].mask == abi::kNone32));
    }
  }
}

// Causes that read their own node and what has no node, as nearly all do; and votes, with which
// what one node shows is held against all of them.
void stay_on_own_nodes(RandomWorld& w) {
  for (abi::EdgePlan& e : w.pack->edges) {
    if (!e.from_signal) e.scope = abi::Scope::kSelf;
  }
  w.pack->synergies.clear();
  for (abi::SignalPlan& s : w.pack->signals) {
    s.count.graded.votes = s.count.graded.on && pick(0, 1) == 0;
  }
}

RC_GTEST_PROP(Oracle, left_out_evidence_weighs_as_if_all_were_weighed_again, ()) {
  for (int i = 0; i < 20; ++i) {
    RandomWorld w;
    if (i % 2 == 0) stay_on_own_nodes(w);
    compare_left_out(w);
  }
}

RC_GTEST_PROP(Oracle, json_round_trip, ()) {
  RandomWorld w;
  const std::string line = explain::to_json(w.run(), true);
  const auto back = explain::from_json(line);
  RC_ASSERT(back.ok());
  RC_ASSERT(explain::to_json(back.value(), true) == line);
}

}  // namespace
}  // namespace reflex::attribution
