// load_engine: see engine_state.h.
#include <algorithm>

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
    if (report != nullptr) *report = std::move(match_.report);
    return !in_.failed();
  }

 private:
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
    if (same_set_) adopt_exact();
    StateItems before;
    for (const SavedSignal& s : signals_) before.signals.push_back(s.item);
    for (const SavedFeature& f : features_) before.features.push_back(f.item);
    match_ = match_states(before, pack_);
    for (size_t row = 0; row < match_.report.size(); ++row) {
      const size_t saved = match_.report_saved[row];
      if (saved == SIZE_MAX) continue;
      match_.report[row].bytes = bytes_of(match_.report[row].is_feature, saved);
    }
    match_.spread_changes(engine_.program);
    std::vector<int64_t> signals;
    std::vector<int64_t> features;
    for (const SavedSignal& s : signals_) signals.push_back(s.incomplete_ns);
    for (const SavedFeature& f : features_) features.push_back(f.incomplete_ns);
    mark_incomplete(engine_, match_, signals, features);
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

  [[nodiscard]] bool fits(uint64_t kind, abi::EntityKindId id) const {
    return kinds_[kind].usable && kinds_[kind].id == id;
  }

  void load_signal(abi::SignalId signal) {
    const StateOrigin& origin = match_.signals[signal];
    if (origin.saved == SIZE_MAX || in_.failed()) return;
    const SavedSignal& saved = signals_[origin.saved];
    engine_.shards.front()->core().add_fired(signal, saved.fired);
    if (!fits(saved.kind, pack_.signals[signal].entity_kind)) return;
    const std::vector<EntityIndex>& entities = kinds_[saved.kind].entities;
    if (!load_signal_state(engine_, signal, origin.changed, saved.body, entities)) in_.fail();
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
        const size_t saved = match_.features[f].saved;
        if (saved == SIZE_MAX || features_[saved].state == 0) continue;
        const SavedState& state = states_[features_[saved].state - 1];
        if (!fits(state.kind, pack_.features[carrier].entity_kind)) break;
        if (!load_feature_state(engine_, members, state.body, kinds_[state.kind].entities)) {
          in_.fail();
        }
        break;
      }
    }
  }

  [[nodiscard]] int64_t saved_samples(abi::FeatureId feature) const {
    const size_t saved = match_.features[feature].saved;
    return saved == SIZE_MAX ? -1 : features_[saved].item.shape.samples;
  }

  void load_peers() {
    struct Saved {
      size_t feature = 0;
      abi::PeersQuery query;
      uint64_t kind = 0;
      struct Key {
        bool of_label = false;
        SymbolId label = kNoSymbol;
        uint64_t feature = 0;
      };
      std::vector<Key> by;
      std::string_view body;
      bool taken = false;
    };
    const auto same_keys = [&](const Saved& s, const abi::PeersQuery& query) {
      return std::equal(s.by.begin(), s.by.end(), query.by.begin(), query.by.end(),
                        [&](const Saved::Key& a, const abi::PeersKey& b) {
                          if (a.of_label != (b.feature == abi::kNone32)) return false;
                          return a.of_label ? a.label == b.label
                                            : a.feature == match_.features[b.feature].saved;
                        });
    };
    std::vector<Saved> all(in_.count());
    for (Saved& s : all) {
      s.feature = in_.u64();
      s.query.scope = in_.text();
      s.query.stat = static_cast<abi::PeersStat>(in_.bounded(6));
      s.query.at_least = static_cast<uint32_t>(in_.bounded(UINT32_MAX));
      s.query.bucket_ns = in_.i64();
      s.kind = in_.u64();
      s.by.resize(in_.count(2));
      for (auto& key : s.by) {
        key.of_label = in_.flag();
        if (key.of_label) {
          key.label = in_.symbol();
        } else {
          key.feature = in_.u64();
        }
      }
      s.body = in_.text();
      if (s.kind >= kinds_.size()) return in_.fail();
    }
    for (uint32_t q = 0; q < pack_.peers.size() && !in_.failed(); ++q) {
      const abi::PeersQuery& query = pack_.peers[q];
      Saved* best = nullptr;  // the same query, else one of the same values
      for (Saved& s : all) {
        if (s.feature != match_.features[query.feature].saved || s.query.scope != query.scope ||
            s.query.bucket_ns != query.bucket_ns || !same_keys(s, query) ||
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
      for (abi::SignalId s = 0; s < match_.signals.size(); ++s) {
        if (match_.signals[s].saved != saved) continue;
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
  StateMatch match_;
};

}  // namespace

bool load_engine(EngineParts& engine, StateReader& in, std::vector<StateFate>* report) {
  return Loader(engine, in).run(report);
}

}  // namespace reflex::eval
