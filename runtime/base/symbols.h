// SymbolTable: names (nodes, jobs, enum words, sources) as dense 32-bit ids.
//
// Invariant: id 0 is the empty name. Ids are assigned in order of first sight, which depends on
// thread timing: nothing that is printed or ordered may depend on an id, only on the name.
// Threads: intern() and name() are safe from any thread; LocalSymbols is a per-thread cache that
// makes the common case lock-free.
// Cost: a hit in LocalSymbols is one hash and one compare (~5 ns).
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reflex {

using SymbolId = uint32_t;
inline constexpr SymbolId kNoSymbol = 0;

class SymbolTable {
 public:
  SymbolTable();
  SymbolId intern(std::string_view name);
  /// The id of a known name, or kNoSymbol.
  [[nodiscard]] SymbolId find(std::string_view name) const;
  /// The view stays valid as long as the table lives.
  [[nodiscard]] std::string_view name(SymbolId id) const;
  [[nodiscard]] size_t size() const;

 private:
  mutable std::shared_mutex mutex_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, SymbolId> ids_;
};

/// Per-thread open-addressing cache in front of a SymbolTable.
class LocalSymbols {
 public:
  explicit LocalSymbols(SymbolTable& table) : table_(&table), slots_(1u << 12) {}
  SymbolId intern(std::string_view name);

 private:
  struct Slot {
    uint64_t hash = 0;
    SymbolId id = kNoSymbol;
    uint32_t size = 0;
    const char* data = nullptr;  // owned by the SymbolTable
  };
  void grow();
  SymbolTable* table_;
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace reflex
