// What a hypothesis weighs beyond its edges: synergies, "ailing for another reason", and what is
// held back (suppressed, maintenance); and the hypothesis as plain numbers for learning.
#include <algorithm>
#include <cmath>

#include "runtime/attribution/scorer.h"

namespace reflex::attribution {

// A node may be degrading without having caused this incident: it fails tomorrow. With chance g it is
// in some such state f (all faults alike), so its graded evidence M_f is that much less surprising:
//   -log((1 - g) + g * mean_f exp(M_f)).
// The same for every fault of the node, so that its faults still compete by what they explain.
double Scorer::ailing_nats(const Candidate& c) {
  if (c.row == kNoNode || !field_.input().switches.ailing) return 0;
  if (pack_.causes[c.cause].kind != abi::CauseKind::kFault) return 0;
  if (ailing_.empty()) ailing_.assign(field_.rows().size(), std::nan(""));
  double& known = ailing_[c.row];
  if (known == known) return known;
  double sum = 0;
  size_t faults = 0;
  for (abi::CauseId f = 0; f < pack_.causes.size(); ++f) {
    if (pack_.causes[f].kind != abi::CauseKind::kFault) continue;
    double m = 0;
    bool any = false;
    for (const uint32_t index : graph_.cause_edges[f]) {
      const abi::EdgePlan& e = pack_.edges[index];
      if (e.scope != abi::Scope::kSelf || !numbers_.graded(e.to) || numbers_.votes(e.to)) continue;
      if (!field_.keyed_by_node(e.to) || e.has_weight) continue;
      any = true;
      const auto list = field_.spans(e.to, c.row);
      double log_a = field_.log_a(e.to, c.row);
      for (const Span& s : list) log_a = std::max(log_a, field_.log_a(s));
      const double p = field_.strength(e, class_of(c.row));
      m += std::log(1 - p + p * numbers_.soft_ratio(e.to, log_a, 1)) * numbers_.multiplier(e.to);
    }
    if (!any) continue;
    sum += std::exp(m);
    ++faults;
  }
  const double g = numbers_.degrading_elsewhere();
  known = faults == 0 ? 0
                      : round_nats(-std::log((1 - g) + g * sum / static_cast<double>(faults)) /
                                   numbers_.temperature());
  return known;
}

double Scorer::synergy_nats(const Candidate& c, const std::vector<Term>& all, int64_t t_ns,
                            std::vector<abi::Contribution>* list) const {
  if (!field_.input().switches.synergies) return 0;
  double sum = 0;
  for (uint32_t i = 0; i < pack_.synergies.size(); ++i) {
    const abi::SynergyPlan& plan = pack_.synergies[i];
    if (plan.cause != c.cause) continue;
    const bool fired = std::all_of(
        plan.signals.begin(), plan.signals.end(), [&](abi::SignalId signal) {
          return std::any_of(all.begin(), all.end(), [&](const Term& term) {
            if (term.edge->to != signal || term.reach != Term::Reach::kOwn) return false;
            return member_at(term, c.row, t_ns).span != nullptr;
          });
        });
    if (!fired) continue;
    const double nats = round_nats(numbers_.synergy_nats(i) / numbers_.temperature());
    sum += nats;
    if (list == nullptr) continue;
    abi::Contribution one;
    for (const abi::SignalId s : plan.signals) {
      one.signal += (one.signal.empty() ? "" : " + ") + pack_.signals[s].name;
    }
    one.entity = field_.entity_text(c.entity);
    one.scope = "self";
    one.nats = nats;
    one.entity_count = one.fired_count = 1;
    one.leak_origin = "synergy";
    one.rule = plan.where;
    list->push_back(std::move(one));
  }
  return sum;
}

void Scorer::list_held(const Candidate& c, abi::Hypothesis& h) const {
  if (c.row == kNoNode) return;
  for (const EvidenceField::Held& held : field_.held()) {
    if (held.row != c.row) continue;
    const bool child = std::any_of(
        graph_.cause_edges[c.cause].begin(), graph_.cause_edges[c.cause].end(),
        [&](uint32_t i) { return pack_.edges[i].to == held.signal; });
    if (!child) continue;
    const Evidence& evidence = field_.input().evidence[held.evidence];
    h.suppressed.push_back({pack_.signals[held.signal].name, field_.entity_text(evidence.entity),
                            evidence.episodes[held.episode].suppressed_by, 0});
  }
}

DossierHypothesis Scorer::numbers_of(const Candidate& c) {
  DossierHypothesis out;
  out.cause = c.cause;
  out.entity = c.entity;
  out.alike = static_cast<uint32_t>(c.alike.size());
  out.prior_nats = c.prior_nats;
  out.onset_ns = c.onset_ns;
  out.log_odds_nats = c.log_odds;
  if (c.row != kNoNode) {
    const NodeView& view = *field_.rows()[c.row].view;
    out.node = view.node;
    out.hw_class = view.hw_class;
    out.hazard = numbers_.hazard(c.cause, view);
  }
  std::vector<Term> all;
  terms_into(c, true, all);
  for (size_t i = 0; i < all.size(); ++i) {
    const Term& term = all[i];
    if (term.reach <= Term::Reach::kShadowed) continue;
    const abi::EdgePlan& e = *term.edge;
    const auto edge = static_cast<uint32_t>(&e - pack_.edges.data());
    const TermValue v = value_at(c, all, i, c.onset_ns);
    DossierTerm t;
    t.edge = edge;
    t.members = v.members;
    t.fired = v.fired;
    t.unobserved = v.unobserved;
    t.explained = v.lost > 0 && v.lost >= v.nats;
    t.group = term.group != nullptr;
    const double finish = numbers_.multiplier(e.to) / numbers_.temperature();
    t.nats = finish > 0 ? v.nats / finish : 0;
    t.p = field_.strength(e, class_of(c.row));
    t.leak = numbers_.leak(edge, nullptr);
    const bool own = term.reach == Term::Reach::kOwn;
    const Member m = own                              ? member_at(term, c.row, c.onset_ns)
                     : term.reach == Term::Reach::kEntity ? entity_at(c, term, c.onset_ns)
                                                          : Member{};
    if (numbers_.graded(e.to)) {
      const double silent = field_.log_a(e.to, own ? c.row : kNoNode);
      t.silent_ratio = numbers_.soft_ratio(e.to, silent, 1);
      if (m.span) t.log_ratio = std::log(numbers_.soft_ratio(e.to, field_.log_a(*m.span), m.span->survive));
    } else {
      if (own) t.leak = own_leak(e, c.row);
      const double survive = m.span ? m.span->survive : 1;
      t.log_ratio = std::log(numbers_.fired_ratio(edge, t.leak, survive));
    }
    out.terms.push_back(t);
  }
  if (const double ailing = ailing_nats(c); ailing != 0) {
    DossierTerm t;
    t.edge = abi::kNone32;
    t.nats = ailing * numbers_.temperature();
    t.ailing = true;
    out.terms.push_back(t);
  }
  return out;
}

double term_nats(const DossierTerm& term, double p) {
  if (term.edge == abi::kNone32) return term.nats;
  if (term.members == 0) return 0;
  const double fired = std::log(1 - p + p * std::exp(term.log_ratio));
  const double silent = std::log(1 - p + p * term.silent_ratio);
  return term.fired * fired + (term.members - term.fired) * silent;
}

}  // namespace reflex::attribution
