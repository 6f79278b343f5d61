// Entity kinds, and how an event yields the key of an entity.
//
// A kind gives a key by a field of that name; `job` also from its node's placement, and `rack`,
// `tor`, `pod`, `zone`, `domain` from its node's label of that name, both at the event's time.
#include <algorithm>
#include <array>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

constexpr std::array<std::string_view, 5> kLabelKeys{"rack", "tor", "pod", "zone", "domain"};

bool usable_key(const KindInfo& kind, uint16_t slot) {
  const abi::FieldSchema& f = kind.schema.fields[slot];
  // A key field, or any entity or integer of that name: `rank: u32` keys (job, rank).
  return integer_like(f.type) && !f.type.counter;
}

/// Every name that some kind of this set uses for a key, and the entity types.
std::vector<std::string> key_names(const State& s) {
  std::vector<std::string> names;
  for (const auto& e : s.pack.entity_types) names.push_back(e.name);
  for (const KindInfo& kind : s.kinds) {
    for (const auto& f : kind.schema.fields) {
      if (f.is_key) names.push_back(f.name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<abi::KeyPart> key_part(const State& s, const KindInfo& kind, const std::string& key) {
  abi::KeyPart part;
  if (const auto slot = slot_of(kind, key); slot && usable_key(kind, *slot)) {
    part.slot = *slot;
    return part;
  }
  const auto node = slot_of(kind, "node");
  if (node && usable_key(kind, *node)) {
    part.slot = *node;
    if (key == "job") {
      part.from = abi::KeyPart::From::kJobOfNode;
      return part;
    }
    if (std::find(kLabelKeys.begin(), kLabelKeys.end(), key) != kLabelKeys.end()) {
      part.from = abi::KeyPart::From::kNodeLabel;
      part.label = key;
      return part;
    }
  }
  // A single key field of that entity type under another name.
  const auto type = entity_type_id(s, key);
  std::optional<uint16_t> only;
  for (uint16_t i = 0; type && i < kind.schema.fields.size(); ++i) {
    const auto& f = kind.schema.fields[i];
    if (!f.is_key || f.type.scalar != abi::Scalar::kEntity || f.type.entity != *type) continue;
    if (only) return std::nullopt;
    only = i;
  }
  if (!only) return std::nullopt;
  part.slot = *only;
  return part;
}

}  // namespace

abi::EntityKindId entity_kind_of(State& s, const std::vector<std::string>& keys) {
  for (size_t i = 0; i < s.pack.entity_kinds.size(); ++i) {
    if (s.pack.entity_kinds[i].keys == keys) return static_cast<abi::EntityKindId>(i);
  }
  s.pack.entity_kinds.push_back({keys});
  return static_cast<abi::EntityKindId>(s.pack.entity_kinds.size() - 1);
}

std::optional<abi::EntityKindId> resolve_entity(State& s, PackIndex,
                                                const std::vector<ast::Name>& on) {
  std::vector<std::string> keys;
  bool ok = true;
  for (const ast::Name& name : on) {
    const std::string key = name.text == "gpu_index" ? "gpu" : name.text;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      s.report(Id::kDuplicateName, name.span, "key '" + key + "' is named twice");
      ok = false;
    }
    if (!entity_type_id(s, key)) {
      const auto names = key_names(s);
      if (!std::binary_search(names.begin(), names.end(), key)) {
        auto& d = s.report(Id::kNotAKey, name.span,
                           "'" + name.text + "' is neither an entity nor a key of any kind");
        suggest(d, name.text, names, name.span);
        ok = false;
      }
    }
    keys.push_back(key);
  }
  if (keys.size() > 3) {
    s.report(Id::kTooManyFields, on[3].span, "at most 3 keys are possible");
    ok = false;
  }
  if (keys.empty() || !ok) return std::nullopt;
  return entity_kind_of(s, keys);
}

std::optional<abi::KeyPlan> derive_key(State& s, uint32_t kind, abi::EntityKindId entity, Span span,
                                       bool report, const std::map<std::string, uint16_t>* joined,
                                       const std::map<std::string, uint16_t>* stated) {
  const KindInfo& info = s.kinds[kind];
  abi::KeyPlan plan;
  const std::vector<std::string> keys = s.pack.entity_kinds[entity].keys;
  for (const std::string& key : keys) {
    std::optional<abi::KeyPart> part;
    if (stated != nullptr && stated->contains(key)) {
      part.emplace();
      part->slot = stated->at(key);
    } else {
      part = key_part(s, info, key);
    }
    if (!part && joined != nullptr) {
      const auto equal = joined->find(key);
      if (equal != joined->end()) {
        part.emplace();
        part->slot = equal->second;
      }
    }
    if (!part) {
      if (report) {
        auto& d = s.report(Id::kUnboundedFanOut, span,
                           "an event of '" + info.schema.name + "' does not say which " + key +
                               " it is about: it would reach every " + key);
        if (info.decl != nullptr) d.notes.push_back({info.decl->name.span, "declared here"});
        d.help = "keep the signal on a key that the kind has, or add the key to the kind";
      }
      return std::nullopt;
    }
    if (!info.is_abstract) s.pack.kinds[info.id].fields[part->slot].used = true;
    plan.parts.push_back(*part);
  }
  return plan;
}

namespace {

/// `node` alone, not `it.node`: the key of the signal, which a record's own field of that name is
/// otherwise taken for.
bool bare_key(const State& s, const KindInfo& kind, abi::EntityKindId entity, const NodePtr& n,
              std::string* key) {
  if (n->op != ir::Op::kField) return false;
  *key = kind.schema.fields[n->index].name;
  const auto& keys = s.pack.entity_kinds[entity].keys;
  return n->span.end - n->span.begin == key->size() &&
         std::find(keys.begin(), keys.end(), *key) != keys.end();
}

}  // namespace

std::map<std::string, uint16_t> take_stated_keys(const State& s, uint32_t kind,
                                                 abi::EntityKindId entity, NodePtr& predicate) {
  std::map<std::string, uint16_t> stated;
  if (predicate == nullptr) return stated;
  std::vector<NodePtr> parts;
  conjuncts(predicate, parts);
  std::vector<NodePtr> rest;
  for (const NodePtr& part : parts) {
    bool taken = false;
    for (int side = 0; side < 2 && part->op == ir::Op::kEq && !taken; ++side) {
      const NodePtr& field = part->args[static_cast<size_t>(side)];
      std::string key;
      if (field->op != ir::Op::kField || field->type.scalar != abi::Scalar::kEntity) continue;
      if (!bare_key(s, s.kinds[kind], entity, part->args[static_cast<size_t>(1 - side)], &key)) {
        continue;
      }
      if (s.kinds[kind].schema.fields[field->index].name == key) continue;
      taken = stated.emplace(key, static_cast<uint16_t>(field->index)).second;
    }
    if (!taken) rest.push_back(part);
  }
  if (!stated.empty()) predicate = rest.empty() ? nullptr : conjunction(rest);
  return stated;
}

std::string entity_text(const State& s, abi::EntityKindId entity) {
  const auto& keys = s.pack.entity_kinds[entity].keys;
  if (keys.size() == 1) return keys[0];
  std::string text = "(";
  for (size_t i = 0; i < keys.size(); ++i) text += (i ? ", " : "") + keys[i];
  return text + ")";
}

bool node_keyed(const State& s, abi::EntityKindId entity) {
  return s.pack.entity_kinds[entity].keys[0] == "node";
}

}  // namespace reflex::sema
