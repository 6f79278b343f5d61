// EvidenceField: the evidence of one incident, indexed by (signal, node), with what the observed
// parent signals already explain of each episode.
//
// Contract: borrows the pack, the graph and the Input; lives for one verdict. All orders are by
// name. A field made from a whole one leaves some evidence out (counterfactuals): it borrows the
// lists of every signal that this does not touch, and knows which (signal, node) it differs in.
// Cost: O(E log E) for E episodes, what is touched for a field made from a whole one; observed() is
// asked at most once per (signal, node).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/attribution/attribution.h"
#include "runtime/attribution/cause_graph.h"
#include "runtime/attribution/groups.h"
#include "runtime/attribution/numbers.h"

namespace reflex::attribution {

inline constexpr uint32_t kNoNode = 0xffffffffu;

/// Why: the end of a condition that still holds; lags of centuries may be added to it.
inline constexpr int64_t kEndlessNs = INT64_MAX / 2;

/// One episode as evidence: active during [onset_ns, last_ns].
struct Span {
  int64_t onset_ns = 0;
  int64_t last_ns = 0;      // last time that it was seen (not last + holds), or kEndlessNs
  double survive = 1;       // product of (1 - p) over the observed parent signals
  uint32_t node = kNoNode;  // row; kNoNode for signals without a node key
  uint32_t evidence = 0;    // index into Input::evidence
  uint32_t episode = 0;
  bool suppressed = false;      // counts for nothing: its likelihood ratio is 1
  uint32_t mask = 0xffffffffu;  // index into EvidenceField::masks(): common mode
};

/// A MaskPlan that holds on one group: its cause stands as an observed parent of the members'
/// firings, with a strength that grows with the share of members that show it (group_signs.cpp).
struct ActiveMask {
  abi::CauseId cause = 0;
  const Group* group = nullptr;
  abi::EntityKey entity;
  double survive = 1;  // what it leaves of a member's benign silence: (1 - hit)^2
  std::string text;    // "tor_switch on tor t1 (common mode: 11 of 12 members)"
};

/// Whether a span overlaps the lag window of a hypothesis that began at `t_ns`; bounds inside.
inline bool in_window(const Span& s, const abi::EdgePlan& e, int64_t t_ns) {
  return s.onset_ns <= t_ns + e.lag_hi_ns && s.last_ns >= t_ns + e.lag_lo_ns;
}

/// The last time at which a hypothesis may have begun for the span to be in its window.
inline int64_t latest_onset(const Span& s, const abi::EdgePlan& e) {
  return s.last_ns - e.lag_lo_ns;
}

class EvidenceField {
 public:
  struct Row {
    const NodeView* view = nullptr;
    std::string_view name;
  };

  EvidenceField(const abi::CompiledPack& pack, const CauseGraph& graph, const Input& input);
  /// `whole` without Input::evidence[i] where `skip[i]`; `whole` must outlive it.
  EvidenceField(const EvidenceField& whole, const std::vector<uint8_t>& skip);
  EvidenceField(const EvidenceField&) = delete;
  EvidenceField& operator=(const EvidenceField&) = delete;

  [[nodiscard]] const std::vector<Row>& rows() const { return nodes_->rows; }
  [[nodiscard]] const PackShape& shape() const { return graph_.shape; }
  [[nodiscard]] const Input& input() const { return input_; }
  [[nodiscard]] const abi::CompiledPack& pack() const { return pack_; }
  [[nodiscard]] const Numbers& numbers() const { return nodes_->numbers; }
  [[nodiscard]] double strength(const abi::EdgePlan& e, abi::ClassId c) const {
    return nodes_->numbers.strength(static_cast<uint32_t>(&e - pack_.edges.data()), c);
  }
  /// Nodes of the job with a span in the edge's window around the opening, for the job-relative
  /// leak: what many nodes of the job show now says nothing about one of them.
  [[nodiscard]] uint32_t fired_in_job(const abi::EdgePlan& e) const;
  [[nodiscard]] uint32_t job_size() const { return nodes_->job_size; }
  /// All votes of a `graded votes` signal in the job.
  [[nodiscard]] unsigned votes_in_job(abi::SignalId signal) const;
  /// A of a graded signal (graded.h): of a row that shows nothing (kNoNode: of no node), of a span.
  [[nodiscard]] double soft(abi::SignalId signal, uint32_t row) const;
  [[nodiscard]] double soft(const Span& s) const;
  [[nodiscard]] const Groups& groups() const { return nodes_->groups; }
  [[nodiscard]] const std::vector<ActiveMask>& masks() const { return masks_; }
  [[nodiscard]] const NodeView* view(uint32_t row) const {
    return row == kNoNode ? nullptr : nodes_->rows[row].view;
  }
  [[nodiscard]] uint32_t row_of(SymbolId node) const;
  /// All spans of a signal by (node, onset, entity).
  [[nodiscard]] std::span<const Span> spans(abi::SignalId signal) const {
    const SignalSpans* s = at_[signal];
    return s ? std::span<const Span>(s->spans) : std::span<const Span>();
  }
  [[nodiscard]] std::span<const Span> spans(abi::SignalId signal, uint32_t row) const {
    if (row >= nodes_->rows.size() || !has_bit(shown(row), signal)) return {};
    const SignalSpans& s = *at_[signal];
    return {s.spans.data() + s.begin[row], s.begin[row + 1] - s.begin[row]};
  }
  /// Mended within the longest window of a graded signal: its silence tells less. One that was
  /// mended before is like one that never was.
  [[nodiscard]] bool repaired_lately(uint32_t row) const {
    return row != kNoNode && nodes_->repaired_lately[row] != 0;
  }
  /// Bits of the signals that have spans on the row.
  [[nodiscard]] const uint64_t* shown(uint32_t row) const {
    return shown_.data() + row * shape().words;
  }
  [[nodiscard]] bool observed(abi::SignalId signal, uint32_t row) const;
  /// Bits of those of `signals` that are observed on the row.
  void observed(const SignalBits& signals, uint32_t row, SignalBits& out) const;
  [[nodiscard]] bool all_observed(const SignalBits& signals, uint32_t row) const;
  [[nodiscard]] bool keyed_by_node(abi::SignalId signal) const {
    return shape().by_node[signal] != 0;
  }
  [[nodiscard]] const Evidence& evidence(const Span& s) const {
    return input_.evidence[s.evidence];
  }
  [[nodiscard]] const Evidence::Episode& episode(const Span& s) const {
    return input_.evidence[s.evidence].episodes[s.episode];
  }
  /// "n3/5", "tor t1", "job j1".
  [[nodiscard]] std::string entity_text(const abi::EntityKey& key) const;
  /// Names of the parent edges that are active for a span: "hot_gpu on n3".
  [[nodiscard]] std::vector<std::string> parents_text(abi::SignalId signal, const Span& s) const;
  /// What a field made from a whole one shows differently: bits of signals, on one row and on any.
  [[nodiscard]] const uint64_t* changed(uint32_t row) const {
    return changed_.data() + row * shape().words;  // all zero on a whole field
  }
  [[nodiscard]] const SignalBits& changed_anywhere() const { return changed_anywhere_; }
  [[nodiscard]] const std::vector<uint32_t>& changed_rows() const { return changed_rows_; }
  /// Other masks hold than on the whole: nothing is known to be the same.
  [[nodiscard]] bool masks_changed() const { return masks_changed_; }
  /// The value of key `name` of an entity; false when its kind has no such key.
  [[nodiscard]] bool key_value(const abi::EntityKey& key, std::string_view name,
                               uint64_t* value) const;
  /// Keys other than node that both have are equal.
  [[nodiscard]] bool compatible(const abi::EntityKey& a, const abi::EntityKey& b) const;
  /// A rack, tor, pod or zone that the key names is the row's own.
  [[nodiscard]] bool same_place(const abi::EntityKey& key, uint32_t row) const;

 private:
  struct SignalSpans {
    std::vector<Span> spans;
    std::vector<uint32_t> begin;  // [row] first span, size rows + 1; empty: no evidence on nodes
    // For "did any node but one fire": by onset, the two largest last_ns of distinct nodes so far.
    struct Prefix {
      int64_t onset_ns;
      int64_t last_ns[2];
      uint32_t node[2];
      uint32_t span[2];
    };
    std::vector<Prefix> prefix;
  };

  // What is the same for all fields of one input.
  struct Nodes {
    Nodes(const abi::CompiledPack& pack, const Input& input, LevelCache& levels);
    std::vector<Row> rows;
    std::vector<uint32_t> row_of_symbol;
    std::vector<uint8_t> repaired_lately;  // [row]
    uint32_t job_size = 0;
    Numbers numbers;
    Groups groups;
    // Answers of Input::observed: bits of signals by row, asked and yes.
    mutable std::vector<uint64_t> asked;
    mutable std::vector<uint64_t> yes;
    mutable std::vector<uint8_t> on_any;  // [signal] on any node of the job: 0 not asked, 1 no, 2 yes
    mutable std::vector<double> soft;     // [Input::evidence] of graded counts; NaN: not asked
    mutable std::vector<std::vector<double>> silent_soft;  // [signal][row] NaN: not asked
  };

  void ask(abi::SignalId signal, uint32_t row) const;
  void add_spans();
  void index(abi::SignalId signal, SignalSpans& s);
  void add_prefix(SignalSpans& s);
  void add_parents(abi::SignalId signal);
  void add_masks();
  /// A list of its own for a signal, without the skipped evidence.
  void take(const EvidenceField& whole, abi::SignalId signal, const std::vector<uint8_t>& skip);
  void note_changes(const EvidenceField& whole);
  void try_mask(const abi::MaskPlan& mask, const Group& group, const abi::EntityKey& entity);
  /// The span that makes parent edge `e` active for `child`; null when none does.
  [[nodiscard]] const Span* active_parent(const abi::EdgePlan& e, const Span& child) const;
  [[nodiscard]] const Span* parent_on(const abi::EdgePlan& e, const Span& child,
                                      std::span<const Span> spans, bool same_entity) const;
  [[nodiscard]] bool episode_before(const Evidence::Episode& a, const Evidence::Episode& b) const;

  const abi::CompiledPack& pack_;
  const CauseGraph& graph_;
  const Input& input_;
  std::shared_ptr<const Nodes> nodes_;
  std::vector<SignalSpans*> at_;  // [signal] of this field or of the whole one; null: no spans
  std::vector<std::unique_ptr<SignalSpans>> own_;
  std::vector<uint64_t> shown_;  // [row * words]
  std::vector<ActiveMask> masks_;
  std::vector<uint64_t> changed_;  // [row * words]
  SignalBits changed_anywhere_;
  std::vector<uint32_t> changed_rows_;
  bool masks_changed_ = false;
  mutable std::vector<int32_t> fired_in_job_;  // [edge] -1: not asked
  mutable std::vector<int32_t> votes_in_job_;  // [signal]
};

}  // namespace reflex::attribution
