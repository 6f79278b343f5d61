// Terms, their values at an onset, and the choice of the onset; see scorer.h and README.md.
#include "runtime/attribution/scorer.h"

#include <algorithm>
#include <cmath>

#include "runtime/attribution/group_table.h"

namespace reflex::attribution {
namespace {

// Why: a child that accepted culprits explain for the larger part is theirs; the small surplus
// that noisy-OR leaves to a second cause would add up over thousands of peers.
constexpr double kExplainedShare = 0.5;
// Why: bounds the onsets that are tried for one edge of one entity: the first and the last ones.
constexpr size_t kOwnOnsetsMax = 16;

int64_t shifted(const Span& s, const abi::EdgePlan& e) {
  return s.onset_ns - std::clamp<int64_t>(0, e.lag_lo_ns, std::max(e.lag_lo_ns, e.lag_hi_ns));
}

bool shares_key(const abi::CompiledPack& pack, const abi::EdgePlan& e) {
  const auto& cause = pack.entity_kinds[pack.causes[e.cause].entity_kind].keys;
  const auto& signal = pack.entity_kinds[pack.signals[e.to].entity_kind].keys;
  return std::any_of(cause.begin(), cause.end(), [&](const std::string& key) {
    return std::find(signal.begin(), signal.end(), key) != signal.end();
  });
}

}  // namespace

Scorer::Scorer(const EvidenceField& field, const CauseGraph& graph, const Scorer* known)
    : field_(field), graph_(graph), pack_(field.pack()), numbers_(field.numbers()) {
  last_table_.resize(pack_.edges.size());
  if (known) {
    shares_key_ = known->shares_key_;
    plain_fired_ = known->plain_fired_;
    plain_silent_ = known->plain_silent_;
    open_silent_ = known->open_silent_;
    class_slot_ = known->class_slot_;
    class_count_ = known->class_count_;
    return;
  }
  for (const abi::EdgePlan& e : pack_.edges) {
    shares_key_.push_back(!e.from_signal && shares_key(pack_, e));
  }
  // Slot 0 is class 0, which entities without a node are scored with.
  class_slot_.assign(std::max<size_t>(pack_.classes.size(), 1), 0);
  for (const auto& row : field.rows()) {
    const size_t c = row.view->hw_class;
    if (c >= class_slot_.size()) class_slot_.resize(c + 1, 0);
    if (c != 0 && class_slot_[c] == 0) class_slot_[c] = static_cast<uint16_t>(class_count_++);
  }
  plain_fired_.assign(pack_.edges.size() * class_count_, std::nan(""));
  plain_silent_ = plain_fired_;
  open_silent_.resize(plain_fired_.size());
}

size_t Scorer::plain_at(const abi::EdgePlan& e, abi::ClassId c) const {
  return static_cast<size_t>(&e - pack_.edges.data()) * class_count_ + class_slot_[c];
}

Scorer::~Scorer() = default;

abi::ClassId Scorer::class_of(uint32_t row) const {
  return row == kNoNode ? abi::ClassId{0} : field_.rows()[row].view->hw_class;
}

const Scorer::Group* Scorer::named_group(char what, SymbolId id) {
  if (groups_.empty()) {
    for (char c : {'a', 'j'}) groups_[{c, kNoSymbol}].what = c;
    for (uint32_t i = 0; i < field_.rows().size(); ++i) {
      const NodeView& v = *field_.rows()[i].view;
      const auto join = [&](char c, SymbolId of) {
        Group& g = groups_[{c, of}];
        g.what = c;
        g.id = of;
        g.rows.push_back(i);
      };
      join('a', kNoSymbol);
      if (v.in_job) join('j', kNoSymbol);
      if (v.rack != kNoSymbol) join('r', v.rack);
      if (v.tor != kNoSymbol) join('t', v.tor);
    }
    all_ = &groups_[{'a', kNoSymbol}];
    job_ = &groups_[{'j', kNoSymbol}];
  }
  if (what == 'a') return all_;
  if (what == 'j') return job_;
  const auto it = groups_.find({what, id});
  return it == groups_.end() ? nullptr : &it->second;
}

const Scorer::Group* Scorer::group_of(const Candidate& c, abi::Scope scope) {
  if (scope == abi::Scope::kAll) return named_group('a', 0);
  if (scope == abi::Scope::kJob) return named_group('j', 0);
  if (c.row != kNoNode) {
    const NodeView& v = *field_.rows()[c.row].view;
    if (scope == abi::Scope::kPeers) return named_group('j', 0);
    const SymbolId id = scope == abi::Scope::kRack ? v.rack : v.tor;
    if (id == kNoSymbol) return nullptr;
    return named_group(scope == abi::Scope::kRack ? 'r' : 't', id);
  }
  uint64_t value = 0;  // an external cause reaches the members of its own group
  if (field_.key_value(c.entity, "tor", &value)) return named_group('t', SymbolId(value));
  if (field_.key_value(c.entity, "rack", &value)) return named_group('r', SymbolId(value));
  return named_group('j', 0);
}

void Scorer::resolve(const Candidate& c, Term& term) {
  if (!field_.keyed_by_node(term.edge->to)) {
    term.reach = Term::Reach::kEntity;
    return;
  }
  if (c.row != kNoNode && term.edge->scope == abi::Scope::kSelf) {
    term.reach = Term::Reach::kOwn;
    term.filter = &c.entity;
    return;
  }
  term.group = group_of(c, term.edge->scope);
  if (!term.group) return;
  term.reach = Term::Reach::kGroup;
  term.minus_own = c.row != kNoNode && term.edge->scope == abi::Scope::kPeers;
  const auto edge = static_cast<size_t>(term.edge - pack_.edges.data());
  if (c.row == kNoNode && shares_key_[edge]) term.filter = &c.entity;
}

std::vector<Scorer::Term> Scorer::terms(const Candidate& c, bool with_tables) {
  std::vector<Term> out;
  terms_into(c, with_tables, out);
  return out;
}

void Scorer::terms_into(const Candidate& c, bool with_tables, std::vector<Term>& out) {
  out.clear();
  for (uint32_t index : graph_.cause_edges[c.cause]) {
    Term term;
    term.edge = &pack_.edges[index];
    resolve(c, term);
    // An entity that a narrower edge of the same cause reaches is not counted again.
    bool own_before = false;
    bool group_before = false;
    for (const Term& earlier : out) {
      if (earlier.edge->to != term.edge->to) continue;
      own_before |= earlier.reach == Term::Reach::kOwn;
      group_before |= earlier.reach == Term::Reach::kGroup || earlier.reach == Term::Reach::kRest;
      if (earlier.reach == term.reach && term.reach != Term::Reach::kGroup &&
          term.reach != Term::Reach::kRest) {
        term.reach = Term::Reach::kShadowed;
      }
    }
    if (term.reach == Term::Reach::kGroup) {
      if (own_before) term.minus_own = true;
      if (group_before)
        term.reach = Term::Reach::kRest;
      else if (with_tables)
        term.table = table(term);
    }
    out.push_back(term);
  }
}

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

double Scorer::own_leak(const abi::EdgePlan& e, uint32_t row) const {
  const auto edge = static_cast<uint32_t>(&e - pack_.edges.data());
  const double leak = numbers_.leak(edge, row == kNoNode ? nullptr : field_.rows()[row].view);
  if (!field_.input().switches.common_mode || row == kNoNode) return leak;
  // Own and one other are a coincidence; from two others on it is what the job does.
  const uint32_t fired = field_.fired_in_job(e);
  if (fired < 3 || field_.job_size() < 4) return leak;
  const double others = fired - 1.0;
  return std::max(leak, (others + 0.3) / (field_.job_size() - 1.0 + 0.6));
}

double Scorer::fired_nats(const Term& term, const Span& s, double* lost) const {
  const abi::EdgePlan& e = *term.edge;
  const auto edge = static_cast<uint32_t>(&e - pack_.edges.data());
  const bool own = term.reach == Term::Reach::kOwn;
  const bool graded = numbers_.graded(e.to);
  // Equal for all nodes of a class, unless their own history or the job's other nodes decide.
  const bool plain = s.survive == 1 && active_.empty() && !graded && !own && !field_.input().tables;
  double& known = plain_fired_[plain_at(e, class_of(s.node))];
  if (plain && known == known) {
    *lost = 0;
    return known;
  }
  const NodeView* view = s.node == kNoNode ? nullptr : field_.rows()[s.node].view;
  const double p = field_.strength(e, class_of(s.node));
  const double leak = graded ? 0 : own ? own_leak(e, s.node) : numbers_.leak(edge, view);
  const double log_a = graded ? field_.log_a(s) : 0;
  const auto weight = [&](double survive) {
    const double ratio = graded ? numbers_.soft_ratio(e.to, log_a, survive)
                                : numbers_.fired_ratio(edge, leak, survive);
    const double nats = std::log(1 - p + p * ratio);
    if (!e.has_weight) return scaled(e, nats);
    const bool full = e.weight_nats <= 0 || survive == 1;
    return scaled(e, full ? e.weight_nats : std::min(nats, e.weight_nats));
  };
  double survive = s.survive;
  *lost = survive == 1 ? 0 : weight(1) - weight(survive);
  if (!active_.empty()) {
    const double culprits = culprits_survive(e, s);
    survive *= culprits;
    if (1 - culprits >= kExplainedShare * (1 - (1 - leak) * survive)) return 0;
  }
  const double nats = weight(survive);
  if (plain) known = nats;
  return nats;
}

double Scorer::silent_nats(const abi::EdgePlan& e, uint32_t row, int64_t t_ns) const {
  if (!numbers_.graded(e.to)) return silent_nats_of(e, class_of(row), t_ns);
  if (e.has_weight) return 0;
  const double ratio = numbers_.soft_ratio(e.to, field_.log_a(e.to, row), 1);
  const double p = field_.strength(e, class_of(row));
  return scaled(e, std::log(1 - p + p * ratio));
}

double Scorer::silent_nats_of(const abi::EdgePlan& e, abi::ClassId c, int64_t t_ns) const {
  if (e.has_weight) return 0;
  if (numbers_.graded(e.to)) return silent_nats(e, kNoNode, t_ns);
  const size_t at = plain_at(e, c);
  const int64_t now = field_.input().now_ns;
  if (t_ns + e.lag_hi_ns <= now) {
    double& known = plain_silent_[at];
    if (known != known) known = scaled(e, std::log1p(-field_.strength(e, c)));
    return known;
  }
  OpenSilent& known = open_silent_[at][static_cast<uint64_t>(t_ns) * 0x9E3779B97F4A7C15ull >> 62];
  if (known.t_ns == t_ns) return known.nats;
  // The window is still open: only what has passed of it counts.
  const double total = static_cast<double>(e.lag_hi_ns - e.lag_lo_ns);
  const double passed = static_cast<double>(now - (t_ns + e.lag_lo_ns));
  const double share = total > 0 ? std::clamp(passed / total, 0.0, 1.0) : 0.0;
  known = {t_ns, scaled(e, std::log1p(-field_.strength(e, c) * share))};
  return known.nats;
}

void Scorer::offer(const Term& term, const Span& s, Member& m) const {
  double lost = 0;
  const double nats = fired_nats(term, s, &lost);
  if (m.span && nats <= m.value.nats) return;
  m.value.nats = nats;
  m.value.lost = lost;
  m.span = &s;
}

void Scorer::conclude(const Term& term, uint32_t row, int64_t t_ns, Member& m) const {
  if (m.span) {
    m.value.fired = m.value.members = 1;
  } else if (field_.observed(term.edge->to, row)) {
    m.value.members = 1;
    m.value.nats = term.reach == Term::Reach::kOwn
                       ? silent_nats(*term.edge, row, t_ns)
                       : silent_nats_of(*term.edge, class_of(row), t_ns);
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

bool Scorer::entity_matches(const Candidate& c, const Term& term, const Span& s) const {
  const abi::EntityKey& entity = field_.evidence(s).entity;
  uint64_t value = 0;
  if (field_.key_value(entity, "job", &value) && value != field_.input().job) return false;
  const abi::Scope scope = term.edge->scope;
  const bool wide =
      scope == abi::Scope::kJob || scope == abi::Scope::kAll || scope == abi::Scope::kPeers;
  if (c.row != kNoNode && !wide && !field_.same_place(entity, c.row)) return false;
  return field_.compatible(c.entity, entity);
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

bool Scorer::reaches(const Candidate& c, const Term& term, const Span& s) const {
  switch (term.reach) {
    case Term::Reach::kNowhere:
    case Term::Reach::kShadowed:
      return false;
    case Term::Reach::kEntity:
      return entity_matches(c, term, s);
    case Term::Reach::kOwn:
      return s.node == c.row && field_.compatible(c.entity, field_.evidence(s).entity);
    case Term::Reach::kGroup:
    case Term::Reach::kRest:
      if (s.node == kNoNode || !contains(*term.group, s.node)) return false;
      if (term.minus_own && s.node == c.row) return false;
      return !term.filter || field_.compatible(*term.filter, field_.evidence(s).entity);
  }
  return false;
}

bool Scorer::claimed(const Candidate& c, const std::vector<Term>& all, size_t at,
                     uint32_t row) const {
  if (all[at].minus_own && row == c.row) return true;
  for (size_t i = 0; i < at; ++i) {
    if (all[i].edge->to != all[at].edge->to) continue;
    if (all[i].reach == Term::Reach::kOwn && row == c.row) return true;
    if (!all[i].group || !contains(*all[i].group, row)) continue;
    if (!(all[i].minus_own && row == c.row)) return true;
  }
  return false;
}

TermValue Scorer::value_at(const Candidate& c, const std::vector<Term>& all, size_t at,
                           int64_t t_ns) {
  const Term& term = all[at];
  TermValue sum;
  const auto add = [&sum](const TermValue& v, int sign) {
    sum.nats += sign * v.nats;
    sum.lost += sign * v.lost;
    sum.members += sign * static_cast<int>(v.members);
    sum.fired += sign * static_cast<int>(v.fired);
    sum.unobserved += sign * static_cast<int>(v.unobserved);
  };
  switch (term.reach) {
    case Term::Reach::kNowhere:
    case Term::Reach::kShadowed:
      break;
    case Term::Reach::kOwn:
      return member_at(term, c.row, t_ns).value;
    case Term::Reach::kEntity:
      return entity_at(c, term, t_ns).value;
    case Term::Reach::kRest:
      for (uint32_t row : term.group->rows) {
        if (!claimed(c, all, at, row)) add(member_at(term, row, t_ns).value, 1);
      }
      break;
    case Term::Reach::kGroup: {
      add(group_at(term, t_ns), 1);
      if (term.minus_own && contains(*term.group, c.row)) {
        Term own = term;  // as the table counted it: not job-relative
        own.filter = nullptr;
        add(member_at(own, c.row, t_ns).value, -1);
      }
      break;
    }
  }
  return sum;
}

TermValue Scorer::group_at(const Term& term, int64_t t_ns) const {
  GroupTable& g = *term.table;
  auto& slot = g.cache[static_cast<uint64_t>(t_ns) * 0x9E3779B97F4A7C15ull >> 61];
  if (slot.t_ns == t_ns) return slot.value;
  TermValue v;
  const auto it = std::upper_bound(g.times.begin(), g.times.end(), t_ns);
  const size_t n = g.classes.size();
  const int32_t* fired_observed = nullptr;
  int32_t both = 0;
  if (it != g.times.begin()) {
    const size_t i = static_cast<size_t>(it - g.times.begin()) - 1;
    v.nats = g.sums[i].nats;
    v.lost = g.sums[i].lost;
    v.fired = static_cast<uint32_t>(g.sums[i].fired);
    both = g.sums[i].fired_observed;
    fired_observed = &g.fired_observed_of_class[i * n];
  }
  for (size_t k = 0; k < n; ++k) {
    const int64_t silent =
        int64_t{g.observed_of_class[k]} - (fired_observed ? fired_observed[k] : 0);
    if (silent > 0) {
      v.nats += static_cast<double>(silent) * silent_nats_of(*term.edge, g.classes[k], t_ns);
    }
  }
  v.members = g.observed_total + v.fired - static_cast<uint32_t>(both);
  v.unobserved = g.member_total - v.members;
  slot.t_ns = t_ns;
  slot.value = v;
  return v;
}

void Scorer::onsets_into(const Candidate& c, const std::vector<Term>& all,
                         std::vector<int64_t>& out) {
  out.assign(1, field_.input().opened_ns);
  for (const Term& term : all) {
    if (term.reach == Term::Reach::kOwn) {
      std::vector<int64_t> own;
      for (const Span& s : field_.spans(term.edge->to, c.row)) {
        if (field_.compatible(c.entity, field_.evidence(s).entity)) {
          own.push_back(shifted(s, *term.edge));
        }
      }
      for (size_t i = 0; i < own.size(); ++i) {
        if (i < kOwnOnsetsMax / 2 || i + kOwnOnsetsMax / 2 >= own.size()) out.push_back(own[i]);
      }
    } else if (term.reach == Term::Reach::kGroup) {
      if (term.table->earliest_onset_ns != kNoTimeNs) out.push_back(term.table->earliest_onset_ns);
    } else {
      int64_t earliest = kNoTimeNs;
      for (const Span& s : field_.spans(term.edge->to)) {
        if (!reaches(c, term, s)) continue;
        const int64_t t = shifted(s, *term.edge);
        if (earliest == kNoTimeNs || t < earliest) earliest = t;
      }
      if (earliest != kNoTimeNs) out.push_back(earliest);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

void Scorer::evaluate(Candidate& c) {
  std::vector<Term>& all = scratch_terms_;
  terms_into(c, true, all);
  onsets_into(c, all, scratch_onsets_);
  bool first = true;
  const double ailing = ailing_nats(c);
  for (int64_t t : scratch_onsets_) {
    double sum = c.prior_nats + ailing;
    for (size_t i = 0; i < all.size(); ++i) sum += value_at(c, all, i, t).nats;
    sum += synergy_nats(c, all, t);
    if (first || sum > c.log_odds) c.log_odds = sum, c.onset_ns = t;
    first = false;
  }
}

void Scorer::activate(const Candidate& culprit) {
  auto a = std::make_unique<Active>();
  a->candidate = culprit;
  a->terms = terms(a->candidate, false);
  active_.push_back(std::move(a));
  tables_.clear();
  last_table_.assign(pack_.edges.size(), {nullptr, nullptr});
}

bool Scorer::has_own_evidence(const Candidate& c) {
  for (const Term& term : terms(c, false)) {
    if (term.reach != Term::Reach::kOwn) continue;
    const Member m = member_at(term, c.row, c.onset_ns);
    if (m.span && m.value.nats > 0) return true;
  }
  return false;
}

Scorer::GroupTable* Scorer::table(const Term& term) {
  TableKey key{static_cast<uint32_t>(term.edge - pack_.edges.data()), term.group, {}};
  auto& last = last_table_[key.edge];
  if (!term.filter && last.first == term.group) return last.second;
  if (term.filter) key.filter = term.filter->values;
  auto& slot = tables_[key];
  if (slot) return slot.get();
  slot = std::make_unique<GroupTable>();
  if (!term.filter) last = {term.group, slot.get()};
  GroupTable& g = *slot;
  const abi::EdgePlan& e = *term.edge;
  g.member_total = static_cast<uint32_t>(term.group->rows.size());
  for (uint32_t row : term.group->rows) {
    const uint32_t k = g.class_index(class_of(row));
    if (!field_.observed(e.to, row)) continue;
    ++g.observed_of_class[k];
    ++g.observed_total;
  }
  struct Piece {
    int64_t from, to;
    double nats, lost;
  };
  std::vector<Piece> pieces;
  std::vector<int64_t> cuts;
  // By the group's members, not by all episodes: a job has hundreds of racks.
  for (uint32_t row : term.group->rows) {
    pieces.clear();
    for (const Span& s : field_.spans(e.to, row)) {
      if (term.filter && !field_.compatible(*term.filter, field_.evidence(s).entity)) continue;
      double lost = 0;
      const double nats = fired_nats(term, s, &lost);
      pieces.push_back({s.onset_ns - e.lag_hi_ns, s.last_ns - e.lag_lo_ns + 1, nats, lost});
      const int64_t t = shifted(s, e);
      if (g.earliest_onset_ns == kNoTimeNs || t < g.earliest_onset_ns) g.earliest_onset_ns = t;
    }
    if (pieces.empty()) continue;
    const uint32_t k = g.class_index(class_of(row));
    const int32_t seen = field_.observed(e.to, row) ? 1 : 0;
    cuts.clear();
    for (const Piece& p : pieces) cuts.push_back(p.from), cuts.push_back(p.to);
    if (pieces.size() > 1) {
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    }
    for (size_t j = 0; j + 1 < cuts.size(); ++j) {  // the strongest piece on each stretch
      const Piece* best = nullptr;
      for (const Piece& p : pieces) {
        if (p.from <= cuts[j] && cuts[j] < p.to && (!best || p.nats > best->nats)) best = &p;
      }
      if (!best) continue;
      g.deltas.push_back({cuts[j], best->nats, best->lost, 1, seen, k});
      g.deltas.push_back({cuts[j + 1], -best->nats, -best->lost, -1, -seen, k});
    }
  }
  g.finish();
  return &g;
}

}  // namespace reflex::attribution
