// Paged state: per-entity memory indexed by dense entity index, allocated on first touch.
//
// PagedBytes holds plain data whose size is known at load time (all small states of one event kind
// side by side, so that an event touches few cache lines and pages); PagedObjects<T> holds states
// that own memory. Both start zeroed / default-constructed and count their bytes.
// Cost: at() is two dependent loads; the page table is small enough to stay cached.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/check.h"

namespace reflex::eval {

using EntityIndex = uint32_t;
inline constexpr EntityIndex kNoEntity = 0xffffffffu;

/// Zeroed memory for state pages, from 2 MiB blocks that the kernel may back with huge pages: many
/// small states touched at random are bound by page faults and address translation otherwise.
/// `small`: 64 KiB blocks of plain pages, for the states of a few rules.
class PageSource {
 public:
  explicit PageSource(bool small = false) : small_(small) {}
  char* take(size_t bytes) {
    bytes = (bytes + 63) & ~size_t{63};
    if (bytes > left_) {
      const size_t block = small_ ? kSmallBlock : kBlock;
      const size_t size = (bytes + block - 1) / block * block;
      blocks_.push_back(Block::map(size, small_ ? kPage : kBlock));
      next_ = blocks_.back().get();
      left_ = size;
    }
    char* result = next_;
    next_ += bytes;
    left_ -= bytes;
    return result;
  }

 private:
  static constexpr size_t kBlock = size_t{2} << 20;
  static constexpr size_t kSmallBlock = size_t{64} << 10;
  static constexpr size_t kPage = 4096;
  /// Memory from the kernel, which clears it: clearing it again would cost as much as using it.
  class Block {
   public:
    static Block map(size_t size, size_t align) {
      const size_t whole = size + align;  // so that an aligned part of `size` is inside
      void* start = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      RFX_CHECK(start != MAP_FAILED);
      Block block;
      block.start_ = static_cast<char*>(start);
      block.size_ = whole;
      block.align_ = align;
      // Only advice: refusal costs only speed.
      if (align == kBlock) madvise(block.get(), size, MADV_HUGEPAGE);
      return block;
    }
    Block() = default;
    Block(Block&& o) noexcept
        : start_(std::exchange(o.start_, nullptr)),
          size_(std::exchange(o.size_, 0)),
          align_(o.align_) {}
    Block& operator=(Block&& o) noexcept {
      std::swap(start_, o.start_);
      std::swap(size_, o.size_);
      std::swap(align_, o.align_);
      return *this;
    }
    ~Block() {
      if (start_ != nullptr) munmap(start_, size_);
    }
    [[nodiscard]] char* get() const {
      const auto at = reinterpret_cast<uintptr_t>(start_);
      return start_ + ((at + align_ - 1) / align_ * align_ - at);
    }

   private:
    char* start_ = nullptr;
    size_t size_ = 0;
    size_t align_ = kPage;
  };
  bool small_ = false;
  std::vector<Block> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

class PagedBytes {
 public:
  void init(size_t stride, PageSource& source) {
    stride_ = stride;
    source_ = &source;
    // Why 32 KiB: few touched entities should not cost much memory, page tables stay small.
    shift_ = 4;
    while (shift_ < 10 && (stride << (shift_ + 1)) <= (size_t{32} << 10)) ++shift_;
  }
  [[nodiscard]] size_t stride() const { return stride_; }
  char* at(EntityIndex index) {
    const size_t page = index >> shift_;
    if (page >= pages_.size() || pages_[page] == nullptr) [[unlikely]]
      allocate(page);
    return pages_[page] + (index & ((1u << shift_) - 1)) * stride_;
  }
  /// The state, or null when its page was never touched.
  [[nodiscard]] char* find(EntityIndex index) {
    const size_t page = index >> shift_;
    if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
    return pages_[page] + (index & ((1u << shift_) - 1)) * stride_;
  }
  [[nodiscard]] const char* find(EntityIndex index) const {
    return const_cast<PagedBytes*>(this)->find(index);
  }
  void reset(EntityIndex index) {
    if (char* state = find(index); state != nullptr) std::memset(state, 0, stride_);
  }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  [[gnu::noinline]] void allocate(size_t page) {
    if (page >= pages_.size()) pages_.resize(page + 1);
    pages_[page] = source_->take(stride_ << shift_);
    bytes_ += stride_ << shift_;
  }
  std::vector<char*> pages_;
  PageSource* source_ = nullptr;
  size_t stride_ = 8;
  unsigned shift_ = 10;
  uint64_t bytes_ = 0;
};

template <typename T>
class PagedObjects {
 public:
  T& at(EntityIndex index) {
    const size_t page = index >> kShift;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) {
      pages_[page] = std::make_unique<T[]>(size_t{1} << kShift);
      bytes_ += sizeof(T) << kShift;
    }
    return pages_[page][index & kMask];
  }
  [[nodiscard]] T* find(EntityIndex index) {
    const size_t page = index >> kShift;
    if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
    return &pages_[page][index & kMask];
  }
  [[nodiscard]] const T* find(EntityIndex index) const {
    return const_cast<PagedObjects*>(this)->find(index);
  }
  void reset(EntityIndex index) {
    if (T* state = find(index); state != nullptr) *state = T{};
  }
  /// visit(index, object) for all objects of the pages that were touched.
  template <typename Visit>
  void each(const Visit& visit) {
    for (size_t page = 0; page < pages_.size(); ++page) {
      if (pages_[page] == nullptr) continue;
      for (EntityIndex i = 0; i <= kMask; ++i) {
        visit(static_cast<EntityIndex>(page << kShift) + i, pages_[page][i]);
      }
    }
  }
  [[nodiscard]] static constexpr uint64_t bytes_per_key() { return sizeof(T); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  // Why 16 to a page: of most signals few entities have state, and a page is made whole; larger
  // ones made a reload of 1,000 rules fill three times the memory that was used.
  static constexpr unsigned kShift = 4;
  static constexpr EntityIndex kMask = (1u << kShift) - 1;
  std::vector<std::unique_ptr<T[]>> pages_;
  uint64_t bytes_ = 0;
};

}  // namespace reflex::eval
