// FeatureStore: the longitudinal features (language.md A7) of one shard.
//
// Features of equal input, key and kind of window share one state: the windowed statistics over
// "last N" read one ring of the largest N, sums being accumulated from the newest sample backwards,
// so that all windows cost one pass and every window's sum is rounded in the same order.
// Time: event time; samples come in total order. Every law is O(1) or bounded per key.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/evaluator.h"
#include "runtime/eval/distinct_window.h"
#include "runtime/eval/paged_state.h"
#include "runtime/eval/state_arena.h"
#include "runtime/eval/state_value.h"
#include "runtime/eval/time_window.h"
#include "runtime/eval/window_ring.h"

namespace reflex::eval {

struct FeatureSample {
  double value = 1.0;
  int64_t ts_ns = 0;
  uint64_t order = 0;
  bool streak_break = false;
  bool target_known = false;  // kCusum
  double target = 0;
  uint64_t member = 0;  // kDistinct: hash by name
};

class FeatureStore {
 public:
  /// The store whose states this one will take over, and which features stay as they are.
  struct Before {
    const FeatureStore* store = nullptr;
    const std::vector<uint8_t>* stays = nullptr;  // [FeatureId]
  };
  /// Keeps the features whose `include` is set. Call before StateArena::seal().
  FeatureStore(const abi::CompiledPack& pack, const std::vector<uint8_t>& include,
               StateArena& arena, const Before& before);

  /// Whether inputs of `feature` are to be fed: false for one that shares another one's state.
  [[nodiscard]] bool leads(abi::FeatureId feature) const { return info_[feature].leads; }
  /// The ring group of a feature, or kNone32.
  [[nodiscard]] uint32_t ring_of(abi::FeatureId feature) const { return info_[feature].ring; }

  [[nodiscard]] const WindowRing& ring(uint32_t number) const { return rings_[number]; }
  [[nodiscard]] size_t ring_count() const { return rings_.size(); }

  void update(abi::FeatureId feature, EntityIndex entity, const FeatureSample& sample);
  void reset(abi::FeatureId feature, EntityIndex entity);
  /// Samples with the order `exclude_order` are not seen by features that exclude the current one.
  [[nodiscard]] abi::Value read(abi::FeatureId feature, EntityIndex entity, int64_t now_ns,
                                uint64_t exclude_order);
  /// Whether the entity has given the feature a sample since its last reset.
  [[nodiscard]] bool has_state(abi::FeatureId feature, EntityIndex entity);
  /// Writes all members of a ring into out[FeatureId].
  void read_ring(uint32_t ring, EntityIndex entity, uint64_t exclude_order, abi::Value* out);
  void reset_entity(abi::EntityKindId kind, EntityIndex entity);

  /// Features that share one state are saved once, under the one that sees most of it: of each
  /// feature that one, or kNone32 when it has no state here.
  [[nodiscard]] std::vector<abi::FeatureId> carriers() const;
  [[nodiscard]] bool has_any(abi::FeatureId carrier, EntityIndex entity) const;
  void save(abi::FeatureId carrier, EntityIndex entity, PlanWriter& plan) const;
  /// What save() wrote, not yet in a store: it may go into more than one.
  struct Saved;
  static void read(PlanReader& plan, const abi::FeaturePlan& into, Saved& saved);
  /// `feature`: any that shares the state.
  void load(abi::FeatureId feature, EntityIndex entity, const Saved& saved);
  /// Whether the state that a feature shares is the one of the store before, with the same features.
  [[nodiscard]] bool follows(abi::FeatureId feature) const {
    return info_[feature].leader != abi::kNone32 && follows_[info_[feature].leader] != 0;
  }
  /// What the arena does not have of the states that follow.
  void take_over(FeatureStore& old);
  [[nodiscard]] uint64_t bytes() const;
  /// Of the states outside of the arena that a key of this kind can have.
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId kind) const;

 private:
  static constexpr uint64_t kNoOrder = ~uint64_t{0};
  struct Cell {      // one closed-form feature of one entity
    uint64_t n = 0;  // samples
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    uint64_t order = 0;
    double a, b, c, d, e;  // per law, see feature_state.cpp
  };
  struct Counter {  // a monotone counter of one entity
    double last = 0;
    int64_t last_ns = 0;
    int64_t intervals_ns[5] = {};
    uint8_t known = 0;  // 1 + number of intervals, at most 6
    uint8_t next = 0;
  };
  struct Info {
    const abi::FeaturePlan* plan = nullptr;
    bool leads = true;
    bool of_symbol = false;                // its value is a SymbolId
    abi::FeatureId leader = abi::kNone32;  // itself when it leads; none: not in this store
    uint32_t ring = abi::kNone32;
    uint32_t window = abi::kNone32;    // windows_ index
    uint32_t distinct = abi::kNone32;  // distincts_ index
    Place cell;
    Place counter;
  };
  struct WindowStates {
    abi::EntityKindId entity_kind = 0;
    PagedObjects<TimeWindow<StatBucket>> states;
  };
  struct DistinctStates {
    abi::EntityKindId entity_kind = 0;
    PagedObjects<DistinctWindow> states;
  };
  [[nodiscard]] static bool needs_window(const abi::FeaturePlan& plan);
  void share(abi::FeatureId feature, const std::vector<uint8_t>& include);
  void find_leaders(const std::vector<uint8_t>& include);
  void find_followed(const Before& before);
  void reserve_places(StateArena& arena);
  /// Turns a raw counter value into an increment; false when there is none yet.
  static bool increment(const abi::FeaturePlan& plan, Counter& counter, int64_t ts_ns,
                        double& value, bool& was_reset);
  static void update_cell(const abi::FeaturePlan& plan, Cell& cell, const FeatureSample& sample);
  [[nodiscard]] static abi::Value read_cell(const abi::FeaturePlan& plan, const Cell& cell,
                                            int64_t now_ns);
  [[nodiscard]] static abi::Value read_window(const abi::FeaturePlan& plan,
                                              TimeWindow<StatBucket>& window, const Cell& cell,
                                              int64_t now_ns, uint64_t exclude_order);

  const abi::CompiledPack* pack_;
  StateArena* arena_;
  std::vector<Info> info_;
  std::vector<uint8_t> follows_;  // [FeatureId] of leaders
  std::vector<WindowRing> rings_;
  std::vector<WindowStates> windows_;
  std::vector<DistinctStates> distincts_;
  std::vector<abi::Value> scratch_;
};

struct FeatureStore::Saved {
  bool has_counter = false;
  bool has_ring = false;
  bool has_cell = false;
  Counter counter;
  uint64_t ring_order = 0;
  std::vector<double> ring;  // oldest first
  Cell cell{};
  std::vector<StatBucket> window;  // oldest first
  DistinctWindow distinct;
};

}  // namespace reflex::eval
