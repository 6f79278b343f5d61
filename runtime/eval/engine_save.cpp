// save_engine: see engine_state.h.
#include <algorithm>

#include "runtime/eval/engine_state.h"

namespace reflex::eval {
namespace {

// Entities are visited in blocks whose states fit in the second-level cache, so that a plan that
// few of them have is looked for in memory that is there. Why 512 KiB: half of a core's.
constexpr size_t kBlockBytes = size_t{512} << 10;
constexpr size_t kBlockMax = 64;

void save_shape(const abi::StateShape& shape, StateWriter& out) {
  for (const std::string* text : {&shape.keys, &shape.form, &shape.shape, &shape.exact}) {
    out.text(*text);
  }
  out.i64(shape.window_ns);
  out.i64(shape.samples);
}

class Saver {
 public:
  explicit Saver(const EngineParts& engine) : engine_(engine), pack_(engine.program.pack()) {}

  void run(StateWriter& out) {
    out.begin("eval");
    header(out);
    kinds(out);
    open_plans();
    for (size_t k = 0; k < ages_.size(); ++k) entities(k);
    signals(out);
    features(out);
    peers(out);
    near_misses(out);
    out.end();
  }

 private:
  void header(StateWriter& out) const {
    out.u64(kEngineStateVersion);
    out.text(pack_.set_sha256);
    out.i64(engine_.at_ns);
    out.u64(engine_.evictions);
    out.u64(engine_.state_evictions);
    uint64_t partials = 0;
    uint64_t unless = 0;
    for (const auto& shard : engine_.shards) {
      partials += shard->core().counters.partials_dropped;
      unless += shard->core().counters.unless_dropped;
    }
    out.u64(partials);
    out.u64(unless);
    // Every node shard drops the same shared ones.
    uint64_t shared = engine_.shards.front()->core().shared_unless_dropped;
    if (engine_.shards.size() > 1) shared += engine_.shards.back()->core().shared_unless_dropped;
    out.u64(shared);
  }

  void key(const EntityTable& table, const std::array<uint64_t, 3>& key, StateWriter& out) const {
    for (uint8_t i = 0; i < table.config().key_count; ++i) {
      if (table.config().is_symbol[i]) {
        out.symbol(static_cast<SymbolId>(key[i]));
      } else {
        out.i64(static_cast<int64_t>(key[i]));
      }
    }
  }

  void kinds(StateWriter& out) {
    const auto& tables = engine_.program.tables();
    out.u64(tables.size());
    for (size_t k = 0; k < tables.size(); ++k) {
      const EntityTable& table = tables[k];
      out.u64(table.config().key_count);
      for (uint8_t i = 0; i < table.config().key_count; ++i) {
        out.text(pack_.entity_kinds[k].keys[i]);
        out.flag(table.config().is_symbol[i]);
      }
      ages_.push_back(table.by_age());
      out.u64(ages_.back().size());
      uint64_t before = 0;
      for (const EntityIndex entity : ages_.back()) {
        key(table, table.key(entity), out);
        out.u64(table.last(entity) - before);
        before = table.last(entity);
      }
    }
  }

  void open_plans() {
    signals_of_.resize(ages_.size());
    carriers_of_.resize(ages_.size());
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
      signal_plans_.push_back(std::make_unique<PlanWriter>(pack_));
      const bool global = engine_.program.global_signal(s);
      const Shard& any = global ? *engine_.shards.back() : *engine_.shards.front();
      any.save_plan(s, *signal_plans_.back());
      signals_of_[pack_.signals[s].entity_kind].push_back(s);
    }
    state_number_.assign(pack_.features.size(), 0);
    carrier_plans_.resize(pack_.features.size());
    for (abi::FeatureId f = 0; f < pack_.features.size(); ++f) {
      if (engine_.carriers[f] != f) continue;
      carrier_plans_[f] = std::make_unique<PlanWriter>(pack_);
      carriers_of_[pack_.features[f].entity_kind].push_back(f);
      state_number_[f] = ++states_;
    }
    for (const auto& shard : engine_.shards) savings_.push_back(shard->begin_save());
  }

  void entities(size_t kind) {
    const EntityTable& table = engine_.program.tables()[kind];
    const std::vector<EntityIndex>& ages = ages_[kind];
    const uint64_t key_bytes =
        std::max<uint64_t>(1, engine_.shards.front()->bytes_per_key(table.config().kind));
    const size_t block = std::clamp<size_t>(kBlockBytes / key_bytes, 1, kBlockMax);
    for (size_t from = 0; from < ages.size(); from += block) {
      const size_t to = std::min(from + block, ages.size());
      for (const abi::SignalId s : signals_of_[kind]) {
        const bool global = engine_.program.global_signal(s);
        for (size_t i = from; i < to; ++i) {
          const size_t at = global ? engine_.shards.size() - 1 : table.shard_of(ages[i]);
          const Shard& shard = *engine_.shards[at];
          if (!shard.has_state(s, ages[i])) continue;
          signal_plans_[s]->entity(i);
          shard.save(s, ages[i], savings_[at], *signal_plans_[s]);
        }
      }
      for (const abi::FeatureId f : carriers_of_[kind]) {
        const bool by_node = engine_.shards.front()->has_feature(f);
        for (size_t i = from; i < to; ++i) {
          const Shard& shard =
              by_node ? *engine_.shards[table.shard_of(ages[i])] : *engine_.shards.back();
          if (!shard.features().has_any(f, ages[i])) continue;
          carrier_plans_[f]->entity(i);
          shard.features().save(f, ages[i], *carrier_plans_[f]);
        }
      }
    }
  }

  void signals(StateWriter& out) {
    out.u64(pack_.signals.size());
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
      const abi::SignalPlan& plan = pack_.signals[s];
      out.text(plan.name);
      save_shape(plan.state, out);
      out.u64(plan.bytes_per_key);
      out.u64(plan.entity_kind);
      out.i64(engine_.shards.front()->core().incomplete_until_ns[s]);
      uint64_t fired = 0;
      for (const auto& shard : engine_.shards) fired += shard->core().fired()[s];
      out.u64(fired);
      signal_plans_[s]->end_entities();
      out.text(signal_plans_[s]->out.take());
      signal_plans_[s].reset();
    }
  }

  void features(StateWriter& out) {
    const std::vector<abi::StateItem> named = abi::state_items(pack_);
    out.u64(pack_.features.size());
    size_t next = pack_.signals.size();  // state_items() has the named ones in this order
    for (abi::FeatureId f = 0; f < pack_.features.size(); ++f) {
      const abi::FeaturePlan& plan = pack_.features[f];
      out.text(plan.name);
      save_shape(plan.state, out);
      out.u64(plan.name.empty() ? 0 : named[next++].bytes_per_key);
      out.i64(engine_.feature_incomplete_ns[f]);
      const abi::FeatureId carrier = engine_.carriers[f];
      out.u64(carrier == abi::kNone32 ? 0 : state_number_[carrier]);
      out.flag(carrier == f);
    }
    out.u64(states_);
    for (abi::FeatureId f = 0; f < pack_.features.size(); ++f) {
      if (carrier_plans_[f] == nullptr) continue;
      out.u64(pack_.features[f].entity_kind);
      carrier_plans_[f]->end_entities();
      out.text(carrier_plans_[f]->out.take());
      carrier_plans_[f].reset();
    }
  }

  void peers(StateWriter& out) const {
    out.u64(pack_.peers.size());
    for (uint32_t q = 0; q < pack_.peers.size(); ++q) {
      const abi::PeersQuery& query = pack_.peers[q];
      const abi::EntityKindId kind = pack_.features[query.feature].entity_kind;
      out.u64(query.feature);
      out.text(query.scope);
      out.u64(static_cast<uint64_t>(query.stat));
      out.u64(query.at_least);
      out.i64(query.bucket_ns);
      out.u64(kind);
      out.u64(query.by.size());
      for (const abi::PeersKey& key : query.by) {
        out.flag(key.feature == abi::kNone32);
        if (key.feature == abi::kNone32) {
          out.symbol(key.label);
        } else {
          out.u64(key.feature);
        }
      }
      PlanWriter plan(pack_);
      engine_.shards.back()->peers().save(q, ages_[kind], engine_.at_ns, plan);
      out.text(plan.out.take());
    }
  }

  void near_misses(StateWriter& out) const {
    out.u64(engine_.near_misses.size());
    for (const NearMiss& miss : engine_.near_misses) {
      out.i64(miss.ts_ns);
      out.u64(miss.signal);
      out.u64(miss.steps_matched);
      const EntityTable& table = engine_.program.tables()[miss.entity.kind];
      key(table, miss.entity.values, out);
    }
  }

  const EngineParts& engine_;
  const abi::CompiledPack& pack_;
  std::vector<std::vector<EntityIndex>> ages_;              // [EntityKindId]
  std::vector<std::vector<abi::SignalId>> signals_of_;      // [EntityKindId]
  std::vector<std::vector<abi::FeatureId>> carriers_of_;    // [EntityKindId]
  std::vector<std::unique_ptr<PlanWriter>> signal_plans_;   // [SignalId]
  std::vector<std::unique_ptr<PlanWriter>> carrier_plans_;  // [FeatureId]; null: not a carrier
  std::vector<uint64_t> state_number_;                      // [FeatureId] of carriers, from 1
  uint64_t states_ = 0;
  std::vector<Shard::Saving> savings_;  // [shard]
};

}  // namespace

void save_engine(const EngineParts& engine, StateWriter& out) { Saver(engine).run(out); }

}  // namespace reflex::eval
