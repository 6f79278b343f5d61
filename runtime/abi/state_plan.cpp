// Pairing by name and judging each pair; see state_plan.h.
#include "runtime/abi/state_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/time.h"

namespace reflex::abi {
namespace {

// Why: a window keeps at most 132 buckets of a time and three sums; a closed form some 96 bytes.
constexpr uint64_t kWindowBytes = 132 * 32;
constexpr uint64_t kClosedFormBytes = 96;

uint64_t feature_bytes(const FeaturePlan& f) {
  if (f.last_n > 0) return f.last_n * 16 + kClosedFormBytes;
  return f.window_ns > 0 ? kWindowBytes + kClosedFormBytes : kClosedFormBytes;
}

using Items = std::map<std::string, const StateItem*>;

Items items_of(const std::vector<StateItem>& list, bool features) {
  Items items;
  for (const StateItem& item : list) {
    if (item.is_feature == features) items.emplace(item.name, &item);
  }
  return items;
}

void compare(const Items& before, const Items& after, bool is_feature,
             std::vector<StateChange>& out) {
  std::set<std::string> taken;
  for (const auto& [name, item] : after) {
    auto found = before.find(name);
    const bool renamed = found == before.end() && !item->was.empty();
    if (renamed) found = before.find(item->was);
    StateChange change;
    if (found == before.end()) {
      change.fate = Fate::kNew;
      change.changed = true;
    } else {
      taken.insert(found->first);
      change = judge_state(found->second->shape, item->shape);
      if (renamed) {
        change.old_name = found->first;
        change.changed = true;
        change.why += (change.why.empty() ? "" : "; ") + ("was " + change.old_name);
      }
    }
    change.is_feature = is_feature;
    change.name = name;
    change.bytes_per_key = item->bytes_per_key;
    out.push_back(std::move(change));
  }
  for (const auto& [name, item] : before) {
    if (taken.count(name) != 0) continue;
    StateChange change;
    change.fate = Fate::kRemoved;
    change.is_feature = is_feature;
    change.name = name;
    change.bytes_per_key = item->bytes_per_key;
    change.changed = true;
    out.push_back(std::move(change));
  }
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

std::vector<StateItem> state_items(const CompiledPack& pack) {
  std::vector<StateItem> items;
  for (const SignalPlan& s : pack.signals) {
    items.push_back({s.name, s.was, false, s.state, s.bytes_per_key});
  }
  for (const FeaturePlan& f : pack.features) {
    if (!f.name.empty()) items.push_back({f.name, f.was, true, f.state, feature_bytes(f)});
  }
  return items;
}

StateChange judge_state(const StateShape& before, const StateShape& after) {
  StateChange change;
  change.changed = before.exact != after.exact;
  if (before.keys != after.keys) {
    change.fate = Fate::kReset;
    change.why = "on " + before.keys + " -> " + after.keys;
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
  return change;
}

std::vector<StateChange> state_plan(const std::vector<StateItem>& before,
                                    const std::vector<StateItem>& after) {
  std::vector<StateChange> plan;
  compare(items_of(before, false), items_of(after, false), false, plan);
  compare(items_of(before, true), items_of(after, true), true, plan);
  std::stable_sort(plan.begin(), plan.end(), [](const StateChange& a, const StateChange& b) {
    return std::tie(a.is_feature, a.name) < std::tie(b.is_feature, b.name);
  });
  return plan;
}

}  // namespace reflex::abi
