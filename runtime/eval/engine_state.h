// Saving and loading of a whole SignalEngine: what of it lives on, and the file's order.
//
// Form, version 1, one section "eval":
//   identity of the set, time of the state, counters
//   kinds     key names, then all live keys, least recently touched first; the position of a key is
//             its number in all that follows
//   signals   name, shape, and as one text: what PlanWriter has of each entity with state
//   features  name, shape, the number of the state that it shares
//   states    of features, each as one text
//   peers     by feature, scope and bucket
//   near misses
// So nothing depends on EntityIndex, shards, ids of plans or symbols. A reader skips what it does
// not keep. What becomes of which plan: abi::state_plan().
// Cost: entities are visited in blocks, all plans of a block one after another, since the states of
// a key stand side by side.
#pragma once

#include <memory>
#include <vector>

#include "runtime/eval/shard.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/eval/state_match.h"

namespace reflex::eval {

inline constexpr uint64_t kEngineStateVersion = 1;

struct EngineParts {
  Program& program;
  std::vector<std::unique_ptr<Shard>>& shards;  // of nodes, then the global one when there are more
  const std::vector<abi::FeatureId>& carriers;  // FeatureStore::carriers() of all plans together
  std::vector<int64_t>& feature_incomplete_ns;  // [FeatureId]
  std::vector<NearMiss>& near_misses;
  int64_t& at_ns;  // up to it everything has fired
  uint64_t& evictions;
  uint64_t& state_evictions;

  /// The shard that has the signal's state of an entity.
  [[nodiscard]] Shard& shard_of(abi::SignalId signal, EntityIndex entity) const {
    if (program.global_signal(signal)) return *shards.back();
    const EntityTable& table = program.tables()[program.pack().signals[signal].entity_kind];
    return *shards[table.shard_of(entity)];
  }
};

void save_engine(const EngineParts& engine, StateWriter& out);
/// False for bytes that are no state; `engine` is half filled then.
bool load_engine(EngineParts& engine, StateReader& in, std::vector<StateFate>* report);

/// Until when firings of each signal are incomplete, by what was so before, by the numbers there.
void mark_incomplete(EngineParts& engine, const StateMatch& match,
                     const std::vector<int64_t>& signals_before,
                     const std::vector<int64_t>& features_before);
/// One signal's part of a state: what PlanWriter has of it; `entities` by their numbers. False for
/// bytes that are none. After the last one: Shard::end_load() of all.
bool load_signal_state(EngineParts& engine, abi::SignalId signal, bool changed,
                       std::string_view body, const std::vector<EntityIndex>& entities);
/// The state that `members` share, into the shards that have it not (FeatureStore::follows).
bool load_feature_state(EngineParts& engine, const std::vector<abi::FeatureId>& members,
                        std::string_view body, const std::vector<EntityIndex>& entities);

}  // namespace reflex::eval
