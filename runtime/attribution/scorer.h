// Scorer: weights of evidence of hypotheses, in nats (attribution.md section 2).
//
// Every weight is rounded to a multiple of 2^-32 nats, so that sums are exact in double: they do
// not depend on the order of nodes, and contributions add up to the log-odds without error.
// Cost: a group term (peers, rack, tor, job, all) is one look-up in a GroupTable, a step function
// of the hypothesis' onset, minus the own term. Borrows the field; not for several threads.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "runtime/attribution/evidence_field.h"

namespace reflex::attribution {

/// One hypothesis other than "none". `alike` > 0: stands for so many further nodes without own
/// evidence, which all have the same weight.
struct Candidate {
  abi::CauseId cause = 0;
  uint32_t row = kNoNode;  // kNoNode: an external cause
  abi::EntityKey entity;   // count may be short of its kind: "some gpu of the node"
  std::vector<uint32_t> alike;
  double prior_nats = 0;
  double log_odds = 0;
  int64_t onset_ns = 0;
};

/// The sum of one edge's terms over the entities that it reaches.
struct TermValue {
  double nats = 0;
  double lost = 0;       // to observed parents
  uint32_t members = 0;  // fired or observed
  uint32_t fired = 0;
  uint32_t unobserved = 0;
};

class Scorer {
 public:
  /// `known`: a scorer of the same incident and time, whose plain weights are taken over.
  Scorer(const EvidenceField& field, const CauseGraph& graph, const Scorer* known = nullptr);
  ~Scorer();

  /// Makes an accepted hypothesis a parent of its children; what it explains for the larger part
  /// counts no more (greedy set cover, section 3).
  void activate(const Candidate& culprit);
  /// Sets log_odds and onset_ns: the onset with the largest weight, ties: the earliest.
  void evaluate(Candidate& c);
  /// Whether a fired child on the candidate's own entity, which no culprit explains, speaks for it.
  [[nodiscard]] bool has_own_evidence(const Candidate& c);
  /// The hypothesis as the verdict lists it, but for its probability.
  [[nodiscard]] abi::Hypothesis explain(const Candidate& c);
  /// Marks Input::evidence behind contribution `edge_at` (index into the cause's edges).
  void mark_evidence(const Candidate& c, uint32_t edge_at, std::vector<uint8_t>& skip);
  /// Whether the edge has a fired term, its weight and its text ("xid_48 on n3/5").
  struct FiredTerm {
    uint32_t edge_at = 0;
    double nats = 0;
    std::string text;
  };
  [[nodiscard]] std::vector<FiredTerm> fired_terms(const Candidate& c);
  [[nodiscard]] std::string entity_text(const Candidate& c) const;
  /// The hypothesis as numbers, for learning.
  [[nodiscard]] DossierHypothesis numbers_of(const Candidate& c);

 private:
  struct GroupTable;
  struct Group {
    char what = 'j';  // a(ll), j(ob), r(ack), t(or)
    SymbolId id = kNoSymbol;
    std::vector<uint32_t> rows;  // by name
  };
  [[nodiscard]] bool contains(const Group& g, uint32_t row) const {
    const NodeView& v = *field_.rows()[row].view;
    return g.what == 'a' || (g.what == 'j' && v.in_job) || (g.what == 'r' && v.rack == g.id) ||
           (g.what == 't' && v.tor == g.id);
  }
  struct Term {
    const abi::EdgePlan* edge = nullptr;
    // kNowhere: the label is missing. kShadowed: a narrower edge covers the same entities.
    enum class Reach : uint8_t { kNowhere, kShadowed, kOwn, kEntity, kGroup, kRest };
    Reach reach = Reach::kNowhere;
    const Group* group = nullptr;  // kGroup, kRest (a group minus what narrower edges claimed)
    GroupTable* table = nullptr;   // kGroup
    bool minus_own = false;
    const abi::EntityKey* filter = nullptr;
  };
  struct Member {
    TermValue value;
    const Span* span = nullptr;
  };

  [[nodiscard]] std::vector<Term> terms(const Candidate& c, bool with_tables);
  void terms_into(const Candidate& c, bool with_tables, std::vector<Term>& out);
  void resolve(const Candidate& c, Term& term);
  [[nodiscard]] const Group* group_of(const Candidate& c, abi::Scope scope);
  [[nodiscard]] const Group* named_group(char what, SymbolId id);
  GroupTable* table(const Term& term);
  [[nodiscard]] TermValue value_at(const Candidate& c, const std::vector<Term>& all, size_t at,
                                   int64_t t_ns);
  [[nodiscard]] TermValue group_at(const Term& term, int64_t t_ns) const;
  /// Takes a fired span when it is the strongest so far.
  void offer(const Term& term, const Span& s, Member& m) const;
  /// Fired, silent or unobserved: what the member counts as once all its spans were offered.
  void conclude(const Term& term, uint32_t row, int64_t t_ns, Member& m) const;
  [[nodiscard]] Member member_at(const Term& term, uint32_t row, int64_t t_ns) const;
  [[nodiscard]] Member entity_at(const Candidate& c, const Term& term, int64_t t_ns) const;
  [[nodiscard]] bool reaches(const Candidate& c, const Term& term, const Span& s) const;
  [[nodiscard]] bool claimed(const Candidate& c, const std::vector<Term>& all, size_t at,
                             uint32_t row) const;
  [[nodiscard]] bool entity_matches(const Candidate& c, const Term& term, const Span& s) const;
  [[nodiscard]] size_t plain_at(const abi::EdgePlan& e, abi::ClassId c) const;
  /// Finished: multiplier and temperature of the model applied, rounded.
  [[nodiscard]] double scaled(const abi::EdgePlan& e, double nats) const;
  [[nodiscard]] double own_leak(const abi::EdgePlan& e, uint32_t row) const;
  [[nodiscard]] double fired_nats(const Term& term, const Span& s, double* lost) const;
  [[nodiscard]] double silent_nats(const abi::EdgePlan& e, uint32_t row, int64_t t_ns) const;
  [[nodiscard]] double silent_nats_of(const abi::EdgePlan& e, abi::ClassId c, int64_t t_ns) const;
  /// Off every node hypothesis: the node may ail without being this incident's cause (README 8).
  [[nodiscard]] double ailing_nats(const Candidate& c);
  [[nodiscard]] double synergy_nats(const Candidate& c, const std::vector<Term>& all, int64_t t_ns,
                                    std::vector<abi::Contribution>* list = nullptr) const;
  void list_held(const Candidate& c, abi::Hypothesis& h) const;
  [[nodiscard]] double culprits_survive(const abi::EdgePlan& e, const Span& s) const;
  void onsets_into(const Candidate& c, const std::vector<Term>& all, std::vector<int64_t>& out);
  [[nodiscard]] abi::ClassId class_of(uint32_t row) const;
  [[nodiscard]] abi::Contribution contribution(const Candidate& c, const std::vector<Term>& all,
                                               size_t at, abi::Hypothesis& h);
  [[nodiscard]] std::vector<const Span*> fired_spans(const Candidate& c,
                                                     const std::vector<Term>& all, size_t at,
                                                     size_t max) const;
  void list_unobserved(const Candidate& c, const std::vector<Term>& all, size_t at,
                       const TermValue& v, abi::Hypothesis& h) const;
  void fill_first(abi::Contribution& out, const Span& s) const;

  const EvidenceField& field_;
  const CauseGraph& graph_;
  const abi::CompiledPack& pack_;
  const Numbers& numbers_;
  // [edge]: cause and signal have a key in common. Without one there is nothing to filter by, and
  // all entities of an external cause share one table (625 switches of a job, not 625 tables).
  std::vector<uint8_t> shares_key_;
  // Weights without parents and open windows, which is nearly all of them: NaN until asked.
  mutable std::vector<double> plain_fired_;  // [edge * classes + class]
  mutable std::vector<double> plain_silent_;
  struct OpenSilent {
    int64_t t_ns = kNoTimeNs;
    double nats = 0;
  };
  // The same for windows that are still open, which ask for few onsets again and again.
  mutable std::vector<std::array<OpenSilent, 4>> open_silent_;  // [edge * classes + class]
  std::vector<uint16_t> class_slot_;  // [hw_class] -> dense index of those in use
  size_t class_count_ = 1;
  std::vector<std::pair<const Group*, GroupTable*>> last_table_;  // [edge] unfiltered
  std::map<std::pair<char, SymbolId>, Group> groups_;
  const Group* all_ = nullptr;
  const Group* job_ = nullptr;
  std::vector<Term> scratch_terms_;  // of evaluate(): saves an allocation each
  std::vector<int64_t> scratch_onsets_;
  struct TableKey {
    uint32_t edge;
    const Group* group;  // identity only: never iterated for output
    std::array<uint64_t, 3> filter;
    friend auto operator<=>(const TableKey&, const TableKey&) = default;
  };
  std::map<TableKey, std::unique_ptr<GroupTable>> tables_;
  struct Active {
    Candidate candidate;
    std::vector<Term> terms;
  };
  std::vector<std::unique_ptr<Active>> active_;
  std::vector<double> ailing_;  // [row] NaN: not asked
};

}  // namespace reflex::attribution
