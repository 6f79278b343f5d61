// The stages in their order: see engine.h.
#include "runtime/engine/engine.h"

#include <algorithm>
#include <utility>

#include "runtime/attribution/attribution.h"

namespace reflex::engine {

std::vector<uint8_t> told_kinds(const abi::CompiledPack& pack, const Adaptation& adaptation) {
  std::vector<uint8_t> told(pack.kinds.size());
  for (const auto& plan : pack.incidents) {
    for (const abi::KindId kind : plan.open_kinds) told[kind] = 1;
  }
  for (const abi::RepairPlan& plan : pack.repairs) told[plan.kind] = 1;
  for (abi::KindId kind = 0; kind < told.size(); ++kind) {
    const bool mends = kind == abi::kNodeRepaired || kind == abi::kGpuReplaced;
    if (mends || adaptation.wants(kind)) told[kind] = 1;
  }
  return told;
}

void apply_topology(const abi::Record& record, const abi::CompiledPack& pack,
                    topology::Topology& topology) {
  if (record.kind < abi::kBuiltinKindCount) topology.apply(record);
  for (const abi::MaintenancePlan& plan : pack.maintenance) {
    if (plan.from == record.kind && record.has(plan.from_slot)) {
      topology.set_maintenance(static_cast<SymbolId>(record.i64(plan.from_slot)), record.ts_ns,
                               true);
    }
    if (plan.until == record.kind && record.has(plan.until_slot)) {
      topology.set_maintenance(static_cast<SymbolId>(record.i64(plan.until_slot)),
                               record.ts_ns + plan.grace_ns, false);
    }
  }
  for (const abi::RepairPlan& plan : pack.repairs) {
    if (plan.kind != record.kind || !record.has(plan.node_slot)) continue;
    topology.set_repaired(static_cast<SymbolId>(record.i64(plan.node_slot)), record.ts_ns);
  }
}

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const abi::CompiledPack> pack,
                                               const EngineOptions& options, EngineSinks sinks) {
  auto graph = attribution::Graph::build(pack);
  if (!graph.ok()) return Error(graph.error());
  std::shared_ptr<const attribution::Graph> shared = std::move(graph).value();
  return std::unique_ptr<Engine>(
      new Engine(std::move(pack), std::move(shared), options, std::move(sinks)));
}

Engine::Engine(std::shared_ptr<const abi::CompiledPack> pack,
               std::shared_ptr<const attribution::Graph> graph, const EngineOptions& given,
               EngineSinks sinks)
    : pack_(std::move(pack)),
      sinks_(std::move(sinks)),
      topology_(std::make_shared<topology::Topology>(pack_)),
      coverage_(pack_),
      events_by_kind_(pack_->kinds.size(), 0) {
  EngineOptions options = given;
  const Engine* before = std::exchange(options.before, nullptr);
  eval::Options eval_options;
  // Why: with few leaves the other threads are busy decoding while one evaluates, and handing a
  // batch to shards costs. The number lies between the 100 and the 1,000 rules of the benchmark; it
  // was chosen on a busy machine and is not tuned.
  constexpr size_t kLeavesToShardMin = 512;
  eval_options.threads = pack_->leaves.size() < kLeavesToShardMin ? 1 : options.threads;
  eval_options.near_misses = options.near_misses;
  if (before != nullptr && abi::ids_differ(*before->pack_, *pack_).empty()) {
    eval_options.before = &before->signals_->local();
  }
  signals_ = options.signal_stage
                 ? options.signal_stage(pack_, topology_, eval_options)
                 : std::make_unique<LocalSignals>(pack_, topology_, eval_options);
  adaptation_ = std::make_unique<Adaptation>(pack_, topology_, options);
  incidents_ = std::make_unique<IncidentTracker>(pack_, std::move(graph), topology_, coverage_,
                                                 *adaptation_, options);
  if (!pack_->adaptives.empty()) signals_->set_tables(adaptation_->tables());
  for (const auto& signal : pack_->signals) {
    const auto& steps = signal.sequence.steps;
    tells_absence_.push_back(std::any_of(steps.begin(), steps.end(), [](const abi::StepPlan& s) {
      return s.mode == abi::StepMode::kAbsent;
    }));
  }
  told_ = told_kinds(*pack_, *adaptation_);
}

bool Engine::epoch_due(int64_t ts_ns) const {
  // Why two days: state has faded little by then, and a stamp from 2099 makes no million epochs.
  constexpr int64_t kSilenceNs = 2 * kNsPerDay;
  return next_epoch_ns_ <= ts_ns && next_epoch_ns_ - last_ts_ns_ <= kSilenceNs;
}

void Engine::begin_epoch() {
  adaptation_->boundary(next_epoch_ns_, *signals_);
  next_epoch_ns_ += adapt::kEpochNs;
}

// Epochs lie between events whatever the batches are: all events before one are in, none after it.
void Engine::process(std::span<const abi::Record* const> records, int64_t watermark_ns) {
  if (!started_) adaptation_->see_inventory();
  started_ = true;
  if (!adaptation_->has_epochs()) {
    process_piece(records, watermark_ns);
    return;
  }
  const auto next_hour = [](int64_t ts_ns) {
    const int64_t rest = ((ts_ns % adapt::kEpochNs) + adapt::kEpochNs) % adapt::kEpochNs;
    return ts_ns - rest + adapt::kEpochNs;
  };
  size_t done = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const int64_t ts = records[i]->ts_ns;
    if (next_epoch_ns_ != kNoTimeNs && ts < next_epoch_ns_) continue;
    if (next_epoch_ns_ != kNoTimeNs) {
      if (i > done) process_piece(records.subspan(done, i - done), records[i - 1]->ts_ns);
      done = i;
      while (epoch_due(ts)) {
        process_piece({}, next_epoch_ns_);
        begin_epoch();
      }
    }
    if (next_epoch_ns_ <= ts) next_epoch_ns_ = next_hour(ts);
  }
  if (done < records.size()) process_piece(records.subspan(done), records.back()->ts_ns);
  while (next_epoch_ns_ != kNoTimeNs && epoch_due(watermark_ns)) {
    process_piece({}, next_epoch_ns_);
    begin_epoch();
  }
  process_piece({}, watermark_ns);
}

void Engine::process_piece(std::span<const abi::Record* const> records, int64_t watermark_ns) {
  std::vector<const abi::Record*> told;
  for (const abi::Record* record : records) {
    if ((record->flags & kRecordMarker) != 0) continue;
    const bool from_log =
        record->source < is_log_source_.size() && is_log_source_[record->source] != 0;
    coverage_.saw(*record, from_log);
    ++events_by_kind_[record->kind];
    apply_topology(*record, *pack_, *topology_);
    if (told_[record->kind]) told.push_back(record);
  }
  if (!records.empty()) last_ts_ns_ = std::max(last_ts_ns_, records.back()->ts_ns);
  firings_.clear();
  signals_->process(records, watermark_ns, firings_);
  deliver(told, watermark_ns);
}

void Engine::drop_unobserved_absences() {
  std::erase_if(firings_, [&](const abi::Firing& f) {
    if (!tells_absence_[f.signal] || f.phase != abi::FiringPhase::kTimer) return false;
    if (pack_->entity_kinds[f.entity.kind].keys.front() != "node") return false;
    const auto node = static_cast<SymbolId>(f.entity.values[0]);
    return coverage_.in_gap(f.signal, node, f.ts_ns);
  });
}

void Engine::drop_left_out() {
  std::erase_if(firings_, [&](const abi::Firing& f) {
    if (!coverage_.left_out(f)) return false;
    left_out_ += f.change == abi::FiringChange::kStart;
    return true;
  });
}

void Engine::deliver(const std::vector<const abi::Record*>& told, int64_t watermark_ns) {
  drop_unobserved_absences();
  drop_left_out();
  if (sinks_.firing) {
    for (const auto& firing : firings_) sinks_.firing(firing);
  }
  incidents_->process(firings_, told, watermark_ns, sinks_);
}

void Engine::count_late(std::span<const abi::Record* const> records) {
  late_events_ += records.size();
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
  incidents_->finish(sinks_);
}

}  // namespace reflex::engine
