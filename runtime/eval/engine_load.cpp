// load_engine: see engine_state.h.
#include <algorithm>
#include <map>

#include "runtime/eval/engine_state.h"

namespace reflex::eval {
namespace {

struct SavedSignal {
  abi::StateItem item;
  uint64_t kind = 0;
  int64_t incomplete_ns = INT64_MIN;
  uint64_t fired = 0;
  std::string_view body;
};

struct SavedFeature {
  abi::StateItem item;
  int64_t incomplete_ns = INT64_MIN;
  uint64_t state = 0;  // 1 + number of SavedState; 0: none
  bool carries = false;
};

struct SavedState {  // of one feature or of several that share it
  uint64_t kind = 0;
  std::string_view body;
};

struct SavedKind {
  bool usable = false;  // the new set has it, with keys of the same form
  abi::EntityKindId id = 0;
  std::array<bool, 3> is_symbol{};
  uint8_t key_count = 0;
  std::vector<EntityIndex> entities;  // by number
};

void load_shape(StateReader& in, abi::StateShape& shape) {
  for (std::string* text : {&shape.keys, &shape.form, &shape.shape, &shape.exact}) {
    *text = in.text();
  }
  shape.window_ns = in.i64();
  shape.samples = in.i64();
}

bool is_kept(abi::Fate fate) { return fate == abi::Fate::kKept || fate == abi::Fate::kTrimmed; }

class Loader {
 public:
  Loader(EngineParts& engine, StateReader& in)
      : engine_(engine), pack_(engine.program.pack()), in_(in) {}

  bool run(std::vector<StateFate>* report) {
    if (!in_.enter("eval") || !header()) return false;
    kinds();
    read_signals();
    read_features();
    if (in_.failed()) return false;
    decide();
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) load_signal(s);
    load_features();
    load_peers();
    load_near_misses();
    if (in_.failed()) return false;
    in_.leave();
    for (auto& shard : engine_.shards) shard->end_load();
    keep_within_caps();
    if (report != nullptr) *report = std::move(report_);
    return !in_.failed();
  }

 private:
  struct Origin {  // of the state of a signal or feature of the new set
    size_t saved = SIZE_MAX;
    bool changed = true;  // itself or what it reads is not what it was
    int64_t incomplete_ns = INT64_MIN;
  };

  bool header() {
    if (in_.u64() != kEngineStateVersion) in_.fail();
    same_set_ = in_.text() == pack_.set_sha256;
    engine_.at_ns = in_.i64();
    engine_.evictions = in_.u64();
    engine_.state_evictions = in_.u64();
    ShardCore& core = engine_.shards.front()->core();
    core.counters.partials_dropped = in_.u64();
    core.counters.unless_dropped = in_.u64();
    core.shared_unless_dropped = in_.u64();
    return !in_.failed();
  }

  std::array<uint64_t, 3> key(const SavedKind& kind) {
    std::array<uint64_t, 3> key{};
    for (uint8_t i = 0; i < kind.key_count; ++i) {
      key[i] = kind.is_symbol[i] ? in_.symbol() : static_cast<uint64_t>(in_.i64());
    }
    return key;
  }

  void kinds() {
    kinds_.resize(in_.count());
    for (SavedKind& kind : kinds_) {
      kind.key_count = static_cast<uint8_t>(in_.bounded(3));
      std::vector<std::string> names;
      for (uint8_t i = 0; i < kind.key_count; ++i) {
        names.emplace_back(in_.text());
        kind.is_symbol[i] = in_.flag();
      }
      for (size_t k = 0; k < pack_.entity_kinds.size(); ++k) {
        if (pack_.entity_kinds[k].keys != names) continue;
        kind.id = static_cast<abi::EntityKindId>(k);
        const auto& config = engine_.program.tables()[k].config();
        kind.usable = config.is_symbol == kind.is_symbol;
      }
      load_keys(kind);
    }
  }

  void load_keys(SavedKind& kind) {
    const size_t count = in_.count(size_t{kind.key_count} + 1);
    kind.entities.reserve(count);
    uint64_t order = 0;
    for (size_t i = 0; i < count && !in_.failed(); ++i) {
      const auto values = key(kind);
      order += in_.u64();
      newest_order_ = std::max(newest_order_, order);
      if (in_.failed() || !kind.usable) continue;
      const EntityIndex entity = engine_.program.tables()[kind.id].restore(values, order);
      if (entity == kNoEntity) return in_.fail();  // the same key twice
      kind.entities.push_back(entity);
    }
  }

  void read_signals() {
    signals_.resize(in_.count());
    for (SavedSignal& s : signals_) {
      s.item.name = in_.text();
      load_shape(in_, s.item.shape);
      s.item.bytes_per_key = in_.u64();
      s.kind = in_.u64();
      s.incomplete_ns = in_.i64();
      s.fired = in_.u64();
      s.body = in_.text();
      if (s.kind >= kinds_.size()) in_.fail();
    }
  }

  void read_features() {
    features_.resize(in_.count());
    for (SavedFeature& f : features_) {
      f.item.is_feature = true;
      f.item.name = in_.text();
      load_shape(in_, f.item.shape);
      f.item.bytes_per_key = in_.u64();
      f.incomplete_ns = in_.i64();
      f.state = in_.u64();
      f.carries = in_.flag();
    }
    states_.resize(in_.count());
    for (SavedState& state : states_) {
      state.kind = in_.u64();
      state.body = in_.text();
      if (state.kind >= kinds_.size()) in_.fail();
    }
    for (const SavedFeature& f : features_) {
      if (f.state > states_.size()) in_.fail();
    }
  }

  /// Pairs old and new, as `reflex diff` does, and what the compiler made without a name.
  void decide() {
    std::map<std::string, size_t> signal_at;
    std::map<std::string, size_t> feature_at;
    std::vector<abi::StateItem> before;
    if (same_set_) adopt_exact();
    for (size_t i = 0; i < signals_.size(); ++i) {
      signal_at[signals_[i].item.name] = i;
      before.push_back(signals_[i].item);
    }
    for (size_t i = 0; i < features_.size(); ++i) {
      if (features_[i].item.name.empty()) continue;
      feature_at[features_[i].item.name] = i;
      before.push_back(features_[i].item);
    }
    signal_origin_.resize(pack_.signals.size());
    feature_origin_.resize(pack_.features.size());
    std::map<std::string, size_t> new_signal;
    std::map<std::string, size_t> new_feature;
    for (size_t s = 0; s < pack_.signals.size(); ++s) new_signal[pack_.signals[s].name] = s;
    for (size_t f = 0; f < pack_.features.size(); ++f) new_feature[pack_.features[f].name] = f;
    for (const abi::StateChange& change : abi::state_plan(before, abi::state_items(pack_))) {
      StateFate fate{change.name,     change.is_feature, change.fate,       change.why,
                     change.old_name, change.changed,    change.incomplete, 0};
      const std::string& old_name = change.old_name.empty() ? change.name : change.old_name;
      const auto& at = change.is_feature ? feature_at : signal_at;
      const auto saved = at.find(old_name);
      if (saved != at.end()) fate.bytes = bytes_of(change.is_feature, saved->second);
      if (is_kept(change.fate)) {
        const auto& to = change.is_feature ? new_feature : new_signal;
        adopt(change, saved->second, to.at(change.name));
      }
      report_.push_back(std::move(fate));
    }
    pair_unnamed(true);
    pair_unnamed(false);
    spread();
  }

  /// Hashes of constants are comparable within one process only; the same set has the same ones.
  void adopt_exact() {
    for (SavedSignal& s : signals_) {
      for (const abi::SignalPlan& plan : pack_.signals) {
        if (plan.name == s.item.name) s.item.shape.exact = plan.state.exact;
      }
    }
    for (size_t f = 0; f < features_.size() && f < pack_.features.size(); ++f) {
      features_[f].item.shape.exact = pack_.features[f].state.exact;
    }
  }

  [[nodiscard]] uint64_t bytes_of(bool is_feature, size_t saved) const {
    if (!is_feature) return signals_[saved].body.size();
    const SavedFeature& f = features_[saved];
    return f.carries && f.state != 0 ? states_[f.state - 1].body.size() : 0;
  }

  void adopt(const abi::StateChange& change, size_t saved, size_t to) {
    Origin& origin = change.is_feature ? feature_origin_[to] : signal_origin_[to];
    origin.saved = saved;
    origin.changed = change.changed;
    const abi::StateShape& old_shape =
        change.is_feature ? features_[saved].item.shape : signals_[saved].item.shape;
    const abi::StateShape& shape =
        change.is_feature ? pack_.features[to].state : pack_.signals[to].state;
    origin.incomplete_ns =
        change.is_feature ? features_[saved].incomplete_ns : signals_[saved].incomplete_ns;
    if (shape.window_ns > old_shape.window_ns && engine_.at_ns != INT64_MIN) {
      const int64_t missing_ns = shape.window_ns - old_shape.window_ns;
      origin.incomplete_ns =
          std::max(origin.incomplete_ns,
                   engine_.at_ns > INT64_MAX - missing_ns ? INT64_MAX : engine_.at_ns + missing_ns);
    }
  }

  /// Features without a name: first those that are the same, then those of one shape.
  void pair_unnamed(bool same) {
    std::vector<uint8_t> taken(features_.size(), 0);
    for (const Origin& origin : feature_origin_) {
      if (origin.saved != SIZE_MAX) taken[origin.saved] = 1;
    }
    for (size_t f = 0; f < pack_.features.size(); ++f) {
      if (!pack_.features[f].name.empty() || feature_origin_[f].saved != SIZE_MAX) continue;
      for (size_t i = 0; i < features_.size(); ++i) {
        if (taken[i] != 0 || !features_[i].item.name.empty()) continue;
        abi::StateChange change =
            abi::judge_state(features_[i].item.shape, pack_.features[f].state);
        change.is_feature = true;
        if (!is_kept(change.fate) || (same && change.changed)) continue;
        taken[i] = 1;
        adopt(change, i, f);
        break;
      }
    }
  }

  /// From features to the signals that read them.
  void spread() {
    for (size_t f = 0; f < feature_origin_.size(); ++f) {
      engine_.feature_incomplete_ns[f] = feature_origin_[f].incomplete_ns;
    }
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
      Origin& origin = signal_origin_[s];
      for (const abi::FeatureId f : engine_.program.needs_of(s)) {
        origin.changed = origin.changed || feature_origin_[f].changed;
        origin.incomplete_ns = std::max(origin.incomplete_ns, feature_origin_[f].incomplete_ns);
      }
      for (auto& shard : engine_.shards) {
        shard->core().incomplete_until_ns[s] = origin.incomplete_ns;
      }
    }
  }

  [[nodiscard]] bool fits(uint64_t kind, abi::EntityKindId id) const {
    return kinds_[kind].usable && kinds_[kind].id == id;
  }

  void load_signal(abi::SignalId signal) {
    const Origin& origin = signal_origin_[signal];
    if (origin.saved == SIZE_MAX || in_.failed()) return;
    const SavedSignal& saved = signals_[origin.saved];
    engine_.shards.front()->core().add_fired(signal, saved.fired);
    if (!fits(saved.kind, pack_.signals[signal].entity_kind)) return;
    const std::vector<EntityIndex>& entities = kinds_[saved.kind].entities;
    PlanReader plan(pack_, saved.body, in_.symbols());
    plan.at_ns = engine_.at_ns;
    plan.changed = origin.changed;
    if (!load_plan(signal, saved.body, plan)) {
      if (plan.in.failed()) in_.fail();
      return;
    }
    if (plan.too_little) incomplete_for(signal, pack_.signals[signal].count.window_ns);
    uint64_t number = 0;
    while (!plan.in.failed() && plan.entity(entities.size(), number)) {
      engine_.shard_of(signal, entities[number]).load(signal, entities[number], plan);
    }
    if (plan.in.failed() || !plan.in.at_end()) in_.fail();
  }

  /// Marks firings of a signal until a window has passed.
  void incomplete_for(abi::SignalId signal, int64_t window_ns) {
    const int64_t at_ns = std::max<int64_t>(engine_.at_ns, 0);
    const int64_t until_ns = at_ns > INT64_MAX - window_ns ? INT64_MAX : at_ns + window_ns;
    for (auto& shard : engine_.shards) {
      int64_t& own = shard->core().incomplete_until_ns[signal];
      own = std::max(own, until_ns);
    }
  }

  /// What is not of one key; every node shard has it. False: of another form, nothing to load.
  bool load_plan(abi::SignalId signal, std::string_view body, PlanReader& plan) {
    if (engine_.program.global_signal(signal)) {
      return engine_.shards.back()->load_plan(signal, plan);
    }
    for (size_t i = 1; i + 1 < engine_.shards.size(); ++i) {
      PlanReader again(pack_, body, in_.symbols());
      if (!engine_.shards[i]->load_plan(signal, again)) return false;
    }
    return engine_.shards.front()->load_plan(signal, plan);
  }

  void load_features() {
    for (abi::FeatureId carrier = 0; carrier < pack_.features.size(); ++carrier) {
      if (engine_.carriers[carrier] != carrier) continue;
      std::vector<abi::FeatureId> members;
      for (abi::FeatureId f = 0; f < pack_.features.size(); ++f) {
        if (engine_.carriers[f] == carrier) members.push_back(f);
      }
      // The one that saw most comes first: what it has is enough for all.
      std::stable_sort(members.begin(), members.end(), [&](abi::FeatureId a, abi::FeatureId b) {
        return saved_samples(a) > saved_samples(b);
      });
      for (const abi::FeatureId f : members) {
        const Origin& origin = feature_origin_[f];
        if (origin.saved == SIZE_MAX || features_[origin.saved].state == 0) continue;
        load_state(members, states_[features_[origin.saved].state - 1]);
        break;
      }
    }
  }

  [[nodiscard]] int64_t saved_samples(abi::FeatureId feature) const {
    const size_t saved = feature_origin_[feature].saved;
    return saved == SIZE_MAX ? -1 : features_[saved].item.shape.samples;
  }

  void load_state(const std::vector<abi::FeatureId>& members, const SavedState& state) {
    const abi::EntityKindId kind = pack_.features[members[0]].entity_kind;
    if (!fits(state.kind, kind) || in_.failed()) return;
    // The member by which each shard knows the state; shards of nodes are alike.
    const auto member_of = [&](const Shard& shard) {
      const auto at = std::find_if(members.begin(), members.end(),
                                   [&](abi::FeatureId f) { return shard.has_feature(f); });
      return at == members.end() ? abi::kNone32 : *at;
    };
    Shard& global = *engine_.shards.back();
    const abi::FeatureId by_node = member_of(*engine_.shards.front());
    const abi::FeatureId globally = engine_.shards.size() > 1 ? member_of(global) : abi::kNone32;
    const std::vector<EntityIndex>& entities = kinds_[state.kind].entities;
    const EntityTable& table = engine_.program.tables()[kind];
    PlanReader plan(pack_, state.body, in_.symbols());
    FeatureStore::Saved saved;
    uint64_t number = 0;
    while (plan.entity(entities.size(), number)) {
      FeatureStore::read(plan, pack_.features[members[0]], saved);
      if (plan.in.failed()) break;
      const EntityIndex entity = entities[number];
      if (by_node != abi::kNone32 && table.shard_of(entity) + 1 <= node_shards()) {
        engine_.shards[table.shard_of(entity)]->features().load(by_node, entity, saved);
      }
      if (globally != abi::kNone32) global.features().load(globally, entity, saved);
    }
    if (plan.in.failed() || !plan.in.at_end()) in_.fail();
  }

  [[nodiscard]] size_t node_shards() const {
    return engine_.shards.size() > 1 ? engine_.shards.size() - 1 : 1;
  }

  void load_peers() {
    struct Saved {
      size_t feature = 0;
      abi::PeersQuery query;
      uint64_t kind = 0;
      std::string_view body;
      bool taken = false;
    };
    std::vector<Saved> all(in_.count());
    for (Saved& s : all) {
      s.feature = in_.u64();
      s.query.scope = in_.text();
      s.query.stat = static_cast<abi::PeersStat>(in_.bounded(6));
      s.query.at_least = static_cast<uint32_t>(in_.bounded(UINT32_MAX));
      s.query.bucket_ns = in_.i64();
      s.kind = in_.u64();
      s.body = in_.text();
      if (s.kind >= kinds_.size()) return in_.fail();
    }
    for (uint32_t q = 0; q < pack_.peers.size() && !in_.failed(); ++q) {
      const abi::PeersQuery& query = pack_.peers[q];
      Saved* best = nullptr;  // the same query, else one of the same values
      for (Saved& s : all) {
        if (s.feature != feature_origin_[query.feature].saved || s.query.scope != query.scope ||
            s.query.bucket_ns != query.bucket_ns ||
            !fits(s.kind, pack_.features[query.feature].entity_kind)) {
          continue;
        }
        const bool same =
            !s.taken && s.query.stat == query.stat && s.query.at_least == query.at_least;
        if (best == nullptr || same) best = &s;
        if (same) break;
      }
      if (best == nullptr) continue;
      best->taken = true;
      PlanReader plan(pack_, best->body, in_.symbols());
      engine_.shards.back()->peers().load(q, kinds_[best->kind].entities, plan);
      if (plan.in.failed() || !plan.in.at_end()) in_.fail();
    }
  }

  void load_near_misses() {
    const size_t count = in_.count();
    for (size_t i = 0; i < count && !in_.failed(); ++i) {
      NearMiss miss;
      miss.ts_ns = in_.i64();
      const uint64_t saved = in_.u64();
      miss.steps_matched = static_cast<uint32_t>(in_.bounded(UINT32_MAX));
      if (in_.failed() || saved >= signals_.size()) return in_.fail();
      const SavedKind& kind = kinds_[signals_[saved].kind];
      miss.entity = {kind.id, kind.key_count, key(kind)};
      if (!kind.usable) continue;
      for (abi::SignalId s = 0; s < signal_origin_.size(); ++s) {
        if (signal_origin_[s].saved != saved) continue;
        miss.signal = s;
        engine_.near_misses.push_back(miss);
      }
    }
  }

  /// The new set may allow fewer keys.
  void keep_within_caps() {
    for (EntityTable& table : engine_.program.tables()) {
      while (table.size() > table.config().keys_max) {
        const EntityIndex victim = table.evict_oldest(newest_order_ + 1);
        for (auto& shard : engine_.shards) {
          shard->forget(table.config().kind, victim, newest_order_ + 1);
        }
        ++engine_.evictions;
      }
    }
  }

  EngineParts& engine_;
  const abi::CompiledPack& pack_;
  StateReader& in_;
  bool same_set_ = false;
  uint64_t newest_order_ = 0;
  std::vector<SavedKind> kinds_;
  std::vector<SavedSignal> signals_;
  std::vector<SavedFeature> features_;
  std::vector<SavedState> states_;
  std::vector<Origin> signal_origin_;   // [SignalId]
  std::vector<Origin> feature_origin_;  // [FeatureId]
  std::vector<StateFate> report_;
};

}  // namespace

bool load_engine(EngineParts& engine, StateReader& in, std::vector<StateFate>* report) {
  return Loader(engine, in).run(report);
}

}  // namespace reflex::eval
