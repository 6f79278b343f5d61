// Slab: memory of a batch of records, with their texts and arrays; freed as a whole.
//
// Ownership: a RecordBatch holds its slab by shared_ptr; the reorder buffer keeps the batch alive
// until the last of its records has been released to rules and evaluated.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/abi/record.h"
#include "runtime/abi/record_state.h"
#include "runtime/abi/types.h"

namespace reflex::stream {

/// Memory of released slabs, for the next ones: else every batch gets new pages, which the kernel
/// has to clear. Safe from all threads. Bound: kKeptMax blocks are kept.
class BlockPool {
 public:
  using Block = std::unique_ptr<std::byte[]>;
  // Why: the records of one piece of input (read_ahead.h) fit in one block.
  static constexpr size_t kBlockBytes = 256u << 10;
  Block take();
  void give(Block block);

 private:
  static constexpr size_t kKeptMax = 64;  // Why: 16 MiB, some seconds of a fast stream
  std::mutex mutex_;
  std::vector<Block> free_;
};

class Slab {
 public:
  explicit Slab(std::shared_ptr<BlockPool> pool = nullptr) : pool_(std::move(pool)) {}
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  /// A zeroed record with `slot_count` slots.
  abi::Record* new_record(unsigned slot_count) {
    abi::Record* record = new_unset_record(slot_count);
    std::memset(record->slots(), 0, slot_count * sizeof(uint64_t));
    return record;
  }
  /// The same with slots that the caller must set.
  abi::Record* new_unset_record(unsigned slot_count) {
    std::byte* memory = allocate(sizeof(abi::Record) + slot_count * sizeof(uint64_t));
    auto* record = new (memory) abi::Record;
    record->slot_count = static_cast<uint16_t>(slot_count);
    return record;
  }
  /// Gives back the memory of the newest record and of all that was made after it, if it can.
  void undo(abi::Record& record) {
    auto* memory = reinterpret_cast<std::byte*>(&record);
    if (begin_ != nullptr && memory >= begin_ && memory < end_) next_ = memory;
  }
  const abi::Text* new_text(std::string_view text);
  const abi::IntArray* new_array(std::span<const int64_t> values);
  /// A deep copy of a record (its text and arrays too).
  abi::Record* clone(const abi::Record& record, const std::vector<abi::SlotForm>& forms);
  /// A record of a saved state.
  abi::Record* add(const abi::RecordParts& parts);
  [[nodiscard]] size_t bytes() const { return reserved_; }

 private:
  std::byte* allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (static_cast<size_t>(end_ - next_) < bytes) add_block(bytes);
    std::byte* memory = next_;
    next_ += bytes;
    return memory;
  }
  void add_block(size_t bytes);
  std::shared_ptr<BlockPool> pool_;  // may be null
  std::vector<BlockPool::Block> blocks_;
  std::vector<BlockPool::Block> large_;  // of one text or array each, not of the pool
  std::byte* begin_ = nullptr;           // of the newest block
  std::byte* next_ = nullptr;            // its free part
  std::byte* end_ = nullptr;
  size_t reserved_ = 0;
};

struct RecordBatch {
  std::shared_ptr<Slab> slab = std::make_shared<Slab>();
  std::vector<abi::Record*> records;
  SymbolId input = kNoSymbol;  // the source that was read; records may name another one
};

}  // namespace reflex::stream
