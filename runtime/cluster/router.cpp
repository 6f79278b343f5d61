// Splitting batches over partitions: see router.h.
#include "runtime/cluster/router.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/time.h"

namespace reflex::cluster {
namespace {
constexpr int64_t kJumpNs = 30 * kNsPerDay;  // Why: as ReorderOptions::jump_limit_ns
}

Router::Router(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions)
    : pack_(pack), codec_(pack), route_(std::move(pack), partitions), partitions_(partitions) {}

void Router::note(SymbolId source, int64_t ts_ns) {
  if (ts_ns < 0 || source == kNoSymbol) return;
  if (source >= clock_of_.size()) clock_of_.resize(size_t{source} + 64);
  if (clock_of_[source] == nullptr) {
    clock_of_[source] = &clocks_[std::string(pack_->symbols->name(source))];
    clock_of_[source]->source = source;
  }
  Clock& clock = *clock_of_[source];
  if (clock.newest_ns != kNoTimeNs && ts_ns - clock.newest_ns > kJumpNs) {
    if (clock.doubted_ns == kNoTimeNs || std::abs(ts_ns - clock.doubted_ns) > kJumpNs) {
      clock.doubted_ns = ts_ns;
      return;
    }
    ts_ns = std::max(ts_ns, clock.doubted_ns);
    clock.doubted_ns = kNoTimeNs;
  }
  if (clock.newest_ns != kNoTimeNs && ts_ns <= clock.newest_ns) return;
  clock.newest_ns = ts_ns;
  clock.moved = true;
  newest_ns_ = std::max(newest_ns_, ts_ns);
}

void Router::save(StateWriter& out) const {
  out.u64(number_);
  out.i64(newest_ns_);
  out.u64(clocks_.size());
  for (const auto& [name, clock] : clocks_) {
    out.text(name);
    out.i64(clock.newest_ns);
    out.i64(clock.doubted_ns);
  }
}

void Router::load(StateReader& in) {
  number_ = in.u64();
  newest_ns_ = in.i64();
  for (size_t left = in.count(3); left > 0; --left) {
    const std::string name(in.text());
    Clock& clock = clocks_[name];
    clock.source = pack_->symbols->intern(name);
    clock.newest_ns = in.i64();
    clock.doubted_ns = in.i64();
    if (clock.source >= clock_of_.size()) clock_of_.resize(size_t{clock.source} + 64);
    clock_of_[clock.source] = &clock;
  }
}

std::vector<std::string> Router::encode(std::vector<EventBatch>& batches) {
  ++number_;
  std::vector<EventBatch::Progress> progress;
  for (auto& [name, clock] : clocks_) {
    if (clock.moved) progress.push_back({clock.source, clock.newest_ns});
    clock.moved = false;
  }
  std::vector<std::string> messages;
  for (EventBatch& batch : batches) {
    batch.number = number_;
    batch.progress = progress;
    messages.push_back(codec_.encode(batch));
  }
  return messages;
}

std::vector<std::string> Router::split(const stream::RecordBatch& batch,
                                       const std::vector<SymbolId>& finished) {
  std::vector<EventBatch> batches(partitions_);
  for (EventBatch& part : batches) {
    part.records.input = batch.input;
    part.finished = finished;
  }
  std::vector<uint32_t> to;
  for (abi::Record* record : batch.records) {
    note(record->source, record->ts_ns);
    if (batch.input != record->source) note(batch.input, record->ts_ns);
    if (route_.to_all(record->kind)) {
      for (EventBatch& part : batches) part.records.records.push_back(record);
      continue;
    }
    route_.partitions_of(*record, to);
    for (const uint32_t p : to) batches[p].records.records.push_back(record);
  }
  return encode(batches);
}

std::vector<std::string> Router::declare(const std::vector<EventBatch::Declared>& sources) {
  std::vector<EventBatch> batches(partitions_);
  for (EventBatch& part : batches) part.declared = sources;
  return encode(batches);
}

std::vector<std::string> Router::tick(int64_t wall_ns) {
  std::vector<EventBatch> batches(partitions_);
  for (EventBatch& part : batches) part.tick_wall_ns = wall_ns;
  return encode(batches);
}

std::vector<std::string> Router::end() {
  std::vector<EventBatch> batches(partitions_);
  for (EventBatch& part : batches) part.end_ns = newest_ns_;
  return encode(batches);
}

}  // namespace reflex::cluster
