// take_over_engine: see take_over.h.
#include "runtime/eval/take_over.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/base/check.h"

namespace reflex::eval {
namespace {

bool same_captures(const abi::StepPlan& a, const abi::StepPlan& b) {
  return a.kind == b.kind &&
         std::equal(a.captures.begin(), a.captures.end(), b.captures.begin(), b.captures.end(),
                    [](const abi::Capture& x, const abi::Capture& y) {
                      return x.slot == y.slot && x.index == y.index;
                    });
}

/// What partial matches hold is the same: StateShape::exact says what it means, not where it lies.
bool same_memory(const abi::SignalPlan& a, const abi::SignalPlan& b) {
  if (a.shape != b.shape) return false;
  const abi::SequencePlan& x = a.sequence;
  const abi::SequencePlan& y = b.sequence;
  return x.capture_count == y.capture_count &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end(),
                    same_captures) &&
         std::equal(x.unless.begin(), x.unless.end(), y.unless.begin(), y.unless.end(),
                    [](const abi::UnlessPlan& u, const abi::UnlessPlan& v) {
                      return u.deferred == v.deferred && u.shared == v.shared && u.kind == v.kind;
                    });
}

/// What a signal has kept is what it would have after it was saved and loaded, though it has changed:
/// limits and windows are asked when the next event comes.
bool keeps_states(const abi::SignalPlan& a, const abi::SignalPlan& b, bool near_misses) {
  if (a.shape == abi::SignalShape::kCondition) return true;
  if (a.shape == abi::SignalShape::kCount) return CountStates::same_states(a.count, b.count);
  if (near_misses && a.sequence.within_ns != b.sequence.within_ns) return false;
  return std::equal(a.sequence.steps.begin(), a.sequence.steps.end(), b.sequence.steps.begin(),
                    b.sequence.steps.end(), [](const abi::StepPlan& x, const abi::StepPlan& y) {
                      return x.absent_ns == y.absent_ns;  // timers run to it
                    });
}

class TakeOver {
 public:
  TakeOver(EngineParts& engine, EngineParts& old, const Succession& succession)
      : engine_(engine),
        old_(old),
        succession_(succession),
        match_(succession.match),
        pack_(engine.program.pack()) {}

  void run() {
    write_signals();
    write_features();
    move();
    const auto& old_until = old_.shards.front()->core().incomplete_until_ns;
    mark_incomplete(engine_, match_, old_until, old_.feature_incomplete_ns);
    read();
    take_near_misses();
  }

 private:
  struct OfSignal {
    abi::SignalId signal = 0;
    std::string body;
  };
  struct OfFeatures {
    std::vector<abi::FeatureId> members;
    std::string body;
  };

  /// Of the signals that are kept and do not stay.
  void write_signals() {
    std::vector<uint8_t> written(pack_.signals.size(), 0);
    bool any = false;
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
      written[s] = match_.signals[s].saved == s && succession_.signals[s] == 0 ? 1 : 0;
      any = any || written[s] != 0;
    }
    if (!any) return;
    std::vector<Shard::Saving> savings;
    for (const auto& shard : old_.shards) savings.push_back(shard->begin_save(written));
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
      if (written[s] != 0) signals_.push_back({s, written_signal(s, savings)});
    }
  }

  [[nodiscard]] std::string written_signal(abi::SignalId s,
                                           const std::vector<Shard::Saving>& savings) const {
    const abi::CompiledPack& pack = old_.program.pack();
    const bool global = old_.program.global_signal(s);
    const EntityTable& table = old_.program.tables()[pack.signals[s].entity_kind];
    PlanWriter plan(pack);
    (global ? *old_.shards.back() : *old_.shards.front()).save_plan(s, plan);
    for (EntityIndex i = 0; i < table.end(); ++i) {
      if (!table.in_use(i)) continue;
      const size_t at = global ? old_.shards.size() - 1 : table.shard_of(i);
      const Shard& shard = *old_.shards[at];
      if (!shard.has_state(s, i)) continue;
      plan.entity(i);
      shard.save(s, i, savings[at], plan);
    }
    plan.end_entities();
    return plan.out.take();
  }

  /// Of the states of features that some shard has not.
  void write_features() {
    std::map<abi::FeatureId, std::vector<abi::FeatureId>> members;  // by carrier
    for (abi::FeatureId f = 0; f < pack_.features.size(); ++f) {
      if (engine_.carriers[f] != abi::kNone32) members[engine_.carriers[f]].push_back(f);
    }
    for (auto& [carrier, list] : members) {
      const bool needed = std::any_of(engine_.shards.begin(), engine_.shards.end(), [&](auto& s) {
        return std::any_of(list.begin(), list.end(), [&](abi::FeatureId f) {
          return s->has_feature(f) && !s->features().follows(f);
        });
      });
      if (!needed) continue;
      // The one that saw most comes first, as in load_engine().
      std::stable_sort(list.begin(), list.end(), [&](abi::FeatureId a, abi::FeatureId b) {
        return samples_there(a) > samples_there(b);
      });
      for (const abi::FeatureId f : list) {
        const size_t there = match_.features[f].saved;
        if (there == SIZE_MAX || old_.carriers[there] == abi::kNone32) continue;
        features_.push_back({list, written_feature(old_.carriers[there])});
        break;
      }
    }
  }

  [[nodiscard]] int64_t samples_there(abi::FeatureId feature) const {
    const size_t there = match_.features[feature].saved;
    return there == SIZE_MAX ? -1 : old_.program.pack().features[there].state.samples;
  }

  [[nodiscard]] std::string written_feature(abi::FeatureId carrier) const {
    const abi::CompiledPack& pack = old_.program.pack();
    const EntityTable& table = old_.program.tables()[pack.features[carrier].entity_kind];
    const bool by_node = old_.shards.front()->has_feature(carrier);
    PlanWriter plan(pack);
    for (EntityIndex i = 0; i < table.end(); ++i) {
      if (!table.in_use(i)) continue;
      const Shard& shard = by_node ? *old_.shards[table.shard_of(i)] : *old_.shards.back();
      if (!shard.features().has_any(carrier, i)) continue;
      plan.entity(i);
      shard.features().save(carrier, i, plan);
    }
    plan.end_entities();
    return plan.out.take();
  }

  void move() {
    engine_.program.tables().swap(old_.program.tables());
    engine_.at_ns = old_.at_ns;
    engine_.evictions = old_.evictions;
    engine_.state_evictions = old_.state_evictions;
    for (size_t i = 0; i < engine_.shards.size(); ++i) {
      engine_.shards[i]->take_over(*old_.shards[i],
                                   {succession_.signals, succession_.conditions,
                                    succession_.peers, engine_.at_ns});
      for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
        if (match_.signals[s].saved != s) engine_.shards[i]->core().forget_fired(s);
      }
    }
  }

  void read() {
    std::vector<EntityIndex> all;  // a number is an index here
    const auto entities_of = [&](abi::EntityKindId kind) -> const std::vector<EntityIndex>& {
      all.resize(engine_.program.tables()[kind].end());
      std::iota(all.begin(), all.end(), 0u);
      return all;
    };
    for (const OfSignal& s : signals_) {
      const auto& entities = entities_of(pack_.signals[s.signal].entity_kind);
      RFX_CHECK(load_signal_state(engine_, s.signal, match_.signals[s.signal].changed, s.body,
                                  entities));
    }
    for (const OfFeatures& f : features_) {
      const auto& entities = entities_of(pack_.features[f.members[0]].entity_kind);
      RFX_CHECK(load_feature_state(engine_, f.members, f.body, entities));
    }
    for (auto& shard : engine_.shards) shard->end_load();
  }

  void take_near_misses() {
    engine_.near_misses = std::move(old_.near_misses);
    std::erase_if(engine_.near_misses, [&](const NearMiss& miss) {
      return match_.signals[miss.signal].saved != miss.signal;
    });
  }

  EngineParts& engine_;
  EngineParts& old_;
  const Succession& succession_;
  const StateMatch& match_;
  const abi::CompiledPack& pack_;
  std::vector<OfSignal> signals_;
  std::vector<OfFeatures> features_;
};

}  // namespace

Succession find_succession(const Program& before, const Program& after, bool near_misses) {
  const abi::CompiledPack& pack = after.pack();
  Succession found;
  found.match = match_states(items_of(before.pack()), pack);
  const StateMatch own = found.match;  // of each alone
  found.match.spread_changes(after);
  found.signals.assign(pack.signals.size(), 0);
  found.conditions.assign(pack.signals.size(), 0);
  found.features.assign(pack.features.size(), 0);
  for (abi::SignalId s = 0; s < pack.signals.size(); ++s) {
    const abi::SignalPlan& was = before.pack().signals[s];
    const abi::SignalPlan& now = pack.signals[s];
    found.signals[s] = own.signals[s].saved == s && same_memory(was, now) &&
                       (!own.signals[s].changed || keeps_states(was, now, near_misses));
    // What reads something that has changed keeps what it saw, but for conditions.
    found.conditions[s] = now.shape == abi::SignalShape::kCondition && found.signals[s] != 0 &&
                          found.match.signals[s].changed;
  }
  for (abi::FeatureId f = 0; f < pack.features.size(); ++f) {
    found.features[f] = own.features[f].saved == f && !own.features[f].changed;
  }
  for (const abi::PeersQuery& query : pack.peers) {
    bool stays = found.match.features[query.feature].saved == query.feature;
    for (const abi::PeersKey& key : query.by) {
      stays = stays && (key.feature == abi::kNone32 ||
                        found.match.features[key.feature].saved == key.feature);
    }
    found.peers.push_back(stays);
  }
  return found;
}

void take_over_engine(EngineParts& engine, EngineParts& old, const Succession& succession) {
  TakeOver(engine, old, succession).run();
}

}  // namespace reflex::eval
