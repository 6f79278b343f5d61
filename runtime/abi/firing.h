// Firing: what a signal plan says about an entity; the only thing that leaves a shard.
//
// Order: firings of all shards are merged by (ts_ns, phase, order, signal, entity name), which does
// not depend on threads or batches. Timers at time t come after all events at t.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/evaluator.h"
#include "runtime/abi/plan.h"
#include "runtime/base/time.h"

namespace reflex::abi {

/// An entity instance: key values in the order of EntityKind::keys (SymbolId or integer).
struct EntityKey {
  EntityKindId kind = 0;
  uint8_t count = 0;
  std::array<uint64_t, 3> values{};
  friend bool operator==(const EntityKey&, const EntityKey&) = default;
};

/// The event behind a firing, as explanations print it.
struct EventRef {
  SymbolId source = kNoSymbol;
  uint64_t seq = 0;
  int64_t ts_ns = 0;
  std::string id;  // the event's own id, when it has one
};

enum class FiringChange : uint8_t {
  kStart,    // the signal fires (or fires again: same entity, count + 1)
  kEnd,      // a condition is over
  kRetract,  // a late event cancelled it
};

enum class FiringPhase : uint8_t { kEvent = 0, kTimer = 1 };

struct Firing {
  int64_t ts_ns = 0;     // when the pattern completed
  int64_t onset_ns = 0;  // first event of the pattern
  FiringPhase phase = FiringPhase::kEvent;
  uint64_t order = 0;  // Record::order of the completing event (kEvent)
  SignalId signal = 0;
  FiringChange change = FiringChange::kStart;
  EntityKey entity;
  Value value;                   // what was measured (count, feature, field), as f64
  Value limit;                   // what it was held against, as f64
  bool approximate = false;      // a count beyond exact storage
  bool incomplete = false;       // a reload made its window longer than what has been seen since
  uint64_t part = 0;             // graded counts: 1 + value of CountPlan::part_key; 0 = not stated
  std::vector<EventRef> events;  // at most 8, oldest first
};

}  // namespace reflex::abi
