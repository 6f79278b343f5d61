// EntityTable: dense indices for key tuples; see entity_table.h.
#include "runtime/eval/entity_table.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace reflex::eval {
namespace {
constexpr EntityIndex kBlock = 1024;

// Why FNV-1a: the shard of a node must depend on its name only, on every platform.
uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h ^ (h >> 32);
}
}  // namespace

EntityTable::EntityTable(const Config& config, const SymbolTable& symbols)
    : config_(config), symbols_(&symbols) {
  RFX_CHECK(config_.shards >= 1 && config_.keys_max >= 1);
  direct_kind_ = config_.key_count == 1 && config_.is_symbol[0];
  space_.resize(config_.shards + 1);
  slots_.assign(1u << 8, kNoEntity);
}

uint64_t EntityTable::hash(const std::array<uint64_t, 3>& key) const {
  uint64_t h = 0;
  for (uint8_t i = 0; i < config_.key_count; ++i) {
    h = (h ^ key[i]) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  }
  return h;
}

EntityIndex EntityTable::find(const std::array<uint64_t, 3>& key) const {
  if (direct_kind_) return key[0] < direct_.size() ? direct_[key[0]] : kNoEntity;
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash(key) & mask;; i = (i + 1) & mask) {
    const EntityIndex index = slots_[i];
    if (index == kNoEntity) return kNoEntity;
    if (std::equal(key.begin(), key.begin() + config_.key_count, keys_[index].begin())) {
      return index;
    }
  }
}

EntityTable::Touch EntityTable::touch_slow(const std::array<uint64_t, 3>& key, uint64_t order) {
  Touch result;
  result.index = find(key);
  if (result.index == kNoEntity) {
    if (live_ >= config_.keys_max) {
      result.evicted = true;
      result.index_evicted = pick_victim();
      erase_key(result.index_evicted, order);
    }
    result.index = allocate(key);
    result.created = true;
  }
  last_[result.index] = order;
  return result;
}

EntityIndex EntityTable::allocate(const std::array<uint64_t, 3>& key) {
  unsigned shard = config_.shards;
  if (config_.shards == 1) {
    shard = 0;
  } else if (config_.by_node) {
    shard = static_cast<unsigned>(hash_name(symbols_->name(static_cast<SymbolId>(key[0]))) %
                                  config_.shards);
  }
  ShardSpace& space = space_[shard];
  EntityIndex index;
  if (!space.free.empty()) {
    index = space.free.back();
    space.free.pop_back();
  } else {
    if (space.next == space.end) {
      space.next = static_cast<EntityIndex>(keys_.size());
      space.end = space.next + kBlock;
      keys_.resize(space.end);
      last_.resize(space.end);
      used_.resize(space.end);
      block_shard_.push_back(shard);
    }
    index = space.next++;
  }
  keys_[index] = key;
  used_[index] = 1;
  ++live_;
  if (direct_kind_) {
    if (key[0] >= direct_.size())
      direct_.resize(std::max<size_t>(key[0] + 1, direct_.size() * 2), kNoEntity);
    direct_[key[0]] = index;
  } else {
    if (live_ * 2 > slots_.size()) grow_hash();
    insert_hash(index);
  }
  return index;
}

void EntityTable::insert_hash(EntityIndex index) {
  const size_t mask = slots_.size() - 1;
  size_t i = hash(keys_[index]) & mask;
  while (slots_[i] != kNoEntity) i = (i + 1) & mask;
  slots_[i] = index;
}

void EntityTable::grow_hash() {
  std::vector<EntityIndex> old(slots_.size() * 2, kNoEntity);
  old.swap(slots_);
  for (EntityIndex index : old) {
    if (index != kNoEntity) insert_hash(index);
  }
}

std::vector<EntityIndex> EntityTable::by_age() const {
  std::vector<EntityIndex> live;
  live.reserve(live_);
  for (EntityIndex i = 0; i < used_.size(); ++i) {
    if (used_[i] != 0) live.push_back(i);
  }
  std::sort(live.begin(), live.end(), [this](EntityIndex a, EntityIndex b) {
    return last_[a] != last_[b] ? last_[a] < last_[b] : compare(keys_[a], keys_[b]) < 0;
  });
  return live;
}

EntityIndex EntityTable::restore(const std::array<uint64_t, 3>& key, uint64_t order) {
  if (find(key) != kNoEntity) return kNoEntity;
  const EntityIndex index = allocate(key);
  last_[index] = order;
  return index;
}

EntityIndex EntityTable::pick_victim() {
  for (;;) {
    while (!candidates_.empty()) {
      const Candidate c = candidates_.back();
      candidates_.pop_back();
      if (used_[c.index] != 0 && last_[c.index] == c.last) return c.index;
    }
    // The oldest sixteenth at this moment: until one of them is touched or evicted, no other key
    // can be older, so popping them in order is exact LRU at amortised constant cost.
    for (EntityIndex i = 0; i < used_.size(); ++i) {
      if (used_[i] != 0) candidates_.push_back({last_[i], i});
    }
    const auto newer = [this](const Candidate& a, const Candidate& b) {
      if (a.last != b.last) return a.last > b.last;
      return compare(keys_[a.index], keys_[b.index]) > 0;
    };
    std::sort(candidates_.begin(), candidates_.end(), newer);
    const size_t keep = candidates_.size() / 16 + 1;
    candidates_.erase(candidates_.begin(), candidates_.end() - static_cast<std::ptrdiff_t>(keep));
  }
}

void EntityTable::erase_key(EntityIndex index, uint64_t order) {
  used_[index] = 0;
  --live_;
  retired_by_hash_.emplace(hash(keys_[index]), static_cast<uint32_t>(retired_.size()));
  retired_.push_back({index, order});
  if (direct_kind_) {
    direct_[keys_[index][0]] = kNoEntity;
    return;
  }
  const size_t mask = slots_.size() - 1;
  size_t hole = hash(keys_[index]) & mask;
  while (slots_[hole] != index) hole = (hole + 1) & mask;
  // Backward shift: close the gap so that probes never need tombstones.
  for (size_t i = (hole + 1) & mask; slots_[i] != kNoEntity; i = (i + 1) & mask) {
    const size_t home = hash(keys_[slots_[i]]) & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      slots_[hole] = slots_[i];
      hole = i;
    }
  }
  slots_[hole] = kNoEntity;
}

void EntityTable::release() {
  if (retired_.empty()) return;
  for (const Retired& r : retired_) space_[shard_of(r.index)].free.push_back(r.index);
  retired_.clear();
  retired_by_hash_.clear();
}

EntityIndex EntityTable::find_retired(const std::array<uint64_t, 3>& key, uint64_t order) const {
  uint32_t first = UINT32_MAX;  // the earliest eviction of the key after `order`
  const auto [begin, end] = retired_by_hash_.equal_range(hash(key));
  for (auto it = begin; it != end; ++it) {
    const Retired& r = retired_[it->second];
    if (r.order > order && it->second < first &&
        std::equal(key.begin(), key.begin() + config_.key_count, keys_[r.index].begin())) {
      first = it->second;
    }
  }
  return first == UINT32_MAX ? find(key) : retired_[first].index;
}

int EntityTable::compare(const std::array<uint64_t, 3>& a, const std::array<uint64_t, 3>& b) const {
  for (uint8_t i = 0; i < config_.key_count; ++i) {
    if (a[i] == b[i]) continue;
    if (!config_.is_symbol[i]) {
      return static_cast<int64_t>(a[i]) < static_cast<int64_t>(b[i]) ? -1 : 1;
    }
    const int order = symbols_->name(static_cast<SymbolId>(a[i]))
                          .compare(symbols_->name(static_cast<SymbolId>(b[i])));
    if (order != 0) return order;
  }
  return 0;
}

}  // namespace reflex::eval
