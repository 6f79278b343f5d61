// IncidentTracker: triggers -> open incidents -> verdict revisions (attribution.md section 8).
//
// An incident opens on its trigger and gets a first verdict at once, a revision for each later
// second (event time) in which new evidence changed the answer, and a final one at the end of its
// settle window. All times are event time; the outcome does not depend on batches or threads.
// With a crew, verdicts of different incidents are ranked side by side and given out in their order:
// what one is made from is gathered when it is due, and all are out before anything that they read
// (habits, history, a node's first firing) moves on.
// Ids are deterministic: (pack set, incident, revision) -> the same id in every replay.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/record.h"
#include "runtime/abi/verdict.h"
#include "runtime/attribution/attribution.h"
#include "runtime/engine/adaptation.h"
#include "runtime/engine/coverage.h"
#include "runtime/engine/elsewhere.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/evidence_log.h"
#include "runtime/eval/crew.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

class IncidentTracker {
 public:
  IncidentTracker(std::shared_ptr<const abi::CompiledPack> pack,
                  std::shared_ptr<const attribution::Graph> graph,
                  std::shared_ptr<const topology::Topology> topology, const Coverage& coverage,
                  Adaptation& adaptation, const EngineOptions& options);

  /// `firings` in merged order, `records` (those of kinds that open incidents, bind labels or move
  /// cohorts) in total order; both complete up to `watermark_ns`.
  void process(const std::vector<abi::Firing>& firings,
               const std::vector<const abi::Record*>& records, int64_t watermark_ns,
               const EngineSinks& sinks);
  /// End of input: every open incident gets its final revision.
  void finish(const EngineSinks& sinks);
  /// Threads to rank on; null: the caller's. Must outlive the calls.
  void set_crew(eval::Crew* crew) { crew_ = crew; }
  void count_late(const abi::Record& record);

  [[nodiscard]] const EvidenceLog& evidence() const { return log_; }
  [[nodiscard]] size_t opened_count() const { return opened_count_; }
  [[nodiscard]] size_t open_count() const;
  /// Whether the incident is here and has no final verdict yet.
  [[nodiscard]] bool is_open(const std::string& id) const;

  void save(StateWriter& writer) const;
  /// `now_ns`: from when on incidents are looked at again when the set has changed.
  void load(StateReader& reader, abi::LoadNames& names, int64_t now_ns);
  /// The same, of a set whose ids mean the same.
  void take_over(IncidentTracker& old, abi::SetChange& change, int64_t now_ns);
  /// `said` has spoken for the same incidents up to now while this one was not heard: what it said
  /// of them counts as said, their next revision is the one after its last.
  void follow(const IncidentTracker& said, int64_t now_ns);
  [[nodiscard]] size_t unplaced_count() const { return unplaced_count_; }

 private:
  struct Open {
    const abi::IncidentPlan* plan = nullptr;
    SymbolId job = kNoSymbol;
    std::string id;
    std::string symptom;
    std::string opened_by;
    int64_t opened_ns = 0;
    int64_t final_ns = 0;
    int64_t merge_until_ns = 0;
    int64_t looked_ns = kNoTimeNs;  // the last evaluation
    int64_t next_ns = 0;            // when the next evaluation is due; kNever when not dirty
    bool asked = false;   // its id came from outside (incident.open)
    bool closed = false;  // final revision given; kept for `merge for`
    uint32_t revision = 0;
    uint32_t late_events = 0;
    std::string signature;  // of the last revision given
    std::vector<attribution::NodeView> nodes;
    uint32_t job_node_count = 0;
  };

  /// Other rules may say something else of the same evidence.
  void look_again(int64_t now_ns);
  void save_open(StateWriter& writer, const Open& incident) const;
  /// Null: its type is gone (or the reader has failed).
  std::unique_ptr<Open> load_open(StateReader& reader, abi::LoadNames& names);
  /// A look or a first verdict that is gathered and not yet given out.
  struct Pending {
    Open* incident = nullptr;
    attribution::Input input;
    struct Asked {  // what Input::observed answers from
      const Coverage* coverage = nullptr;
      int64_t at_ns = 0;
    } asked;
    std::string signature;  // of the last revision given out, then of this one
    std::optional<abi::Verdict> verdict;
  };
  void on_firing(const abi::Firing& firing, const EngineSinks& sinks);
  void on_record(const abi::Record& record, const EngineSinks& sinks);
  void note_repair(const abi::Record& record);
  void on_open_record(const abi::Record& record, const EngineSinks& sinks);
  [[nodiscard]] bool holds(abi::ExprId where, const abi::Record& record) const;
  void open(const abi::IncidentPlan& plan, SymbolId job, int64_t ts_ns, std::string id,
            std::string symptom, std::string opened_by, const EngineSinks& sinks);
  /// A request for an incident that a signal has opened already: one incident, the asked id.
  void adopt(Open& incident, int64_t ts_ns, std::string id, std::string symptom);
  void mark_dirty(Open& incident, int64_t ts_ns);
  void run_due(int64_t up_to_ns, const EngineSinks& sinks);
  void evaluate(Open& incident, int64_t at_ns, const EngineSinks& sinks);
  void pass_over(Open& incident, int64_t at_ns, const EngineSinks& sinks);
  [[nodiscard]] std::string key_of(const Open& incident) const;
  [[nodiscard]] std::string_view name_of(SymbolId id) const { return pack_->symbols->name(id); }
  [[nodiscard]] attribution::Input gather(const Open& incident, int64_t at_ns);
  void rank(Pending& pending) const;
  void give_out(Pending& pending, const EngineSinks& sinks);
  /// Ranks and gives out all that is pending, in order.
  void flush(const EngineSinks& sinks);
  void tell_habits(const abi::Firing& firing, const EngineSinks& sinks);
  void forget_closed(int64_t watermark_ns);
  void fill_nodes(Open& incident) const;
  void collect_evidence(const Open& incident, int64_t at_ns,
                        std::vector<attribution::Evidence>& out);
  [[nodiscard]] SymbolId job_of_entity(const abi::EntityKey& entity, int64_t ts_ns) const;
  void identify(const Open& incident, abi::Verdict& verdict) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const attribution::Graph> graph_;
  std::shared_ptr<const topology::Topology> topology_;
  const Coverage& coverage_;
  EvidenceLog log_;
  SpareEvidence spare_;
  std::vector<std::vector<const abi::IncidentPlan*>> opened_by_signal_;  // [SignalId]
  struct KindTrigger {
    const abi::IncidentPlan* plan = nullptr;
    abi::ExprId where = abi::kNone32;
  };
  std::vector<std::vector<KindTrigger>> opened_by_kind_;  // [KindId]
  std::vector<std::string> pack_names_;
  std::vector<std::unique_ptr<Open>> incidents_;
  std::unordered_map<SymbolId, std::vector<Open*>> by_node_;
  EngineOptions options_;
  Adaptation& adaptation_;
  eval::Crew* crew_ = nullptr;
  std::vector<std::unique_ptr<Pending>> pending_;   // by due time
  std::vector<const abi::Firing*> habits_waiting_;  // for `adaptation_`, until `pending_` is out
  int64_t next_due_ns_;
  int64_t last_trim_ns_ = kNoTimeNs;
  int64_t trim_every_ns_ = 0;
  size_t opened_count_ = 0;
  size_t unplaced_count_ = 0;
};

}  // namespace reflex::engine
