// EntityTable: key tuples of one entity kind -> dense indices, with a cap.
//
// Contract: touch() is called in total order from the engine's sequential stage only, so that which
// key is evicted depends on the events alone and never on shards or batches. An evicted index keeps
// its key (firings of the running batch still name it) and is given to no one before release().
// Dense indices come in blocks of 1024 that belong to one shard (paged state is never shared).
// Cost: one array look-up for kinds with a single name as key, else one hash probe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/firing.h"
#include "runtime/base/symbols.h"
#include "runtime/eval/paged_state.h"

namespace reflex::eval {

class EntityTable {
 public:
  struct Config {
    abi::EntityKindId kind = 0;
    uint8_t key_count = 1;
    std::array<bool, 3> is_symbol{};
    bool by_node = false;  // the first key is a node: it decides the shard
    uint64_t keys_max = 200'000;
    unsigned shards = 1;
  };
  EntityTable(const Config& config, const SymbolTable& symbols);

  struct Touch {
    EntityIndex index = kNoEntity;
    bool evicted = false;  // `index_evicted` lost its key
    EntityIndex index_evicted = kNoEntity;
    bool created = false;  // the key is new
  };
  Touch touch(const std::array<uint64_t, 3>& key, uint64_t order) {
    if (direct_kind_) {
      const uint64_t id = key[0];
      if (id < direct_.size() && direct_[id] != kNoEntity) [[likely]] {
        last_[direct_[id]] = order;
        return {direct_[id], false, kNoEntity, false};
      }
    }
    return touch_slow(key, order);
  }
  /// Takes the least recently touched key out, as an eviction by the cap does.
  EntityIndex evict_oldest(uint64_t order) {
    const EntityIndex victim = pick_victim();
    erase_key(victim, order);
    return victim;
  }
  /// Makes the indices evicted so far available again; between batches.
  void release();
  [[nodiscard]] EntityIndex find(const std::array<uint64_t, 3>& key) const;
  /// As find(), at the time of the event `order` of the running batch: a key that a later event
  /// pushed out is still found. (A key that a later one brought in has no state yet.)
  [[nodiscard]] EntityIndex find_at(const std::array<uint64_t, 3>& key, uint64_t order) const {
    return retired_.empty() ? find(key) : find_retired(key, order);
  }
  [[nodiscard]] const std::array<uint64_t, 3>& key(EntityIndex index) const { return keys_[index]; }
  [[nodiscard]] abi::EntityKey entity(EntityIndex index) const {
    return {config_.kind, config_.key_count, keys_[index]};
  }
  /// The shard that owns the entity; `shards` for kinds that only the global shard keeps.
  [[nodiscard]] unsigned shard_of(EntityIndex index) const { return block_shard_[index >> 10]; }
  [[nodiscard]] uint64_t size() const { return live_; }
  /// All indices in use are below it.
  [[nodiscard]] EntityIndex end() const { return static_cast<EntityIndex>(used_.size()); }
  [[nodiscard]] bool in_use(EntityIndex index) const { return used_[index] != 0; }
  [[nodiscard]] const Config& config() const { return config_; }
  /// The order of the last touch.
  [[nodiscard]] uint64_t last(EntityIndex index) const { return last_[index]; }
  /// The live keys, least recently touched first, as evictions would take them.
  [[nodiscard]] std::vector<EntityIndex> by_age() const;
  /// A key of saved state with its last touch; kNoEntity when it is there already. Ignores the cap.
  EntityIndex restore(const std::array<uint64_t, 3>& key, uint64_t order);
  /// Order by names (symbols by their text, integers by value).
  [[nodiscard]] int compare(const std::array<uint64_t, 3>& a,
                            const std::array<uint64_t, 3>& b) const;

 private:
  Touch touch_slow(const std::array<uint64_t, 3>& key, uint64_t order);
  EntityIndex allocate(const std::array<uint64_t, 3>& key);
  EntityIndex pick_victim();
  void erase_key(EntityIndex index, uint64_t order);
  [[nodiscard]] EntityIndex find_retired(const std::array<uint64_t, 3>& key, uint64_t order) const;
  [[nodiscard]] uint64_t hash(const std::array<uint64_t, 3>& key) const;
  void insert_hash(EntityIndex index);
  void grow_hash();

  Config config_;
  const SymbolTable* symbols_;
  bool direct_kind_ = false;
  std::vector<EntityIndex> direct_;            // [SymbolId]
  std::vector<EntityIndex> slots_;             // open addressing
  std::vector<std::array<uint64_t, 3>> keys_;  // [EntityIndex]
  std::vector<uint64_t> last_;                 // [EntityIndex] order of the last touch
  std::vector<uint8_t> used_;                  // [EntityIndex]
  std::vector<unsigned> block_shard_;
  struct ShardSpace {
    std::vector<EntityIndex> free;
    EntityIndex next = 0;
    EntityIndex end = 0;
  };
  std::vector<ShardSpace> space_;  // [shard], the last one for the global shard
  struct Candidate {
    uint64_t last;
    EntityIndex index;
  };
  std::vector<Candidate> candidates_;  // oldest at the back; stale ones are skipped
  struct Retired {
    EntityIndex index;
    uint64_t order;  // of the event that pushed it out
  };
  std::vector<Retired> retired_;  // evicted since the last release(), in order
  std::unordered_multimap<uint64_t, uint32_t> retired_by_hash_;  // only looked up, not iterated
  uint64_t live_ = 0;
};

}  // namespace reflex::eval
