// Lists of names, and entities by name: see load_names.h.
#include "runtime/abi/load_names.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace reflex::abi {
namespace {

template <typename Plan>
void save_list(StateWriter& writer, const std::vector<Plan>& plans) {
  writer.u64(plans.size());
  for (const Plan& plan : plans) writer.text(plan.name);
}

/// [number in the state] -> index of `plans`, or kGone.
template <typename Plan, typename WasOf>
std::vector<uint32_t> load_list(StateReader& reader, const std::vector<Plan>& plans,
                                const WasOf& was_of, std::vector<std::string>* old_names = nullptr) {
  std::unordered_map<std::string_view, uint32_t> by_name;
  for (uint32_t i = 0; i < plans.size(); ++i) by_name.emplace(plans[i].name, i);
  // A name that is in use is never an old one of something else.
  for (uint32_t i = 0; i < plans.size(); ++i) {
    if (const std::string_view was = was_of(plans[i]); !was.empty()) by_name.emplace(was, i);
  }
  std::vector<uint32_t> out;
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    const std::string_view name = reader.text();
    const auto it = name.empty() ? by_name.end() : by_name.find(name);
    out.push_back(it == by_name.end() ? LoadNames::kGone : it->second);
    if (old_names) old_names->emplace_back(name);
  }
  return out;
}

constexpr auto kNoWas = [](const auto&) { return std::string_view(); };
constexpr auto kWas = [](const auto& plan) { return std::string_view(plan.was); };

}  // namespace

void save_names(StateWriter& writer, const CompiledPack& pack) {
  writer.begin("names");
  writer.text(pack.set_sha256);
  save_list(writer, pack.signals);
  save_list(writer, pack.features);
  save_list(writer, pack.causes);
  if (pack.classes.empty()) {  // packs made by hand: all is the fallback
    writer.u64(1);
    writer.text("");
  } else {
    save_list(writer, pack.classes);
  }
  save_list(writer, pack.kinds);
  save_list(writer, pack.incidents);
  save_list(writer, pack.adaptives);
  for (const AdaptivePlan& plan : pack.adaptives) {
    writer.flag(plan.feature != kNone32);
    if (plan.feature != kNone32) writer.u64(plan.feature);
  }
  writer.end();
}

bool LoadNames::load(StateReader& reader, const CompiledPack& pack) {
  if (!reader.enter("names")) return false;
  const std::string_view sha = reader.text();
  same_set_ = !sha.empty() && sha == pack.set_sha256;
  signals_ = load_list(reader, pack.signals, kWas);
  features_ = load_list(reader, pack.features, kWas);
  causes_ = load_list(reader, pack.causes, kNoWas);
  classes_ = load_list(reader, pack.classes, kNoWas, &old_classes_);
  if (pack.classes.empty() && classes_.size() == 1) classes_ = {0};
  kinds_ = load_list(reader, pack.kinds, kNoWas);
  incidents_ = load_list(reader, pack.incidents, kNoWas);
  for (const ClassPlan& plan : pack.classes) class_names_.push_back(plan.name);
  if (same_set_) {
    // Features that the compiler made have no name; in one set a number is as good.
    for (uint32_t i = 0; i < features_.size(); ++i) features_[i] = i;
    if (features_.size() != pack.features.size()) reader.fail();
  }
  if (old_classes_.empty() || !load_adaptives(reader, pack)) reader.fail();
  reset_.assign(pack.signals.size(), 1);
  for (const uint32_t signal : signals_) {
    if (signal != kGone) reset_[signal] = 0;
  }
  reader.leave();
  return !reader.failed();
}

/// A parameter that now follows another feature begins anew.
bool LoadNames::load_adaptives(StateReader& reader, const CompiledPack& pack) {
  adaptives_ = load_list(reader, pack.adaptives, kNoWas);
  for (const AdaptivePlan& plan : pack.adaptives) adaptive_features_.push_back(plan.feature);
  for (uint32_t& id : adaptives_) {
    const bool has_feature = reader.flag();
    const uint32_t was = has_feature ? feature(reader) : kNone32;
    if (id == kGone || adaptive_features_[id] == was) continue;
    note("adaptive " + pack.adaptives[id].name + " begins anew: it follows another feature");
    id = kGone;
  }
  return !reader.failed();
}

uint32_t LoadNames::look(StateReader& r, const std::vector<uint32_t>& ids) {
  const uint64_t number = r.u64();
  if (number < ids.size()) return ids[number];
  r.fail();
  return kGone;
}

uint32_t LoadNames::old_class(StateReader& r) const {
  const uint64_t number = r.u64();
  if (number < old_classes_.size()) return static_cast<uint32_t>(number);
  r.fail();
  return kGone;
}

void LoadNames::rename_classes(const std::vector<std::pair<uint32_t, ClassId>>& nodes) {
  std::map<uint32_t, uint32_t> now;  // by old class; kGone: several
  for (const auto& [old, hw_class] : nodes) {
    const auto [it, added] = now.try_emplace(old, hw_class);
    if (!added && it->second != hw_class) it->second = kGone;
  }
  for (const auto& [old, hw_class] : now) {
    if (old >= classes_.size() || classes_[old] != kGone || hw_class == kGone) continue;
    const std::string& name = class_names_[hw_class];
    const bool is_new = std::find(old_classes_.begin(), old_classes_.end(), name) == old_classes_.end();
    const bool taken = std::find(classes_.begin(), classes_.end(), hw_class) != classes_.end();
    if (!is_new || taken) continue;
    classes_[old] = hw_class;
    note("class " + old_classes_[old] + " is now " + name);
  }
}

void LoadNames::reset_signal(SignalId signal) { reset_[signal] = 1; }

void LoadNames::reset_feature(FeatureId feature) {
  for (uint32_t& id : adaptives_) {
    if (id != kGone && adaptive_features_[id] == feature) id = kGone;
  }
}

// As compiler/sema/types.cpp has it: these are indices, everything else has a name.
bool is_named_key(std::string_view key) {
  return key != "gpu" && key != "gpu_index" && key != "link" && key != "rank";
}

void save_entity(StateWriter& writer, const CompiledPack& pack, const EntityKey& entity) {
  const auto& keys = pack.entity_kinds[entity.kind].keys;
  writer.u64(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    writer.text(keys[i]);
    if (is_named_key(keys[i])) {
      writer.symbol(static_cast<SymbolId>(entity.values[i]));
    } else {
      writer.i64(static_cast<int64_t>(entity.values[i]));
    }
  }
}

bool load_entity(StateReader& reader, const CompiledPack& pack, EntityKey& out) {
  out = {};
  out.count = static_cast<uint8_t>(reader.bounded(out.values.size()));
  std::array<std::string_view, 3> keys;
  for (size_t i = 0; i < out.count; ++i) {
    keys[i] = reader.text();
    out.values[i] = is_named_key(keys[i]) ? reader.symbol() : static_cast<uint64_t>(reader.i64());
  }
  if (reader.failed()) return false;
  for (size_t kind = 0; kind < pack.entity_kinds.size(); ++kind) {
    const auto& wanted = pack.entity_kinds[kind].keys;
    if (!std::equal(wanted.begin(), wanted.end(), keys.begin(), keys.begin() + out.count)) continue;
    out.kind = static_cast<EntityKindId>(kind);
    return true;
  }
  return false;
}

void save_event(StateWriter& writer, const EventRef& event) {
  writer.symbol(event.source);
  writer.u64(event.seq);
  writer.i64(event.ts_ns);
  writer.text(event.id);
}

EventRef load_event(StateReader& reader) {
  EventRef event;
  event.source = reader.symbol();
  event.seq = reader.u64();
  event.ts_ns = reader.i64();
  event.id = reader.text();
  return event;
}

void save_value(StateWriter& writer, const Value& value) {
  writer.flag(value.known != 0);
  writer.f64(value.f64());
}

Value load_value(StateReader& reader) {
  Value value;
  value.known = reader.flag() ? 1 : 0;
  const double bits = reader.f64();
  std::memcpy(&value.bits, &bits, sizeof bits);
  return value;
}

}  // namespace reflex::abi
