// ShardCore: evaluation contexts and firings; see shard_core.h.
#include "runtime/eval/shard_core.h"

#include <algorithm>

namespace reflex::eval {

abi::EventRef event_ref(const abi::Record& record) {
  abi::EventRef ref{record.source, record.seq, record.ts_ns, {}};
  if (record.id != nullptr) ref.id = record.id->view();
  return ref;
}

void RefRing::push(const abi::Record& record) {
  if (refs.size() == 8) refs.erase(refs.begin());  // Why 8: Firing::events holds at most 8
  refs.push_back(event_ref(record));
}

ShardCore::ShardCore(const Program& program_in, const Options& options_in)
    : program(program_in), options(options_in), pack(program_in.pack()) {
  values_.resize(pack.features.size() + 1);
  fired_.resize(pack.signals.size());
  entities_.resize(pack.signals.size());
  incomplete_until_ns.resize(pack.signals.size(), INT64_MIN);
  host.topology = &program.topology();
  host.symbols = pack.symbols.get();
  context.features = values_.data();
  context.host = &topology::host_services();
  context.host_state = &host;
  context.class_params = program.class_params(0);
  const size_t kinds = pack.entity_kinds.size();
  projection_.resize(kinds * kinds);
  for (size_t from = 0; from < kinds; ++from) {
    for (size_t to = 0; to < kinds; ++to) {
      auto& map = projection_[from * kinds + to];
      const auto& have = pack.entity_kinds[from].keys;
      for (const auto& key : pack.entity_kinds[to].keys) {
        const auto at = std::find(have.begin(), have.end(), key);
        if (at == have.end()) {
          map.clear();
          break;
        }
        map.push_back(static_cast<int8_t>(at - have.begin()));
      }
    }
  }
}

void ShardCore::take_over(ShardCore& old, const std::vector<uint8_t>& signals) {
  timers.take_over(old.timers, signals);
  counters = old.counters;
  shared_unless_dropped = old.shared_unless_dropped;
  order_now = old.order_now;
  next_tag = old.next_tag;
  fired_ = std::move(old.fired_);
  entities_ = std::move(old.entities_);
}

EntityIndex ShardCore::project(const Site& here, abi::EntityKindId kind) const {
  if (kind == here.kind || here.entity == kNoEntity) return here.entity;
  const auto& map = projection_[size_t{here.kind} * pack.entity_kinds.size() + kind];
  if (map.empty()) return kNoEntity;
  const auto& from = program.tables()[here.kind].key(here.entity);
  std::array<uint64_t, 3> key{};
  for (size_t i = 0; i < map.size(); ++i) key[i] = from[static_cast<size_t>(map[i])];
  return program.tables()[kind].find_at(key, order_now);
}

SymbolId ShardCore::node_of(const Site& here) const {
  const int node = program.node_position(here.kind);
  if (node < 0 || here.entity == kNoEntity) return kNoSymbol;
  const auto& key = program.tables()[here.kind].key(here.entity);
  return static_cast<SymbolId>(key[static_cast<size_t>(node)]);
}

void ShardCore::set_site(const Site& here) {
  site = here;
  context.now_ns = here.now_ns;
  if (here.entity != kNoEntity) {
    const auto& key = program.tables()[here.kind].key(here.entity);
    std::copy(key.begin(), key.end(), context.entity);
  } else {
    std::fill(std::begin(context.entity), std::end(context.entity), uint64_t{0});
  }
}

void ShardCore::read_features(std::span<const abi::FeatureId> ids, const Site& here) {
  uint32_t last_ring = abi::kNone32;
  for (abi::FeatureId id : ids) {
    const uint32_t ring = features->ring_of(id);
    if (ring != abi::kNone32 && ring == last_ring) continue;  // read with its group already
    const EntityIndex entity = project(here, pack.features[id].entity_kind);
    if (ring != abi::kNone32) {
      features->read_ring(ring, entity, here.exclude_order, values_.data());
      last_ring = ring;
    } else {
      values_[id] = features->read(id, entity, here.now_ns, here.exclude_order);
    }
  }
}

uint32_t ShardCore::eval(abi::ExprId expr, const abi::Record* record, const Site& here,
                         const abi::Value* captures, uint64_t* out) {
  static const abi::Record kNoRecord{};
  const abi::ExprInfo& info = pack.exprs[expr];
  set_site(here);
  if (!info.features.empty()) read_features(info.features, here);
  abi::ClassId hw_class = 0;
  SymbolId node = kNoSymbol;
  if (info.reads_class) {
    const bool by_record = program.node_position(here.kind) < 0 && record != nullptr;
    node = by_record ? program.node_of(*record) : node_of(here);
    hw_class = program.class_of(node, here.now_ns);
  }
  bind_class(hw_class, node);
  context.captures = captures;
  return program.code(expr, hw_class)(record == nullptr ? &kNoRecord : record, &context, out);
}

abi::Value ShardCore::as_f64(abi::ExprId expr, uint64_t bits) const {
  if (abi::slot_form(pack.exprs[expr].type) == abi::SlotForm::kI64) {
    return abi::Value::of(static_cast<double>(static_cast<int64_t>(bits)));
  }
  abi::Value v{bits, 1};
  return abi::Value::of(v.f64());
}

abi::Value ShardCore::eval_f64(abi::ExprId expr, const abi::Record* record, const Site& here) {
  if (expr == abi::kNone32) return abi::Value::unknown();
  uint64_t out = 0;
  if (eval(expr, record, here, nullptr, &out) != abi::kTrue) return abi::Value::unknown();
  return as_f64(expr, out);
}

abi::Firing ShardCore::start_firing(abi::SignalId signal, EntityIndex entity,
                                    const abi::Record& record) const {
  abi::Firing f;
  f.ts_ns = record.ts_ns;
  f.onset_ns = record.ts_ns;
  f.order = record.order;
  f.signal = signal;
  f.entity = program.tables()[pack.signals[signal].entity_kind].entity(entity);
  return f;
}

void ShardCore::emit(abi::Firing firing) {
  ++counters.firings;
  firing.incomplete = firing.ts_ns < incomplete_until_ns[firing.signal];
  if (firing.change == abi::FiringChange::kStart) ++fired_[firing.signal];
  firings.push_back(std::move(firing));
}

}  // namespace reflex::eval
