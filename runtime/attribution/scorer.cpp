// Which entities each edge of a hypothesis reaches, and the choice of the onset; see scorer.h and
// README.md. The weights themselves: scorer_value.cpp.
#include "runtime/attribution/scorer.h"

#include <algorithm>
#include <cmath>

#include "runtime/attribution/group_table.h"

namespace reflex::attribution {
namespace {

// Why: what common mode leaves of a firing is never quite nothing.
constexpr double kOwnEvidenceMin = 0.1;

}  // namespace

int64_t shifted_onset(const Span& s, const abi::EdgePlan& e) {
  return s.onset_ns - std::clamp<int64_t>(0, e.lag_lo_ns, std::max(e.lag_lo_ns, e.lag_hi_ns));
}

void keep_own_onsets(std::vector<int64_t>& onsets, size_t first) {
  // Why: bounds the onsets that are tried for one edge of one entity: the first and the last ones.
  constexpr size_t kOwnOnsetsMax = 16;
  const size_t own = onsets.size() - first;
  if (own <= kOwnOnsetsMax) return;
  const auto at = onsets.begin() + static_cast<ptrdiff_t>(first + kOwnOnsetsMax / 2);
  onsets.erase(at, at + static_cast<ptrdiff_t>(own - kOwnOnsetsMax));
}

Scorer::Scorer(const EvidenceField& field, const CauseGraph& graph, const Scorer* known)
    : field_(field), graph_(graph), pack_(field.pack()), numbers_(field.numbers()) {
  last_group_.resize(pack_.edges.size());
  of_all_.resize(pack_.edges.size());
  known_ = known;
  if (known)
    plain_ = known->plain_;
  else
    add_plain();
}

void Scorer::add_plain() {
  plain_ = std::make_shared<Plain>();
  Plain& plain = *plain_;
  plain.terms.resize(pack_.causes.size());
  // Where weights are plain sums, the edge matters as well.
  const bool windows = field_.input().switches.shared_fate;
  for (uint32_t i = 0; i < pack_.edges.size(); ++i) {
    plain.window_of.push_back(windows ? field_.shape().window_of[i] : i);
  }
  // Slot 0 is class 0, which entities without a node are scored with.
  plain.class_slot.assign(std::max<size_t>(pack_.classes.size(), 1), 0);
  for (const auto& row : field_.rows()) {
    const size_t c = row.view->hw_class;
    if (c >= plain.class_slot.size()) plain.class_slot.resize(c + 1, 0);
    if (c != 0 && plain.class_slot[c] == 0) {
      plain.class_slot[c] = static_cast<uint16_t>(plain.class_count++);
    }
  }
  plain.fired.assign(pack_.edges.size() * plain.class_count, {1, std::nan("")});
  plain.silent = plain.fired;
  plain.wear.resize(field_.shape().wear_edges.size() * plain.class_count);
  plain.habits.assign(pack_.causes.size() * plain.class_count, std::nan(""));
}

size_t Scorer::plain_at(const abi::EdgePlan& e, abi::ClassId c) const {
  return static_cast<size_t>(&e - pack_.edges.data()) * plain_->class_count + plain_->class_slot[c];
}

Scorer::~Scorer() = default;

abi::ClassId Scorer::class_of(uint32_t row) const {
  return row == kNoNode ? abi::ClassId{0} : field_.rows()[row].view->hw_class;
}

const Group* Scorer::group_of(const Candidate& c, abi::Scope scope) const {
  const Groups& groups = field_.groups();
  if (scope == abi::Scope::kAll) return groups.all();
  if (scope == abi::Scope::kJob) return groups.job();
  if (c.row != kNoNode) {
    const NodeView& v = *field_.rows()[c.row].view;
    if (scope == abi::Scope::kPeers) return groups.job();
    if (scope == abi::Scope::kClass) return groups.named('c', v.hw_class);
    const char what = place_letter(scope);
    const SymbolId id = place_of(v, what);
    return id == kNoSymbol ? nullptr : groups.named(what, id);
  }
  for (const char* key : {"tor", "rack", "pod", "zone"}) {
    uint64_t value = 0;  // an external cause reaches the members of its own group
    if (field_.key_value(c.entity, key, &value)) {
      return groups.named(place_letter(std::string_view(key)), static_cast<SymbolId>(value));
    }
  }
  return groups.job();
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
  // Without a common key there is nothing to filter by, and all entities of an external cause share
  // one table (625 switches of a job, not 625 tables).
  if (c.row == kNoNode && field_.shape().shares_key[edge]) term.filter = &c.entity;
  for (const ActiveMask& m : field_.masks()) {
    term.exempt |= c.row == kNoNode && m.cause == c.cause && m.group == term.group;
  }
}

std::vector<Scorer::Term> Scorer::terms(const Candidate& c, bool with_tables) {
  std::vector<Term> out;
  terms_into(c, with_tables, out);
  return out;
}

// Nothing in them depends on the candidate but the filter, so they are worked out once.
const std::vector<Scorer::Term>& Scorer::plain_terms(const Candidate& c) {
  std::vector<Term>& known = plain_->terms[c.cause];
  if (!known.empty()) return known;
  known.reserve(graph_.cause_edges[c.cause].size());
  for (uint32_t index : graph_.cause_edges[c.cause]) {
    Term term;
    term.edge = &pack_.edges[index];
    resolve(c, term);
    const bool shadowed = std::any_of(known.begin(), known.end(), [&](const Term& earlier) {
      return earlier.edge->to == term.edge->to && earlier.reach == term.reach;
    });
    if (shadowed) term.reach = Term::Reach::kShadowed;
    const bool own = term.reach == Term::Reach::kOwn;
    term.habit = own && has_bit(field_.shape().causes[c.cause].habits.data(), term.edge->to);
    known.push_back(term);
  }
  return known;
}

void Scorer::plain_terms_into(const Candidate& c, std::vector<Term>& out) {
  const std::vector<Term>& known = plain_terms(c);
  out.assign(known.begin(), known.end());
  for (Term& term : out) {
    if (term.filter) term.filter = &c.entity;
  }
}

void Scorer::terms_into(const Candidate& c, bool with_tables, std::vector<Term>& out) {
  if (c.row != kNoNode && field_.shape().causes[c.cause].plain) {
    plain_terms_into(c, out);
  } else if (c.row != kNoNode && with_tables) {
    placed_terms_into(c, out);
  } else {
    resolved_terms_into(c, with_tables, out);
  }
  if (!with_tables || !field_.input().switches.shared_fate) return;
  for (Term& term : out) {
    const bool alone = term.reach == Term::Reach::kOwn && !term.beside_group;
    const bool spread = field_.shape().spreads[term.edge->to] && !term.edge->has_weight;
    if (!alone || !spread || !has_bit(field_.shown(c.row), term.edge->to)) continue;
    term.everybody = table_of_all(*term.edge);
  }
}

// Nodes in the same places and of one class have the same groups, and they stand beside each other.
void Scorer::placed_terms_into(const Candidate& c, std::vector<Term>& out) {
  if (placed_.empty()) placed_.resize(pack_.causes.size());
  Placed& known = placed_[c.cause];
  const NodeView& v = *field_.rows()[c.row].view;
  const std::array<uint32_t, 5> where{v.rack, v.tor, v.pod, v.zone, v.hw_class};
  if (known.terms.empty() || known.where != where) {
    resolved_terms_into(c, true, known.terms);
    known.where = where;
  }
  out.assign(known.terms.begin(), known.terms.end());
  for (Term& term : out) {
    if (term.filter) term.filter = &c.entity;
  }
}

void Scorer::resolved_terms_into(const Candidate& c, bool with_tables, std::vector<Term>& out) {
  out.clear();
  for (uint32_t index : graph_.cause_edges[c.cause]) {
    Term term;
    term.edge = &pack_.edges[index];
    resolve(c, term);
    // An entity that a narrower edge of the same cause reaches is not counted again.
    bool own_before = false;
    bool group_before = false;
    for (Term& earlier : out) {
      if (earlier.edge->to != term.edge->to) continue;
      earlier.beside_group |= term.reach == Term::Reach::kGroup;
      own_before |= earlier.reach == Term::Reach::kOwn;
      group_before |= earlier.reach == Term::Reach::kGroup || earlier.reach == Term::Reach::kRest;
      if (earlier.reach == term.reach && term.reach != Term::Reach::kGroup &&
          term.reach != Term::Reach::kRest) {
        term.reach = Term::Reach::kShadowed;
      }
    }
    if (term.reach == Term::Reach::kGroup) {
      term.own_claimed = own_before;
      term.minus_own |= own_before;
      if (group_before)
        term.reach = Term::Reach::kRest;
      else if (with_tables)
        resolve_group(c, term);
    }
    out.push_back(term);
  }
}

void Scorer::resolve_group(const Candidate&, Term& term) {
  const abi::EdgePlan& e = *term.edge;
  term.in = edge_group(e, *term.group, term.filter, term.exempt);
  if (term.filter || e.has_weight || !field_.input().switches.shared_fate) return;
  const Group* all = field_.groups().all();
  const bool whole = term.group->rows.size() == all->rows.size() && !term.exempt;
  term.everybody = whole ? term.in->table : table_of_all(e);
}

bool Scorer::entity_matches(const Candidate& c, const Term& term, const Span& s) const {
  const abi::EntityKey& entity = field_.evidence(s).entity;
  const int job_at = field_.shape().kinds[entity.kind].job_at;
  if (job_at >= 0 && job_at < entity.count &&
      entity.values[static_cast<size_t>(job_at)] != field_.input().job) {
    return false;
  }
  const abi::Scope scope = term.edge->scope;
  const bool wide =
      scope == abi::Scope::kJob || scope == abi::Scope::kAll || scope == abi::Scope::kPeers;
  if (c.row != kNoNode && !wide && !field_.same_place(entity, c.row)) return false;
  return field_.compatible(c.entity, entity);
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

void Scorer::onsets_into(const Candidate& c, const std::vector<Term>& all,
                         std::vector<int64_t>& out) {
  out.assign(1, field_.input().opened_ns);
  for (const Term& term : all) {
    if (term.reach == Term::Reach::kOwn) {
      const size_t first = out.size();
      for (const Span& s : field_.spans(term.edge->to, c.row)) {
        if (field_.compatible(c.entity, field_.evidence(s).entity)) {
          out.push_back(shifted_onset(s, *term.edge));
        }
      }
      keep_own_onsets(out, first);
    } else if (term.reach == Term::Reach::kGroup) {
      const int64_t earliest = term.in->table->earliest_onset_ns;
      if (earliest != kNoTimeNs) out.push_back(earliest);
    } else if (term.reach == Term::Reach::kEntity || term.reach == Term::Reach::kRest) {
      int64_t earliest = kNoTimeNs;
      for (const Span& s : field_.spans(term.edge->to)) {
        if (!reaches(c, term, s)) continue;
        const int64_t t = shifted_onset(s, *term.edge);
        if (earliest == kNoTimeNs || t < earliest) earliest = t;
      }
      if (earliest != kNoTimeNs) out.push_back(earliest);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

// The weight of a term whose members are few as a function of the onset: its spans in turn, and what
// it weighs when none of them is in its window. What no onset changes goes into `constant`.
void Scorer::add_line(const Candidate& c, const Term& term, uint32_t at, int64_t last_onset_ns,
                      double& constant) {
  const abi::EdgePlan& e = *term.edge;
  const bool own = term.reach == Term::Reach::kOwn;
  const uint32_t row = own ? c.row : kNoNode;
  Line line;
  line.term = at;
  line.first = static_cast<uint32_t>(scratch_pieces_.size());
  for (const Span& s : own ? field_.spans(e.to, row) : field_.spans(e.to)) {
    const bool reached = own ? field_.compatible(c.entity, field_.evidence(s).entity)
                             : entity_matches(c, term, s);
    if (!reached) continue;
    const Weight w = fired(term, s);
    scratch_pieces_.push_back({s.onset_ns - e.lag_hi_ns, latest_onset(s, e), w.ratio, w.nats});
  }
  line.last = static_cast<uint32_t>(scratch_pieces_.size());
  if (field_.observed(e.to, row)) {
    line.open = !e.has_weight && !numbers_.graded(e.to) &&
                last_onset_ns + e.lag_hi_ns > field_.input().now_ns;
    if (!line.open) line.silent_nats = silent_member(term, row, last_onset_ns).nats;
  }
  if (line.first == line.last && !line.open)
    constant += line.silent_nats;
  else
    scratch_lines_.push_back(line);
}

bool Scorer::add_habits(const Candidate& c, const std::vector<Term>& all, double& constant) const {
  if (c.row == kNoNode || field_.repaired_lately(c.row)) return false;
  const SignalBits& habits = field_.shape().causes[c.cause].habits;
  if (!field_.all_observed(habits, c.row)) return false;
  const size_t at = c.cause * plain_->class_count + plain_->class_slot[class_of(c.row)];
  double& known = plain_->habits[at];
  const int64_t any_ns = field_.input().opened_ns;  // graded silence does not depend on the onset
  if (known != known) {
    known = 0;
    for (const Term& term : all) {
      if (term.habit) known += silent(*term.edge, c.row, any_ns).nats;
    }
  }
  constant += known;
  if (!meet(field_.shown(c.row), habits.data(), habits.size())) return true;
  for (const Term& term : all) {
    if (!term.habit || !has_bit(field_.shown(c.row), term.edge->to)) continue;
    constant -= silent(*term.edge, c.row, any_ns).nats;
  }
  return true;
}

double Scorer::line_at(const Candidate& c, const std::vector<Term>& all, const Line& line,
                       int64_t t_ns) {
  if (line.whole) return value_at(c, all, line.term, t_ns).nats;
  // Of several episodes or entities the strongest counts.
  const Piece* best = best_piece(scratch_pieces_, line.first, line.last, t_ns);
  if (best) return best->nats;
  if (!line.open) return line.silent_nats;
  const Term& term = all[line.term];
  return silent_member(term, term.reach == Term::Reach::kOwn ? c.row : kNoNode, t_ns).nats;
}

void Scorer::evaluate(Candidate& c) {
  if (is_calm(c)) return evaluate_calm(c);
  std::vector<Term>& all = scratch_terms_;
  terms_into(c, true, all);
  onsets_into(c, all, scratch_onsets_);
  scratch_lines_.clear();
  scratch_pieces_.clear();
  // Sums are exact (README 1), so that it does not matter what is added up first.
  double constant = c.prior_nats + ailing_nats(c) + agreement_nats(c);
  const bool habits = add_habits(c, all, constant);
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Term& term = all[i];
    if (term.reach <= Term::Reach::kShadowed) continue;
    if (habits && term.habit && !has_bit(field_.shown(c.row), term.edge->to)) continue;
    const bool few = term.reach == Term::Reach::kEntity ||
                     (term.reach == Term::Reach::kOwn && !term.everybody);
    if (few) {
      add_line(c, term, i, scratch_onsets_.back(), constant);
      continue;
    }
    Line line;
    line.term = i;
    line.whole = true;
    scratch_lines_.push_back(line);
  }
  bool first = true;
  const bool synergies = field_.shape().causes[c.cause].has_synergy;
  for (int64_t t : scratch_onsets_) {
    double sum = constant;
    for (const Line& line : scratch_lines_) sum += line_at(c, all, line, t);
    if (synergies) {
      for (uint32_t synergy : synergies_of(c, all, t)) sum += synergy_nats(synergy);
    }
    if (first || sum > c.log_odds) c.log_odds = sum, c.onset_ns = t;
    first = false;
  }
}

void Scorer::activate(const Candidate& culprit) {
  auto a = std::make_unique<Active>();
  a->candidate = culprit;
  a->terms = terms(a->candidate, false);
  active_.push_back(std::move(a));
  placed_.clear();
  tables_.clear();
  edge_groups_.clear();
  last_group_.assign(pack_.edges.size(), {nullptr, nullptr});
  of_all_.assign(pack_.edges.size(), nullptr);
}

void Scorer::evaluate_as_whole(Candidate& c, const Candidate& before, Scorer& whole) {
  c.log_odds = before.log_odds;
  c.onset_ns = before.onset_ns;
  if (c.row == kNoNode || !ailing_changed(c.row)) return;
  c.log_odds += ailing_nats(c) - whole.ailing_nats(before);  // exact, as all sums
}

void Scorer::evaluate_like(Candidate& c, const Candidate& other) {
  c.log_odds = other.log_odds - ailing_nats(other) + ailing_nats(c);
  c.onset_ns = other.onset_ns;
}

bool Scorer::speaks_for(const Candidate& c) {
  terms_into(c, true, scratch_terms_);
  for (size_t i = 0; i < scratch_terms_.size(); ++i) {
    const TermValue v = value_at(c, scratch_terms_, i, c.onset_ns);
    if (v.fired > 0 && v.nats > 0) return true;
  }
  return false;
}

// What the rest of the job shows is held against a node's own firings.
bool Scorer::job_share_changed(const abi::EdgePlan& e, const Scorer& whole) const {
  if (!has_bit(field_.changed_anywhere().data(), e.to) || numbers_.graded(e.to)) return false;
  return field_.input().switches.common_mode && job_share(e) != whole.job_share(e);
}

const Scorer::SinceWhole& Scorer::since_whole(abi::CauseId c, const Scorer& whole) {
  if (since_whole_.empty()) since_whole_.resize(pack_.causes.size());
  SinceWhole& known = since_whole_[c];
  if (known.asked) return known;
  const auto& edges = graph_.cause_edges[c];
  known.asked = true;
  known.wide = field_.masks_changed() ||
               meet(field_.changed_anywhere().data(), field_.shape().causes[c].wide.data(),
                    field_.shape().words);
  known.shares = std::any_of(edges.begin(), edges.end(), [&](uint32_t edge) {
    return job_share_changed(pack_.edges[edge], whole);
  });
  return known;
}

bool Scorer::own_changed(const Candidate& c, const SinceWhole& since, const Scorer& whole) const {
  const PackShape::Cause& cause = field_.shape().causes[c.cause];
  const uint64_t* shown = field_.shown(c.row);
  for (size_t w = 0; w < field_.shape().words; ++w) {
    if ((field_.changed(c.row)[w] & cause.own[w]) != 0) return true;
    // Votes: what the own node has of them is held against all of them.
    if ((field_.changed_anywhere()[w] & cause.own[w] & cause.wide[w] & shown[w]) != 0) return true;
  }
  if (!since.shares) return false;
  const auto& edges = graph_.cause_edges[c.cause];
  return std::any_of(edges.begin(), edges.end(), [&](uint32_t edge) {
    const abi::EdgePlan& e = pack_.edges[edge];
    return has_bit(field_.shown(c.row), e.to) && job_share_changed(e, whole);
  });
}

bool Scorer::same_as_whole(const Candidate& c, const Scorer& whole) {
  const SinceWhole& since = since_whole(c.cause, whole);
  if (since.wide) return false;
  return c.row == kNoNode || !own_changed(c, since, whole);
}

bool Scorer::ailing_changed(uint32_t row) const {
  return meet(field_.changed(row), field_.shape().graded.data(), field_.shape().words);
}

bool Scorer::has_own_evidence(const Candidate& c) {
  for (const Term& term : terms(c, true)) {
    if (term.reach != Term::Reach::kOwn) continue;
    const TermValue v = own_at(c, term, c.onset_ns);
    if (v.fired > 0 && v.nats > kOwnEvidenceMin) return true;
  }
  return false;
}

}  // namespace reflex::attribution
