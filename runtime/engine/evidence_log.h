// EvidenceLog: the firings of the recent past as episodes per (signal, entity).
//
// A refiring while an episode still holds extends it (count + 1): evidence is never multiplied.
// Indexed by the first key of the entity, so that an incident collects the evidence of its nodes
// without looking at others. A repair ends what came before it: to incidents that open after it
// those episodes are gone, and a condition that still holds begins at it. What a signal says of the
// repairs themselves (a node mended five times a week) stays. Bound: kEpisodesMax episodes a series, series trimmed by trim().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/same_ids.h"
#include "runtime/attribution/attribution.h"

namespace reflex::engine {

/// Evidence of looks that are over, for its memory: a look makes and drops hundreds of small lists.
/// Not for several threads.
class SpareEvidence {
 public:
  /// Appends one to `out`. Its contents are what they were: whoever takes it sets all of it.
  attribution::Evidence& add_to(std::vector<attribution::Evidence>& out) {
    if (spare_.empty()) return out.emplace_back();
    out.push_back(std::move(spare_.back()));
    spare_.pop_back();
    return out.back();
  }
  void take_back(attribution::Evidence&& evidence) {
    if (spare_.size() < kSpareMax) spare_.push_back(std::move(evidence));
  }

 private:
  // Why: a job of a thousand nodes; about 300 bytes each.
  static constexpr size_t kSpareMax = 4096;
  std::vector<attribution::Evidence> spare_;
};

class EvidenceLog {
 public:
  /// `lookback_ns[signal]`: how long an ended episode may still matter.
  EvidenceLog(std::shared_ptr<const abi::CompiledPack> pack, std::vector<int64_t> lookback_ns);

  /// Firings come in merged order.
  void add(const abi::Firing& firing);
  /// The node, or this one gpu of it, was mended. Comes in order with the firings.
  void repaired(SymbolId node, std::optional<int64_t> gpu, int64_t ts_ns);
  /// What an incident asks for: graded counts are binned by how long before `opened_ns` they came,
  /// and begin at `since_ns` (a repair).
  struct Look {
    int64_t opened_ns = 0;
    int64_t now_ns = 0;
    int64_t since_ns = kNoTimeNs;
  };
  /// Appends the evidence whose entity starts with key `key_name` = `value`.
  void collect(std::string_view key_name, uint64_t value, const Look& look,
               std::vector<attribution::Evidence>& out, SpareEvidence& spare) const;
  void collect(std::string_view key_name, uint64_t value, const Look& look,
               std::vector<attribution::Evidence>& out) const {
    SpareEvidence none;
    collect(key_name, value, look, out, none);
  }
  /// Appends the evidence of every entity that starts with a key other than `excluded_names`.
  void collect_others(const std::vector<std::string>& excluded_names, const Look& look,
                      std::vector<attribution::Evidence>& out, SpareEvidence& spare) const;
  /// Forgets what can no longer matter at or after `watermark_ns`.
  void trim(int64_t watermark_ns);
  [[nodiscard]] size_t series_count() const { return series_count_; }

  void save(StateWriter& writer) const;
  /// Leaves out what is evidence of a signal that is gone, or that is kept on other entities now.
  /// What a signal that begins anew said holds until `now_ns`.
  void load(StateReader& reader, abi::LoadNames& names, int64_t now_ns);
  /// The same, of a set whose ids mean the same. Cost: O(1), unless signals begin anew.
  void take_over(EvidenceLog& old, abi::SetChange& change, int64_t now_ns);

 private:
  struct Series {
    abi::SignalId signal = 0;
    abi::EntityKey entity;
    std::vector<attribution::Evidence::Episode> episodes;
    // Graded counts: each firing; the last kFiringsMax count. `episodes` is empty then.
    struct Counted {
      int64_t ts_ns = 0;
      double value = 0;
      uint64_t part = 0;  // Firing::part
      abi::EventRef event;
    };
    std::vector<Counted> counted;
    std::vector<int64_t> repairs_ns;  // ascending
  };
  struct Group {
    std::vector<abi::SignalId> signals;  // of `series`: looked through for every firing
    std::vector<Series> series;
  };
  using ByValue = std::unordered_map<uint64_t, Group>;
  struct Key {
    std::string name;
    ByValue by_value;
  };

  void save_series(StateWriter& writer, const Series& series) const;
  [[nodiscard]] bool load_series(StateReader& reader, const abi::LoadNames& names, Series& series);
  /// One form of evidence: counts are only read of graded signals, episodes only of others.
  [[nodiscard]] bool is_of_form(const Series& series) const;
  /// A condition that begins anew does not end what it said before.
  static void close(Series& series, int64_t now_ns);
  static void note_dropped(size_t series, std::vector<std::string>& notes);
  [[nodiscard]] bool has_named_parts(abi::SignalId signal) const;
  Series& series_of(const abi::Firing& firing);
  /// A repair does not end it: repairs are what the signal is about.
  [[nodiscard]] bool is_of_repairs(abi::SignalId signal) const;
  static int64_t since_ns(const Series& series, const Look& look);
  /// The firings of a graded count that a look sees, oldest first.
  static std::span<const Series::Counted> seen(const Series& series, int64_t window_ns,
                                               const Look& look);
  /// How many of them came in each bin of lead before the opening.
  static std::array<uint16_t, abi::kLeadBins> by_lead(std::span<const Series::Counted> seen,
                                                      double window_ns, int64_t opened_ns);
  void append(const Series& series, const Look& look, std::vector<attribution::Evidence>& out,
              SpareEvidence& spare) const;
  /// False: nothing of it counts.
  [[nodiscard]] bool fill_graded(const Series& series, const Look& look,
                                 attribution::Evidence& out) const;
  [[nodiscard]] const abi::GradedPlan* graded(abi::SignalId signal) const;
  [[nodiscard]] int64_t holds_ns(abi::SignalId signal) const;

  [[nodiscard]] const ByValue* of_key(std::string_view name) const;
  void trim(Series& series, int64_t watermark_ns) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::vector<int64_t> lookback_ns_;
  std::vector<Key> keys_;                // by first key of an entity kind
  std::vector<uint32_t> key_of_kind_;    // [EntityKindId] index into keys_
  size_t series_count_ = 0;
};

}  // namespace reflex::engine
