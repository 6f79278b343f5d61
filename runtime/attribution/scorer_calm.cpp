// Weighs candidates of calm causes (pack_shape.h), which are nearly all: what a node shows of the
// cause, on top of what a node of its class that shows nothing weighs at the same onset.
//
// The same numbers as the general way (scorer.cpp), to the bit: sums are exact (README 1), so that
// adding up silence once a class and taking out what is not silent changes nothing.
#include <algorithm>

#include "runtime/attribution/group_table.h"

namespace reflex::attribution {

// Not: what culprits explain, and signals that may be a storm.
bool Scorer::is_calm(const Candidate& c) const {
  const PackShape::Cause& cause = field_.shape().causes[c.cause];
  return cause.calm && c.row != kNoNode && active_.empty() &&
         !meet(field_.shown(c.row), cause.own_spread.data(), field_.shape().words);
}

Scorer::Calm& Scorer::calm_of(const Candidate& c) {
  if (calm_.empty()) calm_.resize(pack_.causes.size());
  std::shared_ptr<Calm>& known = calm_[c.cause];
  if (known) return *known;
  const PackShape& shape = field_.shape();
  // With evidence left out it is the same, unless the cause reads beyond the node what is gone.
  const bool same = known_ && !known_->calm_.empty() && known_->calm_[c.cause] &&
                    &known_->field_ != &field_ && !field_.masks_changed() &&
                    !meet(field_.changed_anywhere().data(), shape.causes[c.cause].wide.data(),
                          shape.words);
  if (same) {
    known = known_->calm_[c.cause];
    return *known;
  }
  known = std::make_shared<Calm>();
  known->closed_ns = INT64_MAX;
  const std::vector<Term>& all = plain_terms(c);
  known->own.reserve(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    const abi::EdgePlan& e = *all[i].edge;
    if (all[i].reach != Term::Reach::kOwn) continue;
    const bool dated = !e.has_weight && !numbers_.graded(e.to);
    known->own.push_back({i, dated});
    if (dated) known->closed_ns = std::min(known->closed_ns, field_.input().now_ns - e.lag_hi_ns);
  }
  add_calm_entities(c, *known);
  known->classes.resize(plain_->class_count);
  return *known;
}

void Scorer::add_calm_entities(const Candidate& c, Calm& calm) {
  const std::vector<Term>& all = plain_terms(c);
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Term& term = all[i];
    if (term.reach != Term::Reach::kEntity) continue;
    const abi::EdgePlan& e = *term.edge;
    Calm::Entity entity;
    entity.term = i;
    entity.observed = field_.observed(e.to, kNoNode);
    entity.first = static_cast<uint32_t>(calm.pieces.size());
    int64_t earliest = kNoTimeNs;
    for (const Span& s : field_.spans(e.to)) {
      if (!entity_matches(c, term, s)) continue;
      const Weight w = fired(term, s);
      calm.pieces.push_back({s.onset_ns - e.lag_hi_ns, latest_onset(s, e), w.ratio, w.nats});
      const int64_t t = shifted_onset(s, e);
      if (earliest == kNoTimeNs || t < earliest) earliest = t;
    }
    entity.last = static_cast<uint32_t>(calm.pieces.size());
    if (earliest != kNoTimeNs) calm.onsets.push_back(earliest);
    calm.entities.push_back(entity);
  }
}

// The silence of what has no date.
double Scorer::calm_fixed(const Candidate& c, Calm& calm) const {
  const std::vector<Term>& all = plain_->terms[c.cause];
  const auto undated = [&](bool dated) {
    double nats = 0;
    // Before any window is open, silence that has a date is that of a window that has passed.
    const int64_t past_ns = std::min(calm.closed_ns, field_.input().opened_ns);
    for (const Calm::Own& own : calm.own) {
      if (own.dated == dated) nats += silent(*all[own.term].edge, c.row, past_ns).nats;
    }
    return nats;
  };
  if (field_.repaired_lately(c.row)) return undated(false);  // the node's own
  Calm::OfClass& of_class = calm.classes[plain_->class_slot[class_of(c.row)]];
  if (of_class.fixed != of_class.fixed) of_class.fixed = undated(false);
  return of_class.fixed;
}

// What has a date, and what entities without a node show.
double Scorer::calm_nats(const Candidate& c, Calm& calm, int64_t t_ns) const {
  Calm::OfClass& of_class = calm.classes[plain_->class_slot[class_of(c.row)]];
  Calm::OfClass::At& known = of_class.at[GroupTable::slot(t_ns, 3)];
  if (known.t_ns == t_ns) return known.nats;
  const std::vector<Term>& all = plain_->terms[c.cause];
  const bool closed = t_ns <= calm.closed_ns;
  double nats = closed ? of_class.closed : 0;
  if (!closed || nats != nats) {
    nats = 0;
    for (const Calm::Own& own : calm.own) {
      if (own.dated) nats += silent(*all[own.term].edge, c.row, t_ns).nats;
    }
    if (closed) of_class.closed = nats;
  }
  for (const Calm::Entity& entity : calm.entities) {
    if (const Piece* best = best_piece(calm.pieces, entity.first, entity.last, t_ns))
      nats += best->nats;
    else if (entity.observed)
      nats += silent_of(*all[entity.term].edge, class_of(kNoNode), t_ns).nats;
  }
  known = {t_ns, nats};
  return nats;
}

// The spans of one of its terms on the node as pieces, and their onsets.
void Scorer::add_shown(const Candidate& c, const Term& plain, uint32_t at, bool dated) {
  Term term = plain;
  term.filter = &c.entity;
  const abi::EdgePlan& e = *term.edge;
  Line line;
  line.term = at;
  line.open = dated;
  line.observed = field_.observed(e.to, c.row);
  line.first = static_cast<uint32_t>(scratch_pieces_.size());
  const size_t first = scratch_onsets_.size();
  for (const Span& s : field_.spans(e.to, c.row)) {
    if (!field_.compatible(c.entity, field_.evidence(s).entity)) continue;
    scratch_onsets_.push_back(shifted_onset(s, e));
    const Weight w = fired(term, s);
    scratch_pieces_.push_back({s.onset_ns - e.lag_hi_ns, latest_onset(s, e), w.ratio, w.nats});
  }
  keep_own_onsets(scratch_onsets_, first);
  line.last = static_cast<uint32_t>(scratch_pieces_.size());
  if (line.first == line.last && line.observed) return;
  if (!dated) line.silent_nats = silent(e, c.row, field_.input().opened_ns).nats;
  scratch_lines_.push_back(line);
}

void Scorer::evaluate_calm(Candidate& c) {
  Calm& calm = calm_of(c);
  const std::vector<Term>& all = plain_->terms[c.cause];
  scratch_lines_.clear();
  scratch_pieces_.clear();
  scratch_onsets_.assign(1, field_.input().opened_ns);
  scratch_onsets_.insert(scratch_onsets_.end(), calm.onsets.begin(), calm.onsets.end());
  const uint64_t* shown = field_.shown(c.row);
  const bool reports = field_.all_observed(field_.shape().causes[c.cause].own, c.row);
  for (const Calm::Own& own : calm.own) {
    const Term& term = all[own.term];
    const bool shows = has_bit(shown, term.edge->to);
    if (!shows && (reports || field_.observed(term.edge->to, c.row))) continue;
    add_shown(c, term, own.term, own.dated);
  }
  const double agreement = agreement_nats(c);
  const bool keep = !own_parts_.empty() && reports;
  if (keep) keep_own_part(c, agreement, calm.onsets.size());
  std::sort(scratch_onsets_.begin(), scratch_onsets_.end());
  scratch_onsets_.erase(std::unique(scratch_onsets_.begin(), scratch_onsets_.end()),
                        scratch_onsets_.end());
  const double constant = c.prior_nats + ailing_nats(c) + agreement + calm_fixed(c, calm);
  bool first = true;
  for (const int64_t t : scratch_onsets_) {
    double own = 0;
    for (const Line& line : scratch_lines_) {
      const Piece* best = best_piece(scratch_pieces_, line.first, line.last, t);
      if (!best && line.observed) continue;  // silent, as it was taken to be
      if (best) own += best->nats;
      own -= line.open ? silent(*all[line.term].edge, c.row, t).nats : line.silent_nats;
    }
    if (keep) own_at_[own_parts_[c.id].last++].nats = own;
    const double sum = constant + calm_nats(c, calm, t) + own;
    if (first || sum > c.log_odds) c.log_odds = sum, c.onset_ns = t;
    first = false;
  }
}

// The onsets stand as evaluate_calm() made them: the opening, those of the calm, the own ones.
void Scorer::keep_own_part(const Candidate& c, double agreement_nats, size_t calm_onsets) {
  const auto own = scratch_onsets_.begin() + 1 + static_cast<ptrdiff_t>(calm_onsets);
  const auto is_own = [&](int64_t t) {
    return t == scratch_onsets_.front() || std::find(own, scratch_onsets_.end(), t) != scratch_onsets_.end();
  };
  scratch_own_onsets_ = scratch_onsets_;
  std::sort(scratch_own_onsets_.begin(), scratch_own_onsets_.end());
  scratch_own_onsets_.erase(std::unique(scratch_own_onsets_.begin(), scratch_own_onsets_.end()),
                            scratch_own_onsets_.end());
  const auto first = static_cast<uint32_t>(own_at_.size());
  own_parts_[c.id] = {true, first, first, agreement_nats};
  for (const int64_t t : scratch_own_onsets_) own_at_.push_back({t, 0, is_own(t)});
}

bool Scorer::try_own_as_whole(Candidate& c, const Candidate& before, const Scorer& whole) {
  if (whole.own_parts_.empty() || !is_calm(c) || field_.masks_changed()) return false;
  const OwnPart& part = whole.own_parts_[before.id];
  if (!part.kept || own_changed(c, since_whole(c.cause, whole), whole)) return false;
  Calm& calm = calm_of(c);
  const auto first = whole.own_at_.begin() + part.first;
  const auto last = whole.own_at_.begin() + part.last;
  for (const int64_t t : calm.onsets) {  // one that was not tried
    if (std::none_of(first, last, [t](const OwnAt& at) { return at.t_ns == t; })) return false;
  }
  const double constant =
      c.prior_nats + ailing_nats(c) + part.agreement_nats + calm_fixed(c, calm);
  bool none = true;
  for (auto at = first; at != last; ++at) {
    const bool is_onset = at->own || std::find(calm.onsets.begin(), calm.onsets.end(), at->t_ns) !=
                                         calm.onsets.end();
    if (!is_onset) continue;
    const double sum = constant + calm_nats(c, calm, at->t_ns) + at->nats;
    if (none || sum > c.log_odds) c.log_odds = sum, c.onset_ns = at->t_ns;
    none = false;
  }
  return true;
}

}  // namespace reflex::attribution
