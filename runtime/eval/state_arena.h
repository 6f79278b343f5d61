// StateArena: places for the small plain states of all plans of one shard.
//
// States of one entity kind whose events are mostly of one kind ("home") stand side by side, so an
// event that advances many rules touches neighbouring memory instead of one page per rule.
// Use: follow() when there is a predecessor, reserve() everything at load time, seal(), then at().
//
// Take-over (take_over.h): an arena that follows the one of the set before it gives plans that stay
// the places that they had there, whatever became of their neighbours; what is new or has changed
// gets groups of its own. Then the pages change hands as they are. Places that nobody uses any more
// are holes; their memory goes when the last place of its generation does, and crowded() says when
// there are too many of them for another take-over.
// Threads: what follow() reads never changes after seal().
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/abi/plan.h"
#include "runtime/eval/paged_state.h"

namespace reflex::eval {

struct Place {
  uint32_t group = 0;
  uint32_t offset = 0;
};

enum class StateUse : uint8_t { kGuard, kCount, kPair, kCounter, kCell, kSamples };
/// What a place is for: the signal or feature, and the number of the guard.
struct StateKey {
  StateUse use = StateUse::kGuard;
  uint32_t plan = 0;
  uint32_t sub = 0;
  friend auto operator<=>(const StateKey&, const StateKey&) = default;
};

class StateArena {
 public:
  void follow(const StateArena& before);
  /// `stays`: at the place that it has in the arena that this one follows.
  Place reserve(const StateKey& key, abi::EntityKindId entity_kind, abi::KindId home, size_t bytes,
                bool stays = false);
  void seal();
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
      if (g.entity_kind == entity_kind && g.used > 0) g.states.reset(entity);
    }
  }
  /// What one key of an entity kind takes, holes left out: it says the same of a set whatever sets
  /// were before it. After seal().
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId entity_kind) const;
  [[nodiscard]] uint64_t bytes() const;

  /// Whether everything that stays was found; else there can be no take-over.
  [[nodiscard]] bool follows_all() const { return missed_ == 0; }
  [[nodiscard]] bool crowded() const;
  /// The pages of all places that stay. `old`: what follow() was told of.
  void take_over(StateArena& old);

 private:
  struct Group {
    abi::EntityKindId entity_kind = 0;
    abi::KindId home = 0;
    size_t size = 0;
    uint32_t source = 0;  // sources_ index
    uint32_t used = 0;    // places; 0: nobody uses the group any more
    bool taken = false;   // of the arena before
    PagedBytes states;
  };
  struct Known {
    abi::EntityKindId entity_kind = 0;
    abi::KindId home = 0;
    size_t bytes = 0;
    Place place;
  };
  struct Alone {  // a group as it would be without an arena before
    abi::EntityKindId entity_kind = 0;
    abi::KindId home = 0;
    size_t size = 0;
  };
  static size_t rounded(size_t size) {
    // Why 64: an entity's states start on a cache line.
    return size > 64 ? (size + 63) & ~size_t{63} : size;
  }
  void note_alone(abi::EntityKindId entity_kind, abi::KindId home, size_t bytes);
  [[nodiscard]] bool is_live(uint32_t source) const;

  std::vector<std::unique_ptr<PageSource>> sources_;  // null: of nobody any more
  uint32_t own_source_ = 0;
  std::vector<Group> groups_;
  std::vector<Alone> alone_;
  std::map<StateKey, Known> known_;
  const StateArena* before_ = nullptr;  // until seal()
  size_t missed_ = 0;
};

}  // namespace reflex::eval
