// ShardCore: what the state machines of one shard share: evaluation contexts, timers, firings.
//
// Not a state machine itself. One object a shard, used by one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/abi/firing.h"
#include "runtime/eval/feature_state.h"
#include "runtime/eval/program.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/eval/timer_queue.h"

namespace reflex::eval {

/// One event as a shard sees it.
struct EventView {
  const abi::Record* record = nullptr;
  const EntityIndex* ids = nullptr;  // [key slot]
  abi::ClassId hw_class = 0;         // of the record's node
};

/// Where and when an expression is evaluated.
struct Site {
  abi::EntityKindId kind = 0;
  EntityIndex entity = kNoEntity;
  int64_t now_ns = 0;
  uint64_t exclude_order = ~uint64_t{0};  // the event under evaluation
};

abi::EventRef event_ref(const abi::Record& record);

/// Events behind a state, oldest first, at most 8.
struct RefRing {
  std::vector<abi::EventRef> refs;
  void push(const abi::Record& record);
};

class ShardCore {
 public:
  ShardCore(const Program& program, const Options& options);

  /// Evaluates in the context of an entity (features read, class bound). Truth; value in *out.
  uint32_t eval(abi::ExprId expr, const abi::Record* record, const Site& here,
                const abi::Value* captures, uint64_t* out);
  /// As f64, whatever the expression's form.
  abi::Value eval_f64(abi::ExprId expr, const abi::Record* record, const Site& here);
  [[nodiscard]] abi::Value as_f64(abi::ExprId expr, uint64_t bits) const;
  /// Makes context().features valid for these ids at a site.
  void read_features(std::span<const abi::FeatureId> ids, const Site& here);
  void set_site(const Site& here);
  /// The class parameters and run-time values that the next expression sees.
  void bind_class(abi::ClassId hw_class, SymbolId node) {
    context.class_params = program.class_params(hw_class);
    context.table = program.table_row(hw_class, node);
  }
  /// The entity of kind `kind` that has the keys of the site's entity; kNoEntity if there is none.
  [[nodiscard]] EntityIndex project(const Site& here, abi::EntityKindId kind) const;
  /// The node of the site's entity; kNoSymbol if it has none.
  [[nodiscard]] SymbolId node_of(const Site& here) const;

  void count_firing(abi::SignalId signal, EntityIndex entity) {
    ++fired_[signal];
    auto& seen = entities_[signal];
    const size_t word = entity / 64;
    if (word >= seen.size()) [[unlikely]]
      seen.resize(word * 2 + 16);
    seen[word] |= uint64_t{1} << (entity % 64);
  }
  void emit(abi::Firing firing);
  [[nodiscard]] abi::Firing start_firing(abi::SignalId signal, EntityIndex entity,
                                         const abi::Record& record) const;

  const Program& program;
  const Options& options;
  const abi::CompiledPack& pack;
  FeatureStore* features = nullptr;
  TimerQueue timers;
  Counters counters;
  uint64_t shared_unless_dropped = 0;  // as unless_dropped, of stores that every node shard has
  std::vector<abi::Firing> firings;
  std::vector<NearMiss> near_misses;
  topology::HostState host;
  abi::EvalContext context;
  Site site;               // of the running evaluation
  uint64_t order_now = 0;  // of the event being processed: look-ups see the keys of that moment
  bool count_only = false;
  uint64_t next_tag = 1;
  [[nodiscard]] const std::vector<uint64_t>& fired() const { return fired_; }
  void add_fired(abi::SignalId signal, uint64_t count) { fired_[signal] += count; }
  void forget_fired(abi::SignalId signal) { fired_[signal] = 0; }
  /// Timers and counts; of signals that do not stay ([SignalId] 0) timers in lanes are left out.
  void take_over(ShardCore& old, const std::vector<uint8_t>& signals);
  std::vector<int64_t> incomplete_until_ns;  // [SignalId] see Firing::incomplete
  [[nodiscard]] const std::vector<std::vector<uint64_t>>& entities() const { return entities_; }
  [[nodiscard]] abi::Value* feature_values() { return values_.data(); }

 private:
  std::vector<abi::Value> values_;               // [FeatureId]
  std::vector<uint64_t> fired_;                  // [SignalId]
  std::vector<std::vector<uint64_t>> entities_;  // [SignalId] bitmap
  std::vector<std::vector<int8_t>> projection_;  // [from * kinds + to] key positions
};

}  // namespace reflex::eval
