// Episodes per (signal, entity): see evidence_log.h.
#include "runtime/engine/evidence_log.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory_resource>
#include <span>

#include "runtime/base/check.h"
#include "runtime/base/time.h"

namespace reflex::engine {
namespace {

// Why: a series that flaps for days must not grow without bound; attribution looks at the latest.
constexpr size_t kEpisodesMax = 64;
// Why: ten times what a chronic node brings in three days; more say nothing that these do not.
constexpr size_t kFiringsMax = 256;
constexpr size_t kEventsMax = 8;
// Why: an event signal whose author said nothing counts as evidence for an hour (SYNTAX: holds).
constexpr int64_t kHoldsDefaultNs = kNsPerHour;
constexpr int64_t kOngoing = std::numeric_limits<int64_t>::max();

/// Which part of the node most of the events name; of equals the one that was named last.
class PartCounts {
 public:
  void add(uint64_t part) {
    if (part == 0) return;
    for (auto& [known, count] : counts_) {
      if (known != part) continue;
      if (++count >= best_count_) best_ = part, best_count_ = count;
      return;
    }
    counts_.emplace_back(part, 1);
    if (best_count_ <= 1) best_ = part, best_count_ = 1;
  }
  [[nodiscard]] uint64_t most() const { return best_; }

 private:
  // A node has a handful of parts, and a look counts hundreds of series: no heap for these.
  std::array<std::byte, 512> room_;
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
  std::pmr::vector<std::pair<uint64_t, uint32_t>> counts_{&memory_};
  uint64_t best_ = 0;
  uint32_t best_count_ = 0;
};

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? kOngoing : kNoTimeNs) : sum;
}

}  // namespace

EvidenceLog::EvidenceLog(std::shared_ptr<const abi::CompiledPack> pack,
                         std::vector<int64_t> lookback_ns)
    : pack_(std::move(pack)), lookback_ns_(std::move(lookback_ns)) {
  RFX_CHECK(lookback_ns_.size() == pack_->signals.size());
  for (const abi::EntityKind& kind : pack_->entity_kinds) {
    const std::string& name = kind.keys.empty() ? std::string() : kind.keys.front();
    const auto known = std::find_if(keys_.begin(), keys_.end(),
                                    [&](const Key& key) { return key.name == name; });
    key_of_kind_.push_back(static_cast<uint32_t>(known - keys_.begin()));
    if (known == keys_.end()) keys_.push_back({name, {}});
  }
}

const EvidenceLog::ByValue* EvidenceLog::of_key(std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.name == name) return &key.by_value;
  }
  return nullptr;
}

int64_t EvidenceLog::holds_ns(abi::SignalId signal) const {
  const int64_t holds = pack_->signals[signal].holds_ns;
  return holds > 0 ? holds : kHoldsDefaultNs;
}

EvidenceLog::Series& EvidenceLog::series_of(const abi::Firing& firing) {
  RFX_CHECK(!pack_->entity_kinds[firing.entity.kind].keys.empty());
  Key& key = keys_[key_of_kind_[firing.entity.kind]];
  Group& group = key.by_value[firing.entity.values[0]];
  for (size_t i = 0; i < group.signals.size(); ++i) {
    if (group.signals[i] == firing.signal && group.series[i].entity == firing.entity) {
      return group.series[i];
    }
  }
  group.signals.push_back(firing.signal);
  group.series.push_back({firing.signal, firing.entity, {}, {}, {}});
  ++series_count_;
  return group.series.back();
}

const abi::GradedPlan* EvidenceLog::graded(abi::SignalId signal) const {
  const abi::SignalPlan& plan = pack_->signals[signal];
  const bool on = plan.shape == abi::SignalShape::kCount && plan.count.graded.on;
  return on ? &plan.count.graded : nullptr;
}

void EvidenceLog::add(const abi::Firing& firing) {
  Series& series = series_of(firing);
  if (graded(firing.signal) != nullptr) {
    if (firing.change != abi::FiringChange::kStart) return;
    series.counted.push_back({firing.ts_ns, firing.value.known ? firing.value.f64() : 1.0,
                              firing.part, {}});
    if (!firing.events.empty()) series.counted.back().event = firing.events.back();
    if (series.counted.size() > 2 * kFiringsMax) {
      series.counted.erase(series.counted.begin(), series.counted.end() - kFiringsMax);
    }
    return;
  }
  auto& episodes = series.episodes;
  const bool condition = pack_->signals[firing.signal].shape == abi::SignalShape::kCondition;
  if (firing.change == abi::FiringChange::kEnd) {
    if (!episodes.empty() && episodes.back().end_ns > firing.ts_ns) {
      episodes.back().end_ns = firing.ts_ns;
    }
    return;
  }
  if (firing.change == abi::FiringChange::kRetract) {
    if (!episodes.empty() && --episodes.back().firings == 0) episodes.pop_back();
    return;
  }
  const int64_t repaired_ns = series.repairs_ns.empty() ? kNoTimeNs : series.repairs_ns.back();
  // A pattern that began before the repair and goes on after it is new evidence of what is left.
  const int64_t onset = firing.ts_ns > repaired_ns && firing.onset_ns <= repaired_ns
                            ? repaired_ns + 1
                            : firing.onset_ns;
  const int64_t end = condition ? kOngoing : saturating_add(firing.ts_ns, holds_ns(firing.signal));
  const bool mended = !episodes.empty() && episodes.back().end_ns <= repaired_ns;
  if (!episodes.empty() && !mended && onset <= episodes.back().end_ns) {
    auto& last = episodes.back();
    last.end_ns = std::max(last.end_ns, end);
    ++last.firings;
    last.value = firing.value;
    last.limit = firing.limit;
    for (const auto& event : firing.events) {
      if (last.events.size() < kEventsMax) last.events.push_back(event);
    }
    return;
  }
  episodes.push_back({onset, end, 1, firing.value, firing.limit, firing.events, {}, 0, {}});
  if (episodes.size() > kEpisodesMax) episodes.erase(episodes.begin());
}

bool EvidenceLog::is_of_repairs(abi::SignalId signal) const {
  const auto& kinds = pack_->signals[signal].kinds;
  return std::any_of(kinds.begin(), kinds.end(), [this](abi::KindId kind) {
    if (kind == abi::kNodeRepaired || kind == abi::kGpuReplaced) return true;
    return std::any_of(pack_->repairs.begin(), pack_->repairs.end(),
                       [kind](const abi::RepairPlan& plan) { return plan.kind == kind; });
  });
}

void EvidenceLog::repaired(SymbolId node, std::optional<int64_t> gpu, int64_t ts_ns) {
  const auto nodes = std::find_if(keys_.begin(), keys_.end(),
                                  [](const Key& key) { return key.name == "node"; });
  if (nodes == keys_.end()) return;
  const auto group = nodes->by_value.find(node);
  if (group == nodes->by_value.end()) return;
  for (Series& series : group->second.series) {
    const auto& keys = pack_->entity_kinds[series.entity.kind].keys;
    const bool of_gpu = keys.size() > 1 && keys[1] == "gpu";
    if (gpu && !(of_gpu && series.entity.values[1] == static_cast<uint64_t>(*gpu))) continue;
    if (is_of_repairs(series.signal)) continue;
    series.repairs_ns.push_back(ts_ns);
    const bool condition = pack_->signals[series.signal].shape == abi::SignalShape::kCondition;
    if (condition || series.episodes.empty()) continue;  // its own end is told
    auto& last = series.episodes.back();
    last.end_ns = std::min(last.end_ns, ts_ns);
  }
}

/// What came at or before it was mended before the incident opened; kNoTimeNs: nothing.
int64_t EvidenceLog::since_ns(const Series& series, const Look& look) {
  const auto after = std::upper_bound(series.repairs_ns.begin(), series.repairs_ns.end(),
                                      look.opened_ns);
  if (after == series.repairs_ns.begin()) return look.since_ns;
  return std::max(look.since_ns, *std::prev(after));
}

std::span<const EvidenceLog::Series::Counted> EvidenceLog::seen(const Series& series,
                                                                int64_t window_ns,
                                                                const Look& look) {
  const std::span all(series.counted);
  const auto newest = all.last(std::min(all.size(), kFiringsMax));
  const int64_t since = since_ns(series, look);
  const auto too_old = [&](const Series::Counted& c) {
    return look.opened_ns - c.ts_ns >= window_ns || (since != kNoTimeNs && c.ts_ns <= since);
  };
  const auto first = std::partition_point(newest.begin(), newest.end(), too_old);
  const auto last = std::partition_point(
      first, newest.end(), [&](const Series::Counted& c) { return c.ts_ns <= look.now_ns; });
  return {first, last};
}

std::array<uint16_t, abi::kLeadBins> EvidenceLog::by_lead(std::span<const Series::Counted> seen,
                                                          double window_ns, int64_t opened_ns) {
  std::array<uint16_t, abi::kLeadBins> counts{};
  auto from = seen.begin();
  for (size_t bin = 0; bin < abi::kLeadBins; ++bin) {
    const auto up_to_bin = [&](const Series::Counted& c) {
      if (bin + 1 == abi::kLeadBins) return true;
      const auto lead = static_cast<double>(std::max<int64_t>(opened_ns - c.ts_ns, 0));
      return lead / window_ns >= abi::kLeadBounds[bin + 1];
    };
    const auto to = std::partition_point(from, seen.end(), up_to_bin);
    counts[bin] = static_cast<uint16_t>(std::min<ptrdiff_t>(to - from, UINT16_MAX));
    from = to;
  }
  return counts;
}

// One episode: the counts by lead bin, the newest events. What came before a repair is gone.
bool EvidenceLog::fill_graded(const Series& series, const Look& look,
                              attribution::Evidence& out) const {
  const abi::CountPlan& count = pack_->signals[series.signal].count;
  const auto counted = seen(series, count.window_ns, look);
  if (counted.empty()) return false;
  out.episodes.resize(1);
  attribution::Evidence::Episode& episode = out.episodes.front();
  if (count.graded.votes) {  // the distinct count, not how often it was counted
    episode.lead_counts = {};
    episode.lead_counts.back() = static_cast<uint16_t>(std::min(counted.back().value, 65535.0));
  } else {
    const auto window = static_cast<double>(std::max<int64_t>(count.window_ns, 1));
    episode.lead_counts = by_lead(counted, window, look.opened_ns);
  }
  const auto firings = static_cast<uint32_t>(counted.size());
  episode.onset_ns = counted.front().ts_ns;
  episode.end_ns = saturating_add(std::max<int64_t>(counted.back().ts_ns, 0),
                                  holds_ns(series.signal));
  episode.firings = firings;
  episode.value = abi::Value::of(count.graded.votes ? counted.back().value : firings);
  episode.limit = {};
  episode.part = 0;
  if (!count.part_key.empty()) {
    PartCounts parts;
    for (const Series::Counted& c : counted) parts.add(c.part);
    episode.part = parts.most();
  }
  episode.suppressed_by.clear();
  episode.events.clear();
  const size_t kept = std::min<size_t>(firings, kEventsMax);
  episode.events.reserve(kept);
  for (const Series::Counted& c : counted.last(kept)) episode.events.push_back(c.event);
  return true;
}

void EvidenceLog::append(const Series& series, const Look& look,
                         std::vector<attribution::Evidence>& out, SpareEvidence& spare) const {
  attribution::Evidence& evidence = spare.add_to(out);
  evidence.signal = series.signal;
  evidence.entity = series.entity;
  const auto drop = [&] {
    spare.take_back(std::move(out.back()));
    out.pop_back();
  };
  if (!series.counted.empty()) {
    if (!fill_graded(series, look, evidence)) drop();
    return;
  }
  const int64_t now_ns = look.now_ns;
  const int64_t oldest = saturating_add(now_ns, -lookback_ns_[series.signal]);
  const int64_t since = is_of_repairs(series.signal) ? kNoTimeNs : since_ns(series, look);
  const bool condition = pack_->signals[series.signal].shape == abi::SignalShape::kCondition;
  size_t count = 0;
  for (const auto& episode : series.episodes) {
    if (episode.end_ns < oldest || episode.onset_ns > now_ns) continue;
    const bool older = since != kNoTimeNs && episode.onset_ns <= since;
    if (older && (!condition || episode.end_ns <= since)) continue;
    if (count == evidence.episodes.size())
      evidence.episodes.push_back(episode);
    else
      evidence.episodes[count] = episode;
    if (older) evidence.episodes[count].onset_ns = since;
    ++count;
  }
  evidence.episodes.resize(count);
  if (count == 0) drop();
}

void EvidenceLog::collect(std::string_view key_name, uint64_t value, const Look& look,
                          std::vector<attribution::Evidence>& out, SpareEvidence& spare) const {
  const ByValue* by_value = of_key(key_name);
  if (!by_value) return;
  const auto group = by_value->find(value);
  if (group == by_value->end()) return;
  for (const Series& series : group->second.series) append(series, look, out, spare);
}

void EvidenceLog::collect_others(const std::vector<std::string>& excluded_names, const Look& look,
                                 std::vector<attribution::Evidence>& out,
                                 SpareEvidence& spare) const {
  for (const auto& [name, by_value] : keys_) {
    if (std::find(excluded_names.begin(), excluded_names.end(), name) != excluded_names.end()) {
      continue;
    }
    // Unordered: attribution does not depend on the order of its input.
    for (const auto& [value, group] : by_value) {
      for (const Series& series : group.series) append(series, look, out, spare);
    }
  }
}

void EvidenceLog::trim(Series& series, int64_t watermark_ns) const {
  const int64_t oldest = saturating_add(watermark_ns, -lookback_ns_[series.signal]);
  const auto drop_front = [](auto& list, auto gone) {
    auto end = list.begin();
    while (end != list.end() && gone(*end)) ++end;
    list.erase(list.begin(), end);
  };
  drop_front(series.episodes, [&](const auto& e) { return e.end_ns < oldest; });
  const int64_t holds = holds_ns(series.signal);
  drop_front(series.counted, [&](const auto& c) { return saturating_add(c.ts_ns, holds) < oldest; });
  auto& repairs = series.repairs_ns;  // the last one before the look-back still answers
  while (repairs.size() > 1 && repairs[1] < oldest) repairs.erase(repairs.begin());
}

void EvidenceLog::trim(int64_t watermark_ns) {
  for (Key& key : keys_) {
    for (auto it = key.by_value.begin(); it != key.by_value.end();) {
      Group& group = it->second;
      size_t kept = 0;
      for (size_t i = 0; i < group.series.size(); ++i) {
        trim(group.series[i], watermark_ns);
        if (group.series[i].episodes.empty() && group.series[i].counted.empty()) continue;
        if (kept != i) {
          group.series[kept] = std::move(group.series[i]);
          group.signals[kept] = group.signals[i];
        }
        ++kept;
      }
      series_count_ -= group.series.size() - kept;
      group.series.resize(kept);
      group.signals.resize(kept);
      it = kept == 0 ? key.by_value.erase(it) : std::next(it);
    }
  }
}

}  // namespace reflex::engine
