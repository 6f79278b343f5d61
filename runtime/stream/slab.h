// Slab: memory of a batch of records, with their texts and arrays; freed as a whole.
//
// Ownership: a RecordBatch holds its slab by shared_ptr; the reorder buffer keeps the batch alive
// until the last of its records has been released to rules and evaluated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/abi/record.h"

namespace reflex::stream {

class Slab {
 public:
  /// A zeroed record with `slot_count` slots.
  abi::Record* new_record(unsigned slot_count);
  const abi::Text* new_text(std::string_view text);
  const abi::IntArray* new_array(std::span<const int64_t> values);
  /// A deep copy of a record (its text and arrays too).
  abi::Record* clone(const abi::Record& record, const std::vector<abi::SlotForm>& forms);
  [[nodiscard]] size_t bytes() const;

 private:
  std::byte* allocate(size_t bytes);
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t size = 0;
  };
  std::vector<Block> blocks_;
  size_t used_ = 0;  // of the last block
};

struct RecordBatch {
  std::shared_ptr<Slab> slab = std::make_shared<Slab>();
  std::vector<abi::Record*> records;
};

}  // namespace reflex::stream
