// BlockCache: see code_cache.h.
#include "compiler/backend/jit/code_cache.h"

namespace reflex::backend::jit {

CachedFunction BlockCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return {};
  CachedFunction found{it->second.block.lock(), it->second.address};
  if (found.block == nullptr) return {};
  return found;
}

void BlockCache::put(const std::string& key, const CachedFunction& function) {
  const std::lock_guard lock(mutex_);
  entries_[key] = {function.block, function.address};
}

void BlockCache::end(const Last& last) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.block.expired(); });
  last_ = last;
}

CodeCache::Last BlockCache::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace reflex::backend::jit

namespace reflex::backend {

std::shared_ptr<CodeCache> make_code_cache() { return std::make_shared<jit::BlockCache>(); }

}  // namespace reflex::backend
