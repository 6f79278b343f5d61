// Shard, run time: dispatch of records to state machines; see shard.h.
#include "runtime/eval/shard.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reflex::eval {

void Shard::process(const abi::Record& record, const EntityIndex* ids) {
  advance(record.ts_ns);
  const Kind& kind = kinds_[record.kind];
  EventView event{&record, ids, 0};
  if (kind.needs_class) {
    event.hw_class = program_.class_of(program_.node_of(record), record.ts_ns);
  }
  if (!kind.resets.empty()) run_resets(kind, event);
  if (const uint32_t words = kind.index.words(); words != 0) {
    DispatchIndex::Selection selection;
    kind.index.select(record, selection);
    for (uint32_t w = 0; w < words; ++w) {
      for (uint64_t bits = kind.index.word(selection, w); bits != 0; bits &= bits - 1) {
        run_leaf(leaves_[kind.indexed[w * 64 + static_cast<uint32_t>(std::countr_zero(bits))]],
                 event);
      }
    }
  }
  for (uint32_t leaf : kind.always) run_leaf(leaves_[leaf], event);
  for (const ChunkRun& chunk : kind.chunks) run_chunk(chunk, event);
  if (!pending_.empty()) run_pending(event);
  if (!feeds_.empty()) {
    std::sort(feeds_.begin(), feeds_.end(), [](const Target& a, const Target& b) {
      return a.plan != b.plan ? a.plan < b.plan : a.sub < b.sub;
    });
    for (const Target& target : feeds_) feed(target, event, ids[target.key]);
    feeds_.clear();
  }
  if (!checks_.empty()) {
    for (size_t i = 0; i < checks_.size(); ++i) {
      const Target& t = checks_[i];
      const bool seen = std::any_of(
          checks_.begin(), checks_.begin() + static_cast<std::ptrdiff_t>(i),
          [&](const Target& o) { return o.plan == t.plan && ids[o.key] == ids[t.key]; });
      if (!seen) conditions_.on_event(t.plan, event, ids[t.key]);
    }
    checks_.clear();
  }
}

void Shard::prefetch(const abi::Record& record) {
  const Kind& kind = kinds_[record.kind];
  if (!kind.wanted) return;
  const auto& slots = program_.keys()[record.kind].slots;
  if (!slots[0].plain || !record.has(slots[0].field)) return;
  const EntityIndex entity =
      program_.tables()[slots[0].entity_kind].find({record.slots()[slots[0].field], 0, 0});
  if (entity == kNoEntity) return;
  if (const uint32_t words = kind.index.words(); words != 0) {
    DispatchIndex::Selection selection;
    kind.index.select(record, selection);
    for (uint32_t w = 0; w < words; ++w) {
      for (uint64_t bits = kind.index.word(selection, w); bits != 0; bits &= bits - 1) {
        const Leaf& leaf =
            leaves_[kind.indexed[w * 64 + static_cast<uint32_t>(std::countr_zero(bits))]];
        const Target& t = targets_[leaf.targets_begin];
        if (t.key != 0 || t.use < Use::kPairFirst || t.use > Use::kCountRing) continue;
        if (const char* state = arena_.find(t.place, entity)) {
          __builtin_prefetch(state, 1);
          if (t.use == Use::kCountRing) __builtin_prefetch(state + 63, 1);
        }
      }
    }
  }
  for (const ChunkRun& chunk : kind.chunks) {
    for (uint32_t i = chunk.reads_begin; i < chunk.reads_end; ++i) {
      const uint32_t ring = features_->ring_of(reads_[i].feature);
      if (ring == abi::kNone32 || reads_[i].key != 0) continue;
      if (const char* state = arena_.find(features_->ring_place(ring), entity)) {
        for (int line = 0; line < 3; ++line) __builtin_prefetch(state + line * 64, 1);
      }
    }
  }
}

void Shard::run_timers(int64_t before_ns) {
  while (core_.timers.next_due() < before_ns) {
    const Timer timer = core_.timers.pop();
    if (timer.use == TimerUse::kCondition) {
      conditions_.on_timer(timer);
    } else {
      sequences_.on_timer(timer);
    }
  }
}

void Shard::read(uint32_t begin, uint32_t end, const EventView& event) {
  for (uint32_t i = begin; i < end; ++i) {
    const Read& r = reads_[i];
    const EntityIndex entity = event.ids[r.key];
    const KeySlot& slot = program_.keys()[event.record->kind].slots[r.key];
    const uint32_t ring = features_->ring_of(r.feature);
    const abi::EntityKindId want = program_.pack().features[r.feature].entity_kind;
    if (ring != abi::kNone32 && slot.entity_kind == want) [[likely]] {
      features_->read_ring(ring, entity, ~uint64_t{0}, core_.feature_values());
      continue;
    }
    const Site site{slot.entity_kind, entity, event.record->ts_ns, ~uint64_t{0}};
    core_.read_features({&r.feature, 1}, site);
  }
}

bool Shard::check(abi::ExprId expr, bool reads_class, const Leaf& leaf, const EventView& event) {
  if (leaf.reads_begin != leaf.reads_end) read(leaf.reads_begin, leaf.reads_end, event);
  const abi::ClassId hw_class = reads_class ? event.hw_class : abi::ClassId{0};
  core_.set_site({program_.keys()[event.record->kind].slots[leaf.key].entity_kind,
                  event.ids[leaf.key], event.record->ts_ns, event.record->order});
  core_.context.class_params = program_.class_params(hw_class);
  core_.context.captures = nullptr;
  ++core_.counters.evaluations;
  uint64_t out = 0;
  return program_.code(expr, hw_class)(event.record, &core_.context, &out) == abi::kTrue;
}

void Shard::run_leaf(const Leaf& leaf, const EventView& event) {
  if (leaf.residual != abi::kNone32 && !check(leaf.residual, leaf.reads_class, leaf, event)) {
    return;
  }
  hit(leaf, event);
}

void Shard::hit(const Leaf& leaf, const EventView& event) {
  ++core_.counters.leaf_hits;
  for (uint32_t i = leaf.targets_begin; i < leaf.targets_end; ++i) {
    const Target& t = targets_[i];
    const EntityIndex entity = event.ids[t.key];
    if (entity == kNoEntity) continue;
    switch (t.use) {
      case Use::kSingle:
        sequences_.on_single(t.plan, event, entity);
        break;
      case Use::kPairFirst:
        sequences_.on_pair_first(t.plan, arena_.at(t.place, entity), event, entity);
        break;
      case Use::kPairSecond:
        sequences_.on_pair_second(t.plan, arena_.at(t.place, entity), event, entity);
        break;
      case Use::kAbsentArm:
        sequences_.on_absent_arm(t.plan, arena_.at(t.place, entity), event, entity);
        break;
      case Use::kAbsentCancel:
        sequences_.on_absent_cancel(arena_.at(t.place, entity), event);
        break;
      case Use::kCountRing:
        counts_.on_ring(t.plan, arena_.at(t.place, entity), event, entity);
        break;
      case Use::kCountGeneral:
        counts_.on_general(t.plan, t.sub, event, entity);
        break;
      case Use::kStep:
        pending_.push_back({t.plan, t.sub, t.key, 0});
        break;
      case Use::kUnless:
        pending_.push_back({t.plan, t.sub, t.key, 1});
        break;
      case Use::kGuard:
        pending_.push_back({t.plan, t.sub, t.key, 2});
        break;
      case Use::kFeature:
        feeds_.push_back(t);
        break;
      case Use::kCondition:
        checks_.push_back(t);
        break;
    }
  }
}

void Shard::run_chunk(const ChunkRun& chunk, const EventView& event) {
  if (chunk.reads_begin != chunk.reads_end) read(chunk.reads_begin, chunk.reads_end, event);
  const abi::ClassId hw_class = chunk.reads_class ? event.hw_class : abi::ClassId{0};
  core_.set_site({program_.keys()[event.record->kind].slots[chunk.key].entity_kind,
                  event.ids[chunk.key], event.record->ts_ns, event.record->order});
  core_.context.class_params = program_.class_params(hw_class);
  core_.context.captures = nullptr;
  const abi::ChunkEvaluator& code = chunk.code[hw_class];
  core_.counters.evaluations += chunk.leaves.size();
  const uint32_t n = code.fn(code.self, event.record, &core_.context, hits_.data());
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t leaf = chunk.leaves[hits_[i]];
    if (leaf != abi::kNone32) hit(leaves_[leaf], event);
  }
}

void Shard::run_resets(const Kind& kind, const EventView& event) {
  for (const Reset& r : kind.resets) {
    const EntityIndex entity = event.ids[r.key];
    if (entity == kNoEntity) continue;
    if (r.predicate != abi::kNone32) {
      const Site site{program_.keys()[event.record->kind].slots[r.key].entity_kind, entity,
                      event.record->ts_ns, event.record->order};
      uint64_t out = 0;
      if (core_.eval(r.predicate, event.record, site, nullptr, &out) != abi::kTrue) continue;
    }
    features_->reset(r.feature, entity);
  }
}

void Shard::run_pending(const EventView& event) {
  std::sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
    if (a.rank / 2 != b.rank / 2) return a.rank < b.rank;  // guards of all signals come last
    if (a.plan != b.plan) return a.plan < b.plan;
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.sub > b.sub;
  });
  uint32_t last_plan = abi::kNone32;
  EntityIndex last_entity = kNoEntity;
  bool completed = false;
  for (const Pending& p : pending_) {
    const EntityIndex entity = event.ids[p.key];
    if (p.plan != last_plan || entity != last_entity) completed = false;
    last_plan = p.plan;
    last_entity = entity;
    if (p.rank == 0) {
      sequences_.on_step(p.plan, p.sub, event, entity, completed);
    } else if (p.rank == 1) {
      sequences_.on_unless(p.plan, p.sub, event, entity);
    } else {
      guards_.on_event(p.plan, p.sub, entity, event.record->ts_ns);
    }
  }
  pending_.clear();
}

uint64_t Shard::member_of(abi::ExprId value, double number, uint64_t bits) const {
  if (value == abi::kNone32) return hash_member(int64_t{1});
  const abi::Type& type = program_.pack().exprs[value].type;
  const bool symbol =
      type.scalar == abi::Scalar::kEnum || (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
  if (symbol) return hash_member(program_.pack().symbols->name(static_cast<SymbolId>(bits)));
  if (abi::slot_form(type) == abi::SlotForm::kText) {
    return hash_member(reinterpret_cast<const abi::Text*>(bits)->view());
  }
  (void)number;
  return hash_member(static_cast<int64_t>(bits));
}

void Shard::feed(const Target& target, const EventView& event, EntityIndex entity) {
  const abi::FeaturePlan& plan = program_.pack().features[target.plan];
  const abi::FeaturePlan::Input& input = plan.inputs[target.sub];
  FeatureSample sample;
  sample.ts_ns = event.record->ts_ns;
  sample.order = event.record->order;
  sample.streak_break = input.streak_break;
  const Site site{plan.entity_kind, entity, sample.ts_ns, sample.order};
  if (input.value != abi::kNone32) {
    uint64_t bits = 0;
    if (core_.eval(input.value, event.record, site, nullptr, &bits) != abi::kTrue) return;
    if (plan.op == abi::FeatureOp::kDistinct) {
      sample.member = member_of(input.value, 0, bits);
    } else {
      sample.value = core_.as_f64(input.value, bits).f64();
      if (!std::isfinite(sample.value)) return;
    }
  }
  if (plan.target != abi::kNone32) {
    const abi::Value target_value = core_.eval_f64(plan.target, event.record, site);
    sample.target_known = target_value.known != 0;
    sample.target = target_value.f64();
  }
  features_->update(target.plan, entity, sample);
  if (peers_.wants(target.plan)) {
    peers_.note(target.plan, entity, sample.ts_ns,
                features_->read(target.plan, entity, sample.ts_ns, ~uint64_t{0}));
  }
}

void Shard::evict(abi::EntityKindId kind, EntityIndex entity, uint64_t order) {
  arena_.reset(kind, entity);
  features_->reset_entity(kind, entity);
  counts_.reset_entity(kind, entity);
  sequences_.reset_entity(kind, entity, order);
  conditions_.reset_entity(kind, entity);
  peers_.reset_entity(kind, entity);
}

void Shard::set_count_only(bool on) {
  core_.count_only = on;
  counts_.set_count_only(on);
  sequences_.set_count_only(on);
}

uint64_t Shard::bytes() const {
  return arena_.bytes() + features_->bytes() + counts_.bytes() + sequences_.bytes() +
         conditions_.bytes() + core_.timers.bytes();
}

}  // namespace reflex::eval
