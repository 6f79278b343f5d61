// Shard, load time: which plans it has, and the dispatch tables of each kind.
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/eval/shard.h"

namespace reflex::eval {
namespace {
bool same_part(const abi::KeyPart& a, const abi::KeyPart& b) {
  return a.from == b.from && a.slot == b.slot && a.label == b.label && a.expr == b.expr;
}
}  // namespace

Shard::Shard(const Program& program, const Options& options, ShardRole role, const Before& before)
    : program_(program),
      core_(program, options),
      guards_(core_, arena_),
      counts_(core_, arena_, guards_),
      sequences_(core_, arena_, guards_),
      conditions_(core_),
      peers_(core_) {
  include_plans(role);
  register_plans(before);
  build_kinds();
  finish_tables();
  core_.host.peers_state = this;
  core_.host.peers = [](void* state, const abi::EvalContext* context,
                        uint32_t query) noexcept -> abi::Value {
    auto* shard = static_cast<Shard*>(state);
    return shard->peers_.query(*context, shard->core_.site, query);
  };
}

void Shard::include_plans(ShardRole role) {
  const auto& pack = program_.pack();
  signal_in_.assign(pack.signals.size(), 0);
  feature_in_.assign(pack.features.size(), 0);
  for (abi::SignalId s = 0; s < pack.signals.size(); ++s) {
    const bool global = program_.global_signal(s);
    if (role != ShardRole::kAll && global != (role == ShardRole::kGlobal)) continue;
    signal_in_[s] = 1;
    for (abi::FeatureId f : program_.needs_of(s)) feature_in_[f] = 1;
  }
  for (const abi::AdaptivePlan& plan : pack.adaptives) {
    if (plan.feature == abi::kNone32) continue;
    const auto needs = program_.needs_of_sampled(plan.feature);
    const bool global =
        std::any_of(needs.begin(), needs.end(), [&](auto f) { return program_.global_feature(f); });
    if (role != ShardRole::kAll && global != (role == ShardRole::kGlobal)) continue;
    for (abi::FeatureId f : needs) feature_in_[f] = 1;
  }
}

void Shard::register_plans(const Before& before) {
  const auto& pack = program_.pack();
  FeatureStore::Before features;
  if (before.shard != nullptr) {
    arena_.follow(before.shard->arena_);
    features = {before.shard->features_.get(), before.features};
  }
  features_ = std::make_unique<FeatureStore>(pack, feature_in_, arena_, features);
  core_.features = features_.get();
  count_entries_.resize(pack.signals.size());
  for (abi::SignalId s = 0; s < pack.signals.size(); ++s) {
    if (signal_in_[s] == 0) continue;
    const bool stays = before.shard != nullptr && (*before.signals)[s] != 0;
    guards_.add(s, stays);
    switch (pack.signals[s].shape) {
      case abi::SignalShape::kSequence:
        sequences_.add(s, stays);
        break;
      case abi::SignalShape::kCount:
        count_entries_[s] = counts_.add(s, stays);
        break;
      case abi::SignalShape::kCondition:
        conditions_.add(s);
        break;
    }
  }
  arena_.seal();
}

bool Shard::build_target(abi::LeafId leaf, const abi::LeafOwner& owner, Target& out) {
  const auto& pack = program_.pack();
  const bool feature = owner.kind == abi::OwnerKind::kFeatureInput;
  if (owner.kind == abi::OwnerKind::kFeatureReset) return false;  // see Kind::resets
  if (feature ? feature_in_[owner.owner] == 0 || !features_->leads(owner.owner)
              : signal_in_[owner.owner] == 0) {
    return false;
  }
  const Program::OwnerKey key = program_.owner_key(leaf, owner);
  out = Target{};
  out.key = program_.key_slot(pack.leaves[leaf].kind, key);
  out.sub = key.sub;
  out.plan = owner.owner;
  switch (owner.kind) {
    case abi::OwnerKind::kSequenceStep:
      out.place = sequences_.place(owner.owner);
      switch (sequences_.form(owner.owner)) {
        case SequenceStates::Form::kSingle:
          out.use = Use::kSingle;
          break;
        case SequenceStates::Form::kLatestPair:
          out.use = key.sub == 0 ? Use::kPairFirst : Use::kPairSecond;
          break;
        case SequenceStates::Form::kAbsentPair:
          out.use = key.sub == 0 ? Use::kAbsentArm : Use::kAbsentCancel;
          break;
        case SequenceStates::Form::kGeneral:
          out.use = Use::kStep;
          break;
      }
      break;
    case abi::OwnerKind::kSequenceUnless:
      out.use = pack.signals[owner.owner].sequence.unless[owner.sub].shared ? Use::kUnlessShared
                                                                            : Use::kUnless;
      break;
    case abi::OwnerKind::kSignalGuard:
      out.use = Use::kGuard;
      break;
    case abi::OwnerKind::kCount: {
      const CountStates::Entry entry = count_entries_[owner.owner];
      out.use = entry.ring ? Use::kCountRing : Use::kCountGeneral;
      out.plan = entry.number;
      if (entry.ring) out.place = counts_.ring_place(entry.number);
      break;
    }
    case abi::OwnerKind::kCondition:
      out.use = Use::kCondition;
      break;
    case abi::OwnerKind::kFeatureInput:
      out.use = Use::kFeature;
      out.feed = build_feed(owner.owner, key.sub);
      break;
    case abi::OwnerKind::kFeatureReset:
      return false;
  }
  return true;
}

uint32_t Shard::build_feed(abi::FeatureId feature, uint16_t input) {
  FeedPlan feed;
  feed.plan = &program_.pack().features[feature];
  feed.input = &feed.plan->inputs[input];
  feed.ring = features_->ring_of(feature);
  feed.peers = peers_.wants(feature);
  if (const abi::ExprId value = feed.input->value; value != abi::kNone32) {
    const abi::ExprInfo& info = program_.pack().exprs[value];
    feed.direct = info.features.empty() && !info.reads_class && !info.reads_peers &&
                  feed.plan->target == abi::kNone32 && feed.plan->op != abi::FeatureOp::kDistinct;
    feed.is_integer = abi::slot_form(info.type) == abi::SlotForm::kI64;
    feed.code = program_.code(value, 0);
  }
  feed_plans_.push_back(feed);
  return static_cast<uint32_t>(feed_plans_.size() - 1);
}

/// Rings that other features read while an event feeds them: their turn among the feeds matters.
std::vector<uint8_t> Shard::rings_read_by_feeds() const {
  std::vector<uint8_t> blocked(features_->ring_count(), 0);
  const auto block = [&](abi::ExprId expr) {
    if (expr == abi::kNone32) return;
    for (abi::FeatureId f : program_.pack().exprs[expr].features) {
      if (features_->ring_of(f) != abi::kNone32) blocked[features_->ring_of(f)] = 1;
    }
  };
  for (const FeedPlan& feed : feed_plans_) {
    block(feed.plan->target);
    block(feed.input->value);
    if (feed.peers && feed.ring != abi::kNone32) blocked[feed.ring] = 1;
  }
  return blocked;
}

void Shard::build_fed_rings(Kind& kind, const std::vector<uint8_t>& blocked) {
  std::erase_if(kind.always, [&](uint32_t number) {
    const Leaf& leaf = leaves_[number];
    if (leaf.residual != abi::kNone32 || leaf.targets_end - leaf.targets_begin != 1) return false;
    const Target& t = targets_[leaf.targets_begin];
    if (t.use != Use::kFeature) return false;
    const FeedPlan& feed = feed_plans_[t.feed];
    if (!feed.direct || feed.plan->counter_input || feed.ring == abi::kNone32 ||
        blocked[feed.ring] != 0) {
      return false;
    }
    if (kind.rings.size() >= kNotFed) return false;
    kind.rings.push_back(
        {&features_->ring(feed.ring), feed.ring, feed.code, feed.is_integer, t.key});
    ++kind.ring_leaves;
    return true;
  });
  for (const ChunkRun& chunk : kind.chunks) link_reads(kind, chunk.reads_begin, chunk.reads_end);
  for (uint32_t number : kind.always) {
    link_reads(kind, leaves_[number].reads_begin, leaves_[number].reads_end);
  }
  for (const Candidate& c : kind.indexed) {
    link_reads(kind, leaves_[c.leaf].reads_begin, leaves_[c.leaf].reads_end);
  }
}

void Shard::link_reads(Kind& kind, uint32_t begin, uint32_t end) {
  for (uint32_t r = begin; r < end; ++r) {
    for (size_t i = 0; i < kind.rings.size(); ++i) {
      if (kind.rings[i].number == reads_[r].ring && kind.rings[i].key == reads_[r].key) {
        reads_[r].fed = static_cast<uint8_t>(i);
      }
    }
  }
}

/// What depends on the finished leaves: candidates that need no look at their leaf, room to stage.
void Shard::finish_tables() {
  size_t candidates = 0;
  const std::vector<uint8_t> blocked = rings_read_by_feeds();
  for (size_t k = 0; k < kinds_.size(); ++k) {
    Kind& kind = kinds_[k];
    for (const KeySlot& slot : program_.keys()[k].slots) {
      kind.key_slots.push_back({slot.entity_kind, slot.field, slot.plain});
    }
    ids_stride_ = std::max(ids_stride_, kind.key_slots.size());
    candidates = std::max(candidates, kind.indexed.size());
    for (Candidate& c : kind.indexed) {
      const Leaf& leaf = leaves_[c.leaf];
      if (leaf.residual != abi::kNone32 || leaf.targets_end - leaf.targets_begin != 1) continue;
      c.target = targets_[leaf.targets_begin];
      c.simple = c.target.use >= Use::kPairFirst && c.target.use <= Use::kCountRing;
    }
    build_fed_rings(kind, blocked);
    rings_stride_ = std::max(rings_stride_, kind.rings.size());
  }
  staged_ids_.resize(kStagedMax * ids_stride_);
  staged_rings_.resize(kStagedMax * rings_stride_);
  staged_hits_.resize(kStagedMax * candidates + 1);
}

/// The slot at which the owner of slot `prefer` reads a feature of another entity kind: one that
/// takes the same keys from the same fields, else its own (its entity is then projected), else, for
/// a feature with more keys than the owner, the first slot of that kind.
uint8_t Shard::read_slot(abi::KindId kind, uint8_t prefer, abi::EntityKindId want) const {
  const auto& slots = program_.keys()[kind].slots;
  const auto& pack = program_.pack();
  if (slots[prefer].entity_kind == want) return prefer;
  const auto& have = pack.entity_kinds[slots[prefer].entity_kind].keys;
  const auto& keys = pack.entity_kinds[want].keys;
  int first = -1;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].entity_kind != want || slots[i].plan.parts.empty()) continue;
    if (first < 0) first = static_cast<int>(i);
    bool same = true;
    for (size_t k = 0; k < keys.size() && same; ++k) {
      const auto at = std::find(have.begin(), have.end(), keys[k]);
      same = at != have.end() &&
             same_part(slots[prefer].plan.parts[static_cast<size_t>(at - have.begin())],
                       slots[i].plan.parts[k]);
    }
    if (same) return static_cast<uint8_t>(i);
  }
  const bool projects = std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return std::find(have.begin(), have.end(), key) != have.end();
  });
  return projects || first < 0 ? prefer : static_cast<uint8_t>(first);
}

void Shard::build_reads(abi::KindId kind, const std::vector<abi::FeatureId>& ids, uint8_t prefer,
                        uint32_t& begin, uint32_t& end) {
  const auto& slots = program_.keys()[kind].slots;
  begin = static_cast<uint32_t>(reads_.size());
  for (abi::FeatureId id : ids) {
    const uint32_t ring = features_->ring_of(id);
    const bool known = std::any_of(reads_.begin() + begin, reads_.end(), [&](const Read& r) {
      return r.feature == id || (ring != abi::kNone32 && features_->ring_of(r.feature) == ring);
    });
    if (known) continue;
    const abi::EntityKindId want = program_.pack().features[id].entity_kind;
    const uint8_t key = read_slot(kind, prefer, want);
    const bool direct = ring != abi::kNone32 && slots[key].entity_kind == want;
    reads_.push_back({id, direct ? ring : abi::kNone32, key, kNotFed});
  }
  end = static_cast<uint32_t>(reads_.size());
}

/// Builds the leaf once per key of its owners when its predicate depends on the key, else once.
std::vector<uint32_t> Shard::build_leaf(abi::LeafId id) {
  const abi::LeafPlan& plan = program_.pack().leaves[id];
  std::vector<Target> all;
  for (const abi::LeafOwner& owner : plan.owners) {
    Target target;
    if (build_target(id, owner, target)) all.push_back(target);
  }
  std::vector<uint32_t> built;
  const bool by_key = depends_on_key(id);
  while (!all.empty()) {
    Leaf leaf;
    leaf.key = all[0].key;
    leaf.targets_begin = static_cast<uint32_t>(targets_.size());
    const auto mine = [&](const Target& t) { return !by_key || t.key == leaf.key; };
    std::copy_if(all.begin(), all.end(), std::back_inserter(targets_), mine);
    std::erase_if(all, mine);
    leaf.targets_end = static_cast<uint32_t>(targets_.size());
    leaf.residual = plan.constraints.empty() ? plan.predicate : plan.residual;
    build_reads(plan.kind, plan.features, leaf.key, leaf.reads_begin, leaf.reads_end);
    if (leaf.residual != abi::kNone32) leaf.reads_class = program_.reads_class(leaf.residual);
    leaves_.push_back(leaf);
    built.push_back(static_cast<uint32_t>(leaves_.size() - 1));
  }
  return built;
}

bool Shard::depends_on_key(abi::LeafId id) const {
  const abi::LeafPlan& plan = program_.pack().leaves[id];
  return !plan.features.empty() ||
         (plan.predicate != abi::kNone32 && program_.pack().exprs[plan.predicate].reads_peers);
}

void Shard::build_chunk(uint32_t number) {
  const auto& pack = program_.pack();
  const abi::Chunk& chunk = pack.chunks[number];
  ChunkRun run;
  run.chunk = number;
  bool any = false;
  bool reading = false;  // the entity of the first leaf that reads features is the chunk's
  for (abi::LeafId leaf : chunk.leaves) {
    run.leaves.push_back(abi::kNone32);
    const bool reads = depends_on_key(leaf);
    for (uint32_t at : build_leaf(leaf)) {
      if (!any || (reads && !reading)) run.key = leaves_[at].key;
      if (reads && leaves_[at].key != run.key) {  // the chunk runs at one key only
        kinds_[chunk.kind].always.push_back(at);
        kinds_[chunk.kind].wanted = true;
        kinds_[chunk.kind].needs_class |= leaves_[at].reads_class;
        continue;
      }
      run.leaves.back() = at;
      any = true;
      reading = reading || reads;
    }
    if (run.leaves.back() == abi::kNone32) continue;
    const abi::ExprId predicate = pack.leaves[leaf].predicate;
    run.reads_class =
        run.reads_class || (predicate != abi::kNone32 && program_.reads_class(predicate));
  }
  if (!any) return;
  std::vector<abi::FeatureId> kept;
  for (abi::FeatureId f : chunk.features) {
    if (feature_in_[f] != 0) kept.push_back(f);
  }
  build_reads(chunk.kind, kept, run.key, run.reads_begin, run.reads_end);
  for (size_t c = 0; c < std::max<size_t>(pack.classes.size(), 1); ++c) {
    run.code.push_back(pack.code->chunk(number, static_cast<abi::ClassId>(c)));
  }
  chunk_hits_.resize(std::max(chunk_hits_.size(), chunk.leaves.size()));
  kinds_[chunk.kind].wanted = true;
  kinds_[chunk.kind].needs_class |= run.reads_class;
  kinds_[chunk.kind].chunks.push_back(std::move(run));
}

void Shard::build_kinds() {
  const auto& pack = program_.pack();
  kinds_.resize(pack.kinds.size());
  std::vector<uint8_t> in_chunk(pack.leaves.size(), 0);
  for (const auto& chunk : pack.chunks) {
    for (abi::LeafId leaf : chunk.leaves) in_chunk[leaf] = 1;
  }
  std::vector<std::vector<const abi::LeafPlan*>> indexed(pack.kinds.size());
  for (abi::LeafId l = 0; l < pack.leaves.size(); ++l) {
    const abi::LeafPlan& plan = pack.leaves[l];
    Kind& kind = kinds_[plan.kind];
    for (const abi::LeafOwner& owner : plan.owners) {
      if (owner.kind != abi::OwnerKind::kFeatureReset || feature_in_[owner.owner] == 0 ||
          !features_->leads(owner.owner)) {
        continue;
      }
      const auto key = program_.owner_key(l, owner);
      kind.resets.push_back({plan.predicate, owner.owner, program_.key_slot(plan.kind, key)});
      kind.wanted = true;
    }
    if (in_chunk[l] != 0) continue;
    for (uint32_t leaf : build_leaf(l)) {
      kind.wanted = true;
      kind.needs_class |= leaves_[leaf].reads_class;
      if (plan.constraints.empty()) {
        kind.always.push_back(leaf);
      } else {
        kind.indexed.push_back({Target{}, leaf, false});
        indexed[plan.kind].push_back(&plan);
      }
    }
  }
  for (size_t k = 0; k < kinds_.size(); ++k) {
    kinds_[k].index.build(indexed[k]);
    for (uint32_t i = 0; i < indexed[k].size(); ++i) {
      if (kinds_[k].index.complete(i)) continue;
      Leaf& leaf = leaves_[kinds_[k].indexed[i].leaf];
      leaf.residual = indexed[k][i]->predicate;
      if (leaf.residual == abi::kNone32) continue;
      leaf.reads_class = program_.reads_class(leaf.residual);
      kinds_[k].needs_class |= leaf.reads_class;
    }
  }
  for (uint32_t c = 0; c < pack.chunks.size(); ++c) build_chunk(c);
}

}  // namespace reflex::eval
