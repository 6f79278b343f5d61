// Shard: evaluates one part of the plans over the records that concern it.
//
// Order inside one event: resets, then step and count leaves (features read before their update),
// then feature updates, then conditions. Timers that are due before the event's time fire first,
// those due at it after all events of that time.
// Records are staged: their candidates are found, and the states that these touch start loading,
// some records ahead of their processing, so that the waits for memory overlap. Nothing is visible
// before flush().
// Threads: one at a time; shards share only the const Program and Topology.
#pragma once

#include <array>
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
  /// The shard whose state a new one will take over, and what of it stays as it is.
  struct Before {
    const Shard* shard = nullptr;
    const std::vector<uint8_t>* signals = nullptr;   // [SignalId]
    const std::vector<uint8_t>* features = nullptr;  // [FeatureId]
  };
  Shard(const Program& program, const Options& options, ShardRole role, const Before& before);

  /// Whether the shard has anything to do with a kind.
  [[nodiscard]] bool wants(abi::KindId kind) const { return kinds_[kind].wanted; }
  /// Takes a record; processes those taken so far once enough have come. `record` lives until then.
  void stage(const abi::Record& record, const EntityIndex* ids);
  [[nodiscard]] bool has_feature(abi::FeatureId feature) const { return feature_in_[feature] != 0; }
  [[nodiscard]] FeatureStore& features() { return *features_; }
  /// Processes what is staged, then fires the timers that are due strictly before a time.
  void flush(int64_t before_ns);
  /// The key at this index is gone: `by` pushed it out.
  void evict(abi::EntityKindId kind, EntityIndex entity, const abi::Record& by);
  /// A key of saved state for which there is no room: as evict(), between batches.
  void forget(abi::EntityKindId kind, EntityIndex entity, uint64_t order);

  // Saved state, between batches; see SignalEngine::save. What is found once for a save:
  using Saving = SequenceStates::PairTimers;
  [[nodiscard]] Saving begin_save() const { return sequences_.pair_timers(); }
  void save_plan(abi::SignalId signal, PlanWriter& plan) const;
  /// False: what follows is not for this engine, see SequenceStates::load_plan.
  [[nodiscard]] bool load_plan(abi::SignalId signal, PlanReader& plan);
  [[nodiscard]] bool has_state(abi::SignalId signal, EntityIndex entity) const;
  void save(abi::SignalId signal, EntityIndex entity, const Saving& saving, PlanWriter& plan) const;
  void load(abi::SignalId signal, EntityIndex entity, PlanReader& plan);
  void end_load() { sequences_.start_timers(); }

  // Take-over (take_over.h), between batches of both; the first two at any time.
  /// Whether all that stays has its place here, and too many holes are not in the way.
  [[nodiscard]] bool can_take_over(const Shard& old) const;
  /// What has to be found once to save signals ([SignalId] 1) for a take-over.
  [[nodiscard]] Saving begin_save(const std::vector<uint8_t>& of) const;
  /// What stays, timers, counts and peers; the rest is loaded behind it. `old` is hollow then.
  struct Taken {
    const std::vector<uint8_t>& signals;     // [SignalId] 1: stays
    const std::vector<uint8_t>& conditions;  // [SignalId] 1: stays, and is looked at again
    const std::vector<uint8_t>& peers;       // [query] 1: stays
    int64_t at_ns = 0;
  };
  void take_over(Shard& old, const Taken& taken);
  [[nodiscard]] const FeatureStore& features() const { return *features_; }
  [[nodiscard]] Peers& peers() { return peers_; }
  [[nodiscard]] const Peers& peers() const { return peers_; }

  void set_count_only(bool on);
  [[nodiscard]] ShardCore& core() { return core_; }
  [[nodiscard]] const ShardCore& core() const { return core_; }
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] uint64_t partials(abi::SignalId signal) const {
    return sequences_.partials(signal);
  }
  /// What the states of one key of an entity kind take, but for what windows and partial matches
  /// hold while they are busy.
  [[nodiscard]] uint64_t bytes_per_key(abi::EntityKindId kind) const;

 private:
  enum class Use : uint8_t {
    kSingle,
    kPairFirst,
    kPairSecond,
    kAbsentArm,
    kAbsentCancel,
    kCountRing,
    kCountGeneral,
    kStep,
    kUnless,
    kGuard,
    kFeature,
    kCondition,
    kUnlessShared,
  };
  struct Target {
    Use use = Use::kSingle;
    uint8_t key = 0;  // key slot
    uint16_t sub = 0;
    uint32_t plan = 0;  // SignalId, FeatureId, or number within CountStates
    uint32_t feed = 0;  // feed_plans_ index (kFeature)
    Place place;
  };
  struct Candidate {  // an indexed leaf: what a hit needs when it needs little
    Target target;    // when `simple`: the only owner
    uint32_t leaf = 0;
    bool simple = false;  // nothing left to check, one owner, and its state is in the arena
  };
  struct Hit {
    char* state;  // of a simple candidate
    const Candidate* candidate;
  };
  struct FeedPlan {  // one input of a feature
    const abi::FeaturePlan* plan = nullptr;
    const abi::FeaturePlan::Input* input = nullptr;
    abi::Evaluator code;  // of the value, when `direct`
    bool direct = false;  // the value depends on the record alone, and there is no target
    bool is_integer = false;
    bool peers = false;
    uint32_t ring = abi::kNone32;
  };
  struct Read {  // a feature, or a whole ring, at the entity of a key slot
    abi::FeatureId feature = 0;
    uint32_t ring = abi::kNone32;  // when the slot's entity kind is the ring's
    uint8_t key = 0;
    uint8_t fed = kNotFed;  // Kind::rings index, when the kind feeds it
  };
  static constexpr uint8_t kNotFed = 255;
  struct Leaf {
    uint32_t targets_begin = 0;
    uint32_t targets_end = 0;
    uint32_t reads_begin = 0;
    uint32_t reads_end = 0;
    abi::ExprId residual = abi::kNone32;
    uint8_t key = 0;  // of the first owner
    bool reads_class = false;
  };
  struct ChunkRun {
    uint32_t chunk = 0;
    uint32_t reads_begin = 0;
    uint32_t reads_end = 0;
    uint8_t key = 0;
    bool reads_class = false;
    std::vector<uint32_t> leaves;           // hit -> leaves_ index, or kNone32
    std::vector<abi::ChunkEvaluator> code;  // [ClassId]
  };
  struct Reset {
    abi::ExprId predicate = abi::kNone32;
    abi::FeatureId feature = 0;
    uint8_t key = 0;
  };
  struct SlotInfo {  // of a key slot
    abi::EntityKindId entity_kind = 0;
    uint16_t field = 0;
    bool plain = false;
  };
  /// A ring that every event of a kind feeds with a value of its own record: found when the event
  /// is staged, read through that pointer, fed last, without a look at leaf and owner.
  struct FedRing {
    const WindowRing* ring = nullptr;
    uint32_t number = abi::kNone32;
    abi::Evaluator code;
    bool is_integer = false;
    uint8_t key = 0;
  };
  struct Kind {
    bool wanted = false;
    bool needs_class = false;
    DispatchIndex index;
    std::vector<SlotInfo> key_slots;
    std::vector<Candidate> indexed;  // by bit
    std::vector<uint32_t> always;    // leaves without constraints outside chunks
    std::vector<ChunkRun> chunks;
    std::vector<Reset> resets;
    std::vector<FedRing> rings;
    uint32_t ring_leaves = 0;  // leaves that rings stand for
  };
  struct Staged {
    const abi::Record* record = nullptr;
    const Hit* hits_end = nullptr;
  };
  // Why 16: at 20 to 40 ns of staging a record, the last one waits as long as a load from memory
  // takes, and the lines of all fit in the first-level cache.
  static constexpr size_t kStagedMax = 16;
  struct Pending {
    uint32_t plan;
    uint16_t sub;
    uint8_t key;
    uint8_t rank;  // steps 0 (descending), unless 1, guards 2
  };

  void include_plans(ShardRole role);
  void register_plans(const Before& before);
  void build_kinds();
  std::vector<uint32_t> build_leaf(abi::LeafId leaf);
  [[nodiscard]] bool depends_on_key(abi::LeafId leaf) const;
  [[nodiscard]] uint8_t read_slot(abi::KindId kind, uint8_t prefer, abi::EntityKindId want) const;
  bool build_target(abi::LeafId leaf, const abi::LeafOwner& owner, Target& out);
  uint32_t build_feed(abi::FeatureId feature, uint16_t input);
  void build_chunk(uint32_t chunk);
  void build_fed_rings(Kind& kind, const std::vector<uint8_t>& blocked);
  [[nodiscard]] std::vector<uint8_t> rings_read_by_feeds() const;
  void link_reads(Kind& kind, uint32_t begin, uint32_t end);
  void build_reads(abi::KindId kind, const std::vector<abi::FeatureId>& ids, uint8_t prefer,
                   uint32_t& begin, uint32_t& end);
  void finish_tables();
  void run_staged();
  void process(const abi::Record& record, const EntityIndex* ids, const Hit* begin, const Hit* end);
  void advance(int64_t before_ns, uint64_t order) {
    if (core_.timers.next_due() < before_ns) [[unlikely]]
      run_timers(before_ns, order);
  }
  void run_timers(int64_t before_ns, uint64_t order);
  void bind(const EventView& event, uint8_t key);
  void read(uint32_t begin, uint32_t end, const EventView& event);
  bool check(abi::ExprId expr, bool reads_class, const Leaf& leaf, const EventView& event);
  void run_leaf(const Leaf& leaf, const EventView& event);
  void hit(const Leaf& leaf, const EventView& event);
  void advance_state(const Target& target, char* state, const EventView& event, EntityIndex entity);
  void run_chunk(const ChunkRun& chunk, const EventView& event);
  void run_resets(const Kind& kind, const EventView& event);
  void run_pending(const EventView& event);
  void feed(const Target& target, const EventView& event, EntityIndex entity);
  void feed_rings(const Kind& kind, const EventView& event);
  void note_peers(const Target& target, const EventView& event, EntityIndex entity);
  uint64_t member_of(abi::ExprId value, uint64_t bits) const;

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
  std::vector<uint32_t> chunk_hits_ = std::vector<uint32_t>(64);
  std::vector<FeedPlan> feed_plans_;
  size_t staged_count_ = 0;
  std::array<Staged, kStagedMax> staged_;
  size_t ids_stride_ = 1;
  std::vector<EntityIndex> staged_ids_;  // [staged * ids_stride_ + key slot]
  size_t rings_stride_ = 1;
  std::vector<char*> staged_rings_;   // [staged * rings_stride_ + Kind::rings index]
  char* const* rings_now_ = nullptr;  // of the event being processed
  uint64_t event_serial_ = 0;         // counts events: tells this event's readings from old ones
  std::array<uint64_t, 256> rings_read_{};  // [ring of the kind] serial of its last reading
  std::vector<Hit> staged_hits_;            // room for all candidates of kStagedMax records
};

}  // namespace reflex::eval
