// Reorder buffer: a ring of 1 ms buckets ahead of the watermark, a heap for what is outside of the
// ring, then the dedups in total order.
//
// Records of a bucket are linked through Record::order, which has no meaning before the release.
// Memory: a batch's slab lives until the released time has passed its last record (the buckets do
// not count records), and one more call.
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
// Why: records of all kinds wait this long after the watermark when a kind has `dedup`, so that
// `repeats` of the first record does not depend on batching. Repeats that come later in the window
// are dropped and counted in `deduplicated` only.
constexpr int64_t kRepeatsWindowNs = 2 * kNsPerSecond;

constexpr uint32_t kUnknownSource = UINT32_MAX;

struct FarEntry {
  int64_t slot = 0;
  abi::Record* record = nullptr;
  friend bool operator>(const FarEntry& a, const FarEntry& b) { return a.slot > b.slot; }
};

/// The memory of a batch, or of a part of one.
struct LiveSlab {
  int64_t last_ns = INT64_MIN;  // time of its last record that was not rejected
  std::shared_ptr<Slab> slab;
  friend bool operator>(const LiveSlab& a, const LiveSlab& b) { return a.last_ns > b.last_ns; }
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
        heads_(kRingSlots, nullptr),
        bits_(kRingSlots / 64) {}

  void add_source(SymbolId source, bool is_log) {
    clocks_.at(clocks_.source(source)).declared = true;
    if (is_log) order_.set_log(source);
  }

  void push(RecordBatch&& batch) {
    if (batch.records.empty()) return;
    batch_ = {INT64_MIN, std::move(batch.slab)};
    input_ = batch.input;
    input_index_ = kUnknownSource;
    for (abi::Record* record : batch.records) accept(record);
    slabs_.push(std::move(batch_));
    batch.records.clear();
  }

  void finish_source(SymbolId source) {
    const uint32_t index = clocks_.source(source);
    reject_held(index);
    clocks_.finish(index);
    is_watermark_fresh_ = false;
  }

  void release(Released& out) {
    start(out);
    refresh_watermark();
    if (watermark_ns_ != SourceClocks::kNothing) {
      const int64_t limit = std::max<int64_t>(watermark_ns_, 0) / kNsPerMs;
      drain(limit, out);
      base_ = std::max(base_, limit);
      released_to_ns_ = std::max(released_to_ns_, limit * kNsPerMs - 1 - delay_ns_);
      emit_staged(released_to_ns_, out);
    }
    out.watermark_ns = released_to_ns_;
    retire_slabs();
  }

  void finish(Released& out) {
    start(out);
    for (uint32_t i = 0; i < clocks_.count(); ++i) reject_held(i);
    drain(INT64_MAX, out);
    emit_staged(INT64_MAX, out);
    released_to_ns_ = INT64_MAX;
    out.watermark_ns = INT64_MAX;
    retire_slabs();
  }
  [[nodiscard]] const IngestCounters& counters() const { return counters_; }

 private:
  void start(Released& out) {
    retired_.clear();
    out.records.clear();
    out.late.clear();
    out.late.assign(late_.begin(), late_.end());
    late_.clear();
  }

  void retire_slabs() {
    while (!slabs_.empty() && slabs_.top().last_ns <= released_to_ns_) {
      retired_.push_back(slabs_.top().slab);
      slabs_.pop();
    }
  }

  void reject(Reject reason) { ++counters_.rejected[static_cast<size_t>(reason)]; }

  void accept(abi::Record* record) {
    const int64_t ts_ns = record->ts_ns;
    if (ts_ns < 0) return reject(Reject::kNegativeTs);
    if (ts_ns > options_.now_limit_ns) return reject(Reject::kFutureTs);
    const uint32_t index = clocks_.source(record->source);
    if (is_watermark_fresh_ && clocks_.at(index).covers(ts_ns) &&
        input_covers(record->source, ts_ns)) {
      return insert(record);  // the common case: no clock moves
    }
    if (!confirm_jump(record, index)) return;
    advance(index, ts_ns);
    insert(record);
  }

  [[nodiscard]] bool input_covers(SymbolId source, int64_t ts_ns) {
    if (input_ == kNoSymbol || input_ == source) return true;
    return input_index_ != kUnknownSource && clocks_.at(input_index_).covers(ts_ns);
  }

  /// False when the record has to wait for a second one that confirms its time.
  bool confirm_jump(abi::Record* record, uint32_t index) {
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
      source.held_slab = batch_.slab;
      return false;
    }
    source.held = nullptr;  // two events agree: the clock is right
    slabs_.push({held->ts_ns, std::move(source.held_slab)});
    advance(index, held->ts_ns);
    insert(held);
    return true;
  }

  void reject_held(uint32_t index) {
    SourceClocks::Source& source = clocks_.at(index);
    if (source.held == nullptr) return;
    source.held = nullptr;
    source.held_slab.reset();
    reject(Reject::kClockJump);
  }

  void advance(uint32_t source, int64_t ts_ns) {
    clocks_.advance(source, ts_ns);
    if (input_ != kNoSymbol) {
      // Not before its first good event: a source without any holds the watermark.
      if (input_index_ == kUnknownSource) input_index_ = clocks_.source(input_);
      if (input_index_ != source) clocks_.advance(input_index_, ts_ns);
    }
    refresh_watermark();
  }

  void refresh_watermark() {
    watermark_ns_ = clocks_.watermark_ns();
    is_watermark_fresh_ = true;
  }

  void insert(abi::Record* record) {
    batch_.last_ns = std::max(batch_.last_ns, record->ts_ns);
    if (record->ts_ns < watermark_ns_) return insert_late(record);
    const int64_t slot = record->ts_ns / kNsPerMs;
    if (!has_base_) {
      has_base_ = true;
      base_ = slot - kSlotsBeforeFirst;
    }
    if (slot < base_ || slot >= base_ + kRingSlots) {
      far_.push({slot, record});
      return;
    }
    const auto bucket = static_cast<size_t>(slot) & (kRingSlots - 1);
    set_next(record, heads_[bucket]);
    heads_[bucket] = record;
    bits_[bucket / 64] |= uint64_t{1} << bucket % 64;
    ++ring_count_;
  }
  static void set_next(abi::Record* record, abi::Record* next) {
    record->order = reinterpret_cast<uint64_t>(next);
  }
  static abi::Record* next_of(const abi::Record* record) {
    return reinterpret_cast<abi::Record*>(record->order);
  }

  void insert_late(abi::Record* record) {
    if (record->id != nullptr && id_dedup_.is_duplicate(*record)) {
      return reject(Reject::kDuplicate);
    }
    reject(Reject::kLate);
    record->flags |= abi::kRecordLate;
    late_.push_back(record);
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
        bucket_.push_back(far_.top().record);
        far_.pop();
      }
      if (bucket_.size() > 1) {
        std::sort(
            bucket_.begin(), bucket_.end(),
            [this](const abi::Record* a, const abi::Record* b) { return order_.less(*a, *b); });
      }
      for (abi::Record* record : bucket_) deliver(*record, out);
      base_ = std::max(base_, slot + 1);
    }
  }

  void take_bucket(int64_t slot) {
    const auto bucket = static_cast<size_t>(slot) & (kRingSlots - 1);
    prefetch_after(slot);
    for (abi::Record* record = heads_[bucket]; record != nullptr; record = next_of(record)) {
      bucket_.push_back(record);
    }
    ring_count_ -= bucket_.size();
    heads_[bucket] = nullptr;
    bits_[bucket / 64] &= ~(uint64_t{1} << bucket % 64);
  }

  /// Starts to load the records of the slots ahead: they were decoded seconds of events ago, and
  /// have left the near caches. Of a list that is far ahead only the head is known.
  void prefetch_after(int64_t slot) {
    // Why: about 50 records at thousands of events a second; farther ones might be evicted again.
    constexpr int64_t kNear = 16;
    constexpr int64_t kFar = 32;
    for (int64_t i = std::max(prefetched_to_, slot); i < slot + kFar; ++i) {
      const abi::Record* near = heads_[static_cast<size_t>(i - kFar + kNear) & (kRingSlots - 1)];
      if (near != nullptr) prefetch(next_of(near));
      prefetch(heads_[static_cast<size_t>(i) & (kRingSlots - 1)]);
    }
    prefetched_to_ = slot + kFar;
  }
  static void prefetch(const abi::Record* record) {  // null is harmless
    const auto* bytes = reinterpret_cast<const char*>(record);
    __builtin_prefetch(bytes, 1);
    __builtin_prefetch(bytes + 64, 1);
  }

  void deliver(abi::Record& record, Released& out) {
    if (record.id != nullptr && id_dedup_.is_duplicate(record)) {
      return reject(Reject::kDuplicate);
    }
    if (kind_dedup_.applies(record.kind)) {
      int64_t age_ns = 0;
      if (abi::Record* first = kind_dedup_.find_first(record, age_ns); first != nullptr) {
        if (age_ns <= delay_ns_) first->repeats += 1 + record.repeats;
        ++counters_.deduplicated;
        return;
      }
    }
    if (delay_ns_ == 0) {
      emit(record, out);
    } else {
      staged_.push_back(&record);
    }
  }

  void emit_staged(int64_t up_to_ns, Released& out) {
    while (!staged_.empty() && staged_.front()->ts_ns <= up_to_ns) {
      emit(*staged_.front(), out);
      staged_.pop_front();
    }
  }

  void emit(abi::Record& record, Released& out) {
    record.order = ++order_count_;
    // A line number says where an event came, not what it is: only a log's own order is a fact.
    if (!order_.is_log(record.source)) record.seq = 0;
    ++counters_.events;
    out.records.push_back(&record);
  }

  ReorderOptions options_;
  SourceClocks clocks_;
  RecordOrder order_;
  IdDedup id_dedup_;
  KindDedup kind_dedup_;
  int64_t delay_ns_;
  IngestCounters counters_;

  std::vector<abi::Record*> heads_;  // [slot & mask] last record that came
  std::vector<uint64_t> bits_;       // which buckets are not empty
  int64_t prefetched_to_ = 0;        // slot
  size_t ring_count_ = 0;
  int64_t base_ = 0;  // first slot of the ring; all earlier ones are released
  bool has_base_ = false;
  std::priority_queue<FarEntry, std::vector<FarEntry>, std::greater<>> far_;
  std::vector<abi::Record*> bucket_;  // scratch of drain()
  std::deque<abi::Record*> staged_;   // in total order, waiting for their repeats
  std::vector<abi::Record*> late_;

  LiveSlab batch_;              // that push() is working on
  SymbolId input_ = kNoSymbol;  // its input
  uint32_t input_index_ = kUnknownSource;
  std::priority_queue<LiveSlab, std::vector<LiveSlab>, std::greater<>> slabs_;
  std::vector<std::shared_ptr<Slab>> retired_;  // of the records of the last call
  int64_t watermark_ns_ = SourceClocks::kNothing;
  bool is_watermark_fresh_ = false;  // no clock has changed since
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
