// Ranking: all hypotheses of one incident with their posteriors, and the answer they give
// (attribution.md section 3). Verdicts and counterfactuals both come from rank().
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/attribution/scorer.h"

namespace reflex::attribution {

struct Ranking {
  std::vector<Candidate> candidates;  // best first up to `sorted`, then in no useful order
  size_t sorted = 0;
  std::vector<double> p;  // [candidate] posterior, over all its `alike` nodes
  double p_none = 0;
  std::vector<double> node_p;          // [row]
  std::vector<uint32_t> node_best;     // [row] best candidate, or kNoNode
  std::vector<uint32_t> culprit_rows;  // best first
  abi::Answer answer = abi::Answer::kUndetermined;
  std::string level;
  std::string external;
  std::vector<std::string> culprits;

  /// An empty one, for its memory.
  void clear();
  /// Equal answers: same kind, same level, same culprits.
  [[nodiscard]] bool same_answer(const Ranking& other) const;
  [[nodiscard]] std::string answer_text() const;
};

/// Rankings that are over, for their memory: some 100 KB each, which malloc would give back and
/// take again with each look. For any threads.
class SpareRankings {
 public:
  Ranking take();
  void take_back(Ranking&& ranking);

 private:
  std::mutex mutex_;
  std::vector<Ranking> spare_;  // at most one for each thread
};

/// `spare`: see SpareRankings; what it holds is dropped.
Ranking rank(const EvidenceField& field, const CauseGraph& graph, Scorer& scorer,
             size_t listed_min, Ranking spare = {});

/// A whole ranking that rankings with evidence left out are made from.
struct WholeRanking {
  const EvidenceField& field;
  Scorer& scorer;
  std::vector<Candidate> candidates;  // weighed, in the order of hypotheses()
};
/// rank() of a field made from `whole.field`, weighing only what can have changed.
Ranking rank_again(const EvidenceField& field, const CauseGraph& graph, Scorer& scorer,
                   size_t listed_min, const WholeRanking& whole, Ranking spare = {});

/// Weighs what hypotheses() made.
void evaluate(std::vector<Candidate>& candidates, Scorer& scorer);

/// The hypotheses that are weighed, without weights. `spare`: for its memory.
std::vector<Candidate> hypotheses(const EvidenceField& field, const CauseGraph& graph,
                                  std::vector<Candidate> spare = {});

/// The same of a field made from `whole`, whose hypotheses are `before`; `from[i]`: which one of
/// them hypothesis i was, kNoNode: none.
std::vector<Candidate> hypotheses_again(const EvidenceField& field, const CauseGraph& graph,
                                        const EvidenceField& whole,
                                        const std::vector<Candidate>& before,
                                        std::vector<uint32_t>& from,
                                        std::vector<Candidate> spare = {});

}  // namespace reflex::attribution
