// Adaptation: everything that follows the fleet while events run: benign rates, thresholds, node
// histories, maintenance. One place that feeds runtime/adapt and answers the incident tracker.
//
// Epochs: boundary() is called at whole hours of event time, when all events and firings before it
// are in and none after it; what it changes holds from there on. So results do not depend on batches.
// Contamination guard: nodes of open incidents (from 15 minutes before the opening to the end of
// settle) and in maintenance give no samples to thresholds and count for no benign rate; confirmed
// faulty ones that are not yet repaired give no samples either, and what of a named culprit waits to
// become a rate is dropped. (A rate has hours behind it, which go on: it would fall to nothing.)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/record.h"
#include "runtime/abi/verdict.h"
#include "runtime/adapt/benign_rates.h"
#include "runtime/adapt/live_table.h"
#include "runtime/adapt/node_history.h"
#include "runtime/adapt/thresholds.h"
#include "runtime/attribution/attribution.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/signal_stage.h"
#include "runtime/engine/suppression.h"
#include "runtime/topology/topology.h"

namespace reflex::engine {

class Adaptation {
 public:
  Adaptation(std::shared_ptr<const abi::CompiledPack> pack,
             std::shared_ptr<const topology::Topology> topology, const EngineOptions& options);

  /// The nodes that the topology knows before the first event: their habit counts from the start.
  void see_inventory();
  /// Kinds whose records on_record() wants.
  [[nodiscard]] bool wants(abi::KindId kind) const { return wanted_[kind] != 0; }
  void on_record(const abi::Record& record);
  void on_firing(const abi::Firing& firing);  // of a node
  [[nodiscard]] bool knows(SymbolId node) const { return rates_.knows(node); }
  void on_opened(const std::vector<attribution::NodeView>& nodes, int64_t opened_ns,
                 int64_t final_ns);
  /// Fills what is known of the nodes and marks evidence that counts for nothing.
  void prepare(attribution::Input& input);
  /// What later incidents must know of one that is over.
  struct Outcome {
    std::string incident;
    bool no_node = false;  // answered with none, or with nothing
    struct Blamed {  // confirmed or suspected
      std::string node;
      std::string cause;
      double p = 0;
      bool confirmed = false;
    };
    std::vector<Blamed> blamed;
  };
  static Outcome outcome_of(const abi::Verdict& verdict);
  void on_final(const attribution::Input& input, const Outcome& outcome);
  /// What a verdict says of its baseline: "class hw.h100 moved at ..: temp_hot x1.2".
  [[nodiscard]] std::vector<std::string> shifts(const attribution::Input& input) const;
  /// A copy of the tables that can be kept.
  [[nodiscard]] std::shared_ptr<const abi::TableSnapshot> frozen(
      const attribution::Input& input) const;

  /// What an operator says: at once when the incident `is_over`, else with its final verdict.
  void learn(const KnownIncident& known, bool is_over, int64_t now_ns);
  void save(StateWriter& writer) const;
  void load(StateReader& reader, abi::LoadNames& names);
  /// The same, of a set whose ids mean the same; with the orders of suppress().
  void take_over(Adaptation& old, const abi::SetChange& change);
  void suppress(SuppressionOrder order) { suppression_.order(std::move(order)); }

  /// Whether boundaries matter at all for this pack.
  [[nodiscard]] bool has_epochs() const { return thresholds_.wanted(); }
  void boundary(int64_t at_ns, SignalStage& signals);
  /// The limits in force, as they go to evaluation in other processes.
  [[nodiscard]] std::shared_ptr<const adapt::ThresholdRows> threshold_rows() const {
    return thresholds_.rows();
  }
  [[nodiscard]] const std::vector<abi::FeatureId>& sampled_features() const {
    return thresholds_.features();
  }
  /// What expressions read from now on.
  [[nodiscard]] std::shared_ptr<const abi::TableSnapshot> tables() const;
  [[nodiscard]] const adapt::Thresholds& thresholds() const { return thresholds_; }
  [[nodiscard]] const adapt::NodeHistory& history() const { return history_; }
  [[nodiscard]] const adapt::BenignRates& rates() const { return rates_; }

 private:
  void see(SymbolId node, int64_t ts_ns);
  /// Known incidents that are older than `opened_ns` and never opened here.
  void learn_older(int64_t opened_ns);
  void learn_known(const KnownIncident& known, int64_t at_ns);
  /// Faults of the final verdict: the truth where it is known, else what is confirmed.
  void confirm(const attribution::Input& input, const Outcome& outcome,
               const KnownIncident* known);
  void set_confirmed(SymbolId node, int64_t at_ns);
  [[nodiscard]] bool held(SymbolId node, int64_t at_ns) const;
  [[nodiscard]] bool contaminated(SymbolId node, int64_t at_ns) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const topology::Topology> topology_;
  EngineOptions options_;
  adapt::BenignRates rates_;
  adapt::Thresholds thresholds_;
  adapt::NodeHistory history_;
  Suppression suppression_;
  std::vector<uint8_t> wanted_;                               // [KindId]
  std::vector<std::vector<const abi::CohortPlan*>> cohorts_;  // [KindId]
  struct NodeState {
    SymbolId cohort = kNoSymbol;
    int64_t held_from_ns = kNoTimeNs;  // part of an incident
    int64_t held_until_ns = kNoTimeNs;
    int64_t confirmed_ns = kNoTimeNs;
  };
  void save_nodes(StateWriter& writer) const;
  void load_nodes(StateReader& reader);
  std::unordered_map<SymbolId, NodeState> nodes_;
  std::unordered_map<std::string, const KnownIncident*> known_;  // by incident, not yet learned
  std::unordered_map<std::string, KnownIncident> told_;  // by an operator, of incidents still open
  size_t known_next_ = 0;  // of options_.known, in time
};

}  // namespace reflex::engine
