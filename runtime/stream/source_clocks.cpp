// Indexed binary heap of the active sources.
#include "runtime/stream/source_clocks.h"

#include <algorithm>

namespace reflex::stream {

uint32_t SourceClocks::find(SymbolId id) {
  const auto [entry, is_new] = index_.try_emplace(id, static_cast<uint32_t>(sources_.size()));
  if (is_new) {
    sources_.emplace_back();
    sources_.back().id = id;
    sources_.back().heard_ns = listened_ns_;
    heap_.push_back(entry->second);
    place(heap_.size() - 1, entry->second);
    sift_up(heap_.size() - 1);
  }
  last_id_ = id;
  last_index_ = entry->second;
  return last_index_;
}

void SourceClocks::advance(uint32_t index, int64_t ts_ns) {
  Source& source = sources_[index];
  furthest_ns_ = std::max(furthest_ns_, ts_ns);
  if (ts_ns > source.max_ns) source.max_ns = ts_ns;
  if (source.heap_position != SIZE_MAX) {
    sift_down(source.heap_position);
  } else if (!source.finished) {  // idle: it speaks again
    heap_.push_back(index);
    place(heap_.size() - 1, index);
    sift_up(heap_.size() - 1);
  }
}

void SourceClocks::finish(uint32_t index) {
  Source& source = sources_[index];
  source.finished = true;
  if (source.heap_position != SIZE_MAX) remove(source.heap_position);
}

void SourceClocks::tick(int64_t wall_ns) {
  if (last_tick_ns_ != kNothing) {
    listened_ns_ += std::clamp<int64_t>(wall_ns - last_tick_ns_, 0, kTickGapMaxNs);
  }
  last_tick_ns_ = std::max(last_tick_ns_, wall_ns);
  for (Source& source : sources_) {
    if (source.spoke) source.heard_ns = listened_ns_;
    source.spoke = false;
    const bool silent = listened_ns_ - source.heard_ns >= idle_after_ns_;
    if (silent && source.heap_position != SIZE_MAX) remove(source.heap_position);
  }
  if (heap_.empty() && !sources_.empty() && listened_ns_ >= idle_after_ns_) {
    watermark_ns_ = std::max(watermark_ns_, last_tick_ns_ - lateness_ns_ - idle_after_ns_);
  }
}

void SourceClocks::save(StateWriter& writer, abi::RecordWriter& records,
                        const abi::CompiledPack& pack) const {
  writer.u64(sources_.size());
  for (const Source& source : sources_) {
    writer.symbol(source.id);
    writer.i64(source.max_ns);
    writer.flag(source.finished);
    writer.flag(source.declared);
    writer.flag(source.heap_position != SIZE_MAX);
    writer.i64(source.heard_ns);
    writer.flag(source.spoke);
    writer.u64(source.late);
    writer.flag(source.held != nullptr);
    if (source.held == nullptr) continue;
    writer.symbol(source.held_input);
    records.write(*source.held, pack.kinds[source.held->kind]);
  }
  writer.i64(furthest_ns_);
  writer.i64(watermark_ns_);
  writer.i64(last_tick_ns_);
  writer.i64(listened_ns_);
}

void SourceClocks::load(StateReader& reader, abi::RecordReader& records,
                        const std::shared_ptr<Slab>& slab) {
  for (size_t left = reader.count(8); left > 0 && !reader.failed(); --left) {
    const uint32_t index = find(reader.symbol());
    Source& source = sources_[index];
    source.max_ns = reader.i64();
    source.finished = reader.flag();
    source.declared = reader.flag();
    const bool active = reader.flag();
    source.heard_ns = reader.i64();
    source.spoke = reader.flag();
    source.late = reader.u64();
    if (!active && source.heap_position != SIZE_MAX) remove(source.heap_position);
    if (active && source.heap_position != SIZE_MAX) {
      sift_down(source.heap_position);
      sift_up(source.heap_position);
    }
    if (!reader.flag()) continue;
    source.held_input = reader.symbol();
    abi::RecordParts parts;
    if (!records.read(parts)) continue;
    source.held = slab->add(parts);
    source.held_slab = slab;
  }
  furthest_ns_ = reader.i64();
  watermark_ns_ = reader.i64();
  last_tick_ns_ = reader.i64();
  listened_ns_ = reader.i64();
  const auto is_time = [](int64_t ns) { return ns == kNothing || ns >= 0; };
  bool good = listened_ns_ >= 0 && is_time(last_tick_ns_) && is_time(furthest_ns_);
  for (const Source& source : sources_) {
    good = good && is_time(source.max_ns) && source.heard_ns >= 0 && source.heard_ns <= listened_ns_;
  }
  if (!good) reader.fail();
}

int64_t SourceClocks::watermark_ns() {
  while (!heap_.empty() && time(0) != kNothing && time(0) < furthest_ns_ - idle_after_ns_ &&
         !sources_[heap_[0]].declared) {
    remove(0);
  }
  if (!heap_.empty() && time(0) != kNothing) {
    watermark_ns_ = std::max(watermark_ns_, time(0) - lateness_ns_);
  } else if (heap_.empty() && furthest_ns_ != kNothing) {
    // Every source is finished: only what is already here can be released, by finish().
    watermark_ns_ = std::max(watermark_ns_, furthest_ns_ - lateness_ns_);
  }
  return watermark_ns_;
}

void SourceClocks::remove(size_t position) {
  sources_[heap_[position]].heap_position = SIZE_MAX;
  const uint32_t last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  place(position, last);
  sift_down(position);
  sift_up(sources_[last].heap_position);
}

void SourceClocks::sift_down(size_t position) {
  for (;;) {
    size_t child = 2 * position + 1;
    if (child >= heap_.size()) return;
    if (child + 1 < heap_.size() && time(child + 1) < time(child)) ++child;
    if (time(position) <= time(child)) return;
    const uint32_t index = heap_[position];
    place(position, heap_[child]);
    place(child, index);
    position = child;
  }
}

void SourceClocks::sift_up(size_t position) {
  while (position > 0) {
    const size_t parent = (position - 1) / 2;
    if (time(parent) <= time(position)) return;
    const uint32_t index = heap_[position];
    place(position, heap_[parent]);
    place(parent, index);
    position = parent;
  }
}

}  // namespace reflex::stream
