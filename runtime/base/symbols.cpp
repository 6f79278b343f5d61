// SymbolTable and the slow path of LocalSymbols.
//
// names_ is a deque: its strings never move, so views into them stay valid while it grows.
#include "runtime/base/symbols.h"

#include "runtime/base/check.h"

namespace reflex {

SymbolTable::SymbolTable() {
  names_.emplace_back();
  ids_.emplace(std::string_view(names_.back()), kNoSymbol);
}

SymbolId SymbolTable::intern(std::string_view name) {
  {
    std::shared_lock lock(mutex_);
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
  }
  const std::lock_guard interning(interning_);
  const std::unique_lock lock(mutex_);
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  RFX_CHECK(names_.size() < UINT32_MAX);
  const auto id = static_cast<SymbolId>(names_.size());
  names_.emplace_back(name);
  ids_.emplace(std::string_view(names_.back()), id);
  return id;
}

SymbolId SymbolTable::find(std::string_view name) const {
  std::shared_lock lock(mutex_);
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoSymbol : found->second;
}

std::string_view SymbolTable::name(SymbolId id) const {
  std::shared_lock lock(mutex_);
  RFX_CHECK(id < names_.size());
  return names_[id];
}

size_t SymbolTable::size() const {
  std::shared_lock lock(mutex_);
  return names_.size();
}

SymbolId LocalSymbols::intern_new(std::string_view name, size_t slot) {
  const SymbolId id = table_->intern(name);
  const std::string_view owned = table_->name(id);
  const NameWords words(owned);
  slots_[slot] = {words.head, words.tail, id, static_cast<uint32_t>(owned.size()), owned.data()};
  if (++used_ * 4 > slots_.size() * 3) grow();
  return id;
}

void LocalSymbols::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.data == nullptr) continue;
    size_t i = symbol_hash({slot.data, slot.size}) & mask;
    while (slots_[i].data != nullptr) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

}  // namespace reflex
