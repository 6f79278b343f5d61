// What a hypothesis weighs beyond its edges: synergies, "ailing for another reason", and what is
// held back (suppressed, maintenance); and the hypothesis as plain numbers for learning.
#include <algorithm>
#include <cmath>

#include "runtime/attribution/group_table.h"

namespace reflex::attribution {

// A node may be degrading without having caused this incident: it fails tomorrow. With chance g it
// is in some such state f (all faults alike), so its graded evidence M_f surprises that much less:
//   -log((1 - g) + g * mean_f exp(M_f)).
// The same for every fault of the node, so that its faults still compete by what they explain.
double Scorer::ailing_nats(const Candidate& c) {
  if (c.row == kNoNode || !field_.input().switches.ailing) return 0;
  if (numbers_.graded_signals().empty()) return 0;
  if (!field_.shape().causes[c.cause].fault) return 0;
  if (ailing_.empty()) ailing_.assign(field_.rows().size(), std::nan(""));
  double& known = ailing_[c.row];
  if (known == known) return known;
  if (known_ && !known_->ailing_.empty() && !ailing_changed(c.row)) {
    const double before = known_->ailing_[c.row];
    if (before == before) return known = before;
  }
  double sum = 0;
  for (size_t f = 0; f < field_.shape().wear_edges.size(); ++f) sum += wear_product(f, c.row);
  const double g = numbers_.degrading_elsewhere();
  const size_t faults = field_.shape().wear_edges.size();
  known = faults == 0 ? 0
                      : round_nats(-std::log((1 - g) + g * sum / static_cast<double>(faults)) *
                                   numbers_.ailing_multiplier() / numbers_.temperature());
  return known;
}

// exp(M_f). Equal for all nodes of a class that show nothing of it, but those repaired lately.
double Scorer::wear_product(size_t fault, uint32_t row) const {
  const PackShape& shape = field_.shape();
  const std::vector<uint32_t>& edges = shape.wear_edges[fault];
  const bool repaired = field_.repaired_lately(row);
  const uint64_t* shown = field_.shown(row);
  double product = 1;
  if (repaired) {
    for (const uint32_t edge : edges) product *= wear_factor(edge, row);
    return product;
  }
  Plain::Wear& quiet =
      plain_->wear[fault * plain_->class_count + plain_->class_slot[class_of(row)]];
  if (meet(shown, shape.wear_signals[fault].data(), shape.words)) {
    quiet.factors.resize(edges.size(), std::nan(""));
    for (size_t i = 0; i < edges.size(); ++i) {
      double& known = quiet.factors[i];
      if (has_bit(shown, pack_.edges[edges[i]].to)) {
        product *= wear_factor(edges[i], row);
      } else {
        if (known != known) known = wear_factor(edges[i], row);
        product *= known;
      }
    }
    return product;
  }
  if (quiet.product != quiet.product) {
    for (const uint32_t edge : edges) product *= wear_factor(edge, row);
    quiet.product = product;
  }
  return quiet.product;
}

double Scorer::wear_factor(uint32_t edge, uint32_t row) const {
  const abi::EdgePlan& e = pack_.edges[edge];
  double a = field_.soft(e.to, row);
  for (const Span& s : field_.spans(e.to, row)) {
    if (!s.suppressed) a = std::max(a, field_.soft(s));
  }
  const double p = numbers_.strength(edge, class_of(row));
  return 1 - p + p * numbers_.soft_ratio(e.to, a, 1);
}

// All signals of the synergy have fired on the hypothesis' own entity, and each says something.
std::vector<uint32_t> Scorer::synergies_of(const Candidate& c, const std::vector<Term>& all,
                                           int64_t t_ns) const {
  std::vector<uint32_t> out;
  if (!field_.input().switches.synergies) return out;
  for (uint32_t i = 0; i < pack_.synergies.size(); ++i) {
    const abi::SynergyPlan& plan = pack_.synergies[i];
    if (plan.cause != c.cause) continue;
    const auto speaks = [&](abi::SignalId signal) {
      return std::any_of(all.begin(), all.end(), [&](const Term& term) {
        if (term.edge->to != signal) return false;
        if (term.reach != Term::Reach::kOwn && term.reach != Term::Reach::kEntity) return false;
        const Member m = term.reach == Term::Reach::kOwn ? member_at(term, c.row, t_ns)
                                                         : entity_at(c, term, t_ns);
        return m.span != nullptr && m.ratio > 1;
      });
    };
    if (std::all_of(plan.signals.begin(), plan.signals.end(), speaks)) out.push_back(i);
  }
  return out;
}

double Scorer::synergy_nats(uint32_t synergy) const {
  return round_nats(numbers_.synergy_nats(synergy) / numbers_.temperature());
}

abi::Contribution Scorer::synergy(uint32_t index, const Candidate& c) const {
  const abi::SynergyPlan& plan = pack_.synergies[index];
  abi::Contribution one;
  for (const abi::SignalId s : plan.signals) {
    one.signal += (one.signal.empty() ? "" : " + ") + pack_.signals[s].name;
  }
  one.entity = entity_text(c);
  one.scope = "self";
  one.nats = synergy_nats(index);
  one.entity_count = one.fired_count = 1;
  one.leak_origin = "synergy";
  one.rule = plan.where;
  return one;
}

// Suppressed firings of the own node, with what each would have weighed.
void Scorer::list_suppressed(const Candidate& c, const Term& term, abi::Hypothesis& h) const {
  if (term.reach != Term::Reach::kOwn) return;
  const abi::EdgePlan& e = *term.edge;
  for (const Span& s : field_.spans(e.to, c.row)) {
    if (!s.suppressed || explains_maintenance(e, s) || !in_window(s, e, c.onset_ns)) continue;
    const abi::EntityKey& entity = field_.evidence(s).entity;
    if (!field_.compatible(c.entity, entity)) continue;
    Span full = s;
    full.suppressed = false;
    const double ratio = ratio_of(term, full, survive_of(term, full));
    h.suppressed.push_back({pack_.signals[e.to].name, field_.entity_text(entity),
                            field_.episode(s).suppressed_by,
                            fired_nats(e, field_.strength(e, class_of(c.row)), ratio)});
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
    const double finish = numbers_.multiplier(e.to) / numbers_.temperature();
    t.nats = finish > 0 ? v.nats / finish : 0;
    const double lost = v.fired > 0 ? lost_nats(c, all, i, v.nats) : 0;
    t.explained = lost > 0 && lost >= v.nats;
    t.group = term.group != nullptr;
    t.p = term.in ? term.in->p : field_.strength(e, class_of(c.row));
    t.log_ratio = v.log_ratio;
    t.silent_ratio = v.silent_ratio;
    t.background = v.background;
    t.leak = numbers_.graded(e.to)             ? numbers_.episode_leak(e.to)
             : term.reach == Term::Reach::kOwn ? own_leak(term, c.row)
             : v.fired > 0                     ? std::exp(-v.log_ratio)
                                               : numbers_.leak(edge, nullptr);
    out.terms.push_back(t);
  }
  for (const uint32_t synergy : synergies_of(c, all, c.onset_ns)) {
    DossierTerm t;
    t.edge = abi::kNone32;
    t.synergy = synergy;
    t.nats = numbers_.synergy_nats(synergy);
    t.members = t.fired = 1;
    out.terms.push_back(t);
  }
  if (const Agreement same = agreement(c); same.nats != 0) {
    DossierTerm t;
    t.edge = abi::kNone32;
    t.nats = same.nats * numbers_.temperature() / numbers_.agreement_multiplier();
    t.agreement = true;
    out.terms.push_back(t);
  }
  if (const double ailing = ailing_nats(c); ailing != 0) {
    DossierTerm t;
    t.edge = abi::kNone32;
    t.nats = ailing * numbers_.temperature() / numbers_.ailing_multiplier();
    t.ailing = true;
    out.terms.push_back(t);
  }
  return out;
}

double term_nats(const DossierTerm& term, double p) {
  if (term.edge == abi::kNone32) return term.nats;
  if (term.members == 0) return 0;
  if (term.group) {
    LevelWeights weights;
    const GroupShape shape = group_shape(term, weights);
    return shape.rest + mix(weights.at(p), shape.levels);
  }
  const double ratio = std::exp(term.log_ratio);
  return log_of_one_plus(p * ((term.fired > 0 ? ratio : term.silent_ratio) - 1));
}

// Members are taken as alike, so what they differ in is carried over from the weight as it was.
GroupShape group_shape(const DossierTerm& term, LevelWeights& weights) {
  const uint32_t silent = term.members - std::min(term.fired, term.members);
  GroupShape out;
  out.levels = static_cast<double>(term.fired) * level_nats(std::exp(term.log_ratio));
  out.levels += static_cast<double>(silent) * level_nats(term.silent_ratio);
  out.rest = term.nats - mix(weights.at(term.p), out.levels);
  return out;
}

}  // namespace reflex::attribution
