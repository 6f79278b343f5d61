// DispatchIndex: building the constraint bitmaps; see dispatch_index.h.
#include "runtime/eval/dispatch_index.h"

#include <algorithm>
#include <limits>
#include <map>

namespace reflex::eval {
namespace {
// Why 4096: an 8 KiB table per slot stays in the first-level cache with its rows.
constexpr uint64_t kDenseSpanMax = 4096;

const abi::IndexConstraint* constraint_on(const abi::LeafPlan& leaf, uint16_t slot) {
  for (const auto& c : leaf.constraints) {
    if (c.slot == slot) return &c;
  }
  return nullptr;
}
}  // namespace

uint32_t DispatchIndex::Slot::search(int64_t value) const {
  return static_cast<uint32_t>(std::upper_bound(bounds.begin(), bounds.end(), value) -
                               bounds.begin());
}

void DispatchIndex::build(const std::vector<const abi::LeafPlan*>& leaves) {
  words_ = static_cast<uint32_t>((leaves.size() + 63) / 64);
  all_.assign(words_, 0);
  for (size_t i = 0; i < leaves.size(); ++i) all_[i / 64] |= uint64_t{1} << (i % 64);
  std::map<uint16_t, size_t> uses;
  for (const auto* leaf : leaves) {
    for (const auto& c : leaf->constraints) ++uses[c.slot];
  }
  std::vector<std::pair<size_t, uint16_t>> ranked;
  for (const auto& [slot, count] : uses) ranked.emplace_back(count, slot);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (ranked.size() > kSlotsMax) ranked.resize(kSlotsMax);
  slots_.clear();
  for (const auto& [count, slot] : ranked) build_slot(slot, leaves);
  complete_.assign(leaves.size(), 1);
  for (size_t i = 0; i < leaves.size(); ++i) {
    size_t indexed = 0;
    for (const auto& slot : slots_) {
      if (constraint_on(*leaves[i], slot.slot) != nullptr) ++indexed;
    }
    complete_[i] = indexed == leaves[i]->constraints.size() ? 1 : 0;
  }
}

void DispatchIndex::build_slot(uint16_t slot_number,
                               const std::vector<const abi::LeafPlan*>& leaves) {
  Slot slot;
  slot.slot = slot_number;
  for (const auto* leaf : leaves) {
    const auto* c = constraint_on(*leaf, slot_number);
    if (c == nullptr) continue;
    for (const auto& interval : c->intervals) {
      if (interval.lo != std::numeric_limits<int64_t>::min()) slot.bounds.push_back(interval.lo);
      if (interval.hi != std::numeric_limits<int64_t>::max()) {
        slot.bounds.push_back(interval.hi + 1);
      }
    }
  }
  std::sort(slot.bounds.begin(), slot.bounds.end());
  slot.bounds.erase(std::unique(slot.bounds.begin(), slot.bounds.end()), slot.bounds.end());
  slot.missing = static_cast<uint32_t>(slot.bounds.size() + 1);
  slot.bits.assign(size_t{slot.missing + 1} * words_, 0);
  const auto set = [&](uint32_t region, size_t bit) {
    slot.bits[size_t{region} * words_ + bit / 64] |= uint64_t{1} << (bit % 64);
  };
  for (size_t bit = 0; bit < leaves.size(); ++bit) {
    const auto* c = constraint_on(*leaves[bit], slot_number);
    if (c == nullptr) {
      for (uint32_t r = 0; r <= slot.missing; ++r) set(r, bit);
      continue;
    }
    for (const auto& interval : c->intervals) {
      if (interval.lo > interval.hi) continue;
      const uint32_t last = slot.search(interval.hi);
      for (uint32_t r = slot.search(interval.lo); r <= last; ++r) set(r, bit);
    }
  }
  if (!slot.bounds.empty() && slot.bounds.size() < 0xffff) {
    const uint64_t span =
        static_cast<uint64_t>(slot.bounds.back()) - static_cast<uint64_t>(slot.bounds.front());
    if (span < kDenseSpanMax) {
      slot.dense_lo = slot.bounds.front();
      slot.dense.resize(span + 1);
      for (uint64_t v = 0; v <= span; ++v) {
        const uint32_t region = slot.search(slot.dense_lo + static_cast<int64_t>(v));
        slot.dense[v] = static_cast<uint16_t>(region);
      }
      if (words_ == 1) {
        for (uint16_t region : slot.dense) slot.flat.push_back(slot.bits[region]);
        slot.flat.push_back(slot.bits[slot.missing - 1]);
      }
    }
  }
  slots_.push_back(std::move(slot));
}

}  // namespace reflex::eval
