// Search for the smallest sets; see the header.
#include "runtime/attribution/counterfactual.h"

#include <algorithm>
#include <optional>

namespace reflex::attribution {
namespace {

// Why: a ranking costs about a microsecond a node. 20,000 node-rankings keep the search of a
// small job exact and that of a large one short: at least one ranking, without all fired terms.
constexpr size_t kNodeRankingsMax = 20'000;
constexpr size_t kRankingsMin = 1;
constexpr size_t kRankingsMax = 300;
constexpr size_t kExactSetMax = 3;
// Why: more ties than this say "any of these", and nobody reads the sixth.
constexpr size_t kTiesMax = 5;

class Search {
 public:
  Search(const CauseGraph& graph, const EvidenceField& field, Scorer& scorer,
         const Ranking& ranking)
      : graph_(graph), field_(field), scorer_(scorer), ranking_(ranking), whole_{field, scorer, {}} {
    whole_.candidates.resize(ranking.candidates.size());
    for (const Candidate& c : ranking.candidates) whole_.candidates[c.id] = c;
    const Candidate& top = ranking.candidates[0];
    terms_ = scorer.fired_terms(top);
    for (const auto& t : terms_) {
      marks_.emplace_back();
      scorer.mark_evidence(top, t.edge_at, marks_.back());
    }
    budget_ = std::clamp(kNodeRankingsMax / std::max<size_t>(field.rows().size(), 1), kRankingsMin,
                         kRankingsMax);
  }

  std::vector<abi::Counterfactual> run() {
    std::vector<abi::Counterfactual> out;
    for (size_t size = 1; size <= std::min(kExactSetMax, terms_.size()); ++size) {
      if (combinations(size) > budget_) break;
      std::vector<size_t> set(size);
      for (size_t i = 0; i < size; ++i) set[i] = i;
      do {
        try_set(set, out);
      } while (next(set));
      if (!out.empty()) return out;
      exact_ = size;
    }
    // Greedy: the heaviest first, until the answer changes.
    for (size_t size = exact_ + 1; size <= terms_.size() && budget_ > 0; ++size) {
      std::vector<size_t> set(budget_ == 1 ? terms_.size() : size);
      for (size_t i = 0; i < set.size(); ++i) set[i] = i;
      try_set(set, out);
      if (!out.empty()) break;
    }
    return out;
  }

 private:
  size_t combinations(size_t k) const {
    size_t n = 1;
    for (size_t i = 0; i < k; ++i) n = n * (terms_.size() - i) / (i + 1);
    return n;
  }

  bool next(std::vector<size_t>& set) const {
    for (size_t i = set.size(); i-- > 0;) {
      if (set[i] + (set.size() - i) < terms_.size()) {
        ++set[i];
        for (size_t j = i + 1; j < set.size(); ++j) set[j] = set[j - 1] + 1;
        return true;
      }
    }
    return false;
  }

  void try_set(const std::vector<size_t>& set, std::vector<abi::Counterfactual>& out) {
    --budget_;
    std::vector<uint8_t> skip(field_.input().evidence.size(), 0);
    for (size_t at : set) {
      for (size_t i = 0; i < skip.size(); ++i) skip[i] |= marks_[at][i];
    }
    const EvidenceField without(field_, skip);
    Scorer scorer(without, graph_, &scorer_);
    last_ = rank_again(without, graph_, scorer, 1, whole_, std::move(last_));
    if (last_.same_answer(ranking_) || out.size() >= kTiesMax) return;
    abi::Counterfactual found;
    for (size_t at : set) found.without.push_back(terms_[at].text);
    found.answer = last_.answer_text();
    out.push_back(std::move(found));
  }

  const CauseGraph& graph_;
  const EvidenceField& field_;
  Scorer& scorer_;
  const Ranking& ranking_;
  WholeRanking whole_;
  Ranking last_;
  std::vector<Scorer::FiredTerm> terms_;
  std::vector<std::vector<uint8_t>> marks_;
  size_t budget_ = 0;
  size_t exact_ = 0;
};

}  // namespace

std::vector<abi::Counterfactual> counterfactuals(const CauseGraph& graph,
                                                 const EvidenceField& field, Scorer& scorer,
                                                 const Ranking& ranking) {
  if (ranking.candidates.empty()) return {};
  return Search(graph, field, scorer, ranking).run();
}

}  // namespace reflex::attribution
