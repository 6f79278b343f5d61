// The members of Reorder: see reorder.h. For reorder.cpp and reorder_state.cpp only.
#pragma once

#include <deque>
#include <queue>

#include "runtime/abi/record_state.h"
#include "runtime/stream/dedup.h"
#include "runtime/stream/record_order.h"
#include "runtime/stream/reject_sampler.h"
#include "runtime/stream/reorder.h"
#include "runtime/stream/source_clocks.h"
#include "runtime/stream/time_ring.h"

namespace reflex::stream {

class Reorder::Impl {
 public:
  Impl(std::shared_ptr<const abi::CompiledPack> pack, const ReorderOptions& options,
       RejectSink sink);
  void add_source(SymbolId source, bool is_log);
  void push(RecordBatch&& batch);
  void finish_source(SymbolId source);
  void release(Released& out);
  void finish(Released& out);
  void tick(int64_t wall_ns);
  void progress(SymbolId source, int64_t newest_ns);
  [[nodiscard]] const IngestCounters& counters() const { return counters_; }
  [[nodiscard]] int64_t released_to_ns() const { return released_to_ns_; }
  [[nodiscard]] uint64_t pending() const;
  [[nodiscard]] std::vector<SourceState> sources() const;
  void save(StateWriter& writer) const;
  Status load(StateReader& reader, std::vector<std::string>& notes);
  /// Another set whose ids mean the same.
  void use(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink);
  [[nodiscard]] const std::shared_ptr<const abi::CompiledPack>& pack() const { return pack_; }
  [[nodiscard]] const RejectSink& sink() const { return rejects_.sink(); }

 private:
  void save_pending(StateWriter& writer, abi::RecordWriter& records) const;
  void load_pending(StateReader& reader, abi::RecordReader& records, Slab& slab);
  void load_rest(StateReader& reader);
  void set_now_limit();
  void start(Released& out);
  void retire_slabs();
  void reject(Reject reason) { ++counters_.rejected[static_cast<size_t>(reason)]; }
  /// The line is one of the input that was read, whichever source the record names.
  void reject_time(Reject reason, const abi::Record& record, SymbolId input);
  void accept(abi::Record* record);
  /// False when the record has to wait for a second one that confirms its time.
  bool confirm_jump(abi::Record* record, uint32_t index);
  void reject_held(uint32_t index);
  void advance(uint32_t source, int64_t ts_ns);
  void refresh_watermark();
  /// `source`: whose clock it came by.
  void insert(abi::Record* record, uint32_t source);
  void insert_late(abi::Record* record, uint32_t source);

  /// Moves all entries before a time into total order.
  void drain(int64_t limit_ns);
  void sort(const TimeRing::Run& run);
  void deliver(abi::Record& record);
  void emit_staged(int64_t up_to_ns);

  /// Numbers what is ready. The records were decoded seconds of events ago: they are loaded some
  /// records ahead, and are then near for the evaluation that follows.
  void emit(Released& out);
  static void prefetch(const abi::Record* record);

  /// The memory of a batch, or of a part of one.
  struct LiveSlab {
    int64_t last_ns = INT64_MIN;  // time of its last record that was not rejected
    std::shared_ptr<Slab> slab;
    friend bool operator>(const LiveSlab& a, const LiveSlab& b) { return a.last_ns > b.last_ns; }
  };

  ReorderOptions options_;
  IngestCounters counters_;
  RejectSampler rejects_;
  SourceClocks clocks_;
  std::shared_ptr<const abi::CompiledPack> pack_;
  mutable RecordOrder order_;  // mutable: it keeps names that it has looked up
  IdDedup id_dedup_;
  KindDedup kind_dedup_;
  int64_t delay_ns_;
  int64_t now_limit_ns_ = options_.now_limit_ns;
  TimeRing ring_;
  std::vector<abi::Record*> ready_;  // of this call, in total order
  std::deque<abi::Record*> staged_;  // in total order, waiting for their repeats
  std::vector<abi::Record*> late_;
  std::vector<int64_t> late_after_ns_;  // parallel

  LiveSlab batch_;              // that push() is working on
  SymbolId input_ = kNoSymbol;  // its input
  uint32_t input_index_ = 0;
  std::priority_queue<LiveSlab, std::vector<LiveSlab>, std::greater<>> slabs_;
  std::vector<std::shared_ptr<Slab>> retired_;  // of the records of the last call
  int64_t watermark_ns_ = SourceClocks::kNothing;
  bool is_watermark_fresh_ = false;  // no clock has changed since
  uint64_t order_count_ = 0;
  int64_t released_to_ns_ = INT64_MIN;
};

}  // namespace reflex::stream
