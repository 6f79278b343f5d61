// Slots of a verdict by the names of its fields; see verdict_record.h.
#include "runtime/policy/verdict_record.h"

#include <algorithm>
#include <cstring>

namespace reflex::policy {

VerdictRecord::VerdictRecord(std::shared_ptr<const abi::CompiledPack> pack)
    : pack_(std::move(pack)),
      memory_(sizeof(abi::Record) / sizeof(uint64_t) + pack_->verdict_fields.size(), 0),
      arrays_(pack_->verdict_fields.size()) {
  schema_.name = "verdict";
  schema_.fields = pack_->verdict_fields;
  schema_.builtin = true;  // its arrays are of names
}

std::string VerdictRecord::encode() {
  StateWriter writer(*pack_->symbols);
  abi::RecordWriter(writer).write(record(), schema_);
  return writer.take();
}

const abi::Record* VerdictRecord::decode(std::string_view state) {
  StateReader reader(state, *pack_->symbols);
  abi::RecordReader records(reader, [this](std::string_view, uint16_t&) { return &schema_; });
  abi::RecordParts parts;
  if (!records.read(parts)) return nullptr;
  std::fill(memory_.begin(), memory_.end(), 0);
  record() = parts.head;
  for (size_t slot = 0; slot < parts.slots.size(); ++slot) {
    if (!record().has(static_cast<unsigned>(slot))) continue;
    const bool is_array =
        abi::slot_form(schema_.fields[slot].type) == abi::SlotForm::kArray;
    if (is_array) set_items(slot, parts.slots[slot].items);
    if (!is_array) record().slots()[slot] = parts.slots[slot].bits;
  }
  return &record();
}

void VerdictRecord::set_items(size_t slot, const std::vector<int64_t>& items) {
  auto& array = arrays_[slot];
  array.assign(1 + items.size(), 0);
  const abi::IntArray header{static_cast<uint32_t>(items.size()), 0};
  std::memcpy(array.data(), &header, sizeof header);
  for (size_t i = 0; i < items.size(); ++i) array[i + 1] = static_cast<uint64_t>(items[i]);
  record().set_i64(static_cast<unsigned>(slot), reinterpret_cast<int64_t>(array.data()));
}

int VerdictRecord::used_slot(std::string_view field) const {
  const auto& fields = pack_->verdict_fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == field) return fields[i].used ? static_cast<int>(i) : -1;
  }
  return -1;
}

void VerdictRecord::set_word(std::string_view field, std::string_view text) {
  const int slot = used_slot(field);
  if (slot < 0 || text.empty()) return;
  record().set_i64(static_cast<unsigned>(slot), pack_->symbols->intern(text));
}

void VerdictRecord::set_int(std::string_view field, int64_t value) {
  const int slot = used_slot(field);
  if (slot >= 0) record().set_i64(static_cast<unsigned>(slot), value);
}

void VerdictRecord::set_real(std::string_view field, double value) {
  const int slot = used_slot(field);
  if (slot >= 0) record().set_f64(static_cast<unsigned>(slot), value);
}

void VerdictRecord::set_nodes(std::string_view field, const std::vector<std::string>& nodes) {
  const int slot = used_slot(field);
  if (slot < 0) return;
  std::vector<int64_t> items;
  for (const std::string& node : nodes) items.push_back(pack_->symbols->intern(node));
  set_items(static_cast<size_t>(slot), items);
}

/// A cause as its author wrote it, without the pack.
std::string VerdictRecord::short_cause(const std::string& full) const {
  size_t prefix = 0;
  for (const auto& identity : pack_->packs) {
    const bool fits = full.size() > identity.name.size() + 1 && full.starts_with(identity.name) &&
                      full[identity.name.size()] == '.';
    if (fits) prefix = std::max(prefix, identity.name.size() + 1);
  }
  return full.substr(prefix);
}

const abi::Hypothesis* VerdictRecord::top(const abi::Verdict& verdict) {
  if (!verdict.culprits.empty()) {
    for (const auto& h : verdict.hypotheses) {
      if (h.node == verdict.culprits.front()) return &h;
    }
  }
  return verdict.hypotheses.empty() ? nullptr : &verdict.hypotheses.front();
}

void VerdictRecord::fill_top(const abi::Verdict& verdict) {
  const abi::Hypothesis* best = top(verdict);
  if (best == nullptr || best->what == abi::Hypothesis::What::kNone) return;
  set_word("top.node", best->node);
  set_word("top.entity", best->entity);
  set_word("top.fault", short_cause(best->cause));
  set_word("top.fault.remedy", best->remedy);
  set_word("top.fault.severity", best->severity);
  set_word("top.profile", best->hw_class);
  set_real("top.hazard", best->hazard);
  double p = best->p;
  for (const auto& n : verdict.nodes) {
    if (!best->node.empty() && n.node == best->node) p = n.p;
  }
  set_real("top.p", p);
}

const abi::Record& VerdictRecord::fill(const abi::Verdict& verdict) {
  std::fill(memory_.begin(), memory_.end(), 0);
  abi::Record& r = record();
  r.ts_ns = verdict.ts_ns;
  r.slot_count = static_cast<uint16_t>(pack_->verdict_fields.size());
  set_word("id", verdict.id);
  set_word("incident", verdict.incident);
  set_word("type", short_cause(verdict.incident_type));
  set_word("job", verdict.job);
  set_word("symptom", verdict.symptom);
  set_word("opened_by", verdict.opened_by);
  set_int("revision", verdict.revision);
  set_int("final", verdict.final_revision ? 1 : 0);
  set_word("level", verdict.level);
  const std::string_view external = verdict.external;
  set_word("external", short_cause(std::string(external.substr(0, external.find(' ')))));
  set_int("nodes", verdict.job_node_count);
  set_int("late_events", verdict.late_events);
  set_nodes("culprits", verdict.culprits);
  const abi::Hypothesis* best = top(verdict);
  std::vector<std::string> others;
  for (const auto& n : verdict.nodes) {
    if (best == nullptr || n.node != best->node) others.push_back(n.node);
  }
  set_nodes("others", others);
  fill_top(verdict);
  return r;
}

}  // namespace reflex::policy
