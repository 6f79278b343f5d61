// Firings from elsewhere, in their place: see remote_signals.h.
#include "runtime/cluster/remote_signals.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace reflex::cluster {
namespace {
eval::Options global_stage(eval::Options options) {
  options.stage = eval::Stage::kGlobal;
  return options;
}
}  // namespace

RemoteSignals::RemoteSignals(std::shared_ptr<const abi::CompiledPack> pack,
                             std::shared_ptr<const topology::Topology> topology,
                             eval::Options options)
    : global_(std::move(pack), std::move(topology), global_stage(std::move(options))) {}

void RemoteSignals::add_samples(const std::vector<engine::FeatureSample>& samples) {
  samples_.insert(samples_.end(), samples.begin(), samples.end());
}

void RemoteSignals::save(StateWriter& out, const RecordCodec& codec) const {
  RFX_CHECK(of_events_.empty() && samples_.empty());
  out.u64(of_timers_.size());
  for (const abi::Firing& firing : of_timers_) codec.write(out, firing);
}

void RemoteSignals::load(StateReader& in, const RecordCodec& codec) {
  for (size_t left = in.count(); left > 0 && !in.failed(); --left) {
    of_timers_.push_back(codec.read_firing(in));
  }
}

void RemoteSignals::take_timers(int64_t before_ns, std::vector<abi::Firing>& firings) {
  const auto due = std::partition(of_timers_.begin(), of_timers_.end(),
                                  [&](const auto& f) { return f.ts_ns >= before_ns; });
  firings.insert(firings.end(), std::make_move_iterator(due),
                 std::make_move_iterator(of_timers_.end()));
  of_timers_.erase(due, of_timers_.end());
}

void RemoteSignals::process(std::span<const abi::Record* const> records, int64_t watermark_ns,
                            std::vector<abi::Firing>& firings) {
  whole_.clear();
  for (const abi::Record* record : records) {
    if ((record->flags & engine::kRecordMarker) == 0) whole_.push_back(record);
  }
  std::vector<abi::Firing> due;
  global_.process(whole_, watermark_ns, due);
  while (!records.empty() && !of_events_.empty() &&
         of_events_.front().order <= records.back()->order) {
    due.push_back(std::move(of_events_.front()));
    of_events_.pop_front();
  }
  take_timers(watermark_ns, due);
  global_.local().sort(due);
  firings.insert(firings.end(), std::make_move_iterator(due.begin()),
                 std::make_move_iterator(due.end()));
}

void RemoteSignals::finish(int64_t end_ns, std::vector<abi::Firing>& firings) {
  std::vector<abi::Firing> due;
  global_.finish(end_ns, due);
  take_timers(end_ns == INT64_MAX ? end_ns : end_ns + 1, due);
  global_.local().sort(due);
  firings.insert(firings.end(), std::make_move_iterator(due.begin()),
                 std::make_move_iterator(due.end()));
}

void RemoteSignals::sample(std::span<const abi::FeatureId> features, int64_t at_ns,
                           std::vector<engine::FeatureSample>& out) {
  out.insert(out.end(), samples_.begin(), samples_.end());
  global_.sample(features, at_ns, out);
}

}  // namespace reflex::cluster
