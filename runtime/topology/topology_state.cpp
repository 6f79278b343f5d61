// A topology as a saved state: nodes and jobs by name, each with its histories.
#include <algorithm>

#include "runtime/topology/topology_parts.h"

namespace reflex::topology {
namespace {

template <typename Map>
std::vector<typename Map::const_pointer> by_name(const Map& map, const SymbolTable& names) {
  std::vector<typename Map::const_pointer> out;
  out.reserve(map.size());
  for (const auto& entry : map) out.push_back(&entry);
  std::sort(out.begin(), out.end(), [&](const auto* a, const auto* b) {
    return names.name(a->first) < names.name(b->first);
  });
  return out;
}

template <typename T, typename SaveValue>
void save_history(StateWriter& writer, const History<T>& history, const SaveValue& save_value) {
  writer.u64(history.entries.size());
  for (const auto& entry : history.entries) {
    writer.i64(entry.ts_ns);
    save_value(entry.value);
  }
}

template <typename T, typename LoadValue>
void load_history(StateReader& reader, History<T>& history, const LoadValue& load_value) {
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const int64_t ts_ns = reader.i64();
    const bool in_order = history.entries.empty() || history.entries.back().ts_ns <= ts_ns;
    if (!in_order) reader.fail();
    history.entries.push_back({ts_ns, load_value()});
  }
}

void save_labels(StateWriter& writer, Labels labels, const SymbolTable& names) {
  std::stable_sort(labels.begin(), labels.end(), [&](const auto& a, const auto& b) {
    return names.name(a.first) < names.name(b.first);
  });
  writer.u64(labels.size());
  for (const auto& [key, value] : labels) {
    writer.symbol(key);
    writer.symbol(value);
  }
}

Labels load_labels(StateReader& reader) {
  Labels labels;
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const SymbolId key = reader.symbol();
    labels.emplace_back(key, reader.symbol());
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return labels;
}

std::vector<SymbolId> load_symbols(StateReader& reader) {
  std::vector<SymbolId> out;
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    out.push_back(reader.symbol());
  }
  return out;
}

}  // namespace

void Topology::save(StateWriter& writer) const {
  const State& s = *state_;
  const SymbolTable& names = *s.pack->symbols;
  writer.begin("topology");
  writer.u64(s.nodes.size());
  for (const auto* entry : by_name(s.nodes, names)) {
    const Node& node = entry->second;
    writer.symbol(entry->first);
    save_history(writer, node.labels, [&](const LabelVersion& version) {
      writer.u64(version.hw_class);
      save_labels(writer, version.labels, names);
    });
    save_history(writer, node.jobs, [&](SymbolId job) { writer.symbol(job); });
    save_history(writer, node.maintenance, [&](bool on) { writer.flag(on); });
    writer.u64(node.repairs_ns.size());
    for (const int64_t ns : node.repairs_ns) writer.i64(ns);
  }
  writer.u64(s.jobs.size());
  for (const auto* entry : by_name(s.jobs, names)) {
    writer.symbol(entry->first);
    save_history(writer, entry->second, [&](const Job& job) {
      writer.flag(job.ended);
      writer.u64(job.nodes.size());
      for (const SymbolId node : job.nodes) writer.symbol(node);
    });
  }
  writer.u64(s.ambiguous.size());
  for (const std::string& name : s.ambiguous) writer.text(name);
  writer.end();
}

void Topology::load(StateReader& reader, abi::LoadNames& names) {
  State& s = *state_;
  s.nodes.clear();
  s.ever_at.clear();
  s.jobs.clear();
  s.ambiguous.clear();
  std::vector<std::pair<SymbolId, uint32_t>> newest;  // class in the state, by node
  if (!reader.enter("topology")) return;
  for (size_t left = reader.count(5); left > 0 && !reader.failed(); --left) {
    const SymbolId id = reader.symbol();
    Node& node = s.nodes[id];
    uint32_t old_class = abi::LoadNames::kGone;
    load_history(reader, node.labels, [&] {
      LabelVersion version;
      old_class = names.old_class(reader);
      const uint32_t now = names.class_of(old_class);
      if (now != abi::LoadNames::kGone) version.hw_class = static_cast<abi::ClassId>(now);
      version.labels = load_labels(reader);
      s.note_places(id, version.labels);
      return version;
    });
    if (old_class != abi::LoadNames::kGone) newest.emplace_back(id, old_class);
    load_history(reader, node.jobs, [&] { return reader.symbol(); });
    load_history(reader, node.maintenance, [&] { return reader.flag(); });
    for (size_t repairs = reader.count(); repairs > 0 && !reader.failed(); --repairs) {
      node.repairs_ns.push_back(reader.i64());
    }
    if (!std::is_sorted(node.repairs_ns.begin(), node.repairs_ns.end())) reader.fail();
  }
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    load_history(reader, s.jobs[reader.symbol()], [&] {
      const bool ended = reader.flag();
      return Job{load_symbols(reader), ended};
    });
  }
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    s.ambiguous.emplace_back(reader.text());
  }
  reader.leave();
  if (reader.failed() || names.same_set()) return;
  s.ambiguous.clear();
  std::vector<std::pair<uint32_t, abi::ClassId>> became;
  for (const auto& [id, old_class] : newest) {
    auto& versions = s.nodes[id].labels.entries;
    for (auto& version : versions) s.classify(*this, id, version.ts_ns, version.value);
    became.emplace_back(old_class, versions.back().value.hw_class);
  }
  names.rename_classes(became);
}

void Topology::take_over(Topology& old) {
  state_->nodes = std::move(old.state_->nodes);
  state_->jobs = std::move(old.state_->jobs);
  state_->ambiguous = std::move(old.state_->ambiguous);
  state_->ever_at = std::move(old.state_->ever_at);
}

}  // namespace reflex::topology
