// Schema-guided construction of records from JSON members.
#include "runtime/stream/record_builder.h"

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/base/check.h"
#include "runtime/base/time.h"

namespace reflex::stream {

RecordBuilder::RecordBuilder(std::shared_ptr<const abi::CompiledPack> pack,
                             IngestCounters& counters, RejectSampler& sampler)
    : pack_(std::move(pack)), counters_(&counters), sampler_(&sampler), converter_(pack_) {
  keys_.add("ts", kKeyTs);
  keys_.add("kind", kKeyKind);
  keys_.add("id", kKeyId);
  keys_.add("source", kKeySource);
  keys_.add("arrival", kKeyArrival);
  uint32_t next = kFirstFieldKey;
  // A field called like an envelope member is written with a trailing underscore ("kind_").
  const auto member_name = [](const std::string& field) {
    return field == "ts" || field == "kind" ? field + "_" : field;
  };
  for (const abi::KindSchema& kind : pack_->kinds) {
    for (const abi::FieldSchema& field : kind.fields) {
      const std::string name = member_name(field.name);
      if (keys_.find(name) == NameIndex::kAbsent) keys_.add(name, next++);
    }
    for (const abi::KindAlias& alias : kind.aliases) {
      for (const auto& rename : alias.renames) {
        if (keys_.find(rename.member) == NameIndex::kAbsent) keys_.add(rename.member, next++);
      }
    }
  }
  RFX_CHECK(next < UINT16_MAX);
  slot_of_key_.resize(pack_->kinds.size());
  for (uint32_t k = 0; k < pack_->kinds.size(); ++k) {
    const abi::KindSchema& kind = pack_->kinds[k];
    slot_of_key_[k].assign(next, kUnknownMember);
    for (unsigned slot = 0; slot < kind.fields.size(); ++slot) {
      slot_of_key_[k][keys_.find(member_name(kind.fields[slot].name))] = static_cast<int16_t>(slot);
    }
    kind_names_.add(kind.name, k);
    wires_.push_back({static_cast<uint16_t>(k), nullptr, 0});
  }
  for (uint16_t k = 0; k < pack_->kinds.size(); ++k) {
    for (const abi::KindAlias& alias : pack_->kinds[k].aliases) add_alias(k, alias);
  }
}

void RecordBuilder::add_alias(uint16_t kind, const abi::KindAlias& alias) {
  std::vector<int16_t> slots = slot_of_key_[kind];
  Wire wire{kind, &alias, 0};
  // First the old names go, then the new ones come: two fields may have changed places.
  for (const auto& rename : alias.renames) {
    if (rename.slot < abi::KindAlias::kSource) {
      std::replace(slots.begin(), slots.end(), static_cast<int16_t>(rename.slot), kUnknownMember);
    }
  }
  for (const auto& rename : alias.renames) {
    int16_t& slot = slots[keys_.find(rename.member)];
    const ReservedKey role = rename.slot == abi::KindAlias::kTs   ? kKeyTs
                             : rename.slot == abi::KindAlias::kId ? kKeyId
                                                                  : kKeySource;
    if (rename.slot < abi::KindAlias::kSource) {
      slot = static_cast<int16_t>(rename.slot);
    } else {
      slot = static_cast<int16_t>(kRoleBase - role);
      wire.renamed_roles |= static_cast<uint8_t>(1u << role);
    }
  }
  kind_names_.add(alias.name, static_cast<uint32_t>(wires_.size()));
  slot_of_key_.push_back(std::move(slots));
  wires_.push_back(wire);
}

void RecordBuilder::fill_constants(uint32_t wire, abi::Record& record, Slab& slab) const {
  for (const auto& constant : wires_[wire].alias->constants) {
    if (record.has(constant.slot)) continue;
    uint64_t bits = constant.bits;
    if (!constant.text.empty()) {
      bits = reinterpret_cast<uint64_t>(slab.new_text(constant.text));
    }
    record.slots()[constant.slot] = bits;
    record.present |= uint64_t{1} << constant.slot;
  }
}

void RecordBuilder::build(std::span<const JsonValue> members, const LineOrigin& origin,
                          RecordBatch& out) {
  const JsonValue* kind = nullptr;
  for (const JsonValue& member : members) {
    if (member.key == kKeyKind) kind = &member;
  }
  if (kind == nullptr || kind->type != JsonType::kString) {
    sampler_->reject(Reject::kMissingKind, origin.source, origin.line, origin.text);
    return;
  }
  const uint32_t index = find_kind(kind->text);
  if (index == NameIndex::kAbsent) {
    sampler_->reject(Reject::kUnknownKind, origin.source, origin.line, origin.text,
                     "no pack declares kind '" + std::string(kind->text.substr(0, 80)) + "'");
    return;
  }
  build_kind(index, members, origin, out);
}

void RecordBuilder::build_kind(uint32_t wire, std::span<const JsonValue> members,
                               const LineOrigin& origin, RecordBatch& out) {
  const uint32_t kind = wires_[wire].kind;
  const KindPlan& plan = converter_.kinds()[kind];
  abi::Record& record = *out.slab->new_record(static_cast<unsigned>(plan.fields.size()));
  record.kind = static_cast<uint16_t>(kind);
  record.source = origin.source;
  record.seq = origin.line;
  const std::vector<int16_t>& slot_of_key = slot_of_key_[wire];
  const JsonValue* ts = nullptr;
  const JsonValue* arrival = nullptr;
  uint64_t bad = 0;
  unsigned unknown = 0;
  for (const JsonValue& member : members) {
    const int16_t slot = slot_of_key[member.key];
    if (slot >= 0) {
      const uint64_t bit = uint64_t{1} << slot;
      if ((record.present | bad) & bit) {  // the key stands twice: start again
        record.present &= ~bit;
        record.slots()[slot] = 0;
        bad &= ~bit;
      }
      const auto index = static_cast<unsigned>(slot);
      const FieldPlan& field = plan.fields[index];
      if (field.form == FieldForm::kInt && member.type == JsonType::kInt &&
          member.key >= kFirstFieldKey) {  // the common case, without a call
        record.set_i64(index, member.i64);
        continue;
      }
      const Converted result = converter_.convert(field, index, member, record, *out.slab);
      if (result == Converted::kBad) bad |= bit;
      if (member.key >= kFirstFieldKey) continue;
    }
    switch (role_of(wire, member.key)) {
      case kKeyTs:
        ts = &member;
        break;
      case kKeyKind:
        break;
      case kKeyArrival:
        arrival = &member;
        break;
      case kKeyId:
        record.id = nullptr;
        if (member.type == JsonType::kString || member.type == JsonType::kInt) {
          if (!member.text.empty()) record.id = out.slab->new_text(member.text);
        }
        break;
      case kKeySource:
        record.source = origin.source;
        if (member.type == JsonType::kString && !member.text.empty()) {
          record.source = converter_.symbols().intern(member.text);
        }
        break;
      default:
        unknown += slot < 0;
        break;
    }
  }
  set_constants(wire, record, *out.slab);
  counters_->unknown_fields += unknown;
  if (bad != 0) counters_->bad_fields += static_cast<unsigned>(std::popcount(bad));
  if (set_time(ts, arrival, origin, record)) check_keys(kind, bad, origin, record, out);
}

Reject RecordBuilder::read_time(const JsonValue* ts, int64_t& out_ns) {
  if (ts == nullptr || ts->type == JsonType::kNull) return Reject::kMissingTs;
  if (ts->type == JsonType::kString) {
    const std::optional<EventTime> parsed = parse_rfc3339(ts->text);
    if (!parsed) return Reject::kBadTs;
    out_ns = parsed->ns;
  } else if (!to_scaled(*ts, kNsPerMs, out_ns)) {
    return Reject::kBadTs;
  }
  return out_ns >= 0 ? Reject::kCount : Reject::kNegativeTs;
}

bool RecordBuilder::set_time(const JsonValue* ts, const JsonValue* arrival,
                             const LineOrigin& origin, abi::Record& record) {
  const Reject reason = read_time(ts, record.ts_ns);
  if (reason == Reject::kCount) {
    int64_t arrival_ns = 0;
    if (arrival != nullptr && read_time(arrival, arrival_ns) == Reject::kCount) {
      settle_time(record, arrival_ns);
    }
    return true;
  }
  sampler_->reject(reason, origin.source, origin.line, origin.text);
  return false;
}

void RecordBuilder::check_keys(uint32_t kind, uint64_t bad, const LineOrigin& origin,
                               abi::Record& record, RecordBatch& out) {
  const KindPlan& plan = converter_.kinds()[kind];
  const uint64_t missing = (plan.required_mask & ~record.present) | (plan.key_mask & bad);
  if (missing != 0) {
    const auto slot = static_cast<size_t>(std::countr_zero(missing));
    const abi::KindSchema& schema = pack_->kinds[kind];
    const bool is_bad = (bad >> slot) & 1u;
    sampler_->reject(Reject::kMissingKey, origin.source, origin.line, origin.text,
                     schema.name + ": key '" + schema.fields[slot].name +
                         (is_bad ? "' has a value of wrong type" : "' is missing"));
    return;
  }
  ++counters_->events;
  out.records.push_back(&record);
}

}  // namespace reflex::stream
