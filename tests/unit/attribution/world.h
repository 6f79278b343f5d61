// World: builds small packs and incidents for the attribution tests. Times are seconds from 0 =
// the opening; the incident is looked at 1 hour later unless a test says otherwise.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/attribution/attribution.h"

namespace reflex::attribution {

class World {
 public:
  World();
  World(const World&) = delete;

  abi::EntityKindId entity_kind(std::vector<std::string> keys);
  abi::SignalId signal(const std::string& name, std::vector<std::string> keys,
                       double leak_per_hour = 0);
  abi::CauseId fault(const std::string& name, std::vector<std::string> keys, double prior = 1e-4);
  abi::CauseId external(const std::string& name, std::vector<std::string> keys,
                        double prior = 1e-5);
  abi::EdgePlan& edge(abi::CauseId from, abi::SignalId to, double p, int64_t lo_s, int64_t hi_s,
                      abi::Scope scope);
  abi::EdgePlan& signal_edge(abi::SignalId from, abi::SignalId to, double p, int64_t lo_s,
                             int64_t hi_s, abi::Scope scope);
  NodeView& node(const std::string& name, const std::string& rack = "",
                 const std::string& tor = "");
  /// `names` in the order of the signal's keys; gpus are numbers.
  Evidence& fire(abi::SignalId signal, const std::vector<std::string>& names, int64_t onset_s);
  void blind(abi::SignalId signal, const std::string& node);

  [[nodiscard]] std::unique_ptr<Graph> graph() const;
  [[nodiscard]] abi::Verdict run();
  SymbolId sym(const std::string& name) { return pack->symbols->intern(name); }

  std::shared_ptr<abi::CompiledPack> pack;
  abi::IncidentPlan plan;
  Input input;
  std::set<std::pair<abi::SignalId, SymbolId>> blinds;
};

inline constexpr int64_t kS = 1'000'000'000;
/// The first listed hypothesis of a cause on a node ("" for external causes); null: not listed.
const abi::Hypothesis* find_hypothesis(const abi::Verdict& v, const std::string& cause,
                                       const std::string& node);
double node_p(const abi::Verdict& v, const std::string& node);

}  // namespace reflex::attribution
