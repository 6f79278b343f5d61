// RecordCopy: an owned copy of a record with its texts and arrays, for state that outlives a batch.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"

namespace reflex::eval {

class RecordCopy {
 public:
  RecordCopy() = default;
  RecordCopy(const abi::Record& record, const abi::KindSchema& schema);
  [[nodiscard]] const abi::Record& record() const {
    return *reinterpret_cast<const abi::Record*>(bytes_.get());
  }
  [[nodiscard]] uint64_t bytes() const { return size_; }

 private:
  std::unique_ptr<uint64_t[]> bytes_;
  uint64_t size_ = 0;
};

}  // namespace reflex::eval
