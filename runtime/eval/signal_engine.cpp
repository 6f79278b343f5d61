// SignalEngine: the sequential stage (keys, evictions), the shards, and the merge of their firings.
#include "runtime/eval/signal_engine.h"

#include <algorithm>
#include <bit>

#include "runtime/base/check.h"
#include "runtime/eval/crew.h"
#include "runtime/eval/engine_state.h"
#include "runtime/eval/key_stage.h"
#include "runtime/eval/shard.h"
#include "runtime/eval/take_over.h"

namespace reflex::eval {

class SignalEngine::Impl {
 public:
  Impl(std::shared_ptr<const abi::CompiledPack> pack,
       std::shared_ptr<const topology::Topology> topology, const Options& options)
      : options_(options),
        // Why one: a stage is spread over processes, not over threads.
        node_shards_(options.stage == Stage::kWhole ? std::max(1u, options.threads) : 1),
        program_(std::move(pack), std::move(topology), node_shards_),
        keys_(program_, options_) {
    if (options.before != nullptr) {
      succession_ = std::make_unique<Succession>(
          find_succession(options.before->impl_->program_, program_, options.near_misses));
    }
    if (node_shards_ == 1) {
      const ShardRole role = options.stage == Stage::kNodes    ? ShardRole::kNode
                             : options.stage == Stage::kGlobal ? ShardRole::kGlobal
                                                               : ShardRole::kAll;
      add_shard(role);
    } else {
      for (unsigned i = 0; i < node_shards_; ++i) {
        add_shard(ShardRole::kNode);
      }
      add_shard(ShardRole::kGlobal);
      tasks_.resize(shards_.size());
    }
    options_.before = nullptr;
    measure_keys();
    feature_incomplete_ns_.resize(program_.pack().features.size(), INT64_MIN);
    for (const auto& keys : program_.keys()) slots_max_ = std::max(slots_max_, keys.slots.size());
    ids_.resize(slots_max_ + 1);
  }

  void process(std::span<const abi::Record* const> records, int64_t before_ns,
               std::vector<abi::Firing>& firings) {
    for (EntityTable& table : program_.tables()) table.release();
    at_ns_ = std::max(at_ns_, before_ns);
    if (node_shards_ == 1) {
      run_inline(records, before_ns);
    } else {
      run_parallel(records, before_ns);
    }
    merge(firings);
  }

  [[nodiscard]] bool wants(abi::KindId kind) const {
    return std::any_of(shards_.begin(), shards_.end(),
                       [kind](const auto& shard) { return shard->wants(kind); });
  }
  void sort(std::span<abi::Firing> firings) const {
    std::stable_sort(firings.begin(), firings.end(),
                     [this](const abi::Firing& a, const abi::Firing& b) { return before(a, b); });
  }

  [[nodiscard]] EngineParts parts() {
    return {program_,     shards_, carriers_,  feature_incomplete_ns_,
            near_misses_, at_ns_,  keys_.evictions, keys_.state_evictions};
  }

  bool load(StateReader& in, std::vector<StateFate>* report) {
    RFX_CHECK(at_ns_ == INT64_MIN && !succession_);  // nothing was processed yet
    EngineParts own = parts();
    if (!load_engine(own, in, report)) return false;
    keys_.count_state_bytes();
    return true;
  }

  [[nodiscard]] bool can_take_over(const Impl& old) const {
    if (!succession_ || shards_.size() != old.shards_.size() || options_.stage != Stage::kWhole ||
        options_.near_misses != old.options_.near_misses) {
      return false;
    }
    for (size_t i = 0; i < shards_.size(); ++i) {
      if (!shards_[i]->can_take_over(*old.shards_[i])) return false;
    }
    return true;
  }

  void take_over(Impl& old) {
    RFX_CHECK(at_ns_ == INT64_MIN && can_take_over(old));
    EngineParts own = parts();
    EngineParts there = old.parts();
    take_over_engine(own, there, *succession_);
    own_crew_ = std::move(old.own_crew_);
    if (crew_ == nullptr) crew_ = own_crew_.get();
    old.hollow_ = std::move(succession_);  // is freed with the rest of it
    keys_.count_state_bytes();
  }

  /// Calls visit(shard, entity) for each live entity that has state of a feature.
  template <typename Visit>
  void each_entity(abi::FeatureId feature, Visit&& visit) {
    const EntityTable& table = program_.tables()[program_.pack().features[feature].entity_kind];
    const bool by_node = shards_.front()->has_feature(feature);
    for (EntityIndex i = 0; i < table.end(); ++i) {
      if (!table.in_use(i)) continue;
      // The global shard may keep a copy of a feature of the node shards for its own signals.
      Shard& shard = by_node ? *shards_[table.shard_of(i)] : *shards_.back();
      if (shard.has_feature(feature) && shard.features().has_state(feature, i)) visit(shard, i);
    }
  }

  /// Calls visit for the entities of the feature's kind that have a known value.
  void read_feature(abi::FeatureId feature, std::span<const EntityIndex> entities, int64_t at_ns,
                    const FeatureVisit& visit) {
    const abi::FeaturePlan& plan = program_.pack().features[feature];
    const EntityTable& table = program_.tables()[plan.entity_kind];
    const bool by_node = shards_.front()->has_feature(feature);
    for (const EntityIndex i : entities) {
      Shard& shard = by_node ? *shards_[table.shard_of(i)] : *shards_.back();
      if (!shard.has_feature(feature) || !shard.features().has_state(feature, i)) continue;
      const abi::Value value = shard.features().read(feature, i, at_ns, ~uint64_t{0});
      if (value.known == 0) continue;
      visit(feature, table.entity(i), 0,
            plan.integer_result ? static_cast<double>(value.i64()) : value.f64());
    }
  }

  Options options_;
  unsigned node_shards_;
  Program program_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<NearMiss> near_misses_;
  KeyStage keys_;
  Crew* crew_ = nullptr;
  std::unique_ptr<Succession> succession_;  // until take_over(); null: it has no predecessor

 private:
  void add_shard(ShardRole role) {
    Shard::Before before;
    if (options_.before != nullptr) {
      const auto& there = options_.before->impl_->shards_;
      const size_t at = shards_.size();
      if (at < there.size()) {
        before = {there[at].get(), &succession_->signals, &succession_->features};
      }
    }
    shards_.push_back(std::make_unique<Shard>(program_, options_, role, before));
  }

  struct Item {  // one record for one shard, or an eviction before it
    const abi::Record* record = nullptr;
    size_t ids = 0;  // offset into batch_ids_
    abi::EntityKindId kind = 0;
    EntityIndex evicted = kNoEntity;
  };

  /// What a key of each kind takes must not depend on the number of shards: the plans of all of
  /// them together say it.
  void measure_keys() {
    std::unique_ptr<Shard> whole;
    if (node_shards_ > 1) {
      whole = std::make_unique<Shard>(program_, options_, ShardRole::kAll, Shard::Before{});
    }
    const Shard& all = whole ? *whole : *shards_.front();
    carriers_ = all.features().carriers();
    std::vector<uint64_t> bytes;
    for (size_t k = 0; k < program_.tables().size(); ++k) {
      bytes.push_back(all.bytes_per_key(static_cast<abi::EntityKindId>(k)));
    }
    keys_.set_key_bytes(std::move(bytes));
  }

  /// Records come in the order of time, not of memory.
  static void load_ahead(std::span<const abi::Record* const> records, size_t at) {
    constexpr size_t kAhead = 8;  // Why 8: some 100 ns, the time of one load from memory
    if (at + kAhead >= records.size()) return;
    const auto* next = reinterpret_cast<const char*>(records[at + kAhead]);
    __builtin_prefetch(next);
    __builtin_prefetch(next + 64);
  }

  void run_inline(std::span<const abi::Record* const> records, int64_t before_ns) {
    Shard& shard = *shards_[0];
    for (size_t at = 0; at < records.size(); ++at) {
      const abi::Record* record = records[at];
      load_ahead(records, at);
      if (!shard.wants(record->kind)) continue;
      keys_.resolve(*record, ids_.data(), [&](abi::EntityKindId kind, EntityIndex index) {
        shard.evict(kind, index, *record);
      });
      shard.stage(*record, ids_.data());
    }
    shard.flush(before_ns);
  }

  void run_parallel(std::span<const abi::Record* const> records, int64_t before_ns) {
    Shard& node_shard = *shards_[0];
    Shard& global_shard = *shards_.back();
    for (auto& task : tasks_) task.clear();
    batch_ids_.clear();
    for (size_t at = 0; at < records.size(); ++at) {
      const abi::Record* record = records[at];
      load_ahead(records, at);
      const bool nodes = node_shard.wants(record->kind);
      const bool global = global_shard.wants(record->kind);
      if (!nodes && !global) continue;
      keys_.resolve(*record, ids_.data(), [&](abi::EntityKindId kind, EntityIndex index) {
        for (auto& task : tasks_) task.push_back({record, 0, kind, index});
      });
      const size_t offset = batch_ids_.size();
      const KindKeys& keys = program_.keys()[record->kind];
      batch_ids_.insert(batch_ids_.end(), ids_.begin(),
                        ids_.begin() + static_cast<std::ptrdiff_t>(keys.slots.size()));
      if (global) tasks_.back().push_back({record, offset, 0, kNoEntity});
      if (!nodes) continue;
      if (keys.to_all_shards) {
        for (unsigned i = 0; i < node_shards_; ++i) {
          tasks_[i].push_back({record, offset, 0, kNoEntity});
        }
        continue;
      }
      uint64_t sent = 0;
      for (size_t i = 0; i < keys.slots.size(); ++i) {
        if (ids_[i] == kNoEntity) continue;
        const unsigned owner = program_.tables()[keys.slots[i].entity_kind].shard_of(ids_[i]);
        if (owner >= node_shards_ || ((sent >> owner) & 1u) != 0) continue;
        sent |= uint64_t{1} << owner;
        tasks_[owner].push_back({record, offset, 0, kNoEntity});
      }
    }
    before_ns_ = before_ns;
    if (crew_ == nullptr) {
      own_crew_ = std::make_unique<ThreadCrew>(node_shards_);
      crew_ = own_crew_.get();
    }
    crew_->run(tasks_.size(), run_task_);
  }

  void run_task(size_t number) {
    Shard& shard = *shards_[number];
    const bool global = number + 1 == shards_.size();
    std::vector<EntityIndex> own(slots_max_ + 1);
    for (const Item& item : tasks_[number]) {
      if (item.evicted != kNoEntity) {
        shard.evict(item.kind, item.evicted, *item.record);
        continue;
      }
      const KindKeys& keys = program_.keys()[item.record->kind];
      for (size_t i = 0; i < keys.slots.size(); ++i) {
        const EntityIndex id = batch_ids_[item.ids + i];
        const bool mine =
            id != kNoEntity &&
            (global || program_.tables()[keys.slots[i].entity_kind].shard_of(id) == number);
        own[i] = mine ? id : kNoEntity;
      }
      shard.stage(*item.record, own.data());
    }
    shard.flush(before_ns_);
  }

  [[nodiscard]] bool before(const abi::Firing& a, const abi::Firing& b) const {
    if (a.ts_ns != b.ts_ns) return a.ts_ns < b.ts_ns;
    if (a.phase != b.phase) return a.phase < b.phase;
    if (a.order != b.order) return a.order < b.order;
    if (a.signal != b.signal) return a.signal < b.signal;
    if (a.entity != b.entity) {
      return program_.tables()[a.entity.kind].compare(a.entity.values, b.entity.values) < 0;
    }
    if (a.onset_ns != b.onset_ns) return a.onset_ns < b.onset_ns;
    return a.change > b.change;  // an end before the start of the next one
  }

  void merge(std::vector<abi::Firing>& firings) {
    const size_t start = firings.size();
    for (auto& shard : shards_) {
      auto& own = shard->core().firings;
      firings.insert(firings.end(), std::make_move_iterator(own.begin()),
                     std::make_move_iterator(own.end()));
      own.clear();
      auto& misses = shard->core().near_misses;
      near_misses_.insert(near_misses_.end(), misses.begin(), misses.end());
      misses.clear();
    }
    sort(std::span(firings).subspan(start));
    if (!options_.near_misses) return;
    std::stable_sort(
        near_misses_.begin(), near_misses_.end(), [this](const NearMiss& a, const NearMiss& b) {
          if (a.ts_ns != b.ts_ns) return a.ts_ns < b.ts_ns;
          if (a.signal != b.signal) return a.signal < b.signal;
          return program_.tables()[a.entity.kind].compare(a.entity.values, b.entity.values) < 0;
        });
  }

  int64_t at_ns_ = INT64_MIN;                   // of the last process()
  std::vector<abi::FeatureId> carriers_;        // [FeatureId] FeatureStore::carriers() of all plans
  std::vector<int64_t> feature_incomplete_ns_;  // [FeatureId]
  size_t slots_max_ = 0;
  std::vector<EntityIndex> ids_;

  std::vector<std::vector<Item>> tasks_;
  std::vector<EntityIndex> batch_ids_;
  int64_t before_ns_ = 0;
  std::function<void(size_t)> run_task_ = [this](size_t number) { run_task(number); };
  std::unique_ptr<Crew> own_crew_;      // made when it is needed and none was lent
  std::unique_ptr<Succession> hollow_;  // of the engine that took this one over
};

SignalEngine::SignalEngine(std::shared_ptr<const abi::CompiledPack> pack,
                           std::shared_ptr<const topology::Topology> topology,
                           const Options& options)
    : impl_(std::make_unique<Impl>(std::move(pack), std::move(topology), options)) {}
SignalEngine::~SignalEngine() = default;

void SignalEngine::process(std::span<const abi::Record* const> records, int64_t watermark_ns,
                           std::vector<abi::Firing>& firings) {
  impl_->process(records, watermark_ns, firings);
}

void SignalEngine::finish(int64_t end_ns, std::vector<abi::Firing>& firings) {
  impl_->process({}, end_ns == INT64_MAX ? end_ns : end_ns + 1, firings);
}

void SignalEngine::sort(std::vector<abi::Firing>& firings) const { impl_->sort(firings); }

bool SignalEngine::wants(abi::KindId kind) const { return impl_->wants(kind); }

void SignalEngine::set_crew(Crew* crew) { impl_->crew_ = crew; }

void SignalEngine::set_tables(std::shared_ptr<const abi::TableSnapshot> tables) {
  impl_->program_.set_tables(std::move(tables));
}

void SignalEngine::sample_features(std::span<const abi::FeatureId> features, int64_t at_ns,
                                   const FeatureVisit& visit) {
  const Program& program = impl_->program_;
  for (const abi::FeatureId feature : features) {
    const abi::FeaturePlan& plan = program.pack().features[feature];
    const EntityTable& table = program.tables()[plan.entity_kind];
    const int node_at = program.node_position(plan.entity_kind);
    impl_->each_entity(feature, [&](Shard& shard, EntityIndex entity) {
      const abi::Value value = shard.features().read(feature, entity, at_ns, ~uint64_t{0});
      if (value.known == 0) return;
      const abi::EntityKey key = table.entity(entity);
      const SymbolId node =
          node_at < 0 ? kNoSymbol : static_cast<SymbolId>(key.values[static_cast<size_t>(node_at)]);
      visit(feature, key, program.class_of(node, at_ns),
            plan.integer_result ? static_cast<double>(value.i64()) : value.f64());
    });
  }
}

void SignalEngine::features_of(std::string_view key_name, uint64_t value, int64_t at_ns,
                               const FeatureVisit& visit) {
  const Program& program = impl_->program_;
  const abi::CompiledPack& pack = program.pack();
  for (abi::EntityKindId kind = 0; kind < pack.entity_kinds.size(); ++kind) {
    const auto& keys = pack.entity_kinds[kind].keys;
    if (keys.empty() || keys.front() != key_name) continue;
    const EntityTable& table = program.tables()[kind];
    std::vector<EntityIndex> found;
    for (EntityIndex i = 0; i < table.end(); ++i) {
      if (table.in_use(i) && table.key(i)[0] == value) found.push_back(i);
    }
    for (abi::FeatureId f = 0; !found.empty() && f < pack.features.size(); ++f) {
      if (pack.features[f].entity_kind == kind) impl_->read_feature(f, found, at_ns, visit);
    }
  }
}

size_t SignalEngine::entity_count(abi::FeatureId feature) const {
  size_t count = 0;
  impl_->each_entity(feature, [&](Shard&, EntityIndex) { ++count; });
  return count;
}

void SignalEngine::save(StateWriter& out) const { save_engine(impl_->parts(), out); }

bool SignalEngine::load(StateReader& in, std::vector<StateFate>* report) {
  return impl_->load(in, report);
}

bool SignalEngine::can_take_over(const SignalEngine& old) const {
  return impl_->can_take_over(*old.impl_);
}

void SignalEngine::take_over(SignalEngine& old) { impl_->take_over(*old.impl_); }

const std::vector<StateFate>& SignalEngine::fates() const {
  return impl_->succession_->match.report;
}

int64_t SignalEngine::incomplete_until(abi::SignalId signal) const {
  return impl_->shards_.front()->core().incomplete_until_ns[signal];
}

Counters SignalEngine::counters() const {
  Counters total;
  for (const auto& shard : impl_->shards_) {
    const Counters& c = shard->core().counters;
    total.evaluations += c.evaluations;
    total.leaf_hits += c.leaf_hits;
    total.partials_dropped += c.partials_dropped;
    total.unless_dropped += c.unless_dropped;
    total.state_bytes += shard->bytes();
  }
  // Every node shard drops the same shared ones: those of the first stand for all.
  total.unless_dropped += impl_->shards_.front()->core().shared_unless_dropped;
  if (impl_->shards_.size() > 1) {
    total.unless_dropped += impl_->shards_.back()->core().shared_unless_dropped;
  }
  for (uint64_t n : firings_by_signal()) total.firings += n;
  for (const auto& table : impl_->program_.tables()) total.keys += table.size();
  total.evictions = impl_->keys_.evictions;
  total.state_evictions = impl_->keys_.state_evictions;
  return total;
}

const std::vector<NearMiss>& SignalEngine::near_misses() const { return impl_->near_misses_; }

std::vector<uint64_t> SignalEngine::firings_by_signal() const {
  std::vector<uint64_t> total(impl_->program_.pack().signals.size());
  for (const auto& shard : impl_->shards_) {
    for (size_t s = 0; s < total.size(); ++s) total[s] += shard->core().fired()[s];
  }
  return total;
}

std::vector<uint64_t> SignalEngine::partials_by_signal() const {
  std::vector<uint64_t> total(impl_->program_.pack().signals.size());
  for (const auto& shard : impl_->shards_) {
    for (abi::SignalId s = 0; s < total.size(); ++s) total[s] += shard->partials(s);
  }
  return total;
}

std::vector<uint64_t> SignalEngine::keys_by_kind() const {
  std::vector<uint64_t> keys;
  for (const auto& table : impl_->program_.tables()) keys.push_back(table.size());
  return keys;
}

void SignalEngine::set_count_only(bool on) {
  for (auto& shard : impl_->shards_) shard->set_count_only(on);
}

std::vector<uint64_t> SignalEngine::entities_by_signal() const {
  std::vector<uint64_t> total(impl_->program_.pack().signals.size());
  for (const auto& shard : impl_->shards_) {
    for (size_t s = 0; s < total.size(); ++s) {
      for (uint64_t word : shard->core().entities()[s]) {
        total[s] += static_cast<uint64_t>(std::popcount(word));
      }
    }
  }
  return total;
}

}  // namespace reflex::eval
