// StateArena: places for the small plain states of all plans of one shard.
//
// States of one entity kind whose events are mostly of one kind ("home") stand side by side, so an
// event that advances many rules touches neighbouring memory instead of one page per rule.
// Use: reserve() everything at load time, then seal(), then at().
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/abi/plan.h"
#include "runtime/eval/paged_state.h"

namespace reflex::eval {

struct Place {
  uint32_t group = 0;
  uint32_t offset = 0;
};

class StateArena {
 public:
  Place reserve(abi::EntityKindId entity_kind, abi::KindId home, size_t bytes) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].entity_kind == entity_kind && groups_[i].home == home) {
        return extend(i, bytes);
      }
    }
    groups_.push_back({entity_kind, home, 0, {}});
    return extend(groups_.size() - 1, bytes);
  }
  void seal() {
    for (Group& g : groups_) {
      // Why 64: an entity's states start on a cache line.
      if (g.size > 64) g.size = (g.size + 63) & ~size_t{63};
      g.states.init(g.size, source_);
    }
  }
  char* at(Place place, EntityIndex entity) {
    return groups_[place.group].states.at(entity) + place.offset;
  }
  char* find(Place place, EntityIndex entity) {
    char* base = groups_[place.group].states.find(entity);
    return base == nullptr ? nullptr : base + place.offset;
  }
  [[nodiscard]] const char* find(Place place, EntityIndex entity) const {
    return const_cast<StateArena*>(this)->find(place, entity);
  }
  void reset(abi::EntityKindId entity_kind, EntityIndex entity) {
    for (Group& g : groups_) {
      if (g.entity_kind == entity_kind) g.states.reset(entity);
    }
  }
  /// What one key of an entity kind takes; after seal().
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId entity_kind) const {
    uint64_t total = 0;
    for (const Group& g : groups_) {
      if (g.entity_kind == entity_kind) total += g.size;
    }
    return total;
  }
  [[nodiscard]] uint64_t bytes() const {
    uint64_t total = 0;
    for (const Group& g : groups_) total += g.states.bytes();
    return total;
  }

 private:
  struct Group {
    abi::EntityKindId entity_kind;
    abi::KindId home;
    size_t size;
    PagedBytes states;
  };
  Place extend(size_t group, size_t bytes) {
    const Place place{static_cast<uint32_t>(group), static_cast<uint32_t>(groups_[group].size)};
    groups_[group].size += (bytes + 7) & ~size_t{7};
    return place;
  }
  PageSource source_;
  std::vector<Group> groups_;
};

}  // namespace reflex::eval
