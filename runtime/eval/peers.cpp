// Peers: see peers.h.
#include "runtime/eval/peers.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace reflex::eval {
namespace {

// Of a key that an entity does not have: symbols and integers are whole.
constexpr double kWithout = -0.5;

int64_t bucket_of(int64_t ts, int64_t width) {
  return ts >= 0 ? ts / width : (ts + 1) / width - 1;
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
  key_number_.assign(core.pack.features.size(), abi::kNone32);
  queries_.resize(core.pack.peers.size());
  for (uint32_t q = 0; q < queries_.size(); ++q) {
    queries_[q].query = q;
    queries_of_[core.pack.peers[q].feature].push_back(q);
    for (const abi::PeersKey& key : core.pack.peers[q].by) {
      if (key.feature == abi::kNone32) continue;
      const int64_t width = core.pack.peers[q].bucket_ns;
      if (key_number_[key.feature] == abi::kNone32) {
        key_number_[key.feature] = static_cast<uint32_t>(keys_.size());
        keys_.push_back({core.pack.features[key.feature].entity_kind, width, {}});
      }
      RFX_CHECK(keys_[key_number_[key.feature]].bucket_ns == width);
    }
  }
}

void Peers::put(std::vector<Sample>& samples, EntityIndex entity, int64_t bucket, double value) {
  if (entity >= samples.size()) samples.resize(size_t{entity} * 2 + 16);
  Sample& s = samples[entity];
  if (s.bucket != bucket) {
    s.bucket_before = s.bucket;
    s.value_before = s.value;
    s.bucket = bucket;
  }
  s.value = value;
}

void Peers::note(abi::FeatureId feature, EntityIndex entity, int64_t ts_ns, abi::Value value) {
  if (value.known == 0) return;
  const abi::FeaturePlan& plan = core_.pack.features[feature];
  const double v = plan.integer_result ? static_cast<double>(value.i64()) : value.f64();
  if (const uint32_t number = key_number_[feature]; number != abi::kNone32) {
    Key& key = keys_[number];
    put(key.samples, entity, bucket_of(ts_ns, key.bucket_ns), v);
  }
  const int position = core_.program.node_position(plan.entity_kind);
  if (position < 0) return;
  const auto& key = core_.program.tables()[plan.entity_kind].key(entity);
  const auto node = static_cast<SymbolId>(key[static_cast<size_t>(position)]);
  for (uint32_t number : queries_of_[feature]) {
    PerQuery& q = queries_[number];
    const bool first = entity >= q.samples.size() || q.samples[entity].bucket == INT64_MIN;
    if (first) q.by_node[node].push_back(entity);
    put(q.samples, entity, bucket_of(ts_ns, core_.pack.peers[number].bucket_ns), v);
  }
}

bool Peers::closed_value(const std::vector<Sample>& samples, EntityIndex entity, int64_t bucket,
                         int64_t oldest, double& value) {
  if (entity >= samples.size()) return false;
  const Sample& s = samples[entity];
  const bool newest_closed = s.bucket < bucket;
  const int64_t from = newest_closed ? s.bucket : s.bucket_before;
  if (from == INT64_MIN || from < oldest) return false;
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

std::vector<double> Peers::keys_of(const Question& asked, SymbolId node, EntityIndex entity) const {
  std::vector<double> keys;
  keys.reserve(asked.plan->by.size());
  for (const abi::PeersKey& by : asked.plan->by) {
    double value = kWithout;
    if (by.feature == abi::kNone32) {
      const SymbolId label = core_.program.topology().label(node, by.label, asked.now_ns);
      if (label != kNoSymbol) value = label;
    } else {
      closed_value(keys_[key_number_[by.feature]].samples, entity, asked.bucket, INT64_MIN, value);
    }
    keys.push_back(value);
  }
  return keys;
}

void Peers::fill(const PerQuery& q, const Question& asked, Group& group) const {
  group.bucket = asked.bucket;
  group.sorted.clear();
  const abi::PeersQuery& plan = *asked.plan;
  const topology::Topology& topology = core_.program.topology();
  const auto take = [&](SymbolId node, const std::vector<EntityIndex>& entities) {
    for (EntityIndex e : entities) {
      double v = 0;
      if (!closed_value(q.samples, e, asked.bucket, asked.bucket - kCarryBuckets, v)) continue;
      if (plan.by.empty() || keys_of(asked, node, e) == asked.keys) group.sorted.push_back(v);
    }
  };
  if (plan.scope == "class") {
    for (const auto& [node, entities] : q.by_node) {  // order does not matter: sorted below
      if (uint64_t{topology.hw_class(node, asked.now_ns)} + 1 == asked.scope) take(node, entities);
    }
  } else {
    const auto symbol = static_cast<SymbolId>(asked.scope);
    const std::vector<SymbolId> nodes =
        plan.scope == "job"
            ? topology.nodes_of(symbol, asked.now_ns)
            : topology.members(core_.pack.symbols->find(plan.scope), symbol, asked.now_ns);
    for (SymbolId node : nodes) {
      const auto it = q.by_node.find(node);
      if (it != q.by_node.end()) take(node, it->second);
    }
  }
  std::sort(group.sorted.begin(), group.sorted.end());
}

abi::Value Peers::query(const abi::EvalContext& context, const Site& site, uint32_t number) {
  if (number >= queries_.size()) return abi::Value::unknown();
  const PerQuery& q = queries_[number];
  const abi::PeersQuery& plan = core_.pack.peers[number];
  const int position = core_.program.node_position(site.kind);
  if (position < 0) return abi::Value::unknown();
  const auto node = static_cast<SymbolId>(context.entity[position]);
  Question asked{&plan,
                 scope_of(plan, node, context.now_ns),
                 context.now_ns,
                 bucket_of(context.now_ns, plan.bucket_ns),
                 {}};
  if (asked.scope == 0) return abi::Value::unknown();
  const EntityIndex self = core_.project(site, core_.pack.features[plan.feature].entity_kind);
  asked.keys = keys_of(asked, node, self);
  if (groups_.size() > 10'000) groups_.clear();  // groups of jobs that are long over
  Group& group = groups_[{number, asked.scope, asked.keys}];
  if (group.bucket != asked.bucket) fill(q, asked, group);
  return statistic(q, asked, self, group.sorted);
}

abi::Value Peers::statistic(const PerQuery& q, const Question& asked, EntityIndex self,
                            const std::vector<double>& sorted) const {
  const abi::PeersQuery& plan = *asked.plan;
  size_t skip = sorted.size();
  double own = 0;
  const bool has_own = self != kNoEntity && closed_value(q.samples, self, asked.bucket,
                                                         asked.bucket - kCarryBuckets, own);
  if (has_own) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), own);
    if (at != sorted.end() && *at == own) skip = static_cast<size_t>(at - sorted.begin());
  }
  const Others x{sorted, skip};
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
      const auto above = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), own);
      return abi::Value::of(static_cast<double>(above + 1));
    }
    case abi::PeersStat::kCount:
      break;
  }
  return abi::Value::unknown();
}

void Peers::take_over(Peers& old, const std::vector<uint8_t>& stays) {
  std::vector<uint8_t> keys(keys_.size(), 0);
  for (uint32_t q = 0; q < queries_.size(); ++q) {
    if (stays[q] == 0) continue;
    queries_[q] = std::move(old.queries_[q]);
    for (const abi::PeersKey& key : core_.pack.peers[q].by) {
      if (key.feature != abi::kNone32) keys[key_number_[key.feature]] = 1;
    }
  }
  for (size_t k = 0; k < keys_.size(); ++k) {
    if (keys[k] != 0) keys_[k].samples = std::move(old.keys_[k].samples);
  }
  groups_ = std::move(old.groups_);
  std::erase_if(groups_, [&](const auto& group) { return stays[std::get<0>(group.first)] == 0; });
}

void Peers::reset_entity(abi::EntityKindId kind, EntityIndex entity) {
  for (Key& key : keys_) {
    if (key.kind == kind && entity < key.samples.size()) key.samples[entity] = Sample{};
  }
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

bool Peers::is_symbol_key(const abi::PeersKey& key) const {
  return key.feature == abi::kNone32 || is_symbol(core_.pack, core_.pack.features[key.feature]);
}

void Peers::save_samples(const std::vector<Sample>& samples, const std::vector<EntityIndex>& by_age,
                         bool of_symbols, PlanWriter& plan) const {
  StateWriter& out = plan.out;
  const auto value = [&](double v) {
    if (of_symbols) return out.symbol(static_cast<SymbolId>(v));
    out.f64(v);
  };
  for (size_t number = 0; number < by_age.size(); ++number) {
    const EntityIndex entity = by_age[number];
    if (entity >= samples.size() || samples[entity].bucket == INT64_MIN) continue;
    const Sample& s = samples[entity];
    plan.entity(number);
    out.i64(s.bucket);
    value(s.value);
    out.flag(s.bucket_before != INT64_MIN);
    if (s.bucket_before == INT64_MIN) continue;
    out.i64(s.bucket_before);
    value(s.value_before);
  }
  plan.end_entities();
}

template <typename Take>
void Peers::load_samples(const std::vector<EntityIndex>& entities, bool of_symbols,
                         PlanReader& plan, Take&& take) const {
  StateReader& in = plan.in;
  const auto value = [&] { return of_symbols ? static_cast<double>(in.symbol()) : in.f64(); };
  uint64_t number = 0;
  while (plan.entity(entities.size(), number)) {
    Sample s;
    s.bucket = in.i64();
    s.value = value();
    if (in.flag()) {
      s.bucket_before = in.i64();
      s.value_before = value();
    }
    if (in.failed() || s.bucket == INT64_MIN) return in.fail();
    take(entities[number], s);
  }
}

void Peers::save(uint32_t query, const std::vector<EntityIndex>& by_age, int64_t at_ns,
                 PlanWriter& plan) const {
  const abi::PeersQuery& own = core_.pack.peers[query];
  StateWriter& out = plan.out;
  save_samples(queries_[query].samples, by_age, false, plan);
  for (const abi::PeersKey& key : own.by) {
    if (key.feature == abi::kNone32) continue;
    save_samples(keys_[key_number_[key.feature]].samples, by_age, is_symbol_key(key), plan);
  }
  const auto keys_text = [&](const std::vector<double>& keys) {
    StateWriter text(*core_.pack.symbols);
    for (size_t i = 0; i < keys.size(); ++i) {
      text.flag(keys[i] == kWithout);
      if (keys[i] == kWithout) continue;
      if (is_symbol_key(own.by[i])) {
        text.symbol(static_cast<SymbolId>(keys[i]));
      } else {
        text.f64(keys[i]);
      }
    }
    return text.take();
  };
  // By name: ids depend on thread timing.
  std::map<std::pair<std::string, std::string>, const Group*> groups;
  for (auto at = groups_.lower_bound({query, 0, {}});
       at != groups_.end() && std::get<0>(at->first) == query; ++at) {
    const auto& [number, scope, keys] = at->first;
    groups.emplace(std::pair(scope_text(own, scope), keys_text(keys)), &at->second);
  }
  const int64_t running = bucket_of(at_ns, own.bucket_ns);
  out.u64(groups.size());
  for (const auto& [name, group] : groups) {
    out.text(name.first);
    out.text(name.second);
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
  if (position < 0) return in.fail();
  const auto put_at = [](std::vector<Sample>& samples, EntityIndex entity, const Sample& s) {
    if (entity >= samples.size()) samples.resize(size_t{entity} * 2 + 16);
    samples[entity] = s;
  };
  load_samples(entities, false, plan, [&](EntityIndex entity, const Sample& s) {
    put_at(q.samples, entity, s);
    const auto& key = core_.program.tables()[kind].key(entity);
    q.by_node[static_cast<SymbolId>(key[static_cast<size_t>(position)])].push_back(entity);
  });
  for (const abi::PeersKey& key : own.by) {
    if (key.feature == abi::kNone32) continue;
    auto& samples = keys_[key_number_[key.feature]].samples;
    load_samples(entities, is_symbol_key(key), plan,
                 [&](EntityIndex entity, const Sample& s) { put_at(samples, entity, s); });
  }
  const size_t groups = in.count();
  for (size_t i = 0; i < groups && !in.failed(); ++i) {
    const uint64_t scope = scope_named(own, in.text(), in.symbols());
    StateReader text(in.text(), in.symbols());
    std::vector<double> keys;
    for (const abi::PeersKey& key : own.by) {
      const bool without = text.flag();
      keys.push_back(without              ? kWithout
                     : is_symbol_key(key) ? static_cast<double>(text.symbol())
                                          : text.f64());
    }
    Group group;
    if (!in.flag()) {
      group.bucket = in.i64();
      group.sorted.resize(in.count(sizeof(double)));
      for (double& v : group.sorted) v = in.f64();
    }
    if (text.failed()) return in.fail();
    if (scope != kNoSymbol) groups_[{query, scope, std::move(keys)}] = std::move(group);
  }
}

}  // namespace reflex::eval
