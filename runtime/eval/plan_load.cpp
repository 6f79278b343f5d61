// The saved state of one signal, and of features that share one, into an engine: engine_state.h.
#include <algorithm>

#include "runtime/eval/engine_state.h"

namespace reflex::eval {
namespace {

/// Marks firings of a signal until a window has passed.
void incomplete_for(EngineParts& engine, abi::SignalId signal, int64_t window_ns) {
  const int64_t at_ns = std::max<int64_t>(engine.at_ns, 0);
  const int64_t until_ns = at_ns > INT64_MAX - window_ns ? INT64_MAX : at_ns + window_ns;
  for (auto& shard : engine.shards) {
    int64_t& own = shard->core().incomplete_until_ns[signal];
    own = std::max(own, until_ns);
  }
}

/// What is not of one key; every node shard has it. False: of another form, nothing to load.
bool load_plan(EngineParts& engine, abi::SignalId signal, std::string_view body, PlanReader& plan) {
  if (engine.program.global_signal(signal)) return engine.shards.back()->load_plan(signal, plan);
  const abi::CompiledPack& pack = engine.program.pack();
  for (size_t i = 1; i + 1 < engine.shards.size(); ++i) {
    PlanReader again(pack, body, *pack.symbols);
    if (!engine.shards[i]->load_plan(signal, again)) return false;
  }
  return engine.shards.front()->load_plan(signal, plan);
}

}  // namespace

void mark_incomplete(EngineParts& engine, const StateMatch& match,
                     const std::vector<int64_t>& signals_before,
                     const std::vector<int64_t>& features_before) {
  engine.feature_incomplete_ns = incomplete_until(match.features, features_before, engine.at_ns);
  std::vector<int64_t> signals = incomplete_until(match.signals, signals_before, engine.at_ns);
  spread_incomplete(engine.program, engine.feature_incomplete_ns, signals);
  for (auto& shard : engine.shards) shard->core().incomplete_until_ns = signals;
}

bool load_signal_state(EngineParts& engine, abi::SignalId signal, bool changed,
                       std::string_view body, const std::vector<EntityIndex>& entities) {
  const abi::CompiledPack& pack = engine.program.pack();
  PlanReader plan(pack, body, *pack.symbols);
  plan.at_ns = engine.at_ns;
  plan.changed = changed;
  if (!load_plan(engine, signal, body, plan)) return !plan.in.failed();
  if (plan.too_little) incomplete_for(engine, signal, pack.signals[signal].count.window_ns);
  uint64_t number = 0;
  while (!plan.in.failed() && plan.entity(entities.size(), number)) {
    engine.shard_of(signal, entities[number]).load(signal, entities[number], plan);
  }
  return !plan.in.failed() && plan.in.at_end();
}

bool load_feature_state(EngineParts& engine, const std::vector<abi::FeatureId>& members,
                        std::string_view body, const std::vector<EntityIndex>& entities) {
  const abi::CompiledPack& pack = engine.program.pack();
  const EntityTable& table = engine.program.tables()[pack.features[members[0]].entity_kind];
  const size_t node_shards = std::max<size_t>(engine.shards.size(), 2) - 1;
  // The member by which each shard knows the state; shards of nodes are alike.
  const auto member_of = [&](const Shard& shard) {
    const auto at = std::find_if(members.begin(), members.end(),
                                 [&](abi::FeatureId f) { return shard.has_feature(f); });
    const bool wanted = at != members.end() && !shard.features().follows(*at);
    return wanted ? *at : abi::kNone32;
  };
  Shard& global = *engine.shards.back();
  const abi::FeatureId by_node = member_of(*engine.shards.front());
  const abi::FeatureId globally = engine.shards.size() > 1 ? member_of(global) : abi::kNone32;
  PlanReader plan(pack, body, *pack.symbols);
  FeatureStore::Saved saved;
  uint64_t number = 0;
  while (plan.entity(entities.size(), number)) {
    FeatureStore::read(plan, pack.features[members[0]], saved);
    if (plan.in.failed()) break;
    const EntityIndex entity = entities[number];
    if (by_node != abi::kNone32 && table.shard_of(entity) + 1 <= node_shards) {
      engine.shards[table.shard_of(entity)]->features().load(by_node, entity, saved);
    }
    if (globally != abi::kNone32) global.features().load(globally, entity, saved);
  }
  return !plan.in.failed() && plan.in.at_end();
}

}  // namespace reflex::eval
