// Merging partitions into one engine: see attribution_worker.h.
#include "runtime/cluster/attribution_worker.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace reflex::cluster {

Result<std::unique_ptr<AttributionWorker>> AttributionWorker::create(
    std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions,
    engine::EngineOptions options, engine::EngineSinks sinks, Limits limits) {
  std::unique_ptr<AttributionWorker> worker(
      new AttributionWorker(pack, partitions, std::move(limits)));
  AttributionWorker* self = worker.get();
  options.threads = 1;
  options.signal_stage = [self](std::shared_ptr<const abi::CompiledPack> set,
                                std::shared_ptr<const topology::Topology> topology,
                                const eval::Options& eval_options) {
    auto stage = std::make_unique<RemoteSignals>(std::move(set), std::move(topology), eval_options);
    self->signals_ = stage.get();
    return stage;
  };
  auto engine = engine::Engine::create(std::move(pack), options, std::move(sinks));
  if (!engine.ok()) return engine.error();
  worker->engine_ = std::move(engine).value();
  return worker;
}

bool AttributionWorker::push(SignalBatch&& batch) {
  RFX_CHECK(batch.partition < partitions_.size());
  Partition& partition = partitions_[batch.partition];
  if (batch.number <= partition.number) return true;  // sent again
  if (batch.number != partition.number + 1) return false;
  partition.number = batch.number;
  for (const SymbolId source : batch.log_sources) order_.set_log(source);
  for (const SymbolId node : batch.logged_nodes) engine_->coverage().add_log(node);
  for (const auto& [kind, since_ns] : batch.seen_kinds) {
    engine_->coverage().saw_kind(kind, since_ns);
  }
  const size_t first = partition.pending.size();
  for (abi::Record* record : batch.records) {
    engine_->mark_log_source(
        record->source);  // coverage is told by seen_kinds, not by what comes here
    partition.pending.push_back({record, batch.slab, {}});
  }
  for (auto& [index, firing] : batch.event_firings) {
    partition.pending[first + index].firings.push_back(std::move(firing));
  }
  for (auto& firing : batch.timer_firings) signals_->add_timer_firing(std::move(firing));
  for (size_t i = 0; i < batch.late.size(); ++i) {
    late_.push_back({batch.late[i], batch.slab, batch.late_after_ns[i]});
  }
  partition.watermark_ns = std::max(partition.watermark_ns, batch.watermark_ns);
  partition.first_hour_ns = batch.first_hour_ns;
  if (batch.hour_ns != kNoTimeNs) {
    partition.waits_ns = batch.hour_ns;
    partition.samples = std::move(batch.samples);
  }
  partition.end_ns = batch.end_ns;
  return true;
}

int64_t AttributionWorker::least_watermark() const {
  int64_t least = INT64_MAX;
  for (const Partition& p : partitions_) least = std::min(least, p.watermark_ns);
  return least;
}

/// Moves what is complete into one order. Copies of one event, of several partitions, share a
/// place.
void AttributionWorker::merge(int64_t up_to_ns) {
  const auto head = [&](Partition& p) -> Pending* {
    if (p.pending.empty() || p.pending.front().record->ts_ns > up_to_ns) return nullptr;
    return &p.pending.front();
  };
  for (;;) {
    const abi::Record* least = nullptr;
    for (Partition& p : partitions_) {
      const Pending* at = head(p);
      if (at && (!least || order_.less(*at->record, *least))) least = at->record;
    }
    if (!least) return;
    ++order_count_;
    for (Partition& p : partitions_) {
      Pending* at = head(p);
      if (!at || (at->record != least && order_.less(*least, *at->record))) continue;
      at->record->order = order_count_;
      for (auto& firing : at->firings) {
        firing.order = order_count_;
        signals_->add_event_firing(std::move(firing));
      }
      ready_.push_back(at->record);
      alive_.push_back(std::move(at->slab));
      p.pending.pop_front();
    }
  }
}

void AttributionWorker::count_late(int64_t before_ns) {
  std::stable_sort(late_.begin(), late_.end(), [this](const Late& a, const Late& b) {
    if (a.after_ns != b.after_ns) return a.after_ns < b.after_ns;
    return order_.less(*a.record, *b.record);
  });
  const auto end = std::find_if(late_.begin(), late_.end(),
                                [&](const Late& late) { return late.after_ns > before_ns; });
  for (auto it = late_.begin(); it != end; ++it) {
    const auto cut = std::lower_bound(
        ready_.begin(), ready_.end(), it->after_ns,
        [](const abi::Record* record, int64_t ts_ns) { return record->ts_ns < ts_ns; });
    const auto count = static_cast<size_t>(cut - ready_.begin());
    engine_->process(std::span(ready_).first(count), it->after_ns - 1);
    ready_.erase(ready_.begin(), cut);
    const abi::Record* record = it->record;
    engine_->count_late(std::span(&record, 1));
  }
  late_.erase(late_.begin(), end);
}

void AttributionWorker::evaluate(int64_t watermark_ns) {
  if (watermark_ns == INT64_MIN || (watermark_ns <= watermark_ns_ && late_.empty())) return;
  merge(watermark_ns);
  count_late(watermark_ns);
  engine_->process(ready_, watermark_ns);
  watermark_ns_ = std::max(watermark_ns_, watermark_ns);
  ready_.clear();
  alive_.clear();
}

int64_t AttributionWorker::hour_reached() const {
  int64_t hour_ns = INT64_MAX;
  for (const Partition& p : partitions_) {
    if (p.waits_ns != kNoTimeNs) hour_ns = std::min(hour_ns, p.waits_ns);
  }
  if (hour_ns == INT64_MAX) return kNoTimeNs;
  for (const Partition& p : partitions_) {
    const bool has_begun = p.first_hour_ns <= hour_ns;
    const bool reached = has_begun ? p.waits_ns == hour_ns : p.watermark_ns >= hour_ns - 1;
    if (!reached) return kNoTimeNs;
  }
  return hour_ns;
}

void AttributionWorker::pass_hour(int64_t hour_ns) {
  for (Partition& p : partitions_) {
    if (p.waits_ns != hour_ns) continue;
    signals_->add_samples(p.samples);
    p.samples.clear();
    p.waits_ns = kNoTimeNs;
  }
  engine_->process({}, hour_ns);
  signals_->forget_samples();
  if (limits_) limits_({hour_ns, engine_->adaptation().threshold_rows()});
}

void AttributionWorker::advance() {
  if (ended_) return;
  for (;;) {
    evaluate(least_watermark());
    const int64_t hour_ns = hour_reached();
    if (hour_ns == kNoTimeNs) break;
    pass_hour(hour_ns);
  }
  const bool all_ended = std::all_of(partitions_.begin(), partitions_.end(),
                                     [](const Partition& p) { return p.end_ns != kNoTimeNs; });
  if (!all_ended) return;
  engine_->finish();
  ended_ = true;
}

}  // namespace reflex::cluster
