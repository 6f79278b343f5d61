// Where each number of an incident comes from; see the header.
#include "runtime/attribution/numbers.h"

#include <algorithm>
#include <cmath>

namespace reflex::attribution {
namespace {

// Why: a window shorter than a minute would make any leak vanish and one stray line a proof.
constexpr double kLeakWindowMinHours = 1.0 / 60.0;
// Why: documented default for a signal without a stated leak.
constexpr double kDefaultLeakPerHour = 1e-3;
// Why: a weak kind comes about once in four days on a healthy node when nobody has measured it.
constexpr double kDefaultEventsPerHour = 1e-2;
// Why: near incidents benign firings are about ten times as frequent as in quiet hours; a leak
// below this is only believed when an author states it.
constexpr double kLeakFloor = 3e-4;
// Why: measured on unlabelled history, 0.3-2 % of healthy nodes show such an episode.
constexpr double kDefaultEpisodeLeak = 0.01;
// Why: keeps log(1 - p) and log(P1 / P0) finite whatever a pack says.
constexpr double kProbabilityMax = 0.9999;
constexpr double kLeakMin = 1e-12;
// Why: an incident is explained by what began around it; a rate "per hour" counts one hour.
constexpr double kExposureHours = 1.0;
constexpr double kPriorMax = 0.5;
constexpr double kPriorMin = 1e-15;
// Why: measured: in about 4 of 100 incidents with a culprit a neighbour fails in the same way.
constexpr double kCoCulpritOdds = 0.04;
// Why: about 6 of 1,000 nodes are on their way to a failure of their own at any time.
constexpr double kDegradingElsewhere = 0.006;

double stated(const std::vector<double>& v, size_t i, double otherwise) {
  return i < v.size() && !std::isnan(v[i]) ? v[i] : otherwise;
}

double window_hours(const abi::EdgePlan& e) {
  const double span = static_cast<double>(e.lag_hi_ns) - static_cast<double>(e.lag_lo_ns);
  return std::max(span / static_cast<double>(kNsPerHour), kLeakWindowMinHours);
}

double leak_in(double per_hour, double hours) {
  return std::clamp(-std::expm1(-per_hour * hours), kLeakMin, kProbabilityMax);
}

}  // namespace

double author_leak(const abi::CompiledPack& pack, const abi::EdgePlan& edge) {
  const abi::SignalPlan& s = pack.signals[edge.to];
  if (s.leak_per_hour > 0) return leak_in(s.leak_per_hour, window_hours(edge));
  if (s.leak_probability > 0) return std::clamp(s.leak_probability, kLeakMin, kProbabilityMax);
  return std::max(kLeakFloor, leak_in(kDefaultLeakPerHour, window_hours(edge)));
}

Numbers::Numbers(const abi::CompiledPack& pack, const Input& input, LevelCache& levels)
    : pack_(pack),
      input_(input),
      model_(input.model),
      tables_(input.tables.get()),
      class_count_(std::max<size_t>(pack.classes.size(), 1)),
      shared_levels_(levels) {
  author_leaks_.reserve(pack.edges.size());
  stated_leaks_.reserve(pack.edges.size());
  for (const abi::EdgePlan& e : pack.edges) {
    author_leaks_.push_back(author_leak(pack, e));
    const double learned = model_ ? stated(model_->leak_per_hour, e.to, 0) : 0;
    stated_leaks_.push_back(learned > 0 ? leak_in(learned, window_hours(e)) : author_leaks_.back());
  }
  add_strengths();
  add_laws();
  multipliers_.reserve(pack.signals.size());
  for (size_t s = 0; s < pack.signals.size(); ++s) {
    multipliers_.push_back(model_ ? std::max(0.0, stated(model_->signal_multiplier, s, 1)) : 1);
  }
  if (model_ && model_->temperature > 0) temperature_ = model_->temperature;
  rates_.resize(pack.signals.size());
  hazards_.assign(input.nodes.size(), std::nan(""));
  job_nodes_ = std::max<double>(
      1, static_cast<double>(std::count_if(input.nodes.begin(), input.nodes.end(),
                                           [](const NodeView& v) { return v.in_job; })));
}

void Numbers::add_strengths() {
  strengths_.reserve(pack_.edges.size() * class_count_);
  for (uint32_t i = 0; i < pack_.edges.size(); ++i) {
    const abi::EdgePlan& e = pack_.edges[i];
    const double learned = model_ ? stated(model_->edge_p, i, -1) : -1;
    for (size_t c = 0; c < class_count_; ++c) {
      double p = c < e.class_p.size() ? e.class_p[c] : e.p;
      if (learned >= 0) p = learned;
      if (e.has_weight) {
        // The strength that gives this weight at this leak: P1 = leak * e^w.
        const double leak = author_leaks_[i];
        const double fires = std::min(kProbabilityMax, leak * std::exp(e.weight_nats));
        p = (fires - leak) / (1 - leak);
      }
      strengths_.push_back(std::clamp(p, 0.0, kProbabilityMax));
    }
  }
}

void Numbers::add_laws() {
  laws_.resize(pack_.signals.size());
  graded_.reserve(pack_.signals.size());
  votes_.reserve(pack_.signals.size());
  for (size_t s = 0; s < pack_.signals.size(); ++s) {
    const abi::SignalPlan& plan = pack_.signals[s];
    const abi::GradedPlan& g = plan.count.graded;
    const bool on = plan.shape == abi::SignalShape::kCount && g.on;
    graded_.push_back(on ? 1 : 0);
    votes_.push_back(g.votes ? 1 : 0);
    if (!on) continue;
    graded_list_.push_back(static_cast<abi::SignalId>(s));
    longest_window_ns_ = std::max(longest_window_ns_, plan.count.window_ns);
    Law& law = laws_[s];
    law.law.extra_mean = model_ ? stated(model_->graded_extra, s, g.extra_mean) : g.extra_mean;
    law.law.profile = g.profile;
    if (model_ && s < model_->graded_profile.size()) {
      double sum = 0;
      for (double x : model_->graded_profile[s]) sum += x;
      if (sum > 0) law.law.profile = model_->graded_profile[s];
    }
    law.law.window_hours =
        static_cast<double>(plan.count.window_ns) / static_cast<double>(kNsPerHour);
    law.law.seen_hours = law.law.window_hours;
    const double author = plan.leak_probability > 0 ? plan.leak_probability : kDefaultEpisodeLeak;
    law.episode_leak = model_ ? stated(model_->episode_leak, s, author) : author;
    law.episode_leak = std::clamp(law.episode_leak, kLeakMin, kProbabilityMax);
  }
}

const abi::BenignRate& Numbers::rate(abi::SignalId s, const NodeView& view) const {
  auto& list = rates_[s];
  if (list.empty()) list.resize(input_.nodes.size());
  Known& k = list[static_cast<size_t>(&view - input_.nodes.data())];
  if (!k.asked) k = {true, tables_->benign(s, view.hw_class, view.node)};
  return k.rate;
}

double Numbers::stated_rate(abi::SignalId s, double fallback) const {
  const double author = pack_.signals[s].leak_per_hour;
  const double learned = model_ ? stated(model_->leak_per_hour, s, 0) : 0;
  return learned > 0 ? learned : author > 0 ? author : fallback;
}

bool Numbers::learned_leak(abi::SignalId s) const {
  return model_ && stated(model_->leak_per_hour, s, 0) > 0;
}

double Numbers::leak(uint32_t edge, const NodeView* view) const {
  const abi::EdgePlan& e = pack_.edges[edge];
  if (e.has_weight) return author_leaks_[edge];  // the weight was stated against it
  if (!tables_ || !view || graded(e.to)) return stated_leaks_[edge];
  const abi::BenignRate& r = rate(e.to, *view);
  if (r.node_hours <= 0) return stated_leaks_[edge];
  const double measured = leak_in(r.onsets_per_hour, window_hours(e) + r.mean_hours);
  // A chance per window is what was stated of windows around incidents, where benign firings are
  // more frequent than in the hours that the rate is measured in: it is never undercut.
  const bool of_incidents = pack_.signals[e.to].leak_probability > 0 || learned_leak(e.to);
  return std::max(measured, of_incidents ? stated_leaks_[edge]
                                         : std::min(kLeakFloor, author_leaks_[edge]));
}

std::string Numbers::leak_origin(uint32_t edge, const NodeView* view) const {
  const abi::EdgePlan& e = pack_.edges[edge];
  if (tables_ && view && !e.has_weight) {
    const abi::BenignRate& r = rate(e.to, *view);
    if (r.node_hours > 0) {
      std::string who;
      switch (r.from) {
        case abi::TableOrigin::From::kNode:
          who = "node " + std::string(pack_.symbols->name(view->node));
          break;
        case abi::TableOrigin::From::kClass:
        case abi::TableOrigin::From::kModel:
          who = view->hw_class < pack_.classes.size()
                    ? "class " + pack_.classes[view->hw_class].name
                    : "class";
          break;
        case abi::TableOrigin::From::kStatic:
        case abi::TableOrigin::From::kFleet:
          who = "fleet";
      }
      return who + ", " + std::to_string(std::llround(r.node_hours)) + " h";
    }
  }
  const auto& learned = graded(e.to) ? (model_ ? model_->episode_leak : std::vector<double>{})
                                     : (model_ ? model_->leak_per_hour : std::vector<double>{});
  return stated(learned, e.to, 0) > 0 && !e.has_weight ? "model" : "author";
}

double Numbers::log_a(abi::SignalId s, const NodeView* view, const LeadCounts& counts) const {
  GradedLaw law = laws_[s].law;
  double per_hour = stated_rate(s, kDefaultEventsPerHour);
  if (view) {
    if (tables_) {
      // Not kept: the field asks once for each episode.
      const abi::BenignRate r = tables_->benign(s, view->hw_class, view->node);
      if (r.node_hours > 0) per_hour = r.firings_per_hour;
    }
    if (view->repaired_ns != kNoTimeNs) {
      const double hours = static_cast<double>(input_.opened_ns - view->repaired_ns) /
                           static_cast<double>(kNsPerHour);
      law.seen_hours = std::clamp(hours, 0.0, law.window_hours);
    }
  }
  return graded_log_ratio(law, counts, per_hour);
}

double Numbers::fired_ratio(double leak, double survive) {
  return 1 / std::max(kLeakMin, 1 - (1 - leak) * survive);
}

const Levels& Numbers::weights(double p) const {
  return shared_levels_.full() ? level_weights_.at(p) : shared_levels_.at(p);
}

double Numbers::soft_ratio(abi::SignalId s, double a, double survive) const {
  const double benign = votes(s) ? 0 : 1 - (1 - laws_[s].episode_leak) * survive;
  return a / (1 - benign + benign * a);
}

double Numbers::hazard(abi::CauseId c, const NodeView& view) const {
  if (!input_.switches.history) return 1;
  const auto& list = input_.cause_hazards;
  const auto it = std::lower_bound(
      list.begin(), list.end(), std::make_pair(view.node, c),
      [](const CauseHazard& h, const auto& key) { return std::make_pair(h.node, h.cause) < key; });
  const bool own = it != list.end() && it->node == view.node && it->cause == c;
  if (own) return scaled_hazard(it->factor);
  double& known = hazards_[static_cast<size_t>(&view - input_.nodes.data())];
  if (known != known) known = scaled_hazard(view.hazard);
  return known;
}

double Numbers::scaled_hazard(double factor) const {
  const bool scaled = model_ && model_->history_multiplier != 1 && factor != 1;
  return scaled ? std::pow(factor, model_->history_multiplier) : factor;
}

double Numbers::prior_nats(abi::CauseId c, const NodeView* view) const {
  const abi::CausePlan& plan = pack_.causes[c];
  double prior = model_ ? stated(model_->cause_prior, c, plan.prior) : plan.prior;
  if (plan.prior_unit == abi::RateUnit::kPerHour) prior *= kExposureHours;
  if (view && plan.prior_unit == abi::RateUnit::kPerIncident) prior /= job_nodes_;
  if (view && !input_.switches.by_class) prior *= hazard(c, *view);
  if (view && input_.switches.by_class) {
    const size_t k = view->hw_class;
    double scale = k < plan.class_prior_scale.size() ? plan.class_prior_scale[k] : 1;
    if (model_ && c < model_->cause_class_scale.size()) {
      scale = stated(model_->cause_class_scale[c], k, scale);
    }
    prior *= scale * hazard(c, *view);
  }
  if (plan.prior_unit == abi::RateUnit::kPerIncident) prior = std::min(prior, kPriorMax);
  const double none = std::clamp(input_.plan->unexplained_prior, kPriorMin, kPriorMax);
  double nats = std::log(std::clamp(prior, kPriorMin, kPriorMax) / none);
  // The shift is that of "some node is at fault"; external causes answer for themselves.
  if (model_ && plan.kind == abi::CauseKind::kFault) nats += model_->none_shift_nats;
  return nats;
}

double Numbers::synergy_nats(uint32_t synergy) const {
  const double author = pack_.synergies[synergy].weight_nats;
  return model_ ? stated(model_->synergy_nats, synergy, author) : author;
}

double Numbers::co_culprit_nats() const {
  const double odds =
      model_ && model_->co_culprit_odds > 0 ? model_->co_culprit_odds : kCoCulpritOdds;
  return std::log(odds);
}

double Numbers::degrading_elsewhere() const {
  return model_ && model_->degrading_elsewhere > 0 ? model_->degrading_elsewhere
                                                   : kDegradingElsewhere;
}

double Numbers::ailing_multiplier() const { return model_ ? model_->ailing_multiplier : 1; }

double Numbers::agreement_multiplier() const {
  return model_ ? model_->agreement_multiplier : 1;
}

abi::DecisionLevels Numbers::levels(abi::ClassId c) const {
  abi::DecisionLevels out{input_.plan->confirm, input_.plan->suspect};
  const auto take = [&out](const abi::DecisionLevels& l) {
    if (l.confirm > 0) out.confirm = l.confirm;
    if (l.suspect > 0) out.suspect = l.suspect;
  };
  if (!model_) return out;
  take(model_->levels);
  if (input_.switches.by_class && c < model_->class_levels.size()) take(model_->class_levels[c]);
  return out;
}

}  // namespace reflex::attribution
