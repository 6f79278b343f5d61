// Peers: statistics of a feature over the other entities of the same scope (language.md A8).
//
// Alignment: time is cut into buckets of bucket_ns; a query in bucket b sees, of every peer, the
// value after its last sample in a closed bucket (before b), at most kCarryBuckets old. So all
// peers are compared at the same instant, what an entity sees does not depend on which peer of the
// running bucket happens to report first, and a group is sorted once a bucket.
// `by`: of the scope, only the entities that agree with the one that asks in each key, a feature's
// value of the last closed bucket (however old: a role is said once) or a label of the node. Those
// without a value agree with one another.
// The entity itself is left out. Median and MAD are lower medians. rank: 1 + peers with a higher
// value than the entity's own. Lives in the global shard, which sees every event it needs.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/eval/shard_core.h"
#include "runtime/eval/state_value.h"

namespace reflex::eval {

class Peers {
 public:
  explicit Peers(ShardCore& core);
  [[nodiscard]] bool wants(abi::FeatureId feature) const {
    return !queries_of_[feature].empty() || key_number_[feature] != abi::kNone32;
  }
  /// A feature of an entity was updated at ts.
  void note(abi::FeatureId feature, EntityIndex entity, int64_t ts_ns, abi::Value value);
  abi::Value query(const abi::EvalContext& context, const Site& site, uint32_t query);
  void reset_entity(abi::EntityKindId kind, EntityIndex entity);
  /// Samples and groups of the queries that stay ([query] 1); both sets have the same queries.
  void take_over(Peers& old, const std::vector<uint8_t>& stays);
  /// Samples and groups of one query; `by_age`: the entities by their saved numbers. Groups of
  /// buckets before the one of `at_ns` are written without their values: nobody asks for them.
  void save(uint32_t query, const std::vector<EntityIndex>& by_age, int64_t at_ns,
            PlanWriter& plan) const;
  /// `entities`: by their saved numbers.
  void load(uint32_t query, const std::vector<EntityIndex>& entities, PlanReader& plan);

 private:
  // Why 4: exporters that scrape every minute still have a value in a 30 s bucket.
  static constexpr int64_t kCarryBuckets = 4;
  struct Sample {
    int64_t bucket = INT64_MIN;  // of the newest value
    int64_t bucket_before = INT64_MIN;
    double value = 0;
    double value_before = 0;
  };
  struct PerQuery {
    uint32_t query = 0;
    std::vector<Sample> samples;                                     // [EntityIndex]
    std::unordered_map<SymbolId, std::vector<EntityIndex>> by_node;  // never iterated for output
  };
  /// A feature that stands behind `by`.
  struct Key {
    abi::EntityKindId kind = 0;
    int64_t bucket_ns = 0;
    std::vector<Sample> samples;  // [EntityIndex]
  };
  struct Group {
    int64_t bucket = INT64_MIN;
    std::vector<double> sorted;
  };
  /// Whose values are compared and when: what a query asks for one entity.
  struct Question {
    const abi::PeersQuery* plan = nullptr;
    uint64_t scope = 0;
    int64_t now_ns = 0;
    int64_t bucket = 0;
    std::vector<double> keys;  // of `by`, of the entity that asks
  };
  using GroupId = std::tuple<uint32_t, uint64_t, std::vector<double>>;

  static void put(std::vector<Sample>& samples, EntityIndex entity, int64_t bucket, double value);
  /// The newest value of a closed bucket at or after `oldest`.
  static bool closed_value(const std::vector<Sample>& samples, EntityIndex entity, int64_t bucket,
                           int64_t oldest, double& value);
  [[nodiscard]] uint64_t scope_of(const abi::PeersQuery& plan, SymbolId node, int64_t now) const;
  [[nodiscard]] std::vector<double> keys_of(const Question& asked, SymbolId node,
                                            EntityIndex entity) const;
  abi::Value statistic(const PerQuery& q, const Question& asked, EntityIndex self,
                       const std::vector<double>& sorted) const;
  void fill(const PerQuery& q, const Question& asked, Group& group) const;

  void save_samples(const std::vector<Sample>& samples, const std::vector<EntityIndex>& by_age,
                    bool of_symbols, PlanWriter& plan) const;
  /// Calls take(entity, sample) for each.
  template <typename Take>
  void load_samples(const std::vector<EntityIndex>& entities, bool of_symbols, PlanReader& plan,
                    Take&& take) const;
  [[nodiscard]] bool is_symbol_key(const abi::PeersKey& key) const;
  [[nodiscard]] std::string scope_text(const abi::PeersQuery& plan, uint64_t scope) const;
  /// kNoSymbol when there is no such scope any more.
  [[nodiscard]] uint64_t scope_named(const abi::PeersQuery& plan, std::string_view text,
                                     SymbolTable& symbols) const;

  ShardCore& core_;
  std::vector<PerQuery> queries_;                  // [query]
  std::vector<std::vector<uint32_t>> queries_of_;  // [FeatureId]
  std::vector<uint32_t> key_number_;               // [FeatureId] into keys_, or kNone32
  std::vector<Key> keys_;
  std::map<GroupId, Group> groups_;
};

}  // namespace reflex::eval
