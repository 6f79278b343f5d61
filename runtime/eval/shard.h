// Shard: evaluates one part of the plans over the records that concern it.
//
// Order inside one event: resets, then step and count leaves (features read before their update),
// then feature updates, then conditions. Timers that are due before the event's time fire first,
// those due at it after all events of that time.
// Threads: one at a time; shards share only the const Program and Topology.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/eval/condition_state.h"
#include "runtime/eval/count_state.h"
#include "runtime/eval/dispatch_index.h"
#include "runtime/eval/feature_state.h"
#include "runtime/eval/guard_state.h"
#include "runtime/eval/peers.h"
#include "runtime/eval/sequence_state.h"
#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_arena.h"

namespace reflex::eval {

enum class ShardRole : uint8_t { kAll, kNode, kGlobal };

class Shard {
 public:
  Shard(const Program& program, const Options& options, ShardRole role);

  /// Whether the shard has anything to do with a kind.
  [[nodiscard]] bool wants(abi::KindId kind) const { return kinds_[kind].wanted; }
  void process(const abi::Record& record, const EntityIndex* ids);
  /// Starts loading the states that a record to come will touch. Changes nothing.
  void prefetch(const abi::Record& record);
  /// Fires timers that are due strictly before a time.
  void advance(int64_t before_ns) {
    if (core_.timers.next_due() < before_ns) [[unlikely]] run_timers(before_ns);
  }
  /// The key at this index is gone; `order` is that of the event that pushed it out.
  void evict(abi::EntityKindId kind, EntityIndex entity, uint64_t order);
  void set_count_only(bool on);
  [[nodiscard]] ShardCore& core() { return core_; }
  [[nodiscard]] const ShardCore& core() const { return core_; }
  [[nodiscard]] uint64_t bytes() const;

 private:
  enum class Use : uint8_t {
    kSingle, kPairFirst, kPairSecond, kAbsentArm, kAbsentCancel, kCountRing, kCountGeneral,
    kStep, kUnless, kGuard, kFeature, kCondition,
  };
  struct Target {
    Use use = Use::kSingle;
    uint8_t key = 0;         // key slot
    uint16_t sub = 0;
    uint32_t plan = 0;       // SignalId, FeatureId, or number within CountStates
    Place place;
  };
  struct Read {              // a feature, or a whole ring, at the entity of a key slot
    abi::FeatureId feature = 0;
    uint8_t key = 0;
  };
  struct Leaf {
    uint32_t targets_begin = 0;
    uint32_t targets_end = 0;
    uint32_t reads_begin = 0;
    uint32_t reads_end = 0;
    abi::ExprId residual = abi::kNone32;
    uint8_t key = 0;         // of the first owner
    bool reads_class = false;
  };
  struct ChunkRun {
    uint32_t chunk = 0;
    uint32_t reads_begin = 0;
    uint32_t reads_end = 0;
    uint8_t key = 0;
    bool reads_class = false;
    std::vector<uint32_t> leaves;    // hit -> leaves_ index, or kNone32
    std::vector<abi::ChunkEvaluator> code;  // [ClassId]
  };
  struct Reset {
    abi::ExprId predicate = abi::kNone32;
    abi::FeatureId feature = 0;
    uint8_t key = 0;
  };
  struct Kind {
    bool wanted = false;
    bool needs_class = false;
    DispatchIndex index;
    std::vector<uint32_t> indexed;   // bit -> leaves_
    std::vector<uint32_t> always;    // leaves without constraints outside chunks
    std::vector<ChunkRun> chunks;
    std::vector<Reset> resets;
  };
  struct Pending {
    uint32_t plan;
    uint16_t sub;
    uint8_t key;
    uint8_t rank;                    // steps 0 (descending), unless 1, guards 2
  };

  void include_plans(ShardRole role);
  void register_plans();
  void build_kinds();
  uint32_t build_leaf(abi::LeafId leaf);
  bool build_target(abi::LeafId leaf, const abi::LeafOwner& owner, Target& out);
  void build_chunk(uint32_t chunk);
  void build_reads(abi::KindId kind, const std::vector<abi::FeatureId>& ids, uint8_t prefer,
                   uint32_t& begin, uint32_t& end);
  void run_timers(int64_t before_ns);
  void read(uint32_t begin, uint32_t end, const EventView& event);
  bool check(abi::ExprId expr, bool reads_class, const Leaf& leaf, const EventView& event);
  void run_leaf(const Leaf& leaf, const EventView& event);
  void hit(const Leaf& leaf, const EventView& event);
  void run_chunk(const ChunkRun& chunk, const EventView& event);
  void run_resets(const Kind& kind, const EventView& event);
  void run_pending(const EventView& event);
  void feed(const Target& target, const EventView& event, EntityIndex entity);
  uint64_t member_of(abi::ExprId value, double number, uint64_t bits) const;

  const Program& program_;
  ShardCore core_;
  std::vector<uint8_t> signal_in_;
  std::vector<uint8_t> feature_in_;
  StateArena arena_;
  std::unique_ptr<FeatureStore> features_;
  GuardStates guards_;
  CountStates counts_;
  SequenceStates sequences_;
  ConditionStates conditions_;
  Peers peers_;
  std::vector<CountStates::Entry> count_entries_;  // [SignalId]
  std::vector<Kind> kinds_;
  std::vector<Leaf> leaves_;
  std::vector<Target> targets_;
  std::vector<Read> reads_;
  std::vector<Pending> pending_;
  std::vector<Target> feeds_;
  std::vector<Target> checks_;
  std::vector<uint32_t> hits_ = std::vector<uint32_t>(64);
};

}  // namespace reflex::eval
