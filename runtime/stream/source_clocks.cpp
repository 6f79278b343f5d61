// Indexed binary heap of the active sources.
#include "runtime/stream/source_clocks.h"

#include <algorithm>

namespace reflex::stream {

uint32_t SourceClocks::find(SymbolId id) {
  const auto [entry, is_new] = index_.try_emplace(id, static_cast<uint32_t>(sources_.size()));
  if (is_new) {
    sources_.emplace_back();
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
