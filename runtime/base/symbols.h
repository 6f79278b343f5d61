// SymbolTable: names (nodes, jobs, enum words, sources) as dense 32-bit ids.
//
// Invariant: id 0 is the empty name. Ids are assigned in order of first sight, which depends on
// thread timing: nothing that is printed or ordered may depend on an id, only on the name.
// Threads: intern() and name() are safe from any thread; LocalSymbols is a per-thread cache that
// makes the common case lock-free.
// Cost: a hit in LocalSymbols is one hash and one compare (~5 ns).
#pragma once

#include <cstdint>
#include <cstring>
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
  /// While it is held nobody interns a new name; names are read all the same. Taken around a fork,
  /// so that the child can read them: a lock that another thread holds stays locked there.
  [[nodiscard]] std::unique_lock<std::mutex> still() const { return std::unique_lock(interning_); }

 private:
  mutable std::mutex interning_;  // before mutex_
  mutable std::shared_mutex mutex_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, SymbolId> ids_;
};

/// The first and the last 8 bytes of a name (overlapping when it is short). Names of at most 16
/// bytes are equal exactly when their sizes and these words are.
struct NameWords {
  uint64_t head = 0;
  uint64_t tail = 0;

  explicit NameWords(std::string_view name) {
    const size_t n = name.size();
    const char* p = name.data();
    if (n >= 8) {
      std::memcpy(&head, p, 8);
      std::memcpy(&tail, p + n - 8, 8);
    } else if (n >= 4) {
      uint32_t low;
      uint32_t high;
      std::memcpy(&low, p, 4);
      std::memcpy(&high, p + n - 4, 4);
      head = low;
      tail = high;
    } else if (n != 0) {
      const auto byte = [p](size_t i) { return uint64_t{static_cast<unsigned char>(p[i])}; };
      head = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
    }
  }

  /// 64 well-mixed bits of the whole name.
  [[nodiscard]] uint64_t hash(std::string_view name) const {
    const size_t n = name.size();
    uint64_t middle = head;
    for (size_t i = 8; i + 8 < n; i += 8) {  // only names over 16 bytes
      uint64_t word;
      std::memcpy(&word, name.data() + i, 8);
      middle = (middle ^ word) * 0x9E3779B97F4A7C15ull;
      middle ^= middle >> 29;
    }
    __extension__ using Wide = unsigned __int128;
    const Wide product =
        static_cast<Wide>(middle ^ 0x9E3779B97F4A7C15ull) * (tail ^ n ^ 0xE7037ED1A0B428DBull);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
};

inline uint64_t symbol_hash(std::string_view name) { return NameWords(name).hash(name); }

/// Per-thread open-addressing cache in front of a SymbolTable.
class LocalSymbols {
 public:
  explicit LocalSymbols(SymbolTable& table) : table_(&table), slots_(1u << 12) {}

  SymbolId intern(std::string_view name) { return intern(name, probe(name)); }

  /// What a name is looked up by.
  struct Probe {
    NameWords words{{}};
    uint64_t hash = 0;
  };
  static Probe probe(std::string_view name) {
    const NameWords words(name);
    return {words, words.hash(name)};
  }

  SymbolId intern(std::string_view name, const Probe& probe) {
    const NameWords& words = probe.words;
    const size_t mask = slots_.size() - 1;
    for (size_t i = probe.hash & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.data == nullptr) return intern_new(name, i);
      // A name of at most 16 bytes is compared without touching its memory (one cache miss less).
      if (slot.head == words.head && slot.tail == words.tail && slot.size == name.size() &&
          (slot.size <= 16 || std::memcmp(slot.data, name.data(), name.size()) == 0)) {
        return slot.id;
      }
    }
  }

  /// Starts loading the slot of a name that intern() will be asked for soon: with 10,000 nodes the
  /// table is larger than the first cache, and a miss costs more than parsing the name.
  void prefetch(const Probe& probe) const {
    __builtin_prefetch(&slots_[probe.hash & (slots_.size() - 1)]);
  }

 private:
  struct alignas(32) Slot {  // two to a cache line, none across
    uint64_t head = 0;
    uint64_t tail = 0;
    SymbolId id = kNoSymbol;
    uint32_t size = 0;
    const char* data = nullptr;  // owned by the SymbolTable; null: the slot is free
  };
  SymbolId intern_new(std::string_view name, size_t slot);
  void grow();
  SymbolTable* table_;
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace reflex
