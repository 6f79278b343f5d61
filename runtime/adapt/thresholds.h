// Thresholds: adaptive profile parameters that follow their hardware class (attribution.md 5).
//
// At each epoch the caller gives a sample of each feature for each healthy node (sample) and closes
// the epoch (close); rows() is then the new immutable table. Threshold = quantile of the class's
// sketch (tail fit beyond its resolution), blended n/(n+500) with the parent profile's and the
// fleet's, inside floor and ceiling; the profile's default until the class has min_samples.
// Cohort: the same blend over the class. Node: a sketch of its own only where it keeps exceeding
// the value of its class, at most kOwnMax nodes a parameter (a few KiB each); its samples do not feed
// the class from then on.
// Regime change: a fast sketch (1 day) against the slow one; when they differ and most nodes of the
// class have moved the same way, the fast one is adopted and the shift remembered. One node that
// moves alone moves nothing.
// Order of samples within an epoch does not matter. Not for several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/same_ids.h"
#include "runtime/abi/table.h"
#include "runtime/adapt/quantile_sketch.h"
#include "runtime/adapt/shift.h"

namespace reflex::adapt {

struct ThresholdOptions {
  bool dynamic = true;   // false: the defaults of the profiles stand
  bool by_class = true;  // false: one threshold for all classes (ablation)
};

/// The values of all adaptive parameters at one time; immutable.
struct ThresholdRows {
  struct Row {
    std::vector<abi::Value> values;         // [AdaptiveId]
    std::vector<abi::TableOrigin> origins;  // [AdaptiveId]
  };
  std::vector<Row> classes;  // [ClassId]
  std::vector<Row> special;  // of cohorts and nodes
  std::unordered_map<SymbolId, uint32_t> special_of;

  [[nodiscard]] const Row& of(abi::ClassId hw_class, SymbolId node) const {
    const auto it = special_of.find(node);
    return it == special_of.end() ? classes[hw_class] : special[it->second];
  }
};

class Thresholds {
 public:
  static constexpr size_t kOwnMax = 256;

  Thresholds(std::shared_ptr<const abi::CompiledPack> pack, const ThresholdOptions& options);

  [[nodiscard]] bool wanted() const { return options_.dynamic && !pack_->adaptives.empty(); }
  /// Features to sample, ascending, each once; and whether "no state" is a sample of zero.
  [[nodiscard]] const std::vector<abi::FeatureId>& features() const { return features_; }
  [[nodiscard]] bool counts(abi::FeatureId feature) const;

  void sample(abi::FeatureId feature, SymbolId node, abi::ClassId hw_class, SymbolId cohort,
              double x);
  void close(int64_t at_ns);

  [[nodiscard]] std::shared_ptr<const ThresholdRows> rows() const { return rows_; }
  /// What the healthy nodes of a class show: what its threshold is a quantile of.
  [[nodiscard]] const QuantileSketch& baseline(abi::ClassId c, abi::AdaptiveId a) const {
    return classes_[options_.by_class ? c : 0][a].slow;
  }
  [[nodiscard]] const std::vector<Shift>& shifts() const { return shifts_; }

  void save(StateWriter& writer) const;
  /// Parameters by name; one that follows another feature begins anew. The rows are made anew, under
  /// the settings of this set. `class_of` as in NodeHistory.
  void load(StateReader& reader, const abi::LoadNames& names,
            const std::function<abi::ClassId(SymbolId)>& class_of);
  /// The same, of a set whose ids mean the same; classes are what they were.
  void take_over(Thresholds& old, const abi::SetChange& change);

 private:
  struct Level {  // of one parameter
    QuantileSketch slow;
    QuantileSketch fast;
    QuantileSketch fresh;  // of this epoch
    QuantileSketch fresh_loners;
    double upper = 0;      // quartiles of `slow`
    double lower = 0;
    double limit = 0;  // its quantile, not blended
    double high = 0;  // nodes of this epoch above the slow 75 % level, below the 25 % level
    double low = 0;
    double seen = 0;
    double high_share = 0.25;  // over about a day
    double low_share = 0.25;
    int64_t shifted_ns = kNoTimeNs;
    void save(StateWriter& writer) const;
    void load(StateReader& reader);
  };
  struct Own {  // of one node and parameter
    double seen = 0;
    double over = 0;
    QuantileSketch sketch;
    bool sketched = false;
    void save(StateWriter& writer) const;
    void load(StateReader& reader);
  };
  struct NodeState {
    SymbolId node = kNoSymbol;
    abi::ClassId hw_class = 0;
    SymbolId cohort = kNoSymbol;
    std::vector<Own> own;  // [AdaptiveId]
  };
  using CohortKey = std::pair<abi::ClassId, std::string>;  // by name: order is visible

  [[nodiscard]] const abi::AdaptiveSettings& settings(abi::ClassId c, abi::AdaptiveId a) const;
  void close_level(Level& level, abi::ClassId c, abi::AdaptiveId a, int64_t at_ns);
  void load_nodes(StateReader& reader, const abi::LoadNames& names,
                  const std::function<abi::ClassId(SymbolId)>& class_of);
  void find_loners();
  void rebuild();
  void put(ThresholdRows::Row& row, abi::ClassId c, abi::AdaptiveId a, double x,
           abi::TableOrigin origin) const;
  [[nodiscard]] ThresholdRows::Row class_row(abi::ClassId c) const;
  void blend(ThresholdRows::Row& row, abi::ClassId c, abi::AdaptiveId a,
             const QuantileSketch& sketch, abi::TableOrigin::From from) const;
  [[nodiscard]] double raw(const ThresholdRows::Row& row, abi::AdaptiveId a) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  ThresholdOptions options_;
  std::vector<abi::FeatureId> features_;
  std::vector<std::vector<abi::AdaptiveId>> by_feature_;  // parallel to features_
  std::vector<std::vector<Level>> classes_;               // [ClassId][AdaptiveId]
  std::map<CohortKey, std::vector<QuantileSketch>> cohorts_;  // [AdaptiveId]
  std::map<std::string, NodeState> nodes_;                    // by name: order is visible
  std::shared_ptr<const ThresholdRows> rows_;
  std::vector<Shift> shifts_;
};

}  // namespace reflex::adapt
