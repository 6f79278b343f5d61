// The stages in their order: see engine.h.
#include "runtime/engine/engine.h"

#include <algorithm>

#include "runtime/attribution/attribution.h"

namespace reflex::engine {

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const abi::CompiledPack> pack,
                                               const EngineOptions& options, EngineSinks sinks) {
  auto graph = attribution::Graph::build(pack);
  if (!graph.ok()) return Error(graph.error());
  std::shared_ptr<const attribution::Graph> shared = std::move(graph).value();
  return std::unique_ptr<Engine>(
      new Engine(std::move(pack), std::move(shared), options, std::move(sinks)));
}

Engine::Engine(std::shared_ptr<const abi::CompiledPack> pack,
               std::shared_ptr<const attribution::Graph> graph, const EngineOptions& options,
               EngineSinks sinks)
    : pack_(std::move(pack)),
      sinks_(std::move(sinks)),
      topology_(std::make_shared<topology::Topology>(pack_)),
      coverage_(pack_),
      opens_incident_(pack_->kinds.size(), 0) {
  eval::Options eval_options;
  // Why: handing a batch to shards costs more than evaluating so few leaves (measured: 10 rules).
  constexpr size_t kLeavesToShardMin = 64;
  eval_options.threads = pack_->leaves.size() < kLeavesToShardMin ? 1 : options.threads;
  eval_options.near_misses = options.near_misses;
  signals_ = std::make_unique<eval::SignalEngine>(pack_, topology_, eval_options);
  incidents_ = std::make_unique<IncidentTracker>(pack_, std::move(graph), topology_, coverage_);
  for (const auto& signal : pack_->signals) {
    const auto& steps = signal.sequence.steps;
    tells_absence_.push_back(std::any_of(steps.begin(), steps.end(), [](const abi::StepPlan& s) {
      return s.mode == abi::StepMode::kAbsent;
    }));
  }
  for (const auto& plan : pack_->incidents) {
    for (const abi::KindId kind : plan.open_kinds) opens_incident_[kind] = 1;
  }
}

void Engine::process(std::span<const abi::Record* const> records, int64_t watermark_ns) {
  std::vector<const abi::Record*> open_records;
  for (const abi::Record* record : records) {
    const bool from_log =
        record->source < is_log_source_.size() && is_log_source_[record->source] != 0;
    coverage_.saw(*record, from_log);
    if (record->kind < abi::kBuiltinKindCount) topology_->apply(*record);
    if (opens_incident_[record->kind]) open_records.push_back(record);
  }
  if (!records.empty()) last_ts_ns_ = std::max(last_ts_ns_, records.back()->ts_ns);
  firings_.clear();
  signals_->process(records, watermark_ns, firings_);
  deliver(open_records, watermark_ns);
}

void Engine::drop_unobserved_absences() {
  std::erase_if(firings_, [&](const abi::Firing& f) {
    if (!tells_absence_[f.signal] || f.phase != abi::FiringPhase::kTimer) return false;
    if (pack_->entity_kinds[f.entity.kind].keys.front() != "node") return false;
    const auto node = static_cast<SymbolId>(f.entity.values[0]);
    return coverage_.in_gap(node, f.ts_ns);
  });
}

void Engine::deliver(const std::vector<const abi::Record*>& open_records, int64_t watermark_ns) {
  drop_unobserved_absences();
  if (sinks_.firing) {
    for (const auto& firing : firings_) sinks_.firing(firing);
  }
  incidents_->process(firings_, open_records, watermark_ns, sinks_.verdict);
}

void Engine::count_late(std::span<const abi::Record* const> records) {
  for (const abi::Record* record : records) incidents_->count_late(*record);
}

void Engine::finish() {
  if (last_ts_ns_ != kNoTimeNs) {
    // Timers that are still running at the end of the input never see their deadline: nothing is
    // known about the time after the last event. A settle window does run out, so verdicts close.
    firings_.clear();
    signals_->finish(last_ts_ns_, firings_);
    deliver({}, last_ts_ns_);
  }
  incidents_->finish(sinks_.verdict);
}

}  // namespace reflex::engine
