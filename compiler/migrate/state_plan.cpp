// Pairing by name and judging each pair; see state_plan.h.
#include "compiler/migrate/state_plan.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/time.h"

namespace reflex::migrate {
namespace {

// Why: a window keeps at most 132 buckets of a time and three sums; a closed form some 96 bytes.
constexpr uint64_t kWindowBytes = 132 * 32;
constexpr uint64_t kClosedFormBytes = 96;

uint64_t feature_bytes(const abi::FeaturePlan& f) {
  if (f.last_n > 0) return f.last_n * 16 + kClosedFormBytes;
  return f.window_ns > 0 ? kWindowBytes + kClosedFormBytes : kClosedFormBytes;
}

/// What the two kinds of state have in common.
struct Item {
  std::string name;
  std::string shape;
  std::string exact;
  std::string entity;
  std::string form;  // "sequence of 2 steps", "count", "condition"; for the reason
  int64_t window_ns = 0;
  int64_t samples = 0;  // `last N`
  uint64_t bytes = 0;
};

Item signal_item(const Side& side, abi::SignalId id) {
  const abi::SignalPlan& s = side.pack.signals[id];
  Item item;
  item.name = s.name;
  item.shape = signal_signature(side, id, Detail::kShape);
  item.exact = signal_signature(side, id, Detail::kExact);
  item.entity = entity_text(side.pack, s.entity_kind);
  item.bytes = s.bytes_per_key;
  switch (s.shape) {
    case abi::SignalShape::kSequence:
      item.form = "sequence of " + std::to_string(s.sequence.steps.size()) + " step(s)";
      item.window_ns = s.sequence.within_ns;
      for (const auto& guard : s.sequence.guards) {
        item.window_ns = std::max(item.window_ns, guard.window_ns);
      }
      break;
    case abi::SignalShape::kCount:
      item.form = "count";
      item.window_ns = s.count.window_ns;
      break;
    case abi::SignalShape::kCondition:
      item.form = "condition";
      break;
  }
  return item;
}

Item feature_item(const Side& side, abi::FeatureId id) {
  const abi::FeaturePlan& f = side.pack.features[id];
  Item item;
  item.name = f.name;
  item.shape = feature_signature(side, id, Detail::kShape);
  item.exact = feature_signature(side, id, Detail::kExact);
  item.entity = entity_text(side.pack, f.entity_kind);
  item.form = "feature";
  item.window_ns = f.window_ns;
  item.samples = f.last_n;
  item.bytes = feature_bytes(f);
  return item;
}

void judge(const Item& before, const Item& after, StateChange& change) {
  change.changed = before.exact != after.exact;
  if (before.entity != after.entity) {
    change.fate = Fate::kReset;
    change.why = "on " + before.entity + " -> " + after.entity;
  } else if (before.form != after.form) {
    change.fate = Fate::kReset;
    change.why = before.form + " -> " + after.form;
  } else if (before.shape != after.shape) {
    change.fate = Fate::kReset;
    change.why = "steps, kinds, aggregate or predicates changed";
  } else if (before.window_ns != after.window_ns) {
    change.why = "window " + reflex::to_text(Duration{before.window_ns}) + " -> " +
                 reflex::to_text(Duration{after.window_ns});
    change.incomplete = after.window_ns > before.window_ns;
    change.fate = change.incomplete ? Fate::kKept : Fate::kTrimmed;
  } else if (before.samples != after.samples) {
    change.why =
        "last " + std::to_string(before.samples) + " -> last " + std::to_string(after.samples);
    change.incomplete = after.samples > before.samples;
    change.fate = change.incomplete ? Fate::kKept : Fate::kTrimmed;
  } else if (change.changed) {
    change.why = "constants changed: evaluated again at once";
  }
  if (!change.old_name.empty()) {
    change.changed = true;
    change.why += (change.why.empty() ? "" : "; ") + ("was " + change.old_name);
  }
}

using Items = std::map<std::string, Item>;

void compare(const Items& before, const Items& after, bool is_feature,
             const std::map<std::string, std::string>& renamed, std::vector<StateChange>& out) {
  std::vector<std::string> taken;
  for (const auto& [name, item] : after) {
    StateChange change;
    change.is_feature = is_feature;
    change.name = name;
    change.bytes_per_key = item.bytes;
    auto found = before.find(name);
    if (found == before.end()) {
      const auto rename = renamed.find(name);
      if (rename != renamed.end()) found = before.find(rename->second);
      if (found != before.end()) change.old_name = found->first;
    }
    if (found == before.end()) {
      change.fate = Fate::kNew;
      change.changed = true;
    } else {
      taken.push_back(found->first);
      judge(found->second, item, change);
    }
    out.push_back(std::move(change));
  }
  for (const auto& [name, item] : before) {
    if (std::find(taken.begin(), taken.end(), name) != taken.end()) continue;
    StateChange change;
    change.fate = Fate::kRemoved;
    change.is_feature = is_feature;
    change.name = name;
    change.bytes_per_key = item.bytes;
    change.changed = true;
    out.push_back(std::move(change));
  }
}

Items signals_of(const Side& side) {
  Items items;
  for (abi::SignalId s = 0; s < side.pack.signals.size(); ++s) {
    Item item = signal_item(side, s);
    items.emplace(item.name, item);
  }
  return items;
}

/// Declared features by name; one that the compiler made belongs to who reads it.
Items features_of(const Side& side) {
  Items items;
  for (abi::FeatureId f = 0; f < side.pack.features.size(); ++f) {
    if (side.pack.features[f].name.empty()) continue;
    Item item = feature_item(side, f);
    items.emplace(item.name, item);
  }
  return items;
}

}  // namespace

std::string_view word_of(Fate fate) {
  switch (fate) {
    case Fate::kKept:
      return "kept";
    case Fate::kTrimmed:
      return "trimmed";
    case Fate::kReset:
      return "reset";
    case Fate::kNew:
      return "new";
    case Fate::kRemoved:
      return "removed";
  }
  return "";
}

std::vector<StateChange> state_plan(const Side& before, const Side& after,
                                    const std::map<std::string, std::string>& renamed) {
  std::vector<StateChange> plan;
  compare(signals_of(before), signals_of(after), false, renamed, plan);
  compare(features_of(before), features_of(after), true, renamed, plan);
  std::stable_sort(plan.begin(), plan.end(), [](const StateChange& a, const StateChange& b) {
    return std::tie(a.is_feature, a.name) < std::tie(b.is_feature, b.name);
  });
  return plan;
}

}  // namespace reflex::migrate
