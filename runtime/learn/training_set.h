// TrainingSet: the dossiers of labelled incidents in a form that fits into memory and is quick to
// weigh again under other numbers.
//
// What did not happen is shared: nodes on which the same edges are silent have the same *pattern*,
// weighed once. Only terms that differ are kept one by one. Bound: about 60 bytes for each
// hypothesis and 16 for each kept term; the 2,943 incidents of the six-month set take < 300 MB.
// Order: incidents in the order of add(); everything inside in the order of the dossier, which
// does not depend on threads. Node names are compared as text, never as ids.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/attribution/attribution.h"
#include "runtime/learn/labels.h"

namespace reflex::learn {

/// One signal held against one hypothesis. 16 bytes: there are ten million of them.
struct Term {
  enum class What : uint8_t {
    kSilent,   // one member; value = log ratio (> -inf: a graded count, or a window still open)
    kFired,    // one member; value = log ratio
    kGroup,    // `index` into TrainingSet::groups()
    kFixed,    // a strength that is not learned; value = nats
    kSynergy,  // `index` of the synergy; value = nats
  };
  uint32_t edge = abi::kNone32;
  uint32_t index : 24 = 0;
  What what : 8 = What::kSilent;
  float value = 0;
  float leak = 0;
};

struct TrainingHypothesis {
  abi::CauseId cause = 0;
  abi::ClassId hw_class = 0;
  uint32_t node = 0;     // index into TrainingIncident::nodes; kNone32: external
  uint32_t pattern = 0;  // of silent edges
  uint32_t term = 0;     // first of `terms` in TrainingSet::terms()
  uint32_t terms = 0;
  float prior_nats = 0;
  float ailing_nats = 0;  // "ailing for another reason", under the numbers of the dossier
  float agreement_nats = 0;  // "same gpu", likewise
  float hazard_log = 0;   // of the node's history, a part of prior_nats
  float alike_log = 0;    // log(1 + alike)
  /// Share of the hypothesis that is true: 1 for a labelled culprit, 0 for others; in between when
  /// the culprit is one of several nodes that look alike.
  float truth = 0;
  bool is_node = false;  // a fault of a node: the answer would be a culprit
};

struct TrainingNode {
  std::string name;
  abi::ClassId hw_class = 0;
  bool culprit = false;
};

/// What a graded signal showed on a labelled culprit: events by lead bin and the benign rate.
struct CulpritCounts {
  uint32_t node = 0;  // index into TrainingIncident::nodes
  abi::SignalId signal = 0;
  std::array<uint16_t, abi::kLeadBins> counts{};
  double benign_per_hour = 0;
};

struct TrainingIncident {
  Label label;
  int64_t opened_ns = 0;
  std::vector<TrainingNode> nodes;  // those with a hypothesis of their own, in dossier order
  std::vector<TrainingHypothesis> hypotheses;
  std::vector<CulpritCounts> counts;
  bool truth_is_node = false;
  std::vector<std::string> unseen_culprits;  // labelled, but no candidate of the incident
};

/// Edges of one cause that were observed and silent, for good.
struct SilentPattern {
  std::vector<uint32_t> edges;
};

class TrainingSet {
 public:
  /// `model` is what the dossiers are made with (null: the author's numbers). Outlives the set.
  explicit TrainingSet(std::shared_ptr<const abi::CompiledPack> pack,
                       const abi::Model* model = nullptr);

  /// Labels without a known truth are not taken.
  /// `input`: what the dossier was made from; null: no counts of graded signals are learned.
  void add(const attribution::Dossier& dossier, const Label& label, int64_t opened_ns,
           const attribution::Input* input = nullptr);
  /// Incidents by time. Call once, after the last add().
  void sort_by_time();

  [[nodiscard]] const abi::CompiledPack& pack() const { return *pack_; }
  [[nodiscard]] const abi::Model* model() const { return model_; }
  [[nodiscard]] const std::vector<TrainingIncident>& incidents() const { return incidents_; }
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] const std::vector<attribution::DossierTerm>& groups() const { return groups_; }
  /// What of a group does not depend on its strength, parallel to groups().
  [[nodiscard]] const std::vector<attribution::GroupShape>& shapes() const { return shapes_; }
  [[nodiscard]] const std::vector<SilentPattern>& patterns() const { return patterns_; }
  /// The author's strength, [edge], whatever the dossiers were made with.
  [[nodiscard]] const std::vector<double>& author_p() const { return author_p_; }
  /// Edges whose strength is one number and may be learned, [edge].
  [[nodiscard]] const std::vector<uint8_t>& learnable() const { return learnable_; }

 private:
  /// Group terms of one incident by (edge, nats): most of its hypotheses have the same.
  using GroupIds = std::map<std::pair<uint32_t, double>, uint32_t>;
  void add_terms(const attribution::DossierHypothesis& from, TrainingHypothesis& to,
                 GroupIds& known);
  void add_counts(const attribution::Input& input, TrainingIncident& incident) const;
  void mark_truth(TrainingIncident& incident) const;
  uint32_t intern(SilentPattern pattern);

  std::shared_ptr<const abi::CompiledPack> pack_;
  const abi::Model* model_;
  std::vector<double> author_p_;
  std::vector<uint8_t> learnable_;
  std::vector<TrainingIncident> incidents_;
  std::vector<Term> terms_;
  std::vector<attribution::DossierTerm> groups_;
  std::vector<attribution::GroupShape> shapes_;
  attribution::LevelWeights level_weights_;
  std::vector<SilentPattern> patterns_;
  std::map<std::vector<uint32_t>, uint32_t> pattern_of_;
};

}  // namespace reflex::learn
