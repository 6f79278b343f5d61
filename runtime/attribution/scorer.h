// Scorer: weights of evidence of hypotheses, in nats (attribution.md section 2).
//
// Every weight is rounded to a multiple of 2^-32 nats, so that sums are exact in double: they do
// not depend on the order of nodes, and contributions add up to the log-odds without error.
// The members of a group share one hidden level (latent.h), so a group term is a mixture over sums.
// Cost: a group term is one look-up in a GroupTable, a step function of the hypothesis' onset,
// minus the own term. Borrows the field; not for several threads.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "runtime/attribution/candidate.h"
#include "runtime/attribution/evidence_field.h"
#include "runtime/attribution/latent.h"

namespace reflex::attribution {

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
  void evaluate_like(Candidate& c, const Candidate& other);
  /// Whether some fired signal speaks for it.
  [[nodiscard]] bool speaks_for(const Candidate& c);
  /// The candidate's edges weigh what they weigh in `whole`, the scorer of the field that this one's
  /// was made from: nothing that they read has changed.
  [[nodiscard]] bool same_as_whole(const Candidate& c, const Scorer& whole);
  /// Then: the weight of `before` in `whole`, but for "ailing for another reason".
  void evaluate_as_whole(Candidate& c, const Candidate& before, Scorer& whole);
  /// Rankings of fields made from this one's will follow: evaluate() keeps what each candidate's own
  /// node weighs, for try_own_as_whole(). Before the first evaluate().
  void keep_own_parts(size_t candidate_count) { own_parts_.assign(candidate_count, {}); }
  /// Weighs `c` by what its own node weighed in `whole`, where it was `before`. False: that changed,
  /// or it was not kept.
  bool try_own_as_whole(Candidate& c, const Candidate& before, const Scorer& whole);
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
  struct GroupTable;  // group_table.h
  struct EdgeGroup;
  struct GroupState;
  [[nodiscard]] bool contains(const Group& g, uint32_t row) const {
    return in_group(g, *field_.rows()[row].view);
  }
  struct Term {
    const abi::EdgePlan* edge = nullptr;
    // kNowhere: the label is missing. kShadowed: a narrower edge covers the same entities.
    enum class Reach : uint8_t { kNowhere, kShadowed, kOwn, kEntity, kGroup, kRest };
    Reach reach = Reach::kNowhere;
    const Group* group = nullptr;  // kGroup, kRest (a group minus what narrower edges claimed)
    EdgeGroup* in = nullptr;       // kGroup
    GroupTable* everybody =
        nullptr;  // kOwn, kGroup: all nodes, for storms; null: none is thought of
    bool minus_own = false;
    bool own_claimed = false;   // minus_own, and a self edge of the cause has the own node
    bool habit = false;         // one of Cause::habits
    bool exempt = false;        // a mask of this cause on this group holds
    bool beside_group = false;  // kOwn: a group edge of the same cause goes to the same signal
    const abi::EntityKey* filter = nullptr;
  };
  struct Member {
    TermValue value;
    double ratio = 1;  // P(seen | active) / P(seen | benign); 1 when unobserved
    const Span* span = nullptr;
  };

  [[nodiscard]] std::vector<Term> terms(const Candidate& c, bool with_tables);
  void terms_into(const Candidate& c, bool with_tables, std::vector<Term>& out);
  const std::vector<Term>& plain_terms(const Candidate& c);
  void plain_terms_into(const Candidate& c, std::vector<Term>& out);
  void placed_terms_into(const Candidate& c, std::vector<Term>& out);
  void resolved_terms_into(const Candidate& c, bool with_tables, std::vector<Term>& out);
  /// One span of a term: within [from_ns, to_ns] of the onset it counts.
  struct Piece {
    int64_t from_ns, to_ns;
    double ratio, nats;
  };
  /// Of the pieces [first, last) that have `t_ns` the strongest, the first of equals; null: none.
  [[nodiscard]] static const Piece* best_piece(const std::vector<Piece>& pieces, uint32_t first,
                                               uint32_t last, int64_t t_ns) {
    const Piece* best = nullptr;
    for (uint32_t i = first; i < last; ++i) {
      const Piece& x = pieces[i];
      if (t_ns < x.from_ns || t_ns > x.to_ns) continue;
      if (!best || x.ratio > best->ratio) best = &x;
    }
    return best;
  }
  struct Line {
    uint32_t term = 0;
    uint32_t first = 0, last = 0;  // of scratch_pieces_
    bool whole = false;            // a group: ask value_at()
    bool open = false;             // its silence depends on the onset
    bool observed = true;          // a candidate of a calm cause: silent otherwise, else nothing
    double silent_nats = 0;        // else
  };
  /// What the own graded signals weigh that show nothing; their terms need no line then. False: some
  /// of it is particular to this node.
  bool add_habits(const Candidate& c, const std::vector<Term>& all, double& constant) const;
  void add_line(const Candidate& c, const Term& term, uint32_t at, int64_t last_onset_ns,
                double& constant);
  [[nodiscard]] double line_at(const Candidate& c, const std::vector<Term>& all, const Line& line,
                               int64_t t_ns);
  // A candidate of a calm cause (pack_shape.h): scorer_calm.cpp.
  struct Calm;
  [[nodiscard]] bool is_calm(const Candidate& c) const;
  void evaluate_calm(Candidate& c);
  Calm& calm_of(const Candidate& c);
  void add_calm_entities(const Candidate& c, Calm& calm);
  [[nodiscard]] double calm_fixed(const Candidate& c, Calm& calm) const;
  [[nodiscard]] double calm_nats(const Candidate& c, Calm& calm, int64_t t_ns) const;
  void add_shown(const Candidate& c, const Term& plain, uint32_t at, bool dated);
  /// What the own node of a candidate of a calm cause weighs, at each onset that was tried.
  struct OwnPart {
    bool kept = false;
    uint32_t first = 0, last = 0;  // of own_at_
    double agreement_nats = 0;
  };
  struct OwnAt {
    int64_t t_ns = 0;
    double nats = 0;
    bool own = false;  // an onset of the own node, or the opening
  };
  void keep_own_part(const Candidate& c, double agreement_nats, size_t calm_onsets);
  void resolve(const Candidate& c, Term& term);
  void resolve_group(const Candidate& c, Term& term);
  [[nodiscard]] const Group* group_of(const Candidate& c, abi::Scope scope) const;
  GroupTable* table(const abi::EdgePlan& e, const Group& group, const abi::EntityKey* filter,
                    bool exempt);
  GroupTable* table_of_all(const abi::EdgePlan& e);
  EdgeGroup* edge_group(const abi::EdgePlan& e, const Group& group, const abi::EntityKey* filter,
                        bool exempt);
  void fill_table(const Term& term, GroupTable& g) const;
  [[nodiscard]] TermValue value_at(const Candidate& c, const std::vector<Term>& all, size_t at,
                                   int64_t t_ns);
  [[nodiscard]] TermValue group_at(const Candidate& c, const Term& term, double claimed_nats,
                                   int64_t t_ns) const;
  [[nodiscard]] TermValue own_at(const Candidate& c, const Term& term, int64_t t_ns) const;
  [[nodiscard]] double claimed_nats(const Candidate& c, const std::vector<Term>& all, size_t at,
                                    int64_t t_ns) const;
  [[nodiscard]] const GroupState& state_at(const Term& term, GroupTable& g, int64_t t_ns) const;
  [[nodiscard]] TermValue rest_at(const Candidate& c, const std::vector<Term>& all, size_t at,
                                  int64_t t_ns) const;
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
  void add_plain();
  [[nodiscard]] size_t plain_at(const abi::EdgePlan& e, abi::ClassId c) const;
  /// Finished: multiplier and temperature of the model applied, rounded.
  [[nodiscard]] double scaled(const abi::EdgePlan& e, double nats) const;
  [[nodiscard]] double own_leak(const Term& term, uint32_t row) const;
  /// Share of the other nodes of the job that show it; 0: no more than faults would (README 18).
  [[nodiscard]] double job_share(const abi::EdgePlan& e) const;
  [[nodiscard]] bool ailing_changed(uint32_t row) const;
  [[nodiscard]] bool job_share_changed(const abi::EdgePlan& e, const Scorer& whole) const;
  /// What of a cause's candidates may weigh other than in the whole, beside their own nodes.
  struct SinceWhole {
    bool asked = false;
    bool wide = false;    // what they read beyond their own nodes
    bool shares = false;  // what the job's other nodes show of a signal of theirs
  };
  const SinceWhole& since_whole(abi::CauseId c, const Scorer& whole);
  [[nodiscard]] bool own_changed(const Candidate& c, const SinceWhole& since,
                                 const Scorer& whole) const;
  [[nodiscard]] double wear_factor(uint32_t edge, uint32_t row) const;
  [[nodiscard]] double wear_product(size_t fault, uint32_t row) const;
  struct Weight {
    double ratio = 1;
    double nats = 0;
  };
  [[nodiscard]] Weight fired(const Term& term, const Span& s) const;
  [[nodiscard]] double ratio_of(const Term& term, const Span& s, double survive) const;
  /// What observed parents and masks leave of the benign silence; masks of the term's own cause
  /// on its own group do not count.
  [[nodiscard]] double survive_of(const Term& term, const Span& s) const;
  [[nodiscard]] double fired_nats(const abi::EdgePlan& e, double p, double ratio) const;
  [[nodiscard]] Weight silent(const abi::EdgePlan& e, uint32_t row, int64_t t_ns) const;
  [[nodiscard]] Weight silent_member(const Term& term, uint32_t row, int64_t t_ns) const;
  [[nodiscard]] Weight silent_of(const abi::EdgePlan& e, abi::ClassId c, int64_t t_ns) const;
  [[nodiscard]] double lost_nats(const Candidate& c, const std::vector<Term>& all, size_t at,
                                 double nats) const;
  [[nodiscard]] std::string explained_by(const Term& term,
                                         const std::vector<const Span*>& fired) const;
  /// Off every node hypothesis: the node may ail without being this incident's cause (README 8).
  [[nodiscard]] double ailing_nats(const Candidate& c);
  /// The graded signals of the fault on the node name the same part, or different ones.
  struct Agreement {
    double nats = 0;       // finished
    uint32_t signals = 0;  // that name a part
    uint32_t agree = 0;    // of these, on `part`
    std::string key;       // "gpu"
    uint64_t part = 0;     // Firing::part
  };
  [[nodiscard]] Agreement agreement(const Candidate& c) const;
  [[nodiscard]] double agreement_nats(const Candidate& c) const;
  [[nodiscard]] abi::Contribution contribution_of(const Agreement& a, const Candidate& c) const;
  [[nodiscard]] std::vector<uint32_t> synergies_of(const Candidate& c, const std::vector<Term>& all,
                                                   int64_t t_ns) const;
  [[nodiscard]] double synergy_nats(uint32_t synergy) const;
  [[nodiscard]] abi::Contribution synergy(uint32_t index, const Candidate& c) const;
  [[nodiscard]] bool explains_maintenance(const abi::EdgePlan& e, const Span& s) const;
  void list_suppressed(const Candidate& c, const Term& term, abi::Hypothesis& h) const;
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
  // What does not depend on the evidence: shared by the rankings of one incident.
  struct Plain;
  std::shared_ptr<Plain> plain_;
  std::vector<std::pair<const Group*, EdgeGroup*>> last_group_;  // [edge] no filter, not exempt
  std::vector<GroupTable*> of_all_;  // [window] table over all nodes, no filter; null: not asked
  struct Placed {
    std::array<uint32_t, 5> where{};
    std::vector<Term> terms;
  };
  std::vector<Placed> placed_;       // [cause] the terms of the last node
  std::vector<Term> scratch_terms_;  // of evaluate(): saves an allocation each
  std::vector<int64_t> scratch_onsets_, scratch_own_onsets_;
  std::vector<Line> scratch_lines_;
  std::vector<Piece> scratch_pieces_;
  mutable std::vector<std::pair<uint32_t, const Span*>> scratch_naming_;  // of agreement()
  mutable std::vector<NamedPart> scratch_named_;
  mutable std::vector<uint64_t> scratch_parts_;
  struct AgreementOf {
    abi::CauseId cause = abi::kNone32;
    uint32_t row = kNoNode;
    double nats = 0;
  } mutable last_agreement_;
  struct TableKey {
    uint32_t edge;
    const Group* group;  // identity only: never iterated for output
    std::array<uint64_t, 3> filter;
    bool exempt;
    friend auto operator<=>(const TableKey&, const TableKey&) = default;
  };
  // Edges with the same signal and window see the same group in the same way.
  std::map<TableKey, std::unique_ptr<GroupTable>> tables_;
  std::map<TableKey, std::unique_ptr<EdgeGroup>> edge_groups_;
  struct Active {
    Candidate candidate;
    std::vector<Term> terms;
  };
  std::vector<std::unique_ptr<Active>> active_;
  std::vector<double> ailing_;  // [row] NaN: not asked
  std::vector<std::shared_ptr<Calm>> calm_;  // [cause] null: not asked
  std::vector<SinceWhole> since_whole_;  // [cause]
  std::vector<OwnPart> own_parts_;       // [Candidate::id] empty: not kept
  std::vector<OwnAt> own_at_;
  const Scorer* known_ = nullptr;  // of the same incident, of this field or the whole one; may be null
};

}  // namespace reflex::attribution
