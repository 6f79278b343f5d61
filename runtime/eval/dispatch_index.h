// DispatchIndex: which leaves of one event kind can match a record.
//
// Idea: for each constrained slot, the values split into regions at the bounds of all leaves'
// intervals; each region has a row of bits, one per leaf that accepts it (leaves without a
// constraint on the slot accept all). The candidates are the AND of one row per slot. A small span
// of bounds is looked up in a dense table, a large one by binary search.
// Cost: per slot one table look-up and one AND per 64 leaves, however many rules there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/abi/plan.h"
#include "runtime/abi/record.h"

namespace reflex::eval {

class DispatchIndex {
 public:
  /// `leaves[i]` gets bit i.
  void build(const std::vector<const abi::LeafPlan*>& leaves);
  [[nodiscard]] uint32_t words() const { return words_; }

  /// Word `w` of the candidates of a record. Call select() first.
  struct Selection {
    const uint64_t* rows[8];
  };
  /// Why at most 8 slots: a bound on Selection; constraints beyond it are evaluated, not indexed.
  static constexpr size_t kSlotsMax = 8;

  /// All candidates at once; only when words() == 1.
  [[nodiscard]] uint64_t single(const abi::Record& record) const {
    uint64_t bits = all_[0];
    for (const Slot& slot : slots_) bits &= slot.single(record);
    return bits;
  }
  void select(const abi::Record& record, Selection& out) const {
    for (size_t i = 0; i < slots_.size(); ++i) out.rows[i] = slots_[i].row(record, words_);
  }
  [[nodiscard]] uint64_t word(const Selection& s, uint32_t w) const {
    uint64_t bits = all_[w];
    for (size_t i = 0; i < slots_.size(); ++i) bits &= s.rows[i][w];
    return bits;
  }
  /// Whether every constraint of leaf i is in the index; if not, its whole predicate must run.
  [[nodiscard]] bool complete(uint32_t i) const { return complete_[i] != 0; }

 private:
  struct Slot {
    uint16_t slot = 0;
    int64_t dense_lo = 0;
    std::vector<uint16_t> dense;  // [value - dense_lo] -> region; empty: binary search
    std::vector<int64_t> bounds;  // region r starts at bounds[r - 1]; sorted
    std::vector<uint64_t> bits;   // [region * words], then the row for "missing"
    uint32_t missing = 0;         // region number of "missing"
    std::vector<uint64_t> flat;   // one word only: [value - dense_lo], then "beyond"

    [[nodiscard]] uint64_t single(const abi::Record& record) const {
      if (!record.has(slot)) return bits[missing];
      if (flat.empty()) return bits[region(record.i64(slot))];
      const int64_t value = record.i64(slot);
      if (value < dense_lo) return bits[0];
      const uint64_t offset = static_cast<uint64_t>(value) - static_cast<uint64_t>(dense_lo);
      return flat[std::min<uint64_t>(offset, flat.size() - 1)];
    }

    [[nodiscard]] const uint64_t* row(const abi::Record& record, uint32_t words) const {
      if (!record.has(slot)) return bits.data() + size_t{missing} * words;
      return bits.data() + size_t{region(record.i64(slot))} * words;
    }
    [[nodiscard]] uint32_t region(int64_t value) const {
      if (dense.empty()) return search(value);
      if (value < dense_lo) return 0;
      const uint64_t offset = static_cast<uint64_t>(value) - static_cast<uint64_t>(dense_lo);
      return offset < dense.size() ? dense[offset] : missing - 1;
    }
    [[nodiscard]] uint32_t search(int64_t value) const;
  };
  void build_slot(uint16_t slot, const std::vector<const abi::LeafPlan*>& leaves);

  std::vector<Slot> slots_;
  std::vector<uint64_t> all_;
  std::vector<uint8_t> complete_;
  uint32_t words_ = 0;
};

}  // namespace reflex::eval
