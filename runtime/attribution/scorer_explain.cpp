// From the terms of one hypothesis to what the verdict lists: contributions, what was explained
// away, what was unobserved, and which evidence stands behind a contribution.
#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/attribution/scorer.h"

namespace reflex::attribution {
namespace {

// Why: an explanation shows where to look, not every event of 10,000 peers.
constexpr size_t kEventsMax = 8;

std::string group_text(abi::Scope scope, uint32_t fired, uint32_t members) {
  const char* what = scope == abi::Scope::kPeers ? " peers" : " nodes";
  return std::to_string(fired) + " of " + std::to_string(members) + what;
}

std::optional<double> known(const abi::Value& v) {
  if (!v.known || !std::isfinite(v.f64())) return std::nullopt;
  return v.f64();
}

}  // namespace

std::string Scorer::entity_text(const Candidate& c) const {
  std::string text = field_.entity_text(c.entity);
  if (!c.alike.empty()) text += " and " + std::to_string(c.alike.size()) + " alike";
  return text.empty() ? std::string("all") : text;
}

// Spans that the term counts as fired at the candidate's onset: the first `max` by (onset, node,
// entity), or all of them in no useful order.
std::vector<const Span*> Scorer::fired_spans(const Candidate& c, const std::vector<Term>& all,
                                             size_t at, size_t max) const {
  std::vector<const Span*> out;
  const auto list = all[at].reach == Term::Reach::kOwn ? field_.spans(all[at].edge->to, c.row)
                                                       : field_.spans(all[at].edge->to);
  for (const Span& s : list) {
    if (!in_window(s, *all[at].edge, c.onset_ns) || !reaches(c, all[at], s)) continue;
    if (s.node != kNoNode && all[at].reach == Term::Reach::kRest && claimed(c, all, at, s.node)) {
      continue;
    }
    out.push_back(&s);
  }
  // Spans of one signal stand in one array by (node, onset, entity): position breaks ties.
  const auto before = [](const Span* a, const Span* b) {
    return a->onset_ns != b->onset_ns ? a->onset_ns < b->onset_ns : a < b;
  };
  if (max == SIZE_MAX) return out;
  const size_t kept = std::min(max, out.size());
  std::partial_sort(out.begin(), out.begin() + kept, out.end(), before);
  out.resize(kept);
  return out;
}

void Scorer::fill_first(abi::Contribution& out, const Span& s) const {
  const Evidence::Episode& e = field_.episode(s);
  out.onset_ns = s.onset_ns;
  out.firings = e.firings;
  out.value = known(e.value);
  out.limit = known(e.limit);
}

abi::Contribution Scorer::contribution(const Candidate& c, const std::vector<Term>& all, size_t at,
                                       abi::Hypothesis& h) {
  const Term& term = all[at];
  const abi::EdgePlan& e = *term.edge;
  const abi::SignalPlan& signal = pack_.signals[e.to];
  const TermValue v = value_at(c, all, at, c.onset_ns);
  abi::Contribution out;
  out.signal = signal.name;
  out.scope = abi::scope_word(e.scope);
  out.state = v.fired > 0     ? abi::SignalState::kFired
              : v.members > 0 ? abi::SignalState::kSilent
                              : abi::SignalState::kUnobserved;
  out.nats = v.nats;
  out.entity_count = v.members;
  out.fired_count = v.fired;
  out.limit_origin = signal.condition.limit_origin;
  const auto edge = static_cast<uint32_t>(&e - pack_.edges.data());
  const NodeView* view = c.row == kNoNode ? nullptr : field_.rows()[c.row].view;
  const NodeView* leak_view = term.reach == Term::Reach::kOwn ? view : nullptr;
  out.leak = numbers_.graded(e.to)             ? numbers_.episode_leak(e.to)
             : term.reach == Term::Reach::kOwn ? own_leak(term, c.row)
                                               : numbers_.leak(edge, leak_view);
  out.leak_origin = numbers_.leak_origin(edge, leak_view);
  if (leak_view && !numbers_.graded(e.to) && out.leak > numbers_.leak(edge, leak_view)) {
    out.leak_origin = std::to_string(field_.fired_in_job(e)) + " of the job's " +
                      std::to_string(field_.job_size()) + " nodes show it";
  }
  out.multiplier = numbers_.multiplier(e.to);
  out.rule = e.where;
  out.signal_where = signal.where;
  std::vector<const Span*> fired = fired_spans(c, all, at, kEventsMax);
  if (term.reach == Term::Reach::kOwn || term.reach == Term::Reach::kEntity) {
    // Several entities may have fired; the term is that of the strongest.
    const Member m = term.reach == Term::Reach::kOwn ? member_at(term, c.row, c.onset_ns)
                                                     : entity_at(c, term, c.onset_ns);
    if (m.span) fired.assign(1, m.span);
    if (m.span && m.span->suppressed && !explains_maintenance(e, *m.span)) {
      out.state = abi::SignalState::kSuppressed;
    }
    out.entity =
        m.span ? field_.entity_text(field_.evidence(*m.span).entity) : field_.entity_text(c.entity);
    if (!m.span && term.reach == Term::Reach::kEntity) {
      out.entity = pack_.entity_kinds[signal.entity_kind].keys.empty()
                       ? "all"
                       : pack_.entity_kinds[signal.entity_kind].keys[0];
    }
  } else {
    out.entity = group_text(e.scope, v.fired, v.members);
  }
  const bool own = term.reach == Term::Reach::kOwn;
  out.p = field_.strength(e, class_of(!fired.empty() ? fired[0]->node : own ? c.row : kNoNode));
  if (fired.empty() && !own && term.group && !term.group->rows.empty()) {
    out.p = field_.strength(e, class_of(term.group->rows[0]));
  }
  if (!fired.empty()) fill_first(out, *fired[0]);
  for (const Span* s : fired) {
    for (const abi::EventRef& ref : field_.episode(*s).events) {
      if (out.events.size() >= kEventsMax) break;
      out.events.push_back(
          {std::string(pack_.symbols->name(ref.source)), ref.seq, ref.ts_ns, ref.id});
    }
    if (out.events.size() >= kEventsMax) break;
  }
  if (const double lost = lost_nats(c, all, at, v.nats); lost > 0) {
    h.explained_away.push_back({out.signal, out.entity, explained_by(term, fired), lost});
  }
  list_unobserved(c, all, at, v, h);
  return out;
}

// What parents and masks took: the same term with every firing at its full weight, less the term.
double Scorer::lost_nats(const Candidate& c, const std::vector<Term>& all, size_t at,
                         double nats) const {
  const Term& term = all[at];
  const abi::EdgePlan& e = *term.edge;
  const std::vector<const Span*> spans = fired_spans(c, all, at, SIZE_MAX);
  const bool any = std::any_of(spans.begin(), spans.end(),
                               [&](const Span* s) { return survive_of(term, *s) < 1; });
  if (!any) return 0;
  const auto p = [&](const Span* s) { return field_.strength(e, class_of(s->node)); };
  if (!term.group) {
    double best = -1e300;
    for (const Span* s : spans) best = std::max(best, fired_nats(e, p(s), ratio_of(term, *s, 1)));
    return best - nats;
  }
  // Spans of a signal stand by node: the strongest of each.
  std::map<uint32_t, std::pair<double, double>> by_row;  // ratio in full, ratio as it counts
  double mean = 0;
  for (const Span* s : spans) {
    auto& [full, counted] = by_row.try_emplace(s->node, 0, 0).first->second;
    full = std::max(full, ratio_of(term, *s, 1));
    counted = std::max(counted, ratio_of(term, *s, survive_of(term, *s)));
    mean += round_nats(p(s));
  }
  Levels in_full{}, as_counted{};
  for (const auto& [row, ratio] : by_row) {
    in_full += level_nats(ratio.first);
    as_counted += level_nats(ratio.second);
  }
  const Levels& weights = numbers_.weights(mean / static_cast<double>(spans.size()));
  return scaled(e, mix(weights, in_full) - mix(weights, as_counted));
}

std::string Scorer::explained_by(const Term& term, const std::vector<const Span*>& fired) const {
  std::string by;
  for (const Span* s : fired) {
    if (survive_of(term, *s) == 1) continue;
    for (const std::string& parent : field_.parents_text(term.edge->to, *s)) {
      by += (by.empty() ? "" : ", ") + parent;
    }
    if (survive_of(term, *s) < s->survive) {
      by += (by.empty() ? "" : ", ") + field_.masks()[s->mask].text;
    }
    break;  // one example; a group would repeat the same parent for each member
  }
  return by;
}

void Scorer::list_unobserved(const Candidate& c, const std::vector<Term>& all, size_t at,
                             const TermValue& v, abi::Hypothesis& h) const {
  if (v.unobserved == 0) return;
  const bool group = all[at].group != nullptr;
  const abi::SignalPlan& signal = pack_.signals[all[at].edge->to];
  const bool disabled = field_.input().now_ns < signal.disabled_until_ns;
  h.unobserved.push_back(
      {signal.name,
       group ? std::to_string(v.unobserved) + " nodes" : field_.entity_text(c.entity),
       disabled                         ? "disabled by " + signal.disabled_by
       : signal.exceptions.rows.empty() ? "source not reporting"
                                        : "source not reporting, or an exception " +
                                              signal.exceptions.name + " of the site"});
}

abi::Hypothesis Scorer::explain(const Candidate& c) {
  const abi::CausePlan& cause = pack_.causes[c.cause];
  abi::Hypothesis h;
  h.what = cause.kind == abi::CauseKind::kExternal ? abi::Hypothesis::What::kExternal
                                                   : abi::Hypothesis::What::kNode;
  h.entity = entity_text(c);
  h.cause = cause.name;
  h.severity = cause.severity;
  h.remedy = cause.remedy;
  h.prior_nats = c.prior_nats;
  h.log_odds_nats = c.log_odds;
  h.onset_ns = c.onset_ns;
  if (c.row != kNoNode) {
    h.node = std::string(field_.rows()[c.row].name);
    const abi::ClassId cls = class_of(c.row);
    if (cls < pack_.classes.size()) h.hw_class = pack_.classes[cls].name;
    h.hazard = numbers_.hazard(c.cause, *field_.rows()[c.row].view);
    if (h.hazard != 1) h.hazard_origin = field_.rows()[c.row].view->hazard_origin;
  }
  const std::vector<Term> all = terms(c, true);
  h.contributions.reserve(all.size() + 2);  // agreement, ailing
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].reach == Term::Reach::kShadowed) continue;
    if (all[i].reach == Term::Reach::kNowhere) {
      h.unobserved.push_back({pack_.signals[all[i].edge->to].name, h.entity,
                              "no " + std::string(abi::scope_word(all[i].edge->scope)) +
                                  " label: edge not applicable"});
      continue;
    }
    abi::Contribution one = contribution(c, all, i, h);
    if (one.state == abi::SignalState::kUnobserved) continue;  // listed in h.unobserved
    h.contributions.push_back(std::move(one));
  }
  for (uint32_t index : synergies_of(c, all, c.onset_ns)) {
    h.contributions.push_back(synergy(index, c));
  }
  for (const Term& term : all) list_suppressed(c, term, h);
  if (const Agreement same = agreement(c); same.nats != 0) {
    h.contributions.push_back(contribution_of(same, c));
  }
  if (const double ailing = ailing_nats(c); ailing != 0) {
    abi::Contribution one;
    one.signal = "ailing for another reason";
    one.entity = h.entity;
    one.scope = "self";
    one.state = abi::SignalState::kSilent;
    one.nats = ailing;
    one.entity_count = 1;
    one.leak = numbers_.degrading_elsewhere();
    one.leak_origin = numbers_.model() ? "model" : "author";
    one.rule = cause.where;
    one.signal_where = cause.where;
    h.contributions.push_back(std::move(one));
  }
  std::stable_sort(h.contributions.begin(), h.contributions.end(),
                   [](const abi::Contribution& a, const abi::Contribution& b) {
                     return std::abs(a.nats) > std::abs(b.nats);
                   });
  return h;
}

std::vector<Scorer::FiredTerm> Scorer::fired_terms(const Candidate& c) {
  std::vector<FiredTerm> out;
  const std::vector<Term> all = terms(c, true);
  abi::Hypothesis scratch;
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].reach <= Term::Reach::kShadowed) continue;
    const TermValue v = value_at(c, all, i, c.onset_ns);
    if (v.fired == 0) continue;
    const abi::Contribution one = contribution(c, all, i, scratch);
    out.push_back({i, v.nats, one.signal + " on " + one.entity});
  }
  std::stable_sort(out.begin(), out.end(), [](const FiredTerm& a, const FiredTerm& b) {
    return std::abs(a.nats) > std::abs(b.nats);
  });
  return out;
}

void Scorer::mark_evidence(const Candidate& c, uint32_t edge_at, std::vector<uint8_t>& skip) {
  const std::vector<Term> all = terms(c, true);
  skip.resize(field_.input().evidence.size(), 0);
  for (const Span* s : fired_spans(c, all, edge_at, SIZE_MAX)) skip[s->evidence] = 1;
}

}  // namespace reflex::attribution
