// NameIndex: a fixed set of names -> small numbers; open addressing, built once, then read-only.
//
// Cost: a lookup is one hash and mostly one compare (~4 ns).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/symbols.h"

namespace reflex::stream {

class NameIndex {
 public:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  NameIndex() : slots_(64) {}

  /// The first value given for a name stays.
  void add(std::string_view name, uint32_t value) {
    if (find(name) != kAbsent) return;
    if (++used_ * 2 > slots_.size()) {
      std::vector<Slot> old(slots_.size() * 2);
      old.swap(slots_);
      for (Slot& slot : old) {
        if (slot.value != kAbsent) place(std::move(slot));
      }
    }
    const NameWords words(name);
    place({words.head, words.tail, std::string(name), value});
  }

  [[nodiscard]] uint32_t find(std::string_view name) const {
    const NameWords words(name);
    const size_t mask = slots_.size() - 1;
    for (size_t i = words.hash(name) & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.value == kAbsent) return kAbsent;
      if (slot.head == words.head && slot.tail == words.tail && slot.name.size() == name.size() &&
          (name.size() <= 16 || slot.name == name)) {
        return slot.value;
      }
    }
  }

 private:
  struct Slot {
    uint64_t head = 0;  // NameWords of `name`
    uint64_t tail = 0;
    std::string name;
    uint32_t value = kAbsent;
  };
  void place(Slot&& slot) {
    const size_t mask = slots_.size() - 1;
    size_t i = symbol_hash(slot.name) & mask;
    while (slots_[i].value != kAbsent) i = (i + 1) & mask;
    slots_[i] = std::move(slot);
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace reflex::stream
