// BlockCache: which functions have machine code already; internal to compiler/backend/jit.
//
// A block is the code of one LLVM module, up to 64 functions; sets share it. The cache knows the
// functions of every block that some set still holds, by their content: equal keys = equal code,
// whatever the set, its symbol numbers included (a key has the numbers that the code has).
// Not an owner: with the last set that uses a block its memory is gone.
// Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "compiler/backend/backend.h"
#include "compiler/backend/jit/llvm_jit.h"

namespace reflex::backend::jit {

struct Block {
  std::unique_ptr<Code> code;
  size_t functions = 0;
};

struct CachedFunction {
  std::shared_ptr<Block> block;  // null: not there
  void* address = nullptr;
};

class BlockCache final : public CodeCache {
 public:
  CachedFunction find(const std::string& key) const;
  void put(const std::string& key, const CachedFunction& function);
  /// Forgets what is freed, and notes what the last set took.
  void end(const Last& last);
  [[nodiscard]] Last last() const override;

 private:
  struct Entry {
    std::weak_ptr<Block> block;
    void* address = nullptr;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;  // only looked up
  Last last_;
};

}  // namespace reflex::backend::jit
