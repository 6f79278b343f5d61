// KeyStage: the sequential stage of a SignalEngine: which entities an event is about, and which keys
// go when there are too many.
//
// Contract: records come in total order, so that evictions depend on the events alone. on_evict(kind,
// index) is called for each key that goes, before the event that pushed it out is evaluated.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "runtime/eval/program.h"
#include "runtime/eval/signal_engine.h"

namespace reflex::eval {

class KeyStage {
 public:
  /// Both outlive it.
  KeyStage(Program& program, const Options& options) : program_(program), options_(options) {
    host_.topology = &program_.topology();
    host_.symbols = program_.pack().symbols.get();
  }
  /// What one key of each kind takes: must not depend on the number of shards.
  void set_key_bytes(std::vector<uint64_t> bytes) { key_bytes_ = std::move(bytes); }
  /// The tables were filled from a state.
  void count_state_bytes() {
    state_bytes_ = 0;
    for (size_t k = 0; k < key_bytes_.size(); ++k) {
      state_bytes_ += program_.tables()[k].size() * key_bytes_[k];
    }
  }

  /// Resolves the keys of a record into ids; calls on_evict(kind, index) for each key pushed out.
  template <typename OnEvict>
  void resolve(const abi::Record& record, EntityIndex* ids, OnEvict&& on_evict) {
    const KindKeys& keys = program_.keys()[record.kind];
    for (size_t i = 0; i < keys.slots.size(); ++i) {
      const KeySlot& slot = keys.slots[i];
      EntityTable& table = program_.tables()[slot.entity_kind];
      std::array<uint64_t, 3> key{};
      if (slot.plain) [[likely]] {
        const uint64_t value = record.slots()[slot.field];
        const bool known =
            record.has(slot.field) && (value != kNoSymbol || !table.config().is_symbol[0]);
        if (!known) {
          ids[i] = kNoEntity;
          continue;
        }
        key[0] = value;
      } else if (!program_.resolve(slot, record, program_.node_of(record), host_, key)) {
        ids[i] = kNoEntity;
        continue;
      }
      if (options_.owns && table.config().by_node && !owns(static_cast<SymbolId>(key[0]))) {
        ids[i] = kNoEntity;
        continue;
      }
      const EntityTable::Touch touch = table.touch(key, record.order);
      if (touch.evicted) [[unlikely]] {
        ++evictions;
        state_bytes_ -= key_bytes_[slot.entity_kind];
        forget_id(slot.entity_kind, touch.index_evicted, ids, keys, i);
        on_evict(slot.entity_kind, touch.index_evicted);
      }
      ids[i] = touch.index;
      if (touch.created) [[unlikely]] {
        state_bytes_ += key_bytes_[slot.entity_kind];
        keep_within_budget(record.order, ids, keys, i + 1, on_evict);
      }
    }
  }

  uint64_t evictions = 0;        // by `limits { keys }`
  uint64_t state_evictions = 0;  // by `limits { state }`

 private:
  /// Makes room for a new key: the least recently touched keys of the kind that takes most go, in
  /// total order, until all fit into `limits { state }`.
  template <typename OnEvict>
  void keep_within_budget(uint64_t order, EntityIndex* ids, const KindKeys& keys, size_t resolved,
                          OnEvict&& on_evict) {
    while (state_bytes_ > program_.pack().limits.state_bytes_max) {
      size_t most = SIZE_MAX;
      uint64_t most_bytes = 0;
      for (size_t k = 0; k < key_bytes_.size(); ++k) {
        const uint64_t live = program_.tables()[k].size();
        if (live > 1 && live * key_bytes_[k] > most_bytes) {
          most = k;
          most_bytes = live * key_bytes_[k];
        }
      }
      if (most == SIZE_MAX) return;  // one key of each kind stays, whatever it takes
      const auto kind = static_cast<abi::EntityKindId>(most);
      const EntityIndex victim = program_.tables()[most].evict_oldest(order);
      state_bytes_ -= key_bytes_[most];
      ++state_evictions;
      forget_id(kind, victim, ids, keys, resolved);
      on_evict(kind, victim);
    }
  }

  /// A tiny cap may push out a key of this very event.
  static void forget_id(abi::EntityKindId kind, EntityIndex index, EntityIndex* ids,
                        const KindKeys& keys, size_t resolved) {
    for (size_t j = 0; j < resolved; ++j) {
      if (keys.slots[j].entity_kind == kind && ids[j] == index) ids[j] = kNoEntity;
    }
  }

  /// Asked for each key of each event: the answers are kept.
  bool owns(SymbolId node) {
    if (node >= owned_.size()) owned_.resize(size_t{node} * 2 + 64, kUnasked);
    if (owned_[node] == kUnasked) owned_[node] = options_.owns(node) ? kOwn : kForeign;
    return owned_[node] == kOwn;
  }

  enum Owned : uint8_t { kUnasked, kOwn, kForeign };
  Program& program_;
  const Options& options_;
  std::vector<uint8_t> owned_;  // [SymbolId]
  topology::HostState host_;
  std::vector<uint64_t> key_bytes_;  // [EntityKindId]
  uint64_t state_bytes_ = 0;         // of all live keys, by key_bytes_
};

}  // namespace reflex::eval
