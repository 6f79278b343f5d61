// SignalEngine: released events -> signal firings. Keyed state, features, timers, shards.
//
// Contract: process() gets events in total order (Record::order increases) and the watermark up to
// which time is complete; it returns all firings up to that watermark in merged order
// (abi/firing.h), the same for any number of shards and any batching of the calls.
// How: node-keyed plans run in `shards` shards by node; plans that need other entities or peers
// (global_stage) run in one more shard that sees every event they listen to. Shards share nothing
// but the (const) topology. Dispatch: constraint bitmaps per kind select the leaves, compiled
// residuals decide, owners' state machines advance.
// Bounds: keys per entity kind (LimitsPlan::keys_max; least recently touched goes first, decided in
// the sequential stage, counted), partial matches per key, timers per key.
// Time: event time only. Nothing here reads a clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/record.h"
#include "runtime/abi/table.h"
#include "runtime/base/state_stream.h"
#include "runtime/eval/crew.h"
#include "runtime/eval/state_fate.h"
#include "runtime/topology/topology.h"

namespace reflex::eval {

/// Which plans an engine runs. Signals of nodes can be spread over machines (runtime/cluster): each
/// evaluates the nodes it owns; those that need other entities or peers run where all records meet.
enum class Stage : uint8_t { kWhole, kNodes, kGlobal };

class SignalEngine;

struct Options {
  unsigned threads = 1;      // shards; 1 = everything on the caller's thread
  bool near_misses = false;  // record timed-out partial matches (for --why-not and tests)
  Stage stage = Stage::kWhole;
  /// kNodes: whether a node is this engine's; empty: all are. Its answer never changes.
  std::function<bool(SymbolId node)> owns = nullptr;
  /// The engine whose state this one is to take over: of a set whose ids mean the same
  /// (abi/same_ids.h). It is looked at while the new one is made, and may run meanwhile.
  const SignalEngine* before = nullptr;
};

struct Counters {
  uint64_t evaluations = 0;  // leaves whose residual ran
  uint64_t leaf_hits = 0;
  uint64_t firings = 0;
  uint64_t evictions = 0;         // keys evicted by `limits { keys }`
  uint64_t state_evictions = 0;   // keys evicted by `limits { state }`
  uint64_t partials_dropped = 0;  // partial matches beyond partials_max
  uint64_t unless_dropped = 0;    // kept `unless` events beyond kept_max, younger than the window
  uint64_t keys = 0;
  uint64_t state_bytes = 0;
};

/// A partial match that timed out: never a signal, shown by --why-not.
struct NearMiss {
  int64_t ts_ns = 0;
  abi::SignalId signal = 0;
  abi::EntityKey entity;
  uint32_t steps_matched = 0;
};

class SignalEngine {
 public:
  SignalEngine(std::shared_ptr<const abi::CompiledPack> pack,
               std::shared_ptr<const topology::Topology> topology, const Options& options);
  ~SignalEngine();

  /// `records` are in total order and all have ts <= watermark. Timers strictly before the
  /// watermark fire. Appends to `firings` in merged order.
  void process(std::span<const abi::Record* const> records, int64_t watermark_ns,
               std::vector<abi::Firing>& firings);
  /// End of input: fires all timers that are due up to `end_ns` (inclusive).
  void finish(int64_t end_ns, std::vector<abi::Firing>& firings);

  /// Puts firings of several engines of one pack set into merged order.
  void sort(std::vector<abi::Firing>& firings) const;
  /// Whether any plan of this engine's stage listens to a kind.
  [[nodiscard]] bool wants(abi::KindId kind) const;

  /// Lends threads for the shards; null gives them back. Between process() calls.
  void set_crew(Crew* crew);

  /// Run-time values (Op::kTable) for all evaluations from now on; between process() calls, at an
  /// event time that does not depend on batches. Expressions that read them must be marked
  /// ExprInfo::reads_class. Nothing is re-evaluated by the change itself.
  void set_tables(std::shared_ptr<const abi::TableSnapshot> tables);

  using FeatureVisit =
      std::function<void(abi::FeatureId, const abi::EntityKey&, abi::ClassId, double)>;
  /// The value at `at_ns` of each listed feature for every live entity that gave it a sample since
  /// its reset; unknown values are skipped. Integers and durations (ns) come as double. The order
  /// of visits means nothing; what is visited does not depend on threads or batches. A feature that
  /// neither a signal nor an AdaptivePlan reads has no state. Call after process() up to at_ns, on
  /// the same thread; changes nothing.
  void sample_features(std::span<const abi::FeatureId> features, int64_t at_ns,
                       const FeatureVisit& visit);
  /// The same for the entities whose first key is `key_name` = `value` (a node, its gpus, ..), of
  /// all features. Cost: walks the keys of the kinds that begin with it.
  void features_of(std::string_view key_name, uint64_t value, int64_t at_ns,
                   const FeatureVisit& visit);
  /// How many entities have state of a feature. Walks all entities of its kind.
  [[nodiscard]] size_t entity_count(abi::FeatureId feature) const;

  /// Writes what a later process() can see. Between two calls of process(), or in a forked child:
  /// reads only. Not in it: tables, counters of work (evaluations, leaf_hits), count-only figures.
  /// The bytes do not depend on the number of shards.
  void save(StateWriter& out) const;
  /// Takes over what save() of an engine of this or another pack set wrote; before any process(),
  /// tables set or not. With the same set, what follows is as if the engine had never stopped.
  /// Else each signal and feature fares as abi::state_plan() says; what was kept and changed is
  /// evaluated again at the time of the state, in the next process(). `report`: by name, signals
  /// before features; null when nobody asks. False for bytes that are no state: the engine is then
  /// not to be used.
  bool load(StateReader& in, std::vector<StateFate>* report);
  /// Whether take_over(old) can be done; `old` may run. False: make another without Options::before,
  /// and load() what `old` saves.
  [[nodiscard]] bool can_take_over(const SignalEngine& old) const;
  /// As load() of what `old` would save now, but for the saving: what stays is not touched, and only
  /// what has changed is written and read. Between two process() of `old` (Options::before), before
  /// any of this one. `old` is hollow: only to be destroyed.
  void take_over(SignalEngine& old);
  /// As load() reports it, but for the bytes; of an engine made with Options::before.
  [[nodiscard]] const std::vector<StateFate>& fates() const;
  /// The event time until which firings of a signal are marked `incomplete`, since a window of it
  /// or of a feature that it reads became longer; INT64_MIN: never.
  [[nodiscard]] int64_t incomplete_until(abi::SignalId signal) const;

  [[nodiscard]] Counters counters() const;
  [[nodiscard]] const std::vector<NearMiss>& near_misses() const;
  /// Firings per signal so far, [SignalId] (benchmark oracle, metrics).
  [[nodiscard]] std::vector<uint64_t> firings_by_signal() const;
  /// Partial matches that wait now, [SignalId]; of sequences that keep more than a time a key.
  [[nodiscard]] std::vector<uint64_t> partials_by_signal() const;
  /// Keys with state, [EntityKindId].
  [[nodiscard]] std::vector<uint64_t> keys_by_kind() const;
  /// Count only: firings are counted per signal and entity but not materialised (benchmark).
  void set_count_only(bool on);
  /// Distinct entities that fired, [SignalId]; only in count-only mode.
  [[nodiscard]] std::vector<uint64_t> entities_by_signal() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reflex::eval
