// Reorder buffer: a TimeRing ahead of the watermark, then the order inside a slot, then the dedups
// in total order.
//
// Memory: a batch's slab lives until the released time has passed its last record (the buckets do
// not count records), and one more call.
// Rounding: whole milliseconds are released, so the reported watermark is a multiple of 1 ms minus
// 1 ns.
#include "runtime/stream/reorder.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/time.h"
#include "runtime/stream/reorder_impl.h"

namespace reflex::stream {
namespace {

// Why: records of all kinds wait this long after the watermark when a kind has `dedup`, so that
// `repeats` of the first record does not depend on batching. Repeats that come later in the window
// are dropped and counted in `deduplicated` only.
constexpr int64_t kRepeatsWindowNs = 2 * kNsPerSecond;

}  // namespace

Reorder::Impl::Impl(std::shared_ptr<const abi::CompiledPack> pack, const ReorderOptions& options,
                    RejectSink sink)
    : options_(options),
      rejects_(counters_, std::move(sink)),
      clocks_(options.lateness_ns, options.idle_after_ns),
      pack_(pack),
      order_(pack),
      id_dedup_(*pack->symbols),
      kind_dedup_(pack),
      delay_ns_(std::min(kind_dedup_.longest_ns(), kRepeatsWindowNs)) {}

void Reorder::Impl::add_source(SymbolId source, bool is_log) {
  clocks_.declare(source, is_log);
  if (is_log) order_.set_log(source);
}

void Reorder::Impl::push(RecordBatch&& batch) {
  if (batch.records.empty()) return;
  batch_ = {INT64_MIN, std::move(batch.slab)};
  input_ = batch.input;
  input_index_ = clocks_.input(input_);
  constexpr size_t kAhead = 8;  // Why 8: some 100 ns, one load from memory
  for (size_t i = 0; i < batch.records.size(); ++i) {
    if (i + kAhead < batch.records.size()) __builtin_prefetch(batch.records[i + kAhead]);
    accept(batch.records[i]);
  }
  clocks_.bring(input_);
  slabs_.push(std::move(batch_));
  batch.records.clear();
}

void Reorder::Impl::finish_source(SymbolId source) {
  for (const uint32_t index : clocks_.all_of(source)) reject_held(index);
  clocks_.finish(source);
  is_watermark_fresh_ = false;
}

void Reorder::Impl::release(Released& out) {
  start(out);
  refresh_watermark();
  if (watermark_ns_ != SourceClocks::kNothing) {
    const int64_t limit_ns = std::max<int64_t>(watermark_ns_, 0) / kNsPerMs * kNsPerMs;
    drain(limit_ns);
    released_to_ns_ = std::max(released_to_ns_, limit_ns - 1 - delay_ns_);
    emit_staged(released_to_ns_);
  }
  emit(out);
  out.watermark_ns = released_to_ns_;
  retire_slabs();
}

void Reorder::Impl::finish(Released& out) {
  start(out);
  for (uint32_t i = 0; i < clocks_.count(); ++i) reject_held(i);
  drain(INT64_MAX);
  emit_staged(INT64_MAX);
  emit(out);
  released_to_ns_ = INT64_MAX;
  out.watermark_ns = INT64_MAX;
  retire_slabs();
}

void Reorder::Impl::tick(int64_t wall_ns) {
  clocks_.tick(wall_ns);
  is_watermark_fresh_ = false;
  set_now_limit();
}

void Reorder::Impl::set_now_limit() {
  const int64_t tick_ns = clocks_.last_tick_ns();
  now_limit_ns_ = options_.now_limit_ns;
  if (tick_ns == SourceClocks::kNothing || options_.future_skew_ns > INT64_MAX - tick_ns) return;
  now_limit_ns_ = std::min(now_limit_ns_, tick_ns + options_.future_skew_ns);
}

void Reorder::Impl::start(Released& out) {
  retired_.clear();
  out.records.clear();
  out.late.clear();
  out.late.assign(late_.begin(), late_.end());
  late_.clear();
  out.late_after_ns.swap(late_after_ns_);
  late_after_ns_.clear();
}

void Reorder::Impl::retire_slabs() {
  while (!slabs_.empty() && slabs_.top().last_ns <= released_to_ns_) {
    retired_.push_back(slabs_.top().slab);
    slabs_.pop();
  }
}

void Reorder::Impl::reject_time(Reject reason, const abi::Record& record, SymbolId input) {
  rejects_.reject(reason, input == kNoSymbol ? record.source : input, record.seq, {},
                  "its time is " + to_rfc3339(EventTime{record.ts_ns}));
}

void Reorder::Impl::accept(abi::Record* record) {
  const int64_t ts_ns = record->ts_ns;
  if (ts_ns < 0) return reject_time(Reject::kNegativeTs, *record, input_);
  if (ts_ns > now_limit_ns_) return reject_time(Reject::kFutureTs, *record, input_);
  const uint32_t index = input_ == kNoSymbol ? clocks_.source_alone(record->source)
                                             : clocks_.source(record->source, input_index_);
  clocks_.at(index).spoke = true;
  if (is_watermark_fresh_ && clocks_.at(index).covers(ts_ns)) {
    return insert(record, index);  // the common case: no clock moves
  }
  if (!confirm_jump(record, index)) return;
  advance(index, ts_ns);
  insert(record, index);
}

bool Reorder::Impl::confirm_jump(abi::Record* record, uint32_t index) {
  SourceClocks::Source& source = clocks_.at(index);
  const int64_t ts_ns = record->ts_ns;
  if (source.max_ns == SourceClocks::kNothing ||
      ts_ns - source.max_ns <= options_.jump_limit_ns) {
    return true;
  }
  abi::Record* held = source.held;
  if (held == nullptr || std::abs(ts_ns - held->ts_ns) > options_.jump_limit_ns) {
    reject_held(index);
    source.held = record;
    source.held_input = input_;
    source.held_slab = batch_.slab;
    return false;
  }
  source.held = nullptr;  // two events agree: the clock is right
  slabs_.push({held->ts_ns, std::move(source.held_slab)});
  advance(index, held->ts_ns);
  insert(held, index);
  return true;
}

void Reorder::Impl::progress(SymbolId id, int64_t newest_ns) {
  input_ = kNoSymbol;
  batch_ = {};
  for (const uint32_t index : clocks_.all_of(id)) {
    SourceClocks::Source& source = clocks_.at(index);
    source.spoke = true;
    abi::Record* held = source.held;
    if (held != nullptr && std::abs(newest_ns - held->ts_ns) <= options_.jump_limit_ns) {
      source.held = nullptr;
      slabs_.push({held->ts_ns, std::move(source.held_slab)});
      insert(held, index);
    }
    if (newest_ns > source.max_ns) advance(index, newest_ns);
  }
}

void Reorder::Impl::reject_held(uint32_t index) {
  SourceClocks::Source& source = clocks_.at(index);
  if (source.held == nullptr) return;
  reject_time(Reject::kClockJump, *source.held, source.held_input);
  source.held = nullptr;
  source.held_slab.reset();
}

void Reorder::Impl::advance(uint32_t source, int64_t ts_ns) {
  clocks_.advance(source, ts_ns);
  refresh_watermark();
}

void Reorder::Impl::refresh_watermark() {
  watermark_ns_ = clocks_.watermark_ns();
  is_watermark_fresh_ = true;
}

void Reorder::Impl::insert(abi::Record* record, uint32_t source) {
  batch_.last_ns = std::max(batch_.last_ns, record->ts_ns);
  if (record->ts_ns < watermark_ns_) return insert_late(record, source);
  ring_.add(record->ts_ns, {record, 0, record->source, order_.tie_rank(*record),
                            record->id == nullptr && !kind_dedup_.applies(record->kind)});
}

void Reorder::Impl::insert_late(abi::Record* record, uint32_t source) {
  if (record->id != nullptr && id_dedup_.is_duplicate(*record)) {
    return reject(Reject::kDuplicate);
  }
  reject(Reject::kLate);
  ++clocks_.at(source).late;
  record->flags |= abi::kRecordLate;
  late_.push_back(record);
  // What is staged is not out yet. (The other bound counts after a load with a shorter delay.)
  late_after_ns_.push_back(std::max(watermark_ns_ - delay_ns_, released_to_ns_ + 1));
}

void Reorder::Impl::drain(int64_t limit_ns) {
  for (;;) {
    const TimeRing::Run run = ring_.take(limit_ns);
    if (run.entries.empty()) return;
    sort(run);
    for (const TimeRing::Entry& entry : run.entries) {
      if (entry.plain && delay_ns_ == 0) {
        ready_.push_back(entry.record);
      } else {
        deliver(*entry.record);
      }
    }
  }
}

void Reorder::Impl::sort(const TimeRing::Run& run) {
  const auto before = [this](const TimeRing::Entry& a, const TimeRing::Entry& b) {
    if (a.sub_ns != b.sub_ns) return a.sub_ns < b.sub_ns;
    if (a.source == b.source && RecordOrder::told_apart(a.rank, b.rank)) return a.rank < b.rank;
    return order_.less(*a.record, *b.record);
  };
  if (run.crowded) return std::sort(run.entries.begin(), run.entries.end(), before);
  const std::span<TimeRing::Entry> all = run.entries;
  for (size_t i = 1; i < all.size(); ++i) {
    if (!before(all[i], all[i - 1])) continue;
    const TimeRing::Entry entry = all[i];
    size_t at = i;
    do {
      all[at] = all[at - 1];
    } while (--at > 0 && before(entry, all[at - 1]));
    all[at] = entry;
  }
}

void Reorder::Impl::deliver(abi::Record& record) {
  if (record.id != nullptr && id_dedup_.is_duplicate(record)) {
    return reject(Reject::kDuplicate);
  }
  if (kind_dedup_.applies(record.kind)) {
    if (const auto found = kind_dedup_.find_first(record); found.is_repeat) {
      const bool held = found.first != nullptr && found.age_ns <= delay_ns_;
      if (held) found.first->repeats += 1 + record.repeats;
      ++counters_.deduplicated;
      return;
    }
  }
  if (delay_ns_ == 0) {
    ready_.push_back(&record);
  } else {
    staged_.push_back(&record);
  }
}

void Reorder::Impl::emit_staged(int64_t up_to_ns) {
  while (!staged_.empty() && staged_.front()->ts_ns <= up_to_ns) {
    ready_.push_back(staged_.front());
    staged_.pop_front();
  }
}

void Reorder::Impl::emit(Released& out) {
  constexpr size_t kAhead = 16;  // Why 16: some 100 ns of this loop, one load from memory
  const size_t count = ready_.size();
  out.records.resize(count);
  for (size_t i = 0; i < std::min(kAhead, count); ++i) prefetch(ready_[i]);
  for (size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) prefetch(ready_[i + kAhead]);
    abi::Record& record = *ready_[i];
    record.order = ++order_count_;
    // A line number says where an event came, not what it is: only a log's own order is a fact.
    if (!order_.is_log(record.source)) record.seq = 0;
    out.records[i] = &record;
  }
  counters_.events += count;
  ready_.clear();
}

void Reorder::Impl::prefetch(const abi::Record* record) {
  const auto* bytes = reinterpret_cast<const char*>(record);
  __builtin_prefetch(bytes, 1);
  __builtin_prefetch(bytes + 64);
}

uint64_t Reorder::Impl::pending() const {
  return ring_.records().size() + staged_.size();
}

std::vector<SourceState> Reorder::Impl::sources() const {
  std::vector<SourceState> out;
  std::unordered_map<SymbolId, size_t> at_of;
  for (uint32_t i = 0; i < clocks_.count(); ++i) {
    const SourceClocks::Source& s = clocks_.at(i);
    const auto [at, is_new] = at_of.try_emplace(s.id, out.size());
    if (is_new) {
      out.push_back({s.id, s.max_ns, clocks_.is_idle(i), s.finished, s.late});
      continue;
    }
    SourceState& same = out[at->second];  // on another input
    same.newest_ns = std::max(same.newest_ns, s.max_ns);
    same.idle = same.idle && clocks_.is_idle(i);
    same.finished = same.finished && s.finished;
    same.late += s.late;
  }
  const SymbolTable& names = *pack_->symbols;
  std::sort(out.begin(), out.end(), [&](const SourceState& a, const SourceState& b) {
    return names.name(a.source) < names.name(b.source);
  });
  return out;
}

Reorder::Reorder(std::shared_ptr<const abi::CompiledPack> pack, const ReorderOptions& options,
                 RejectSink sink)
    : impl_(std::make_unique<Impl>(std::move(pack), options, std::move(sink))) {}
Reorder::~Reorder() = default;
void Reorder::add_source(SymbolId source, bool is_log) { impl_->add_source(source, is_log); }
void Reorder::push(RecordBatch&& batch) { impl_->push(std::move(batch)); }
void Reorder::finish_source(SymbolId source) { impl_->finish_source(source); }
void Reorder::release(Released& out) { impl_->release(out); }
void Reorder::finish(Released& out) { impl_->finish(out); }
const IngestCounters& Reorder::counters() const { return impl_->counters(); }
void Reorder::tick(int64_t wall_ns) { impl_->tick(wall_ns); }
void Reorder::progress(SymbolId source, int64_t newest_ns) { impl_->progress(source, newest_ns); }
std::vector<SourceState> Reorder::sources() const { return impl_->sources(); }
int64_t Reorder::watermark_ns() const { return impl_->released_to_ns(); }
uint64_t Reorder::pending() const { return impl_->pending(); }
void Reorder::save(StateWriter& writer) const { impl_->save(writer); }
Status Reorder::load(StateReader& reader, std::vector<std::string>& notes) {
  return impl_->load(reader, notes);
}

}  // namespace reflex::stream
