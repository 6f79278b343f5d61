// Paged state: per-entity memory indexed by dense entity index, allocated on first touch.
//
// PagedBytes holds plain data whose size is known at load time (all small states of one event kind
// side by side, so that an event touches few cache lines and pages); PagedObjects<T> holds states
// that own memory. Both start zeroed / default-constructed and count their bytes.
// Cost: at() is two dependent loads; the page table is small enough to stay cached.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/base/check.h"

namespace reflex::eval {

using EntityIndex = uint32_t;
inline constexpr EntityIndex kNoEntity = 0xffffffffu;

class PagedBytes {
 public:
  PagedBytes() = default;
  explicit PagedBytes(size_t stride) { set_stride(stride); }
  void set_stride(size_t stride) {
    stride_ = stride;
    // Why 256 KiB: above malloc's mmap threshold, so untouched parts of a page cost no memory.
    shift_ = 4;
    while (shift_ < 10 && (stride << (shift_ + 1)) <= (size_t{256} << 10)) ++shift_;
  }
  [[nodiscard]] size_t stride() const { return stride_; }
  char* at(EntityIndex index) {
    const size_t page = index >> shift_;
    if (page >= pages_.size() || pages_[page] == nullptr) [[unlikely]] allocate(page);
    return pages_[page].get() + (index & ((1u << shift_) - 1)) * stride_;
  }
  /// The state, or null when its page was never touched.
  [[nodiscard]] char* find(EntityIndex index) {
    const size_t page = index >> shift_;
    if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
    return pages_[page].get() + (index & ((1u << shift_) - 1)) * stride_;
  }
  void reset(EntityIndex index) {
    if (char* state = find(index); state != nullptr) std::memset(state, 0, stride_);
  }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  [[gnu::noinline]] void allocate(size_t page) {
    if (page >= pages_.size()) pages_.resize(page + 1);
    auto* memory = static_cast<char*>(std::calloc(size_t{1} << shift_, stride_));
    RFX_CHECK(memory != nullptr);
    pages_[page].reset(memory);
    bytes_ += stride_ << shift_;
  }
  std::vector<std::unique_ptr<char, Free>> pages_;
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
  void reset(EntityIndex index) {
    if (T* state = find(index); state != nullptr) *state = T{};
  }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  static constexpr unsigned kShift = 6;
  static constexpr EntityIndex kMask = (1u << kShift) - 1;
  std::vector<std::unique_ptr<T[]>> pages_;
  uint64_t bytes_ = 0;
};

}  // namespace reflex::eval
