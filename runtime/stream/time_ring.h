// TimeRing: entries by time, taken out in runs that are almost in order, earliest first.
//
// A ring of pages of 268 ms ahead of the earliest time that can still come, each one filled in the
// order of arrival, and a heap for what is outside of the ring. A run is sorted by 1 ms when it is
// taken (two sequential passes, no branch on the data), so that only neighbours are left to
// compare. An entry holds all that ordering needs in the common case: a record, which by then has
// left the near caches, is not touched between its arrival and its release.
// Not here: the order of equal stamps (RecordOrder), watermarks (SourceClocks).
// Cost: amortised O(1) an entry within the ring.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "runtime/abi/record.h"

namespace reflex::stream {

class TimeRing {
 public:
  struct Entry {
    abi::Record* record = nullptr;
    uint32_t sub_ns = 0;  // of its time, within the page
    SymbolId source = kNoSymbol;
    uint16_t rank = 0;   // RecordOrder::tie_rank
    bool plain = false;  // nothing can make it a duplicate
  };
  /// Entries of one page. `crowded`: more of one millisecond than neighbours should be compared.
  struct Run {
    std::span<Entry> entries;
    bool crowded = false;
  };

  TimeRing() : pages_(kPages), bits_(kPages / 64) {}

  void add(int64_t ts_ns, Entry entry) {
    const int64_t page = ts_ns >> kPageShift;
    entry.sub_ns = static_cast<uint32_t>(ts_ns & kSubMask);
    if (!has_base_) {
      has_base_ = true;
      base_ = page - kPagesBeforeFirst;
    }
    if (page < base_ || page >= base_ + kPages) {
      far_.push({page, entry});
      return;
    }
    const auto at = static_cast<size_t>(page) & (kPages - 1);
    if (pages_[at].capacity() == 0) pages_[at].swap(spare_);
    pages_[at].push_back(entry);
    bits_[at / 64] |= uint64_t{1} << at % 64;
  }

  /// Every record that is in it, in no order.
  [[nodiscard]] std::vector<abi::Record*> records() const {
    std::vector<abi::Record*> out;
    for (const std::vector<Entry>& page : pages_) {
      for (const Entry& entry : page) out.push_back(entry.record);
    }
    for (auto rest = far_; !rest.empty(); rest.pop()) out.push_back(rest.top().entry.record);
    return out;
  }

  /// The next run of entries before a time; empty when there are none. Valid until the next call.
  Run take(int64_t limit_ns) {
    for (;;) {
      const int64_t page = first_page();
      if (page == kNoPage || page > (limit_ns - 1) >> kPageShift) return {};
      const bool whole = page < limit_ns >> kPageShift;
      const int64_t sub_end = whole ? kSubMask + 1 : limit_ns & kSubMask;
      const bool in_ring = page >= base_;
      base_ = std::max(base_, page);
      taken_.clear();
      for (; !far_.empty() && far_.top().page == page; far_.pop()) {
        if (!in_ring && far_.top().entry.sub_ns >= sub_end) break;
        (in_ring ? page_at(page) : taken_).push_back(far_.top().entry);
      }
      if (in_ring) take_page(page, sub_end);
      if (!taken_.empty()) return sorted();
      if (!whole) return {};
    }
  }

 private:
  // Why 2^28 ns: a few hundred entries at a thousand events a second, so that a run stays in the
  // first cache, and few pages are filled at the same time.
  static constexpr unsigned kPageShift = 28;
  static constexpr int64_t kSubMask = (int64_t{1} << kPageShift) - 1;
  // Why: 512 pages = 137 s, more than lateness + idle_after (65 s) of the defaults.
  static constexpr int64_t kPages = 512;
  // Why: room for events that are earlier than the first one: 34 s.
  static constexpr int64_t kPagesBeforeFirst = 128;
  static constexpr int64_t kNoPage = INT64_MAX;
  static constexpr unsigned kCellShift = 20;  // cells of 1.05 ms
  static constexpr size_t kCells = size_t{1} << (kPageShift - kCellShift);
  // Why: an insertion sort moves each entry at most so far.
  static constexpr uint32_t kCrowd = 24;
  // Why: below, counting costs more than comparing.
  static constexpr size_t kCountedMin = 48;

  struct Far {
    int64_t page = 0;
    Entry entry;
    friend bool operator>(const Far& a, const Far& b) {
      return a.page != b.page ? a.page > b.page : a.entry.sub_ns > b.entry.sub_ns;
    }
  };

  [[nodiscard]] std::vector<Entry>& page_at(int64_t page) {
    return pages_[static_cast<size_t>(page) & (kPages - 1)];
  }

  /// Moves the entries of a page with a time below `sub_end` into taken_.
  void take_page(int64_t page, int64_t sub_end) {
    const auto at = static_cast<size_t>(page) & (kPages - 1);
    std::vector<Entry>& entries = page_at(page);
    if (taken_.empty() && sub_end > kSubMask) {
      taken_.swap(entries);
      recycle(entries);  // what was taken_ before
    } else {
      size_t kept = 0;
      for (const Entry& entry : entries) {
        if (entry.sub_ns < sub_end) {
          taken_.push_back(entry);
        } else {
          entries[kept++] = entry;
        }
      }
      entries.resize(kept);
      if (kept == 0) recycle(entries);
    }
    const uint64_t bit = uint64_t{1} << at % 64;
    bits_[at / 64] = entries.empty() ? bits_[at / 64] & ~bit : bits_[at / 64] | bit;
  }

  /// An empty page holds no memory: a minute of a fast stream fills a few hundred of them, and all
  /// 512 pages in turn. The next page begins with what this one had.
  void recycle(std::vector<Entry>& page) {
    page.clear();
    if (page.capacity() > spare_.capacity()) spare_.swap(page);
    std::vector<Entry>().swap(page);
  }

  Run sorted() {
    const size_t n = taken_.size();
    if (n < kCountedMin) return {taken_, n > kCrowd};
    std::array<uint32_t, kCells> next{};
    for (const Entry& entry : taken_) ++next[entry.sub_ns >> kCellShift];
    uint32_t begin = 0;
    uint32_t most = 0;
    for (uint32_t& cell : next) {
      most = std::max(most, cell);
      begin += std::exchange(cell, begin);
    }
    if (sorted_.size() < n) sorted_.resize(n * 2);
    for (const Entry& entry : taken_) sorted_[next[entry.sub_ns >> kCellShift]++] = entry;
    return {std::span(sorted_).first(n), most > kCrowd};
  }

  [[nodiscard]] int64_t first_page() const {
    const int64_t far = far_.empty() ? kNoPage : far_.top().page;
    const auto start = static_cast<size_t>(base_) & (kPages - 1);
    for (size_t i = 0; i <= bits_.size(); ++i) {
      const size_t word = (start / 64 + i) % bits_.size();
      uint64_t bits = bits_[word];
      if (i == 0) bits &= ~uint64_t{0} << start % 64;
      if (bits == 0) continue;
      const size_t at = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      return std::min(far, base_ + static_cast<int64_t>((at - start) & (kPages - 1)));
    }
    return far;
  }

  std::vector<std::vector<Entry>> pages_;  // [page & mask], in the order of arrival
  std::vector<uint64_t> bits_;             // which pages are not empty
  std::vector<Entry> taken_;
  std::vector<Entry> spare_;  // empty: memory of the page before, for the next one
  std::vector<Entry> sorted_;
  int64_t base_ = 0;  // first page of the ring
  bool has_base_ = false;
  std::priority_queue<Far, std::vector<Far>, std::greater<>> far_;
};

}  // namespace reflex::stream
