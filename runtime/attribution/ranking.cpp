// Posterior, several culprits, and the answer; see ranking.h and README.md.
#include "runtime/attribution/ranking.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reflex::attribution {
namespace {

// Why: exp(-60) of 10,000 rivals is below 1e-21: they cannot change a printed digit.
constexpr double kNegligibleNats = 60;
// Why: bounds the greedy search; more culprits than this at once is one external cause.
constexpr size_t kCulpritsMax = 16;
// Why: the prior of a fault is its share among incidents. That a second one of other origin falls
// into the same hours is a coincidence: a node in a thousand fails in an hour at most, so one
// incident in a hundred has one.
constexpr double kCoincidence = 0.01;

double logistic(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double logit(double p) {
  const double q = std::clamp(p, 1e-9, 1 - 1e-9);
  return std::log(q / (1 - q));
}

__extension__ using Uint128 = unsigned __int128;

/// A sum of numbers from 0 to 1, each rounded to a multiple of 2^-62: it does not depend on their order.
class OrderlessSum {
 public:
  void add(double x, size_t times) {
    sum_ += Uint128{static_cast<uint64_t>(x * 0x1p62)} * times;
  }
  [[nodiscard]] double value() const {
    const auto high = static_cast<double>(static_cast<uint64_t>(sum_ >> 64));
    return high * 4 + static_cast<double>(static_cast<uint64_t>(sum_)) * 0x1p-62;
  }

 private:
  Uint128 sum_ = 0;
};

/// What it is like stands before it.
void evaluate_one(std::vector<Candidate>& candidates, uint32_t i, Scorer& scorer) {
  Candidate& c = candidates[i];
  if (c.like == kNoNode)
    scorer.evaluate(c);
  else
    scorer.evaluate_like(c, candidates[c.like]);
}

class Ranker {
 public:
  Ranker(const EvidenceField& field, const CauseGraph& graph, Scorer& scorer, size_t listed,
         Ranking spare)
      : field_(field), graph_(graph), scorer_(scorer), listed_(listed), r_(std::move(spare)) {
    r_.clear();
    const double temperature = field_.numbers().temperature();
    const double unexplained = std::log(plan().unexplained_prior);
    by_coincidence_ = (unexplained + std::log(kCoincidence)) / temperature;
    by_rate_ = (unexplained + 0) / temperature;
    beside_ = field_.numbers().co_culprit_nats() / temperature;
    bar_ = logit(plan().confirm);
    bar_beside_ = logit(std::max(plan().suspect, 0.5));
  }

  Ranking run() {
    r_.candidates = hypotheses(field_, graph_, std::move(r_.candidates));
    if (field_.input().counterfactual) scorer_.keep_own_parts(r_.candidates.size());
    evaluate(r_.candidates, scorer_);
    return conclude();
  }

  Ranking run_again(const WholeRanking& whole) {
    std::vector<uint32_t> from;
    r_.candidates = hypotheses_again(field_, graph_, whole.field, whole.candidates, from,
                                     std::move(r_.candidates));
    for (uint32_t i = 0; i < r_.candidates.size(); ++i) {
      Candidate& c = r_.candidates[i];
      c.id = i;
      weigh_again(i, from[i] == kNoNode ? nullptr : &whole.candidates[from[i]], whole);
    }
    return conclude();
  }

 private:
  void weigh_again(uint32_t i, const Candidate* before, const WholeRanking& whole) {
    Candidate& c = r_.candidates[i];
    if (before && scorer_.same_as_whole(c, whole.scorer)) {
      return scorer_.evaluate_as_whole(c, *before, whole.scorer);
    }
    if (before && c.like == kNoNode && scorer_.try_own_as_whole(c, *before, whole.scorer)) return;
    evaluate_one(r_.candidates, i, scorer_);
  }

  Ranking conclude() {
    sort_best();
    accept();
    posterior();
    answer();
    return std::move(r_);
  }

  const abi::IncidentPlan& plan() const { return *field_.input().plan; }

  bool before(const Candidate& a, const Candidate& b) const {
    if (a.log_odds != b.log_odds) return a.log_odds > b.log_odds;
    if (a.row != b.row) return a.row < b.row;  // rows stand by name; externals last
    return a.id < b.id;                        // by names as well
  }

  void sort_best() {
    r_.sorted = std::min(listed_, r_.candidates.size());
    std::partial_sort(r_.candidates.begin(), r_.candidates.begin() + r_.sorted, r_.candidates.end(),
                      [&](const Candidate& a, const Candidate& b) { return before(a, b); });
  }

  // Greedy: the best one is active; a further node joins only with evidence of its own.
  void accept() {
    co_.assign(field_.rows().size(), 0);
    co_odds_.assign(field_.rows().size(), 0);
    if (!field_.input().switches.explain_away) return;
    if (r_.candidates.empty() || r_.candidates[0].log_odds <= 0) return;
    // Residual odds never exceed the odds of a candidate by more than this: the rest cannot pass.
    std::vector<Candidate> rivals;
    for (const Candidate& c : r_.candidates) {
      if (names_node(c) && c.row != r_.candidates[0].row && c.alike.empty() &&
          c.log_odds + shift(c) > bar(c) && scorer_.has_own_evidence(c)) {
        rivals.push_back(c);
      }
    }
    if (rivals.empty()) return;
    Scorer residual(field_, graph_, &scorer_);
    Candidate active = r_.candidates[0];
    if (!names_node(active) && !on_place(active)) return;
    for (size_t round = 0; round < kCulpritsMax && !rivals.empty(); ++round) {
      residual.activate(active);
      for (Candidate& c : rivals) residual.evaluate(c);
      std::erase_if(rivals, [&](const Candidate& c) {
        return c.log_odds + shift(c) <= bar(c) || !residual.has_own_evidence(c);
      });
      if (rivals.empty()) break;
      active = *std::min_element(rivals.begin(), rivals.end(), [&](const auto& a, const auto& b) {
        const double of_a = a.log_odds + shift(a), of_b = b.log_odds + shift(b);
        return of_a != of_b ? of_a > of_b : before(a, b);
      });
      co_[active.row] = 1;
      any_co_ = true;
      co_odds_[active.row] = active.log_odds + shift(active);
      std::erase_if(rivals, [&](const Candidate& c) { return c.row == active.row; });
    }
  }

  bool names_node(const Candidate& c) const {
    return c.row != kNoNode && field_.shape().causes[c.cause].fault;
  }

  // An external cause on a switch, rack, pod or zone: a member may be broken as well, and then has
  // evidence of its own. What is wrong with the whole job, or with one rank's code, leaves no room.
  bool on_place(const Candidate& c) const {
    const auto& keys = field_.pack().entity_kinds[c.entity.kind].keys;
    return c.row == kNoNode && keys.size() == 1 && place_letter(keys[0]) != 0;
  }

  // A neighbour of the first culprit (same switch or rack) that fails in the same way.
  bool beside_first(const Candidate& c) const {
    const Candidate& first = r_.candidates[0];
    if (first.row == kNoNode || c.cause != first.cause) return false;
    const NodeView& a = *field_.rows()[first.row].view;
    const NodeView& b = *field_.rows()[c.row].view;
    return (a.tor != kNoSymbol && a.tor == b.tor) || (a.rack != kNoSymbol && a.rack == b.rack);
  }

  // From residual log-odds against "nothing is wrong" to those of a further culprit. A neighbour
  // with the same fault has prior odds of its own. Else: that something is wrong is what the first
  // culprit explains; a further fault stands against "nothing more is wrong", whose prior odds
  // are 1, not `unexplained`, and it is there by coincidence.
  double shift(const Candidate& c) const {
    if (beside_first(c)) return beside_ - c.prior_nats;
    // A rate per hour is the chance of a coincidence already; a share among incidents is not.
    const bool share = field_.pack().causes[c.cause].prior_unit == abi::RateUnit::kPerIncident;
    return share ? by_coincidence_ : by_rate_;
  }
  double bar(const Candidate& c) const { return beside_first(c) ? bar_beside_ : bar_; }

  // Ablation: nothing explains anything away. Each node (all its faults) and each external cause
  // stands alone against "not at fault"; the probabilities need not sum to one.
  void independent() {
    constexpr double kLogOddsMax = 600;  // exp() of more is no number
    std::vector<double> odds(field_.rows().size(), 0);
    const auto odds_of = [&](const Candidate& c) {
      return std::exp(std::min(c.log_odds, kLogOddsMax));
    };
    for (const Candidate& c : r_.candidates) {
      if (!names_node(c)) continue;
      odds[c.row] += odds_of(c);
      for (uint32_t row : c.alike) odds[row] += odds_of(c);
    }
    r_.p.assign(r_.candidates.size(), 0);
    r_.p_none = 1;
    std::vector<uint32_t> live;
    for (uint32_t i = 0; i < r_.p.size(); ++i) {
      const Candidate& c = r_.candidates[i];
      const double own = odds_of(c);
      r_.p[i] = own / (1 + (names_node(c) ? odds[c.row] : own));
      if (names_node(c)) live.push_back(i);
      else r_.p_none = std::min(r_.p_none, 1 - r_.p[i]);
    }
    node_sums(live);
    for (uint32_t row = 0; row < odds.size(); ++row) {
      r_.node_p[row] = odds[row] / (1 + odds[row]);
      r_.p_none = std::min(r_.p_none, 1 - r_.node_p[row]);
    }
  }

  void posterior() {
    if (!field_.input().switches.explain_away) return independent();
    double top = 0;  // log-odds of "none"
    for (const Candidate& c : r_.candidates) top = std::max(top, c.log_odds);
    // Candidates of accepted further culprits are no rivals of the others: their own odds decide.
    OrderlessSum all;
    all.add(std::exp(-top), 1);
    std::vector<double> weight(r_.candidates.size(), 0);
    for (size_t i = 0; i < r_.candidates.size(); ++i) {
      const Candidate& c = r_.candidates[i];
      if (c.log_odds < top - kNegligibleNats) continue;
      weight[i] = std::exp(c.log_odds - top);
      all.add(weight[i], rivals_in(c));
    }
    const double total = all.value();
    r_.p_none = std::exp(-top) / total;
    r_.p.assign(r_.candidates.size(), 0);
    std::vector<uint32_t> live;
    live.reserve(weight.size());
    for (uint32_t i = 0; i < weight.size(); ++i) {
      if (weight[i] == 0) continue;
      const Candidate& c = r_.candidates[i];
      const size_t n = rivals_in(c);
      r_.p[i] = weight[i] / total * static_cast<double>(n);
      if (names_node(c) && r_.p[i] > 0) live.push_back(i);
    }
    node_sums(live);
    co_culprits();
  }

  // How many of the nodes that the candidate stands for are not accepted further culprits.
  size_t rivals_in(const Candidate& c) const {
    if (!any_co_ || !names_node(c)) return 1 + c.alike.size();
    size_t n = co_[c.row] ? 0 : 1;
    for (uint32_t row : c.alike) n += co_[row] ? 0 : 1;
    return n;
  }

  bool is_co(const Candidate& c) const { return names_node(c) && co_[c.row] && c.alike.empty(); }

  // An accepted further culprit: its probability is that of its residual odds, split over its own
  // hypotheses by weight.
  void co_culprits() {
    if (!any_co_) return;
    std::vector<double> best(co_.size(), -1e300);
    for (const Candidate& c : r_.candidates) {
      if (is_co(c)) best[c.row] = std::max(best[c.row], c.log_odds);
    }
    std::vector<double> total(co_.size(), 0);
    for (const Candidate& c : r_.candidates) {
      if (is_co(c)) total[c.row] += std::exp(c.log_odds - best[c.row]);
    }
    for (uint32_t i = 0; i < r_.candidates.size(); ++i) {
      const Candidate& c = r_.candidates[i];
      if (!is_co(c)) continue;
      r_.node_p[c.row] = logistic(co_odds_[c.row]);
      r_.p[i] = r_.node_p[c.row] * std::exp(c.log_odds - best[c.row]) / total[c.row];
    }
  }

  void node_sums(const std::vector<uint32_t>& live) {
    r_.node_p.assign(field_.rows().size(), 0);
    r_.node_best.assign(field_.rows().size(), kNoNode);
    // By cause and entity: no matter what nodes are called.
    std::vector<uint32_t> order(r_.candidates.size(), kNoNode);
    for (uint32_t i : live) order[r_.candidates[i].id] = i;
    std::erase(order, kNoNode);
    for (uint32_t i : order) {
      const Candidate& c = r_.candidates[i];
      const double each = r_.p[i] / static_cast<double>(rivals_in(c));
      r_.node_p[c.row] += each;
      for (uint32_t row : c.alike) r_.node_p[row] += each;
    }
    std::vector<double> best_odds(r_.node_best.size(), 0);  // of node_best: nearly all are less
    for (uint32_t i = 0; i < r_.candidates.size(); ++i) {
      const Candidate& c = r_.candidates[i];
      if (!names_node(c)) continue;
      const auto better = [&](uint32_t row) {
        uint32_t& best = r_.node_best[row];
        if (best != kNoNode && c.log_odds < best_odds[row]) return;
        if (best != kNoNode && !before(c, r_.candidates[best])) return;
        best = i;
        best_odds[row] = c.log_odds;
      };
      better(c.row);
      for (uint32_t row : c.alike) better(row);
    }
  }

  /// A prior alone is no reason to send anybody anywhere: some fired signal must speak for it.
  bool speaks_for(const Candidate& c) { return scorer_.speaks_for(c); }

  /// Of a job without nodes nothing is known, also not that nothing is wrong.
  bool knows_the_job() const {
    const auto& rows = field_.rows();
    return std::any_of(rows.begin(), rows.end(), [](const auto& r) { return r.view->in_job; });
  }

  void answer() {
    std::vector<uint32_t> confirmed, suspected;
    for (uint32_t row = 0; row < r_.node_p.size(); ++row) {
      const abi::DecisionLevels levels = field_.numbers().levels(field_.rows()[row].view->hw_class);
      if (r_.node_p[row] < levels.suspect) continue;
      if (r_.node_best[row] == kNoNode || !speaks_for(r_.candidates[r_.node_best[row]])) continue;
      // An accepted further culprit stands beside the first one, whatever its own level.
      const bool firm = r_.node_p[row] >= levels.confirm || co_[row];
      (firm ? confirmed : suspected).push_back(row);
    }
    const bool only_co = std::all_of(confirmed.begin(), confirmed.end(),
                                     [&](uint32_t row) { return co_[row] != 0; });
    if (only_co) {  // the first is only suspected: so are its companions
      suspected.insert(suspected.end(), confirmed.begin(), confirmed.end());
      confirmed.clear();
    }
    double best_external = 0;
    for (size_t i = 0; i < r_.candidates.size(); ++i) {
      const Candidate& c = r_.candidates[i];
      if (names_node(c) || r_.p[i] < plan().suspect || r_.p[i] <= best_external) continue;
      if (!speaks_for(c)) continue;
      best_external = r_.p[i];
      const std::string entity = field_.entity_text(c.entity);
      r_.external = field_.pack().causes[c.cause].name + (entity.empty() ? "" : " on " + entity);
    }
    r_.culprit_rows = confirmed.empty() ? suspected : confirmed;
    std::stable_sort(r_.culprit_rows.begin(), r_.culprit_rows.end(),
                     [&](uint32_t a, uint32_t b) { return r_.node_p[a] > r_.node_p[b]; });
    for (uint32_t row : r_.culprit_rows) r_.culprits.emplace_back(field_.rows()[row].name);
    if (!r_.culprits.empty()) {
      r_.answer = abi::Answer::kNodes;
      r_.level = confirmed.empty() ? "suspected" : "confirmed";
    } else if (!r_.external.empty()) {
      r_.answer = abi::Answer::kExternal;
      r_.level = "external";
    } else if (r_.p_none >= plan().suspect && knows_the_job()) {
      r_.answer = abi::Answer::kNone;
      r_.level = "none";
    } else {
      r_.level = "undetermined";
    }
  }

  const EvidenceField& field_;
  const CauseGraph& graph_;
  Scorer& scorer_;
  size_t listed_;
  Ranking r_;
  std::vector<uint8_t> co_;
  bool any_co_ = false;
  std::vector<double> co_odds_;
  // shift() and bar(), whose logarithms are the same for all candidates.
  double by_coincidence_ = 0;
  double by_rate_ = 0;
  double beside_ = 0;
  double bar_ = 0;
  double bar_beside_ = 0;
};

}  // namespace

void evaluate(std::vector<Candidate>& candidates, Scorer& scorer) {
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    candidates[i].id = i;
    evaluate_one(candidates, i, scorer);
  }
}

bool Ranking::same_answer(const Ranking& other) const {
  // Two culprits in another order are the same answer.
  std::vector<std::string> mine = culprits;
  std::vector<std::string> theirs = other.culprits;
  std::sort(mine.begin(), mine.end());
  std::sort(theirs.begin(), theirs.end());
  return answer == other.answer && level == other.level && mine == theirs &&
         external == other.external;
}

std::string Ranking::answer_text() const {
  if (answer == abi::Answer::kExternal) return "external " + external;
  if (answer != abi::Answer::kNodes) return level;
  std::string text;
  for (const std::string& c : culprits) text += (text.empty() ? "" : ", ") + c;
  return text + " " + level;
}

void Ranking::clear() {
  candidates.clear();
  sorted = 0;
  p.clear();
  p_none = 0;
  node_p.clear();
  node_best.clear();
  culprit_rows.clear();
  answer = abi::Answer::kUndetermined;
  level.clear();
  external.clear();
  culprits.clear();
}

Ranking SpareRankings::take() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  Ranking ranking = std::move(spare_.back());
  spare_.pop_back();
  return ranking;
}

void SpareRankings::take_back(Ranking&& ranking) {
  // Why: that of a job of 10,000 nodes is not worth keeping for the next one of 16.
  constexpr size_t kKeptMax = 5000;
  if (ranking.candidates.capacity() > kKeptMax) return;
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(ranking));
}

Ranking rank(const EvidenceField& field, const CauseGraph& graph, Scorer& scorer,
             size_t listed_min, Ranking spare) {
  return Ranker(field, graph, scorer, listed_min, std::move(spare)).run();
}

Ranking rank_again(const EvidenceField& field, const CauseGraph& graph, Scorer& scorer,
                   size_t listed_min, const WholeRanking& whole, Ranking spare) {
  return Ranker(field, graph, scorer, listed_min, std::move(spare)).run_again(whole);
}

}  // namespace reflex::attribution
