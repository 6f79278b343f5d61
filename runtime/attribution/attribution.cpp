// Graph: composes field, ranking and explanation into a verdict; look-back bounds; counterfactuals.
#include "runtime/attribution/attribution.h"

#include <algorithm>

#include "runtime/attribution/counterfactual.h"
#include "runtime/attribution/ranking.h"

namespace reflex::attribution {
namespace {

// Why: nodes below 1 % are only listed to fill the first five rows of a table.
constexpr double kNodeListedP = 0.01;
constexpr size_t kNodesListedMin = 5;

class GraphOfPack final : public Graph {
 public:
  GraphOfPack(std::shared_ptr<const abi::CompiledPack> pack, CauseGraph graph)
      : pack_(std::move(pack)), graph_(std::move(graph)) {
    measure_windows();
  }

  std::optional<abi::Verdict> attribute_unless(const Input& input,
                                               std::string& signature) const override {
    RFX_CHECK(input.plan != nullptr && input.observed != nullptr);
    const EvidenceField field(*pack_, graph_, input);
    Scorer scorer(field, graph_);
    const size_t listed = std::max<size_t>(input.hypotheses_max, 1);
    Ranking r = rank(field, graph_, scorer, listed, spare_.take());
    const std::vector<uint32_t> order = listing(r, listed);
    std::string now = signature_of(r, scorer, order);
    std::optional<abi::Verdict> verdict;
    if (now != signature) verdict = verdict_of(field, scorer, r, order);
    signature = std::move(now);
    spare_.take_back(std::move(r));
    return verdict;
  }

  Dossier dossier(const Input& input) const override {
    RFX_CHECK(input.plan != nullptr && input.observed != nullptr);
    const EvidenceField field(*pack_, graph_, input);
    Scorer scorer(field, graph_);
    Dossier out;
    std::vector<Candidate> candidates = hypotheses(field, graph_);
    evaluate(candidates, scorer);
    for (const Candidate& c : candidates) out.hypotheses.push_back(scorer.numbers_of(c));
    return out;
  }

  int64_t lookback_ns(abi::SignalId signal) const override { return lookback_[signal]; }
  int64_t lookahead_ns(abi::SignalId signal) const override { return lookahead_[signal]; }

 private:
  static constexpr uint32_t kNone = kNoNode;  // "none" among the hypotheses

  abi::Verdict verdict_of(const EvidenceField& field, Scorer& scorer, const Ranking& r,
                          const std::vector<uint32_t>& order) const {
    const Input& input = field.input();
    abi::Verdict v;
    v.job = std::string(pack_->symbols->name(input.job));
    v.ts_ns = input.now_ns;
    v.opened_ns = input.opened_ns;
    v.incident_type = input.plan->name;
    v.answer = r.answer;
    v.level = r.level;
    v.culprits = r.culprits;
    v.external = r.external;
    if (input.model) v.model_sha256 = input.model->sha256;
    if (input.tables) v.table_version = input.tables->version();
    for (const auto& row : field.rows()) v.job_node_count += row.view->in_job ? 1 : 0;
    for (const uint32_t i : order) {
      v.hypotheses.push_back(i == kNone ? abi::Hypothesis{} : scorer.explain(r.candidates[i]));
      v.hypotheses.back().p = i == kNone ? r.p_none : r.p[i];
    }
    list_nodes(field, r, scorer, v);
    if (input.counterfactual) v.counterfactual = counterfactuals(graph_, field, scorer, r);
    return v;
  }

  /// The hypotheses that are listed: best first, "none" where it stands.
  static std::vector<uint32_t> listing(const Ranking& r, size_t listed) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < r.sorted; ++i) order.push_back(i);
    // Accepted further culprits are listed however many rivals stand before them.
    for (uint32_t row : r.culprit_rows) {
      const uint32_t best = r.node_best[row];
      if (best >= r.sorted && order.size() < listed + r.culprit_rows.size()) order.push_back(best);
    }
    const auto at = std::find_if(order.begin(), order.end(),
                                 [&](uint32_t i) { return r.candidates[i].log_odds < 0; });
    order.insert(at, kNone);
    return order;
  }

  std::string signature_of(const Ranking& r, const Scorer& scorer,
                           const std::vector<uint32_t>& order) const {
    std::string text = r.level + "|" + r.external;
    for (const std::string& culprit : r.culprits) text += "|" + culprit;
    for (size_t i = 0; i < std::min<size_t>(3, order.size()); ++i) {
      text += '|';
      if (order[i] == kNone) continue;
      const Candidate& c = r.candidates[order[i]];
      text += pack_->causes[c.cause].name + "@" + scorer.entity_text(c);
    }
    return text;
  }

  void list_nodes(const EvidenceField& field, const Ranking& r, const Scorer& scorer,
                  abi::Verdict& v) const {
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < r.node_p.size(); ++i) {
      if (r.node_best[i] != kNoNode) rows.push_back(i);
    }
    const auto before = [&](uint32_t a, uint32_t b) {
      return r.node_p[a] != r.node_p[b] ? r.node_p[a] > r.node_p[b] : a < b;
    };
    const size_t firm = static_cast<size_t>(std::count_if(
        rows.begin(), rows.end(), [&](uint32_t i) { return r.node_p[i] >= kNodeListedP; }));
    const size_t count = std::min(rows.size(), std::max(firm, kNodesListedMin));
    std::partial_sort(rows.begin(), rows.begin() + count, rows.end(), before);
    for (size_t i = 0; i < count; ++i) {
      const Candidate& best = r.candidates[r.node_best[rows[i]]];
      const double p = r.node_p[rows[i]];
      abi::NodeProbability n;
      n.node = std::string(field.rows()[rows[i]].name);
      n.p = p;
      const abi::DecisionLevels levels =
          field.numbers().levels(field.rows()[rows[i]].view->hw_class);
      if (p >= levels.confirm)
        n.level = "confirmed";
      else if (p >= levels.suspect)
        n.level = "suspected";
      n.top_cause = pack_->causes[best.cause].name;
      n.top_entity = best.alike.empty() ? scorer.entity_text(best) : n.node;
      v.nodes.push_back(std::move(n));
    }
  }

  // A cause begins at t with opening in [t + lo, t + hi] of some edge of it; its other children
  // follow within their own windows. Parents of children explain them away, so they count too.
  void measure_windows() {
    lookback_.assign(pack_->signals.size(), 0);
    lookahead_.assign(pack_->signals.size(), 0);
    for (const auto& edges : graph_.cause_edges) {
      int64_t latest = 0;
      for (uint32_t e : edges) latest = std::max(latest, pack_->edges[e].lag_hi_ns);
      for (uint32_t i : edges) {
        const abi::EdgePlan& e = pack_->edges[i];
        lookback_[e.to] = std::max(lookback_[e.to], latest - e.lag_lo_ns);
        lookahead_[e.to] = std::max(lookahead_[e.to], e.lag_hi_ns);
      }
    }
    for (auto it = graph_.signal_order.rbegin(); it != graph_.signal_order.rend(); ++it) {
      for (uint32_t i : graph_.parent_edges[*it]) {
        const abi::EdgePlan& e = pack_->edges[i];
        lookback_[e.from] =
            std::max(lookback_[e.from], lookback_[*it] + std::max<int64_t>(0, e.lag_hi_ns));
        lookahead_[e.from] =
            std::max(lookahead_[e.from], lookahead_[*it] + std::max<int64_t>(0, -e.lag_lo_ns));
      }
    }
  }

  std::shared_ptr<const abi::CompiledPack> pack_;
  CauseGraph graph_;
  std::vector<int64_t> lookback_;
  std::vector<int64_t> lookahead_;
  mutable SpareRankings spare_;
};

}  // namespace

Result<std::unique_ptr<Graph>> Graph::build(std::shared_ptr<const abi::CompiledPack> pack) {
  Result<CauseGraph> graph = build_cause_graph(*pack);
  if (!graph) return Error(graph.error());
  return std::unique_ptr<Graph>(
      std::make_unique<GraphOfPack>(std::move(pack), std::move(graph).value()));
}

}  // namespace reflex::attribution
