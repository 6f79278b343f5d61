// Shard, run time: dispatch of records to state machines; see shard.h.
#include "runtime/eval/shard.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reflex::eval {

void Shard::stage(const abi::Record& record, const EntityIndex* ids) {
  const Kind& kind = kinds_[record.kind];
  Hit* hit = staged_count_ == 0 ? staged_hits_.data()
                                : const_cast<Hit*>(staged_[staged_count_ - 1].hits_end);
  EntityIndex* own = staged_ids_.data() + staged_count_ * ids_stride_;
  for (size_t i = 0; i < kind.key_slots.size(); ++i) own[i] = ids[i];
  const auto take = [&](const Candidate& c) {
    char* state = nullptr;
    if (c.simple) {
      if (own[c.target.key] == kNoEntity) return;
      state = arena_.at(c.target.place, own[c.target.key]);
      __builtin_prefetch(state, 1);
      if (c.target.use == Use::kCountRing) __builtin_prefetch(state + 40, 1);
    }
    *hit++ = {state, &c};
  };
  if (const uint32_t words = kind.index.words(); words == 1) {
    for (uint64_t bits = kind.index.single(record); bits != 0; bits &= bits - 1) {
      take(kind.indexed[static_cast<uint32_t>(std::countr_zero(bits))]);
    }
  } else if (words != 0) {
    DispatchIndex::Selection selection;
    kind.index.select(record, selection);
    for (uint32_t w = 0; w < words; ++w) {
      for (uint64_t bits = kind.index.word(selection, w); bits != 0; bits &= bits - 1) {
        take(kind.indexed[w * 64 + static_cast<uint32_t>(std::countr_zero(bits))]);
      }
    }
  }
  char** rings = staged_rings_.data() + staged_count_ * rings_stride_;
  for (size_t i = 0; i < kind.rings.size(); ++i) {
    const FedRing& r = kind.rings[i];
    const EntityIndex entity = own[r.key];
    rings[i] = entity == kNoEntity ? nullptr : arena_.at(r.ring->place(), entity);
    if (rings[i] == nullptr) continue;
    for (int line = 0; line < 3; ++line) __builtin_prefetch(rings[i] + line * 64, 1);
  }
  staged_[staged_count_] = {&record, hit};
  if (++staged_count_ == kStagedMax) run_staged();
}

void Shard::run_staged() {
  const Hit* begin = staged_hits_.data();
  for (size_t i = 0; i < staged_count_; ++i) {
    rings_now_ = staged_rings_.data() + i * rings_stride_;
    ++event_serial_;
    process(*staged_[i].record, staged_ids_.data() + i * ids_stride_, begin, staged_[i].hits_end);
    begin = staged_[i].hits_end;
  }
  staged_count_ = 0;
}

void Shard::flush(int64_t before_ns) {
  run_staged();
  advance(before_ns, ~uint64_t{0});
}

void Shard::process(const abi::Record& record, const EntityIndex* ids, const Hit* begin,
                    const Hit* end) {
  advance(record.ts_ns, record.order == 0 ? 0 : record.order - 1);
  core_.order_now = record.order;
  const Kind& kind = kinds_[record.kind];
  EventView event{&record, ids, 0};
  if (kind.needs_class) {
    event.hw_class = program_.class_of(program_.node_of(record), record.ts_ns);
  }
  if (!kind.resets.empty()) run_resets(kind, event);
  for (const Hit* h = begin; h != end; ++h) {
    const Candidate& c = *h->candidate;
    if (c.simple) {
      ++core_.counters.leaf_hits;
      advance_state(c.target, h->state, event, ids[c.target.key]);
    } else {
      run_leaf(leaves_[c.leaf], event);
    }
  }
  for (uint32_t leaf : kind.always) run_leaf(leaves_[leaf], event);
  for (const ChunkRun& chunk : kind.chunks) run_chunk(chunk, event);
  if (!pending_.empty()) run_pending(event);
  if (!feeds_.empty()) {
    if (feeds_.size() > 1) {
      std::sort(feeds_.begin(), feeds_.end(), [](const Target& a, const Target& b) {
        return a.plan != b.plan ? a.plan < b.plan : a.sub < b.sub;
      });
    }
    for (const Target& target : feeds_) feed(target, event, ids[target.key]);
    feeds_.clear();
  }
  if (!kind.rings.empty()) feed_rings(kind, event);
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

void Shard::run_timers(int64_t before_ns, uint64_t order) {
  core_.order_now = order;
  while (core_.timers.next_due() < before_ns) {
    const Timer timer = core_.timers.pop();
    if (timer.use == TimerUse::kCondition) {
      conditions_.on_timer(timer);
    } else {
      sequences_.on_timer(timer);
    }
  }
}

/// Makes the entity of a key slot the one under evaluation.
void Shard::bind(const EventView& event, uint8_t key) {
  const abi::Record& record = *event.record;
  const SlotInfo& slot = kinds_[record.kind].key_slots[key];
  const EntityIndex entity = event.ids[key];
  if (!slot.plain || entity == kNoEntity) {
    core_.set_site({slot.entity_kind, entity, record.ts_ns, record.order});
    return;
  }
  // The key is the field itself: no look-up. One member at a time: copying a Site that was just
  // written piecewise waits for the pieces to reach the cache.
  core_.site.kind = slot.entity_kind;
  core_.site.entity = entity;
  core_.site.now_ns = record.ts_ns;
  core_.site.exclude_order = record.order;
  core_.context.now_ns = record.ts_ns;
  core_.context.entity[0] = record.slots()[slot.field];
  core_.context.entity[1] = core_.context.entity[2] = 0;
}

void Shard::read(uint32_t begin, uint32_t end, const EventView& event) {
  for (uint32_t i = begin; i < end; ++i) {
    const Read& r = reads_[i];
    const EntityIndex entity = event.ids[r.key];
    if (r.fed != kNotFed) [[likely]] {
      // One pass over a ring serves every leaf of the event: it is fed only after all of them.
      if (rings_read_[r.fed] == event_serial_) continue;
      rings_read_[r.fed] = event_serial_;
      kinds_[event.record->kind].rings[r.fed].ring->read(rings_now_[r.fed], ~uint64_t{0},
                                                         core_.feature_values());
      continue;
    }
    if (r.ring != abi::kNone32) {
      features_->read_ring(r.ring, entity, ~uint64_t{0}, core_.feature_values());
      continue;
    }
    const KeySlot& slot = program_.keys()[event.record->kind].slots[r.key];
    const Site site{slot.entity_kind, entity, event.record->ts_ns, ~uint64_t{0}};
    core_.read_features({&r.feature, 1}, site);
  }
}

bool Shard::check(abi::ExprId expr, bool reads_class, const Leaf& leaf, const EventView& event) {
  if (leaf.reads_begin != leaf.reads_end) read(leaf.reads_begin, leaf.reads_end, event);
  const abi::ClassId hw_class = reads_class ? event.hw_class : abi::ClassId{0};
  bind(event, leaf.key);
  core_.bind_class(hw_class, reads_class ? program_.node_of(*event.record) : kNoSymbol);
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
    if (entity == kNoEntity && t.use != Use::kUnlessShared) continue;
    switch (t.use) {
      case Use::kSingle:
        sequences_.on_single(t.plan, event, entity);
        break;
      case Use::kPairFirst:
      case Use::kPairSecond:
      case Use::kAbsentArm:
      case Use::kAbsentCancel:
      case Use::kCountRing:
        advance_state(t, arena_.at(t.place, entity), event, entity);
        break;
      case Use::kCountGeneral:
        counts_.on_general(t.plan, t.sub, event, entity);
        break;
      case Use::kStep:
        pending_.push_back({t.plan, t.sub, t.key, 0});
        break;
      case Use::kUnless:
      case Use::kUnlessShared:
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

void Shard::advance_state(const Target& t, char* state, const EventView& event,
                          EntityIndex entity) {
  switch (t.use) {
    case Use::kPairFirst:
      sequences_.on_pair_first(t.plan, state, event, entity);
      break;
    case Use::kPairSecond:
      sequences_.on_pair_second(t.plan, state, event, entity);
      break;
    case Use::kAbsentArm:
      sequences_.on_absent_arm(t.plan, state, event, entity);
      break;
    case Use::kAbsentCancel:
      sequences_.on_absent_cancel(state, event);
      break;
    default:
      counts_.on_ring(t.plan, state, event, entity);
      break;
  }
}

void Shard::run_chunk(const ChunkRun& chunk, const EventView& event) {
  if (chunk.reads_begin != chunk.reads_end) read(chunk.reads_begin, chunk.reads_end, event);
  const abi::ClassId hw_class = chunk.reads_class ? event.hw_class : abi::ClassId{0};
  bind(event, chunk.key);
  core_.bind_class(hw_class, chunk.reads_class ? program_.node_of(*event.record) : kNoSymbol);
  core_.context.captures = nullptr;
  const abi::ChunkEvaluator& code = chunk.code[hw_class];
  core_.counters.evaluations += chunk.leaves.size();
  const uint32_t n = code.fn(code.self, event.record, &core_.context, chunk_hits_.data());
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t leaf = chunk.leaves[chunk_hits_[i]];
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

uint64_t Shard::member_of(abi::ExprId value, uint64_t bits) const {
  if (value == abi::kNone32) return hash_member(int64_t{1});
  const abi::Type& type = program_.pack().exprs[value].type;
  const bool symbol =
      type.scalar == abi::Scalar::kEnum || (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
  if (symbol) return hash_member(program_.pack().symbols->name(static_cast<SymbolId>(bits)));
  if (abi::slot_form(type) == abi::SlotForm::kText) {
    return hash_member(reinterpret_cast<const abi::Text*>(bits)->view());
  }
  return hash_member(static_cast<int64_t>(bits));
}

void Shard::feed(const Target& target, const EventView& event, EntityIndex entity) {
  const FeedPlan& feed_plan = feed_plans_[target.feed];
  const abi::FeaturePlan& plan = *feed_plan.plan;
  const abi::FeaturePlan::Input& input = *feed_plan.input;
  FeatureSample sample;
  sample.ts_ns = event.record->ts_ns;
  sample.order = event.record->order;
  sample.streak_break = input.streak_break;
  const Site site{plan.entity_kind, entity, sample.ts_ns, sample.order};
  if (feed_plan.direct) {
    bind(event, target.key);
    uint64_t bits = 0;
    if (feed_plan.code(event.record, &core_.context, &bits) != abi::kTrue) return;
    sample.value = feed_plan.is_integer ? static_cast<double>(static_cast<int64_t>(bits))
                                        : abi::Value{bits, 1}.f64();
    if (!std::isfinite(sample.value)) return;
  } else if (input.value != abi::kNone32) {
    uint64_t bits = 0;
    if (core_.eval(input.value, event.record, site, nullptr, &bits) != abi::kTrue) return;
    if (plan.op == abi::FeatureOp::kDistinct) {
      sample.member = member_of(input.value, bits);
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
  if (feed_plan.peers) note_peers(target, event, entity);
}

void Shard::feed_rings(const Kind& kind, const EventView& event) {
  core_.counters.leaf_hits += kind.ring_leaves;
  for (size_t i = 0; i < kind.rings.size(); ++i) {
    if (rings_now_[i] == nullptr) continue;
    const FedRing& r = kind.rings[i];
    bind(event, r.key);
    uint64_t bits = 0;
    if (r.code(event.record, &core_.context, &bits) != abi::kTrue) continue;
    const double value =
        r.is_integer ? static_cast<double>(static_cast<int64_t>(bits)) : abi::Value{bits, 1}.f64();
    if (std::isfinite(value)) r.ring->push(rings_now_[i], value, event.record->order);
  }
}

void Shard::note_peers(const Target& target, const EventView& event, EntityIndex entity) {
  const int64_t ts_ns = event.record->ts_ns;
  peers_.note(target.plan, entity, ts_ns,
              features_->read(target.plan, entity, ts_ns, ~uint64_t{0}));
}

void Shard::evict(abi::EntityKindId kind, EntityIndex entity, const abi::Record& by) {
  run_staged();
  advance(by.ts_ns, by.order == 0 ? 0 : by.order - 1);
  forget(kind, entity, by.order);
}

void Shard::set_count_only(bool on) {
  core_.count_only = on;
  counts_.set_count_only(on);
  sequences_.set_count_only(on);
}

uint64_t Shard::bytes_per_key(abi::EntityKindId kind) const {
  return arena_.bytes_per_key(kind) + features_->bytes_per_key(kind) + counts_.bytes_per_key(kind) +
         sequences_.bytes_per_key(kind) + conditions_.bytes_per_key(kind);
}

uint64_t Shard::bytes() const {
  return arena_.bytes() + features_->bytes() + counts_.bytes() + sequences_.bytes() +
         conditions_.bytes() + core_.timers.bytes();
}

}  // namespace reflex::eval
