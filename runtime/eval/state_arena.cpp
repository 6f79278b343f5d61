// StateArena: see state_arena.h.
#include "runtime/eval/state_arena.h"

#include <algorithm>
#include <utility>

namespace reflex::eval {

void StateArena::follow(const StateArena& before) {
  before_ = &before;
  for (const Group& g : before.groups_) {  // size 0: a number that is free again
    groups_.push_back({g.entity_kind, g.home, g.size, g.source, 0, g.size > 0, {}});
  }
  sources_.resize(before.sources_.size());
}

Place StateArena::reserve(const StateKey& key, abi::EntityKindId entity_kind, abi::KindId home,
                          size_t bytes, bool stays) {
  bytes = (bytes + 7) & ~size_t{7};
  note_alone(entity_kind, home, bytes);
  Known& own = known_[key];
  own = {entity_kind, home, bytes, {}};
  if (before_ != nullptr && stays) {
    const auto found = before_->known_.find(key);
    const bool same = found != before_->known_.end() && found->second.entity_kind == entity_kind &&
                      found->second.home == home && found->second.bytes == bytes;
    if (same) {
      own.place = found->second.place;
      ++groups_[own.place.group].used;
      return own.place;
    }
    ++missed_;
  }
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
    return g.used > 0 && !g.taken && g.entity_kind == entity_kind && g.home == home;
  });
  if (group == groups_.end()) {
    group = std::find_if(groups_.begin(), groups_.end(),
                         [](const Group& g) { return g.used == 0 && !g.taken; });
    if (group == groups_.end()) group = groups_.emplace(groups_.end());
    group->entity_kind = entity_kind;
    group->home = home;
  }
  own.place = {static_cast<uint32_t>(group - groups_.begin()), static_cast<uint32_t>(group->size)};
  group->size += bytes;
  ++group->used;
  return own.place;
}

void StateArena::note_alone(abi::EntityKindId entity_kind, abi::KindId home, size_t bytes) {
  const auto at = std::find_if(alone_.begin(), alone_.end(), [&](const Alone& a) {
    return a.entity_kind == entity_kind && a.home == home;
  });
  if (at != alone_.end()) {
    at->size += bytes;
  } else {
    alone_.push_back({entity_kind, home, bytes});
  }
}

bool StateArena::is_live(uint32_t source) const {
  return std::any_of(groups_.begin(), groups_.end(), [source](const Group& g) {
    return g.taken && g.used > 0 && g.source == source;
  });
}

void StateArena::seal() {
  // A hole is no longer one when all of its memory goes.
  for (Group& g : groups_) {
    if (g.taken && g.used == 0 && !is_live(g.source)) g.size = 0;
  }
  own_source_ = 0;
  while (own_source_ < sources_.size() && is_live(own_source_)) ++own_source_;
  if (own_source_ == sources_.size()) sources_.emplace_back();
  sources_[own_source_] = std::make_unique<PageSource>(before_ != nullptr);
  for (Group& g : groups_) {
    if (g.taken || g.used == 0) continue;
    g.size = rounded(g.size);
    g.source = own_source_;
    g.states.init(g.size, *sources_[own_source_]);
  }
  before_ = nullptr;
}

uint64_t StateArena::bytes_per_key(abi::EntityKindId entity_kind) const {
  uint64_t total = 0;
  for (const Alone& a : alone_) {
    if (a.entity_kind == entity_kind) total += rounded(a.size);
  }
  return total;
}

uint64_t StateArena::bytes() const {
  uint64_t total = 0;
  for (const Group& g : groups_) {
    if (g.used > 0) total += g.states.bytes();
  }
  return total;
}

bool StateArena::crowded() const {
  // Why twice, and 32: states that lie apart cost a cache miss each, and a search for free places
  // costs more than what it saves: once in a while all of it is written and read anew.
  constexpr size_t kGroupsMoreMax = 32;
  size_t size = 0;
  for (const Group& g : groups_) size += g.size;
  size_t alone = 0;
  for (const Alone& a : alone_) alone += rounded(a.size);
  return size > 2 * alone || groups_.size() > alone_.size() + kGroupsMoreMax;
}

void StateArena::take_over(StateArena& old) {
  for (uint32_t i = 0; i < old.sources_.size(); ++i) {
    if (i != own_source_ && is_live(i)) sources_[i] = std::move(old.sources_[i]);
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].taken && groups_[i].used > 0) {
      groups_[i].states = std::move(old.groups_[i].states);
    }
  }
}

}  // namespace reflex::eval
