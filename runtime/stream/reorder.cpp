// Reorder buffer: a ring of 1 ms buckets ahead of the watermark, a heap for what is outside of the
// ring, then the dedups in total order.
//
// Memory: a batch's slab lives until its last record was released and one more call has passed.
// Rounding: buckets are released whole, so the reported watermark is a multiple of 1 ms minus 1 ns.
#include "runtime/stream/reorder.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <queue>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/time.h"
#include "runtime/stream/dedup.h"
#include "runtime/stream/record_order.h"
#include "runtime/stream/source_clocks.h"

namespace reflex::stream {
namespace {

// Why: 2^17 buckets = 131 s, more than lateness + idle_after (65 s) of the defaults.
constexpr int64_t kRingSlots = 1 << 17;
// Why: room for events that are earlier than the first one.
constexpr int64_t kSlotsBeforeFirst = 1 << 15;
constexpr uint32_t kNil = UINT32_MAX;
// Why: records of all kinds wait this long after the watermark when a kind has `dedup`, so that
// `repeats` of the first record does not depend on batching. Repeats that come later in the window
// are dropped and counted in `deduplicated` only.
constexpr int64_t kRepeatsWindowNs = 2 * kNsPerSecond;

struct Entry {
  abi::Record* record = nullptr;
  uint32_t batch = 0;
  uint32_t next = kNil;
};

struct FarEntry {
  int64_t slot = 0;
  abi::Record* record = nullptr;
  uint32_t batch = 0;
  friend bool operator>(const FarEntry& a, const FarEntry& b) { return a.slot > b.slot; }
};

struct Batch {
  std::shared_ptr<Slab> slab;
  size_t left = 0;  // records that are not released yet
  SymbolId input = kNoSymbol;
};

}  // namespace

class Reorder::Impl {
 public:
  Impl(std::shared_ptr<const abi::CompiledPack> pack, const ReorderOptions& options)
      : options_(options),
        clocks_(options.lateness_ns, options.idle_after_ns),
        order_(pack),
        kind_dedup_(pack),
        delay_ns_(std::min(kind_dedup_.longest_ns(), kRepeatsWindowNs)),
        heads_(kRingSlots, kNil),
        bits_(kRingSlots / 64) {}

  void add_source(SymbolId source, bool is_log) {
    clocks_.at(clocks_.source(source)).declared = true;
    if (is_log) order_.set_log(source);
  }

  void push(RecordBatch&& batch) {
    if (batch.records.empty()) return;
    const uint32_t index = new_batch(batch);
    for (abi::Record* record : batch.records) accept(record, index);
    batch.records.clear();
    batch.slab.reset();
  }

  void finish_source(SymbolId source) {
    const uint32_t index = clocks_.source(source);
    reject_held(index);
    clocks_.finish(index);
  }

  void release(Released& out) {
    start(out);
    const int64_t watermark_ns = clocks_.watermark_ns();
    if (watermark_ns != SourceClocks::kNothing) {
      const int64_t limit = std::max<int64_t>(watermark_ns, 0) / kNsPerMs;
      drain(limit, out);
      base_ = std::max(base_, limit);
      released_to_ns_ = std::max(released_to_ns_, limit * kNsPerMs - 1 - delay_ns_);
      emit_staged(released_to_ns_, out);
    }
    out.watermark_ns = released_to_ns_;
  }

  void finish(Released& out) {
    start(out);
    for (uint32_t i = 0; i < clocks_.count(); ++i) reject_held(i);
    drain(INT64_MAX, out);
    emit_staged(INT64_MAX, out);
    released_to_ns_ = INT64_MAX;
    out.watermark_ns = INT64_MAX;
  }
  [[nodiscard]] const IngestCounters& counters() const { return counters_; }

 private:
  void start(Released& out) {
    retired_.clear();
    out.records.clear();
    out.late.clear();
    for (const auto& [record, batch] : late_) {
      out.late.push_back(record);
      drop_reference(batch);
    }
    late_.clear();
  }

  uint32_t new_batch(const RecordBatch& batch) {
    if (free_batches_.empty()) {
      free_batches_.push_back(static_cast<uint32_t>(batches_.size()));
      batches_.emplace_back();
    }
    const uint32_t index = free_batches_.back();
    free_batches_.pop_back();
    batches_[index] = {batch.slab, batch.records.size(), batch.input};
    return index;
  }
  void drop_reference(uint32_t batch) {
    if (--batches_[batch].left != 0) return;
    retired_.push_back(std::move(batches_[batch].slab));
    free_batches_.push_back(batch);
  }
  void reject(Reject reason, uint32_t batch) {
    ++counters_.rejected[static_cast<size_t>(reason)];
    drop_reference(batch);
  }

  void accept(abi::Record* record, uint32_t batch) {
    const int64_t ts_ns = record->ts_ns;
    if (ts_ns < 0) return reject(Reject::kNegativeTs, batch);
    if (ts_ns > options_.now_limit_ns) return reject(Reject::kFutureTs, batch);
    const uint32_t index = clocks_.source(record->source);
    SourceClocks::Source& source = clocks_.at(index);
    if (source.max_ns != SourceClocks::kNothing && ts_ns - source.max_ns > options_.jump_limit_ns) {
      abi::Record* held = source.held;
      if (held == nullptr || std::abs(ts_ns - held->ts_ns) > options_.jump_limit_ns) {
        reject_held(index);
        source.held = record;
        source.held_batch = batch;
        return;
      }
      source.held = nullptr;  // two events agree: the clock is right
      insert(held, source.held_batch, index);
    }
    insert(record, batch, index);
  }

  void reject_held(uint32_t index) {
    SourceClocks::Source& source = clocks_.at(index);
    if (source.held == nullptr) return;
    source.held = nullptr;
    reject(Reject::kClockJump, source.held_batch);
  }

  void insert(abi::Record* record, uint32_t batch, uint32_t source) {
    clocks_.advance(source, record->ts_ns);
    const SymbolId input = batches_[batch].input;
    if (input != kNoSymbol && input != record->source) {
      clocks_.advance(clocks_.source(input), record->ts_ns);
    }
    if (record->ts_ns < clocks_.watermark_ns()) return insert_late(record, batch);
    const int64_t slot = record->ts_ns / kNsPerMs;
    if (!has_base_) {
      has_base_ = true;
      base_ = slot - kSlotsBeforeFirst;
    }
    if (slot < base_ || slot >= base_ + kRingSlots) {
      far_.push({slot, record, batch});
      return;
    }
    if (free_ == kNil) {
      free_ = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    }
    const uint32_t entry = free_;
    free_ = entries_[entry].next;
    const auto bucket = static_cast<size_t>(slot) & (kRingSlots - 1);
    entries_[entry] = {record, batch, heads_[bucket]};
    heads_[bucket] = entry;
    bits_[bucket / 64] |= uint64_t{1} << bucket % 64;
    ++ring_count_;
  }

  void insert_late(abi::Record* record, uint32_t batch) {
    if (record->id != nullptr && id_dedup_.is_duplicate(*record)) {
      return reject(Reject::kDuplicate, batch);
    }
    ++counters_.rejected[static_cast<size_t>(Reject::kLate)];
    record->flags |= abi::kRecordLate;
    late_.emplace_back(record, batch);
  }

  /// First slot >= base_ that has entries; INT64_MAX when the ring is empty.
  [[nodiscard]] int64_t next_ring_slot() const {
    if (ring_count_ == 0) return INT64_MAX;
    const auto start = static_cast<size_t>(base_) & (kRingSlots - 1);
    size_t word = start / 64;
    uint64_t bits = bits_[word] & ~uint64_t{0} << start % 64;
    while (bits == 0) {
      word = (word + 1) % bits_.size();
      bits = bits_[word];
    }
    const size_t bucket = word * 64 + static_cast<size_t>(std::countr_zero(bits));
    return base_ + static_cast<int64_t>((bucket - start) & (kRingSlots - 1));
  }

  /// Moves all slots before `limit` into total order.
  void drain(int64_t limit, Released& out) {
    for (;;) {
      const int64_t ring_slot = next_ring_slot();
      const int64_t far_slot = far_.empty() ? INT64_MAX : far_.top().slot;
      const int64_t slot = std::min(ring_slot, far_slot);
      if (slot >= limit || slot == INT64_MAX) return;
      bucket_.clear();
      if (slot == ring_slot) take_bucket(slot);
      while (!far_.empty() && far_.top().slot == slot) {
        bucket_.push_back({far_.top().record, far_.top().batch, kNil});
        far_.pop();
      }
      if (bucket_.size() > 1) {
        std::sort(bucket_.begin(), bucket_.end(), [this](const Entry& a, const Entry& b) {
          return order_.less(*a.record, *b.record);
        });
      }
      for (const Entry& entry : bucket_) deliver(entry, out);
      base_ = std::max(base_, slot + 1);
    }
  }

  void take_bucket(int64_t slot) {
    const auto bucket = static_cast<size_t>(slot) & (kRingSlots - 1);
    for (uint32_t i = heads_[bucket]; i != kNil;) {
      bucket_.push_back(entries_[i]);
      const uint32_t next = entries_[i].next;
      entries_[i].next = free_;
      free_ = i;
      i = next;
    }
    ring_count_ -= bucket_.size();
    heads_[bucket] = kNil;
    bits_[bucket / 64] &= ~(uint64_t{1} << bucket % 64);
  }

  void deliver(const Entry& entry, Released& out) {
    abi::Record& record = *entry.record;
    if (record.id != nullptr && id_dedup_.is_duplicate(record)) {
      return reject(Reject::kDuplicate, entry.batch);
    }
    if (kind_dedup_.applies(record.kind)) {
      int64_t age_ns = 0;
      if (abi::Record* first = kind_dedup_.find_first(record, age_ns); first != nullptr) {
        if (age_ns <= delay_ns_) first->repeats += 1 + record.repeats;
        ++counters_.deduplicated;
        drop_reference(entry.batch);
        return;
      }
    }
    if (delay_ns_ == 0) {
      emit(entry, out);
    } else {
      staged_.push_back(entry);
    }
  }

  void emit_staged(int64_t up_to_ns, Released& out) {
    while (!staged_.empty() && staged_.front().record->ts_ns <= up_to_ns) {
      emit(staged_.front(), out);
      staged_.pop_front();
    }
  }

  void emit(const Entry& entry, Released& out) {
    entry.record->order = ++order_count_;
    // A line number says where an event came, not what it is: only a log's own order is a fact.
    if (!order_.is_log(entry.record->source)) entry.record->seq = 0;
    ++counters_.events;
    out.records.push_back(entry.record);
    drop_reference(entry.batch);
  }

  ReorderOptions options_;
  SourceClocks clocks_;
  RecordOrder order_;
  IdDedup id_dedup_;
  KindDedup kind_dedup_;
  int64_t delay_ns_;
  IngestCounters counters_;

  std::vector<uint32_t> heads_;  // [slot & mask] first entry
  std::vector<uint64_t> bits_;   // which buckets are not empty
  std::vector<Entry> entries_;
  uint32_t free_ = kNil;
  size_t ring_count_ = 0;
  int64_t base_ = 0;  // first slot of the ring; all earlier ones are released
  bool has_base_ = false;
  std::priority_queue<FarEntry, std::vector<FarEntry>, std::greater<>> far_;
  std::vector<Entry> bucket_;   // scratch of drain()
  std::deque<Entry> staged_;    // in total order, waiting for their repeats
  std::vector<std::pair<abi::Record*, uint32_t>> late_;

  std::vector<Batch> batches_;
  std::vector<uint32_t> free_batches_;
  std::vector<std::shared_ptr<Slab>> retired_;  // of the records of the last call
  uint64_t order_count_ = 0;
  int64_t released_to_ns_ = INT64_MIN;
};

Reorder::Reorder(std::shared_ptr<const abi::CompiledPack> pack, const ReorderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(pack), options)) {}
Reorder::~Reorder() = default;
void Reorder::add_source(SymbolId source, bool is_log) { impl_->add_source(source, is_log); }
void Reorder::push(RecordBatch&& batch) { impl_->push(std::move(batch)); }
void Reorder::finish_source(SymbolId source) { impl_->finish_source(source); }
void Reorder::release(Released& out) { impl_->release(out); }
void Reorder::finish(Released& out) { impl_->finish(out); }
const IngestCounters& Reorder::counters() const { return impl_->counters(); }

}  // namespace reflex::stream
