// The weight of each term at an onset: members, groups that share a hidden level, and what a benign
// storm takes off; see scorer.h and README.md.
#include <algorithm>
#include <cmath>

#include "runtime/attribution/group_table.h"

namespace reflex::attribution {
namespace {

// Why: a child that accepted culprits explain for the larger part is theirs; the small surplus
// that noisy-OR leaves to a second cause would add up over thousands of peers.
constexpr double kExplainedShare = 0.5;
// Why: up to four nodes of one switch fail together; a fifth of a job or more is no coincidence of
// faults.
constexpr double kJobShare = 0.2;
// Why: keeps a storm's chance between "never seen" and "every other time".
constexpr double kStormMin = -20;
constexpr double kStormMax = -0.7;

double log_add(double a, double b) {
  const double top = std::max(a, b);
  return top + std::log(std::exp(a - top) + std::exp(b - top));
}

/// A group's weight when it may show the same without the cause: with chance g = that of one benign
/// firing it is a storm, whose share of the members may be any (README 5). `weight` is that of the
/// cause in calm, `storm` that of the storm, both against "each member by its own leak".
double against_storm(double weight, double storm, double log_g) {
  const double calm = log_of_one_plus(-std::exp(log_g));
  return log_add(calm + weight, log_g + storm) - log_add(calm, log_g + storm);
}

}  // namespace

double Scorer::culprits_survive(const abi::EdgePlan& e, const Span& s) const {
  double survive = 1;
  for (const auto& a : active_) {
    // What shows on a culprit's own node says nothing about further nodes.
    if (s.node != kNoNode && s.node == a->candidate.row) return 0;
    for (size_t i = 0; i < a->terms.size(); ++i) {
      const Term& term = a->terms[i];
      if (term.edge->to != e.to || !in_window(s, *term.edge, a->candidate.onset_ns)) continue;
      if (!reaches(a->candidate, term, s)) continue;
      survive *= 1 - field_.strength(*term.edge, class_of(s.node));
    }
  }
  return survive;
}

double Scorer::scaled(const abi::EdgePlan& e, double nats) const {
  return round_nats(nats * numbers_.multiplier(e.to) / numbers_.temperature());
}

double Scorer::own_leak(const Term& term, uint32_t row) const {
  const abi::EdgePlan& e = *term.edge;
  const double leak =
      numbers_.leak(static_cast<uint32_t>(&e - pack_.edges.data()), field_.view(row));
  if (!field_.input().switches.common_mode || row == kNoNode) return leak;
  return std::max(leak, job_share(e));
}

double Scorer::job_share(const abi::EdgePlan& e) const {
  // Where an edge says how the signal spreads over nodes, the graph accounts for the others
  // already.
  if (field_.shape().spreads[e.to]) return 0;
  // A few nodes may be at fault together; a signal on more of the job is what the job does.
  const uint32_t fired = field_.fired_in_job(e);
  if (fired < 3 || fired < kJobShare * field_.job_size() || field_.job_size() < 4) return 0;
  const double others = fired - 1.0;
  return (others + 0.3) / (field_.job_size() - 1.0 + 0.6);
}

double Scorer::survive_of(const Term& term, const Span& s) const {
  if (s.mask == abi::kNone32) return s.survive;
  const ActiveMask& mask = field_.masks()[s.mask];
  const bool own = term.exempt && mask.cause == term.edge->cause && mask.group == term.group;
  return own ? s.survive : s.survive * mask.survive;
}

// Maintenance is itself somebody's doing: what it makes a node show is no evidence of a fault, but
// an external cause (an operator's action) may be what explains it.
bool Scorer::explains_maintenance(const abi::EdgePlan& e, const Span& s) const {
  return !e.from_signal && pack_.causes[e.cause].kind == abi::CauseKind::kExternal &&
         field_.episode(s).suppressed_by.starts_with("maintenance");
}

double Scorer::ratio_of(const Term& term, const Span& s, double survive) const {
  const abi::EdgePlan& e = *term.edge;
  if (s.suppressed && !explains_maintenance(e, s)) return 1;
  const bool graded = numbers_.graded(e.to);
  const auto edge = static_cast<uint32_t>(&e - pack_.edges.data());
  const double leak = graded                            ? numbers_.episode_leak(e.to)
                      : term.reach == Term::Reach::kOwn ? own_leak(term, s.node)
                                                        : numbers_.leak(edge, field_.view(s.node));
  if (!active_.empty()) {
    const double culprits = culprits_survive(e, s);
    survive *= culprits;
    if (1 - culprits >= kExplainedShare * (1 - (1 - leak) * survive)) return 1;
  }
  return graded ? numbers_.soft_ratio(e.to, field_.soft(s), survive)
                : Numbers::fired_ratio(leak, survive);
}

double Scorer::fired_nats(const abi::EdgePlan& e, double p, double ratio) const {
  const double nats = log_of_one_plus(p * (ratio - 1));
  if (!e.has_weight) return scaled(e, nats);
  // The strength gives the weight at the author's leak; parents can only take from it.
  if (e.weight_nats <= 0) return ratio == 1 ? 0 : scaled(e, e.weight_nats);
  return scaled(e, std::min(nats, e.weight_nats));
}

Scorer::Weight Scorer::fired(const Term& term, const Span& s) const {
  const abi::EdgePlan& e = *term.edge;
  const double survive = survive_of(term, s);
  const bool own = term.reach == Term::Reach::kOwn;
  // Equal for all nodes of a class, unless their own history or the job's other nodes decide.
  const bool plain = survive == 1 && !s.suppressed && active_.empty() && !own &&
                     (!field_.input().tables || s.node == kNoNode) && !numbers_.graded(e.to);
  Weight& known = plain_->fired[plain_at(e, class_of(s.node))];
  if (plain && known.nats == known.nats) return known;
  Weight w;
  w.ratio = ratio_of(term, s, survive);
  w.nats = fired_nats(e, field_.strength(e, class_of(s.node)), w.ratio);
  if (plain) known = w;
  return w;
}

Scorer::Weight Scorer::silent(const abi::EdgePlan& e, uint32_t row, int64_t t_ns) const {
  if (!numbers_.graded(e.to)) return silent_of(e, class_of(row), t_ns);
  if (e.has_weight) return {};
  // Equal for all nodes of a class but those that were repaired lately.
  const bool plain = !numbers_.votes(e.to) && !field_.repaired_lately(row);
  Weight& known = plain_->silent[plain_at(e, class_of(row))];
  if (plain && known.nats == known.nats) return known;
  Weight w;
  w.ratio = numbers_.soft_ratio(e.to, field_.soft(e.to, row), 1);
  w.nats = scaled(e, log_of_one_plus(field_.strength(e, class_of(row)) * (w.ratio - 1)));
  if (plain) known = w;
  return w;
}

Scorer::Weight Scorer::silent_of(const abi::EdgePlan& e, abi::ClassId c, int64_t t_ns) const {
  if (e.has_weight) return {};
  if (numbers_.graded(e.to)) return silent(e, kNoNode, t_ns);
  const size_t at = plain_at(e, c);
  const int64_t now = field_.input().now_ns;
  if (t_ns + e.lag_hi_ns <= now) {
    Weight& known = plain_->silent[at];
    if (known.nats != known.nats) known = {0, scaled(e, log_of_one_plus(-field_.strength(e, c)))};
    return known;
  }
  Plain::OpenSilent& known =
      plain_->open_silent[(static_cast<uint64_t>(t_ns) + at) * 0x9E3779B97F4A7C15ull >> 56];
  if (known.at == at && known.t_ns == t_ns) return known.weight;
  // The window is still open: only what has passed of it counts.
  const double total = static_cast<double>(e.lag_hi_ns - e.lag_lo_ns);
  const double passed = static_cast<double>(now - (t_ns + e.lag_lo_ns));
  const double share = total > 0 ? std::clamp(passed / total, 0.0, 1.0) : 0.0;
  known = {at, t_ns, {1 - share, scaled(e, log_of_one_plus(-field_.strength(e, c) * share))}};
  return known.weight;
}

Scorer::Weight Scorer::silent_member(const Term& term, uint32_t row, int64_t t_ns) const {
  return term.reach == Term::Reach::kOwn ? silent(*term.edge, row, t_ns)
                                         : silent_of(*term.edge, class_of(row), t_ns);
}

// Of several episodes or entities the strongest counts.
void Scorer::offer(const Term& term, const Span& s, Member& m) const {
  const Weight w = fired(term, s);
  if (m.span && w.ratio <= m.ratio) return;
  m.value.nats = w.nats;
  m.ratio = w.ratio;
  m.span = &s;
}

void Scorer::conclude(const Term& term, uint32_t row, int64_t t_ns, Member& m) const {
  if (m.span) {
    m.value.fired = m.value.members = 1;
    m.value.log_ratio = std::log(m.ratio);
  } else if (field_.observed(term.edge->to, row)) {
    const Weight w = silent_member(term, row, t_ns);
    m.value.members = 1;
    m.value.nats = w.nats;
    m.value.silent_ratio = m.ratio = w.ratio;
  } else {
    m.value.unobserved = 1;
  }
}

Scorer::Member Scorer::member_at(const Term& term, uint32_t row, int64_t t_ns) const {
  Member m;
  for (const Span& s : field_.spans(term.edge->to, row)) {
    if (!in_window(s, *term.edge, t_ns)) continue;
    if (term.filter && !field_.compatible(*term.filter, field_.evidence(s).entity)) continue;
    offer(term, s, m);
  }
  conclude(term, row, t_ns, m);
  return m;
}

Scorer::Member Scorer::entity_at(const Candidate& c, const Term& term, int64_t t_ns) const {
  Member m;
  for (const Span& s : field_.spans(term.edge->to)) {
    if (!in_window(s, *term.edge, t_ns) || !entity_matches(c, term, s)) continue;
    offer(term, s, m);
  }
  conclude(term, kNoNode, t_ns, m);
  return m;
}

TermValue Scorer::value_at(const Candidate& c, const std::vector<Term>& all, size_t at,
                           int64_t t_ns) {
  const Term& term = all[at];
  switch (term.reach) {
    case Term::Reach::kNowhere:
    case Term::Reach::kShadowed:
      break;
    case Term::Reach::kOwn:
      return own_at(c, term, t_ns);
    case Term::Reach::kEntity:
      return entity_at(c, term, t_ns).value;
    case Term::Reach::kRest:
      return rest_at(c, all, at, t_ns);
    case Term::Reach::kGroup:
      return group_at(c, term, claimed_nats(c, all, at, t_ns), t_ns);
  }
  return {};
}

// A signal that spreads may be a storm on the own node as well: then the firing says nothing.
TermValue Scorer::own_at(const Candidate& c, const Term& term, int64_t t_ns) const {
  Member m = member_at(term, c.row, t_ns);
  if (!m.span || m.ratio <= 1 || !term.everybody) return m.value;
  const GroupState& all = state_at(term, *term.everybody, t_ns);
  if (all.fired < 2) return m.value;
  const double log_g = std::clamp(-all.log_ratio / all.fired, kStormMin, kStormMax);
  const double alone = log_of_one_plus(field_.strength(*term.edge, class_of(c.row)) * (m.ratio - 1));
  const double nats = against_storm(alone, mix(storm_weights(), all.levels), log_g);
  m.value.background = nats - alone;
  m.value.nats = scaled(*term.edge, nats);
  return m.value;
}

// The weight, before multiplier and temperature, of the self edge to the same signal.
double Scorer::claimed_nats(const Candidate& c, const std::vector<Term>& all, size_t at,
                            int64_t t_ns) const {
  if (!all[at].own_claimed || !all[at].everybody) return 0;
  for (size_t i = 0; i < at; ++i) {
    if (all[i].edge->to != all[at].edge->to || all[i].reach != Term::Reach::kOwn) continue;
    const Member m = member_at(all[i], c.row, t_ns);
    if (m.value.members == 0 || all[i].edge->has_weight) return 0;
    return log_of_one_plus(field_.strength(*all[i].edge, class_of(c.row)) * (m.ratio - 1));
  }
  return 0;
}

// A group of which narrower edges of the same cause have some members: one by one.
TermValue Scorer::rest_at(const Candidate& c, const std::vector<Term>& all, size_t at,
                          int64_t t_ns) const {
  const Term& term = all[at];
  TermValue sum;
  Levels levels{};
  double p = 0;
  for (uint32_t row : term.group->rows) {
    if (claimed(c, all, at, row)) continue;
    const Member m = member_at(term, row, t_ns);
    sum.nats += m.value.nats;
    sum.members += m.value.members;
    sum.fired += m.value.fired;
    sum.unobserved += m.value.unobserved;
    sum.log_ratio += round_nats(m.value.log_ratio);
    if (m.value.members == 0) continue;
    if (!m.span) sum.silent_ratio = m.ratio;
    levels += level_nats(m.ratio);
    p += round_nats(field_.strength(*term.edge, class_of(row)));
  }
  if (sum.fired > 0) sum.log_ratio /= sum.fired;
  if (sum.members > 0 && !term.edge->has_weight && field_.input().switches.shared_fate) {
    sum.nats = scaled(*term.edge, mix(numbers_.weights(p / sum.members), levels));
  }
  return sum;
}

const Scorer::GroupState& Scorer::state_at(const Term& term, GroupTable& g, int64_t t_ns) const {
  auto& cached = g.states[GroupTable::slot(t_ns, 3)];
  if (cached.t_ns == t_ns) return cached.state;
  GroupState v;
  const size_t n = g.classes.size();
  const int32_t* fired_observed = nullptr;
  int32_t both = 0;
  const auto it = std::upper_bound(g.times.begin(), g.times.end(), t_ns);
  if (it != g.times.begin()) {
    const size_t i = static_cast<size_t>(it - g.times.begin()) - 1;
    const GroupTable::Sum& sum = g.sums[i];
    v.nats = sum.nats;
    v.log_ratio = sum.log_ratio;
    v.fired = static_cast<uint32_t>(sum.fired);
    v.levels = g.levels.empty() ? static_cast<double>(sum.fired) * g.common : g.levels[i];
    both = sum.fired_observed;
    fired_observed = &g.fired_observed_of_class[i * n];
  }
  for (size_t k = 0; k < n; ++k) {
    const int64_t quiet =
        int64_t{g.observed_of_class[k]} - (fired_observed ? fired_observed[k] : 0);
    if (quiet <= 0) continue;
    const Weight w = silent_of(*term.edge, g.classes[k], t_ns);
    v.silent_ratio = w.ratio;
    v.nats += static_cast<double>(quiet) * w.nats;
    v.levels += static_cast<double>(quiet) * level_nats(w.ratio);
  }
  v.members = g.observed_total + v.fired - static_cast<uint32_t>(both);
  cached = {t_ns, v};
  return cached.state;
}

TermValue Scorer::group_at(const Candidate& c, const Term& term, double claimed_nats,
                           int64_t t_ns) const {
  GroupTable& g = *term.in->table;
  Member own;
  const bool minus_own = term.minus_own && contains(*term.group, c.row);
  // As the table counted it: not job-relative, and a term without an own node has no filter.
  if (minus_own) own = member_at(term, c.row, t_ns);
  const uint32_t kind = !minus_own ? 0 : own.span ? 1 : own.value.members > 0 ? 2 : 3;
  const uint32_t own_kind = kind * 2 + (term.own_claimed ? 1 : 0);
  auto& cached = term.in->values[GroupTable::slot(t_ns + static_cast<int64_t>(own_kind), 4)];
  if (cached.t_ns == t_ns && cached.own_kind == own_kind && cached.own_ratio == own.ratio &&
      cached.claimed_nats == claimed_nats) {
    return cached.value;
  }
  GroupState in = state_at(term, g, t_ns);
  TermValue v;
  v.unobserved = g.member_total - in.members - own.value.unobserved;
  const Levels own_levels = kind == 1 || kind == 2 ? level_nats(own.ratio) : Levels{};
  in.levels -= own_levels;
  in.nats -= own.value.nats;
  in.fired -= own.value.fired;
  in.members -= own.value.members;
  if (own.span) in.log_ratio -= round_nats(own.value.log_ratio);
  v.members = in.members;
  v.fired = in.fired;
  v.silent_ratio = in.silent_ratio;
  if (v.fired > 0) v.log_ratio = in.log_ratio / v.fired;
  if (term.edge->has_weight || !field_.input().switches.shared_fate) {
    v.nats = in.nats;
  } else if (v.members > 0) {
    double nats = mix(*term.in->weights, in.levels);
    if (term.everybody) {
      GroupState all = state_at(term, *term.everybody, t_ns);
      if (minus_own && !term.own_claimed) {  // nothing is said of the own node, either way
        all.levels -= own_levels;
        all.fired -= own.value.fired;
        if (own.span) all.log_ratio -= round_nats(own.value.log_ratio);
      }
      if (all.fired > 0) {
        const double log_g = std::clamp(-all.log_ratio / all.fired, kStormMin, kStormMax);
        // The own node is in the storm, so its own term stands in the calm as well.
        const double joint =
            against_storm(nats + claimed_nats, mix(storm_weights(), all.levels), log_g);
        v.background = joint - claimed_nats - nats;
        nats = joint - claimed_nats;
      }
    }
    v.nats = scaled(*term.edge, nats);
  }
  cached = {t_ns, own.ratio, claimed_nats, own_kind, v};
  return v;
}

Scorer::GroupTable* Scorer::table(const abi::EdgePlan& e, const Group& group,
                                  const abi::EntityKey* filter, bool exempt) {
  const auto edge = static_cast<size_t>(&e - pack_.edges.data());
  TableKey key{plain_->window_of[edge], &group, {}, exempt};
  if (filter) key.filter = filter->values;
  auto& slot = tables_[key];
  if (!slot) {
    slot = std::make_unique<GroupTable>();
    Term term;
    term.edge = &e;
    term.reach = Term::Reach::kGroup;
    term.group = &group;
    term.filter = filter;
    term.exempt = exempt;
    fill_table(term, *slot);
  }
  return slot.get();
}

Scorer::GroupTable* Scorer::table_of_all(const abi::EdgePlan& e) {
  GroupTable*& known = of_all_[plain_->window_of[static_cast<size_t>(&e - pack_.edges.data())]];
  if (!known) known = table(e, *field_.groups().all(), nullptr, false);
  return known;
}

Scorer::EdgeGroup* Scorer::edge_group(const abi::EdgePlan& e, const Group& group,
                                      const abi::EntityKey* filter, bool exempt) {
  TableKey key{static_cast<uint32_t>(&e - pack_.edges.data()), &group, {}, exempt};
  auto& last = last_group_[key.edge];
  const bool simple = !filter && !exempt;
  if (simple && last.first == &group) return last.second;
  if (filter) key.filter = filter->values;
  auto& slot = edge_groups_[key];
  if (!slot) {
    slot = std::make_unique<EdgeGroup>();
    const GroupTable& g = *(slot->table = table(e, group, filter, exempt));
    double p = 0;
    for (size_t k = 0; k < g.classes.size(); ++k) {
      p += g.observed_of_class[k] * round_nats(field_.strength(e, g.classes[k]));
    }
    slot->p = g.observed_total > 0 ? p / g.observed_total
              : !g.classes.empty() ? field_.strength(e, g.classes[0])
                                   : e.p;
    slot->weights = &numbers_.weights(slot->p);
  }
  if (simple) last = {&group, slot.get()};
  return slot.get();
}

void Scorer::fill_table(const Term& term, GroupTable& g) const {
  const abi::EdgePlan& e = *term.edge;
  g.member_total = static_cast<uint32_t>(term.group->rows.size());
  for (uint32_t row : term.group->rows) {
    const uint32_t k = g.class_index(class_of(row));
    if (!field_.observed(e.to, row)) continue;
    ++g.observed_of_class[k];
    ++g.observed_total;
  }
  if (field_.spans(e.to).empty()) return;
  struct Stretch {
    int64_t from, to;
    Weight weight;
  };
  std::vector<Stretch> pieces;
  std::vector<int64_t> cuts;
  g.deltas.reserve(2 * std::min(term.group->rows.size(), field_.spans(e.to).size()));
  // By the group's members, not by all episodes: a job has hundreds of racks.
  for (uint32_t row : term.group->rows) {
    pieces.clear();
    for (const Span& s : field_.spans(e.to, row)) {
      if (term.filter && !field_.compatible(*term.filter, field_.evidence(s).entity)) continue;
      pieces.push_back({s.onset_ns - e.lag_hi_ns, latest_onset(s, e) + 1, fired(term, s)});
      const int64_t t = shifted_onset(s, e);
      if (g.earliest_onset_ns == kNoTimeNs || t < g.earliest_onset_ns) g.earliest_onset_ns = t;
    }
    if (pieces.empty()) continue;
    const uint16_t k = g.class_index(class_of(row));
    const int8_t seen = field_.observed(e.to, row) ? 1 : 0;
    cuts.clear();
    for (const Stretch& x : pieces) cuts.push_back(x.from), cuts.push_back(x.to);
    if (pieces.size() > 1) {
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    }
    for (size_t j = 0; j + 1 < cuts.size(); ++j) {  // the strongest piece on each stretch
      const Stretch* best = nullptr;
      for (const Stretch& x : pieces) {
        if (x.from > cuts[j] || cuts[j] >= x.to) continue;
        if (!best || x.weight.ratio > best->weight.ratio) best = &x;
      }
      if (!best) continue;
      const Weight& w = best->weight;
      g.deltas.push_back({cuts[j], w.ratio, w.nats, 1, seen, k});
      g.deltas.push_back({cuts[j + 1], w.ratio, w.nats, -1, seen, k});
    }
  }
  g.finish();
}

}  // namespace reflex::attribution
