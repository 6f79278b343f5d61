// One partition at work: see signal_worker.h.
#include "runtime/cluster/signal_worker.h"

#include <algorithm>

#include "runtime/adapt/live_table.h"
#include "runtime/base/time.h"
#include "runtime/cluster/partition.h"
#include "runtime/engine/adaptation.h"
#include "runtime/engine/engine.h"

namespace reflex::cluster {
namespace {

stream::ReorderOptions reorder_options(const abi::CompiledPack& pack) {
  stream::ReorderOptions options;
  options.lateness_ns = pack.clock.lateness_ns;
  options.idle_after_ns = pack.clock.idle_after_ns;
  return options;
}

int64_t hour_of(int64_t ts_ns) {
  const int64_t rest = ((ts_ns % adapt::kEpochNs) + adapt::kEpochNs) % adapt::kEpochNs;
  return ts_ns - rest;
}

}  // namespace

SignalWorker::SignalWorker(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partition,
                           uint32_t partitions)
    : pack_(std::move(pack)),
      partition_(partition),
      route_(pack_, partitions),
      topology_(std::make_shared<topology::Topology>(pack_)),
      reorder_(pack_, reorder_options(*pack_)),
      seen_ns_(pack_->kinds.size(), kNoTimeNs) {
  eval::Options options;
  options.stage = eval::Stage::kNodes;
  options.owns = [this](SymbolId node) { return route_.partition(node) == partition_; };
  signals_ = std::make_unique<eval::SignalEngine>(pack_, topology_, options);
  const engine::Adaptation adaptation(pack_, topology_, {});
  wanted_ = engine::told_kinds(*pack_, adaptation);
  if (adaptation.has_epochs()) sampled_ = adaptation.sampled_features();
  if (!pack_->adaptives.empty()) {
    signals_->set_tables(adapt::live(nullptr, adaptation.threshold_rows()));
  }
  eval::Options global;
  global.stage = eval::Stage::kGlobal;
  const eval::SignalEngine rest(pack_, topology_, global);
  for (abi::KindId kind = 0; kind < pack_->kinds.size(); ++kind) {
    if (kind < abi::kBuiltinKindCount || rest.wants(kind)) wanted_[kind] = 1;
    auto& forms = forms_.emplace_back();
    for (const auto& field : pack_->kinds[kind].fields) forms.push_back(abi::slot_form(field.type));
  }
}

void SignalWorker::declare(const EventBatch::Declared& declared) {
  reorder_.add_source(declared.source, declared.is_log);
  if (!declared.is_log) return;
  if (declared.source >= is_log_.size()) is_log_.resize(size_t{declared.source} + 1);
  is_log_[declared.source] = true;
  log_sources_.push_back(declared.source);
  logged_nodes_.push_back(declared.node);
}

bool SignalWorker::push(EventBatch&& batch) {
  if (batch.number <= events_number_) return true;  // sent again
  if (batch.number != events_number_ + 1) return false;
  events_number_ = batch.number;
  for (const auto& declared : batch.declared) declare(declared);
  reorder_.push(std::move(batch.records));
  for (const auto& p : batch.progress) reorder_.progress(p.source, p.newest_ns);
  for (const SymbolId source : batch.finished) reorder_.finish_source(source);
  if (batch.tick_wall_ns != kNoTimeNs) reorder_.tick(batch.tick_wall_ns);
  if (batch.end_ns != kNoTimeNs) end_ns_ = batch.end_ns;
  fresh_ = true;
  return true;
}

void SignalWorker::set_limits(const LimitTable& table) {
  if (table.hour_ns != waits_for_ns_) return;  // of an hour that is over
  limits_ = table;
  signals_->set_tables(adapt::live(nullptr, table.rows));
  next_hour_ns_ = waits_for_ns_ + adapt::kEpochNs;
  waits_for_ns_ = kNoTimeNs;
}

void SignalWorker::start_batch() {
  if (end_ns_ != kNoTimeNs) {
    reorder_.finish(released_);
  } else {
    reorder_.release(released_);
  }
  fresh_ = false;
  busy_ = true;
  at_ = 0;
  for (size_t i = 0; i < released_.late.size(); ++i) {
    const abi::Record& late = *released_.late[i];
    if (route_.home(late) != partition_) continue;
    batch_.late.push_back(batch_.slab->clone(late, forms_[late.kind]));
    batch_.late_after_ns.push_back(released_.late_after_ns[i]);
  }
}

void SignalWorker::advance(const Give& give) {
  while (waits_for_ns_ == kNoTimeNs && !ended_) {
    if (!busy_) {
      if (!fresh_) return;
      start_batch();
    }
    const auto& records = released_.records;
    if (at_ == records.size()) {
      finish_released(give);
      continue;
    }
    if (next_hour_ns_ == kNoTimeNs && !sampled_.empty()) {
      next_hour_ns_ = hour_of(records[at_]->ts_ns) + adapt::kEpochNs;
      first_hour_ns_ = next_hour_ns_;
    }
    if (stop_at_hour(records[at_]->ts_ns, give)) continue;
    size_t end = at_ + 1;
    while (end < records.size() &&
           (next_hour_ns_ == kNoTimeNs || records[end]->ts_ns < next_hour_ns_)) {
      ++end;
    }
    evaluate(end, records[end - 1]->ts_ns);
  }
}

bool SignalWorker::stop_at_hour(int64_t ts_ns, const Give& give) {
  if (next_hour_ns_ == kNoTimeNs || ts_ns < next_hour_ns_) return false;
  evaluate(at_, next_hour_ns_);  // timers before it
  batch_.hour_ns = next_hour_ns_;
  signals_->sample_features(
      sampled_, next_hour_ns_,
      [&](abi::FeatureId feature, const abi::EntityKey& entity, abi::ClassId hw_class, double x) {
        if (pack_->entity_kinds[entity.kind].keys.front() != "node") return;
        batch_.samples.push_back({feature, static_cast<SymbolId>(entity.values[0]), hw_class, x});
      });
  waits_for_ns_ = next_hour_ns_;
  give_out(next_hour_ns_ - 1, give);
  return true;
}

void SignalWorker::finish_released(const Give& give) {
  const bool last = end_ns_ != kNoTimeNs;
  const int64_t to_ns = last ? end_ns_ : released_.watermark_ns;
  if (stop_at_hour(to_ns, give)) return;
  busy_ = false;
  if (last) {
    firings_.clear();
    signals_->finish(end_ns_, firings_);
    for (auto& firing : firings_) batch_.timer_firings.push_back(std::move(firing));
    batch_.end_ns = end_ns_;
    ended_ = true;
  } else {
    evaluate(at_, to_ns);
  }
  if (to_ns > watermark_ns_ || last || !batch_.late.empty()) give_out(to_ns, give);
}

bool SignalWorker::is_handed_on(const abi::Record& record) {
  return wanted_[record.kind] != 0 && route_.home(record) == partition_;
}

uint32_t SignalWorker::hand_on(const abi::Record& record, bool marker) {
  abi::Record* copy = batch_.slab->clone(record, forms_[record.kind]);
  if (marker) copy->flags |= engine::kRecordMarker;
  batch_.records.push_back(copy);
  return static_cast<uint32_t>(batch_.records.size() - 1);
}

void SignalWorker::evaluate(size_t end, int64_t watermark_ns) {
  const std::span<const abi::Record* const> all(released_.records);
  const auto records = all.subspan(at_, end - at_);
  for (const abi::Record* record : records) {
    const bool from_log = record->source < is_log_.size() && is_log_[record->source];
    int64_t& seen = seen_ns_[record->kind];
    if (!from_log && (seen == kNoTimeNs || record->ts_ns < seen)) {
      seen = record->ts_ns;
      batch_.seen_kinds.emplace_back(record->kind, seen);
    }
    engine::apply_topology(*record, *pack_, *topology_);
  }
  firings_.clear();
  signals_->process(records, watermark_ns, firings_);
  size_t next = 0;  // of firings_: those of events come in the order of their records
  std::vector<abi::Firing*> of_events;
  for (auto& firing : firings_) {
    if (firing.phase == abi::FiringPhase::kEvent) {
      of_events.push_back(&firing);
    } else {
      batch_.timer_firings.push_back(std::move(firing));
    }
  }
  for (size_t i = 0; i < records.size(); ++i) {
    const abi::Record& record = *records[i];
    const bool completes = next < of_events.size() && of_events[next]->order == record.order;
    const bool edge = i == 0 || i + 1 == records.size();  // tells which hours had events
    const bool whole = is_handed_on(record);
    if (!completes && !edge && !whole) continue;
    const uint32_t index = hand_on(record, !whole);
    for (; next < of_events.size() && of_events[next]->order == record.order; ++next) {
      batch_.event_firings.emplace_back(index, std::move(*of_events[next]));
    }
  }
  RFX_CHECK(next == of_events.size());
  at_ = end;
}

void SignalWorker::give_out(int64_t watermark_ns, const Give& give) {
  watermark_ns_ = std::max(watermark_ns_, watermark_ns);
  batch_.partition = partition_;
  batch_.number = ++number_;
  batch_.watermark_ns = watermark_ns_;
  batch_.first_hour_ns = first_hour_ns_;
  batch_.logged_nodes.swap(logged_nodes_);
  batch_.log_sources.swap(log_sources_);
  give(std::move(batch_));
  batch_ = SignalBatch{};
}

}  // namespace reflex::cluster
