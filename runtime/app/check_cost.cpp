// What a pack set costs before it runs: `reflex check --cost`.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/app/check_parts.h"

namespace reflex::app {
namespace {

// Source: ARCHITECTURE.md section 9, a predicate in JIT code on the machine named there.
constexpr double kNsPerEvaluator = 6;

struct KindCost {
  size_t evaluators = 0;  // (leaf, owner) pairs
  size_t leaves = 0;      // predicates: each is evaluated once, whoever shares it
  size_t always = 0;      // predicates that no index skips
};

std::vector<KindCost> kind_costs(const abi::CompiledPack& pack) {
  std::vector<KindCost> costs(pack.kinds.size());
  for (const auto& leaf : pack.leaves) {
    KindCost& cost = costs[leaf.kind];
    cost.evaluators += leaf.owners.size();
    cost.leaves += 1;
    cost.always += leaf.constraints.empty() ? 1 : 0;
  }
  return costs;
}

unsigned partials_of(const abi::SignalPlan& s) {
  const bool many = s.shape == abi::SignalShape::kSequence && s.sequence.steps.size() > 1;
  return many ? s.sequence.partials_max : 0;
}

std::string entity_name(const abi::CompiledPack& pack, abi::EntityKindId kind) {
  std::string text;
  for (const auto& key : pack.entity_kinds[kind].keys) text += (text.empty() ? "" : ", ") + key;
  return pack.entity_kinds[kind].keys.size() == 1 ? text : "(" + text + ")";
}

/// Bytes of one key of each entity kind, all signals on it together.
std::map<std::string, uint64_t> bytes_by_entity(const abi::CompiledPack& pack) {
  std::map<std::string, uint64_t> bytes;
  for (const auto& s : pack.signals) bytes[entity_name(pack, s.entity_kind)] += s.bytes_per_key;
  return bytes;
}

void print_json(const abi::CompiledPack& pack) {
  using Json = nlohmann::ordered_json;
  const auto costs = kind_costs(pack);
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].leaves == 0) continue;
    fmt::print("{}\n",
               Json{{"kind", pack.kinds[i].name},
                    {"evaluators", costs[i].evaluators},
                    {"predicates", costs[i].leaves},
                    {"always", costs[i].always},
                    {"ns_per_event_max", static_cast<double>(costs[i].leaves) * kNsPerEvaluator}}
                   .dump());
  }
  for (const auto& s : pack.signals) {
    fmt::print("{}\n", Json{{"signal", s.name},
                            {"entity", entity_name(pack, s.entity_kind)},
                            {"bytes_per_key", s.bytes_per_key},
                            {"partials_max", partials_of(s)},
                            {"horizon_s", static_cast<double>(s.horizon_ns) / 1e9}}
                           .dump());
  }
  for (const auto& [entity, bytes] : bytes_by_entity(pack)) {
    fmt::print("{}\n", Json{{"entity", entity},
                            {"bytes_per_key", bytes},
                            {"keys_max", pack.limits.keys_max},
                            {"state_bytes_max", bytes * pack.limits.keys_max}}
                           .dump());
  }
}

}  // namespace

void print_cost(const abi::CompiledPack& pack, bool json) {
  if (json) return print_json(pack);
  const auto costs = kind_costs(pack);
  fmt::print("{:<32} {:>10} {:>10} {:>8} {:>12}\n", "event kind", "evaluators", "predicates",
             "always", "<= ns/event");
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].leaves == 0) continue;
    fmt::print("{:<32} {:>10} {:>10} {:>8} {:>12.0f}\n", pack.kinds[i].name, costs[i].evaluators,
               costs[i].leaves, costs[i].always,
               static_cast<double>(costs[i].leaves) * kNsPerEvaluator);
  }
  fmt::print("\n{:<44} {:<14} {:>10} {:>9} {:>10}\n", "signal", "on", "bytes/key", "partials",
             "horizon s");
  for (const auto& s : pack.signals) {
    fmt::print("{:<44} {:<14} {:>10} {:>9} {:>10}\n", s.name, entity_name(pack, s.entity_kind),
               s.bytes_per_key, partials_of(s), s.horizon_ns / 1'000'000'000);
  }
  fmt::print("\n{:<44} {:>10} {:>12} {:>16}\n", "all signals on", "bytes/key", "keys at most",
             "MiB at most");
  for (const auto& [entity, bytes] : bytes_by_entity(pack)) {
    fmt::print("{:<44} {:>10} {:>12} {:>16.1f}\n", entity, bytes, pack.limits.keys_max,
               static_cast<double>(bytes * pack.limits.keys_max) / (1 << 20));
  }
}

}  // namespace reflex::app
