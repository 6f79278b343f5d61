// Peers: see peers.h.
#include "runtime/eval/peers.h"

#include <algorithm>
#include <cmath>

namespace reflex::eval {
namespace {

int64_t bucket_of(int64_t ts, int64_t width) {
  return ts >= 0 ? ts / width : -((-ts + width - 1) / width);
}

/// A sorted vector seen without one element.
struct Others {
  const std::vector<double>& all;
  size_t skip;
  [[nodiscard]] size_t size() const { return skip < all.size() ? all.size() - 1 : all.size(); }
  double operator[](size_t i) const { return all[i < skip ? i : i + 1]; }
};

/// Lower median of |x - center|: walks outwards from the center.
double absolute_deviation(const Others& x, double center) {
  size_t right = 0;
  while (right < x.size() && x[right] < center) ++right;
  size_t left = right;
  double deviation = 0;
  for (size_t taken = 0; taken < (x.size() + 1) / 2; ++taken) {
    const bool have_right = right < x.size();
    const bool have_left = left > 0;
    if (have_right && (!have_left || x[right] - center <= center - x[left - 1])) {
      deviation = x[right++] - center;
    } else {
      deviation = center - x[--left];
    }
  }
  return deviation;
}

}  // namespace

Peers::Peers(ShardCore& core) : core_(core) {
  queries_of_.resize(core.pack.features.size());
  queries_.resize(core.pack.peers.size());
  for (uint32_t q = 0; q < queries_.size(); ++q) {
    queries_[q].query = q;
    queries_of_[core.pack.peers[q].feature].push_back(q);
  }
}

void Peers::note(abi::FeatureId feature, EntityIndex entity, int64_t ts_ns, abi::Value value) {
  if (value.known == 0) return;
  const abi::FeaturePlan& plan = core_.pack.features[feature];
  const double v = plan.integer_result ? static_cast<double>(value.i64()) : value.f64();
  const int position = core_.program.node_position(plan.entity_kind);
  if (position < 0) return;
  const auto& key = core_.program.tables()[plan.entity_kind].key(entity);
  const auto node = static_cast<SymbolId>(key[static_cast<size_t>(position)]);
  for (uint32_t number : queries_of_[feature]) {
    PerQuery& q = queries_[number];
    if (entity >= q.samples.size()) q.samples.resize(size_t{entity} * 2 + 16);
    Sample& s = q.samples[entity];
    const int64_t bucket = bucket_of(ts_ns, core_.pack.peers[number].bucket_ns);
    if (s.bucket == INT64_MIN) q.by_node[node].push_back(entity);
    if (s.bucket != bucket) {
      s.bucket_before = s.bucket;
      s.value_before = s.value;
      s.bucket = bucket;
    }
    s.value = v;
  }
}

bool Peers::closed_value(const PerQuery& q, EntityIndex entity, int64_t bucket,
                         double& value) const {
  if (entity >= q.samples.size()) return false;
  const Sample& s = q.samples[entity];
  const bool newest_closed = s.bucket < bucket;
  const int64_t from = newest_closed ? s.bucket : s.bucket_before;
  if (from == INT64_MIN || from < bucket - kCarryBuckets) return false;
  value = newest_closed ? s.value : s.value_before;
  return true;
}

uint64_t Peers::scope_of(const abi::PeersQuery& plan, SymbolId node, int64_t now) const {
  const topology::Topology& topology = core_.program.topology();
  if (plan.scope == "job") return topology.job_of(node, now);
  if (plan.scope == "class") return uint64_t{topology.hw_class(node, now)} + 1;
  const SymbolId label = core_.pack.symbols->find(plan.scope);
  return label == kNoSymbol ? kNoSymbol : topology.label(node, label, now);
}

void Peers::fill(PerQuery& q, const abi::PeersQuery& plan, uint64_t scope, int64_t now_ns,
                 int64_t bucket, Group& group) const {
  group.bucket = bucket;
  group.sorted.clear();
  const topology::Topology& topology = core_.program.topology();
  const auto take = [&](const std::vector<EntityIndex>& entities) {
    for (EntityIndex e : entities) {
      double v = 0;
      if (closed_value(q, e, bucket, v)) group.sorted.push_back(v);
    }
  };
  if (plan.scope == "class") {
    for (const auto& [node, entities] : q.by_node) {  // order does not matter: sorted below
      if (uint64_t{topology.hw_class(node, now_ns)} + 1 == scope) take(entities);
    }
  } else {
    const auto symbol = static_cast<SymbolId>(scope);
    const std::vector<SymbolId> nodes =
        plan.scope == "job"
            ? topology.nodes_of(symbol, now_ns)
            : topology.members(core_.pack.symbols->find(plan.scope), symbol, now_ns);
    for (SymbolId node : nodes) {
      const auto it = q.by_node.find(node);
      if (it != q.by_node.end()) take(it->second);
    }
  }
  std::sort(group.sorted.begin(), group.sorted.end());
}

abi::Value Peers::query(const abi::EvalContext& context, const Site& site, uint32_t number) {
  if (number >= queries_.size()) return abi::Value::unknown();
  PerQuery& q = queries_[number];
  const abi::PeersQuery& plan = core_.pack.peers[number];
  const abi::EntityKindId kind = core_.pack.features[plan.feature].entity_kind;
  const int position = core_.program.node_position(site.kind);
  if (position < 0) return abi::Value::unknown();
  const auto node = static_cast<SymbolId>(context.entity[position]);
  const int64_t bucket = bucket_of(context.now_ns, plan.bucket_ns);
  const uint64_t scope = scope_of(plan, node, context.now_ns);
  if (scope == 0) return abi::Value::unknown();
  if (groups_.size() > 10'000) groups_.clear();  // groups of jobs that are long over
  Group& group = groups_[{number, scope}];
  if (group.bucket != bucket) fill(q, plan, scope, context.now_ns, bucket, group);

  const EntityIndex self = core_.project(site, kind);
  size_t skip = group.sorted.size();
  double own = 0;
  const bool has_own = self != kNoEntity && closed_value(q, self, bucket, own);
  if (has_own) {
    const auto at = std::lower_bound(group.sorted.begin(), group.sorted.end(), own);
    if (at != group.sorted.end() && *at == own)
      skip = static_cast<size_t>(at - group.sorted.begin());
  }
  const Others x{group.sorted, skip};
  const size_t n = x.size();
  if (plan.stat == abi::PeersStat::kCount) return abi::Value::of(static_cast<double>(n));
  if (n == 0 || n < plan.at_least) return abi::Value::unknown();
  switch (plan.stat) {
    case abi::PeersStat::kMedian:
      return abi::Value::of(x[(n - 1) / 2]);
    case abi::PeersStat::kMad:
      return abi::Value::of(absolute_deviation(x, x[(n - 1) / 2]));
    case abi::PeersStat::kMin:
      return abi::Value::of(x[0]);
    case abi::PeersStat::kMax:
      return abi::Value::of(x[n - 1]);
    case abi::PeersStat::kMean: {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += x[i];
      return abi::Value::of(sum / static_cast<double>(n));
    }
    case abi::PeersStat::kRank: {
      if (!has_own) return abi::Value::unknown();
      const auto above =
          group.sorted.end() - std::upper_bound(group.sorted.begin(), group.sorted.end(), own);
      return abi::Value::of(static_cast<double>(above + 1));
    }
    case abi::PeersStat::kCount:
      break;
  }
  return abi::Value::unknown();
}

void Peers::reset_entity(abi::EntityKindId kind, EntityIndex entity) {
  for (PerQuery& q : queries_) {
    if (core_.pack.features[core_.pack.peers[q.query].feature].entity_kind != kind) continue;
    if (entity < q.samples.size()) q.samples[entity] = Sample{};
    for (auto& [node, entities] : q.by_node) std::erase(entities, entity);
  }
}

std::string Peers::scope_text(const abi::PeersQuery& plan, uint64_t scope) const {
  if (plan.scope == "class") return core_.pack.classes[scope - 1].name;
  return std::string(core_.pack.symbols->name(static_cast<SymbolId>(scope)));
}

uint64_t Peers::scope_named(const abi::PeersQuery& plan, std::string_view text,
                            SymbolTable& symbols) const {
  if (plan.scope != "class") return symbols.intern(text);
  for (size_t c = 0; c < core_.pack.classes.size(); ++c) {
    if (core_.pack.classes[c].name == text) return c + 1;
  }
  return kNoSymbol;
}

void Peers::save(uint32_t query, const std::vector<EntityIndex>& by_age, int64_t at_ns,
                 PlanWriter& plan) const {
  const PerQuery& q = queries_[query];
  const abi::PeersQuery& own = core_.pack.peers[query];
  StateWriter& out = plan.out;
  for (size_t number = 0; number < by_age.size(); ++number) {
    const EntityIndex entity = by_age[number];
    if (entity >= q.samples.size() || q.samples[entity].bucket == INT64_MIN) continue;
    const Sample& s = q.samples[entity];
    plan.entity(number);
    out.i64(s.bucket);
    out.f64(s.value);
    out.flag(s.bucket_before != INT64_MIN);
    if (s.bucket_before == INT64_MIN) continue;
    out.i64(s.bucket_before);
    out.f64(s.value_before);
  }
  plan.end_entities();
  std::map<std::string, const Group*> groups;  // by name: ids depend on thread timing
  for (auto at = groups_.lower_bound({query, 0}); at != groups_.end() && at->first.first == query;
       ++at) {
    groups.emplace(scope_text(own, at->first.second), &at->second);
  }
  const int64_t running = bucket_of(at_ns, own.bucket_ns);
  out.u64(groups.size());
  for (const auto& [name, group] : groups) {
    out.text(name);
    const bool past = group->bucket < running;
    out.flag(past);
    if (past) continue;
    out.i64(group->bucket);
    out.u64(group->sorted.size());
    for (const double v : group->sorted) out.f64(v);
  }
}

void Peers::load(uint32_t query, const std::vector<EntityIndex>& entities, PlanReader& plan) {
  PerQuery& q = queries_[query];
  const abi::PeersQuery& own = core_.pack.peers[query];
  const abi::EntityKindId kind = core_.pack.features[own.feature].entity_kind;
  const int position = core_.program.node_position(kind);
  StateReader& in = plan.in;
  uint64_t number = 0;
  while (plan.entity(entities.size(), number)) {
    Sample s;
    s.bucket = in.i64();
    s.value = in.f64();
    if (in.flag()) {
      s.bucket_before = in.i64();
      s.value_before = in.f64();
    }
    const EntityIndex entity = entities[number];
    if (in.failed() || position < 0 || s.bucket == INT64_MIN) return in.fail();
    if (entity >= q.samples.size()) q.samples.resize(size_t{entity} * 2 + 16);
    q.samples[entity] = s;
    const auto& key = core_.program.tables()[kind].key(entity);
    q.by_node[static_cast<SymbolId>(key[static_cast<size_t>(position)])].push_back(entity);
  }
  const size_t groups = in.count();
  for (size_t i = 0; i < groups && !in.failed(); ++i) {
    const uint64_t scope = scope_named(own, in.text(), in.symbols());
    Group group;
    if (!in.flag()) {
      group.bucket = in.i64();
      group.sorted.resize(in.count(sizeof(double)));
      for (double& v : group.sorted) v = in.f64();
    }
    if (scope != kNoSymbol) groups_[{query, scope}] = std::move(group);
  }
}

}  // namespace reflex::eval
