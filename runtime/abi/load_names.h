// Names of plans in a saved state, and what they are in the set that loads it.
//
// A state begins with the names of the set that made it (save_names); inside, plans are numbers
// into these lists. LoadNames says what each number is now: by name, then by `was`. What is gone is
// kNone; a class that is gone is the one that all of its nodes have become (rename_classes()).
// Entity keys and events of firings are written here, too, as several parts of a state hold them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/base/state_stream.h"

namespace reflex::abi {

void save_names(StateWriter& writer, const CompiledPack& pack);

class LoadNames {
 public:
  static constexpr uint32_t kGone = kNone32;

  /// Reads what save_names() wrote; `pack` outlives this. False: the reader has failed.
  bool load(StateReader& reader, const CompiledPack& pack);

  /// The set that made the state is the one that loads it.
  [[nodiscard]] bool same_set() const { return same_set_; }

  /// The next number of the state, as an id of this set; kGone when there is no such thing.
  [[nodiscard]] uint32_t signal(StateReader& r) const { return look(r, signals_); }
  [[nodiscard]] uint32_t feature(StateReader& r) const { return look(r, features_); }
  [[nodiscard]] uint32_t cause(StateReader& r) const { return look(r, causes_); }
  [[nodiscard]] uint32_t hw_class(StateReader& r) const { return look(r, classes_); }
  [[nodiscard]] uint32_t kind(StateReader& r) const { return look(r, kinds_); }
  [[nodiscard]] uint32_t adaptive(StateReader& r) const { return look(r, adaptives_); }
  [[nodiscard]] uint32_t incident(StateReader& r) const { return look(r, incidents_); }
  /// The number of a class as it stands in the state, for rename_classes().
  [[nodiscard]] uint32_t old_class(StateReader& r) const;
  [[nodiscard]] uint32_t class_of(uint32_t old) const {
    return old < classes_.size() ? classes_[old] : kGone;
  }
  /// Numbers of a list of the state that has an entry for each of its signals, in order.
  [[nodiscard]] const std::vector<uint32_t>& signals() const { return signals_; }
  [[nodiscard]] const std::vector<uint32_t>& adaptives() const { return adaptives_; }
  [[nodiscard]] const std::vector<uint32_t>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<uint32_t>& causes() const { return causes_; }
  [[nodiscard]] const std::vector<uint32_t>& kinds() const { return kinds_; }

  /// (number in the state, class of this set) of each node: a class that is gone was renamed when
  /// all of its nodes are of one class that is new.
  void rename_classes(const std::vector<std::pair<uint32_t, ClassId>>& nodes);
  /// The signal's own state did not come along (another shape): nor do numbers measured of it.
  void reset_signal(SignalId signal);
  void reset_feature(FeatureId feature);
  [[nodiscard]] bool is_reset(SignalId signal) const { return reset_[signal] != 0; }

  /// One sentence about what was left behind.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  [[nodiscard]] std::vector<std::string>& notes() { return notes_; }

 private:
  [[nodiscard]] static uint32_t look(StateReader& r, const std::vector<uint32_t>& ids);
  bool load_adaptives(StateReader& reader, const CompiledPack& pack);

  bool same_set_ = false;
  std::vector<uint32_t> signals_, features_, causes_, classes_, kinds_, adaptives_, incidents_;
  std::vector<uint32_t> adaptive_features_;  // [AdaptiveId] of this set
  std::vector<std::string> old_classes_;
  std::vector<std::string> class_names_;  // of this set
  std::vector<uint8_t> reset_;            // [SignalId] of this set: new ones, too
  std::vector<std::string> notes_;
};

/// Whether a key of this name is a name (a SymbolId), or else an integer.
[[nodiscard]] bool is_named_key(std::string_view key);

void save_entity(StateWriter& writer, const CompiledPack& pack, const EntityKey& entity);
/// False: no entity kind of `pack` has these keys (or the reader has failed); it is read over.
[[nodiscard]] bool load_entity(StateReader& reader, const CompiledPack& pack, EntityKey& out);

void save_event(StateWriter& writer, const EventRef& event);
[[nodiscard]] EventRef load_event(StateReader& reader);

void save_value(StateWriter& writer, const Value& value);
[[nodiscard]] Value load_value(StateReader& reader);

}  // namespace reflex::abi
