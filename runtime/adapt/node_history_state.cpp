// Node histories as a saved state: nodes by name, causes by those of the state.
#include <algorithm>

#include "runtime/adapt/node_history.h"

namespace reflex::adapt {

void NodeHistory::Fading::save(StateWriter& writer) const {
  writer.f64(value);
  writer.i64(ts_ns);
}

void NodeHistory::Fading::load(StateReader& reader) {
  value = reader.f64();
  ts_ns = reader.i64();
}

void NodeHistory::save(StateWriter& writer, const Entry& entry) {
  writer.i64(entry.ts_ns);
  writer.flag(entry.cause != abi::kNone32);
  if (entry.cause != abi::kNone32) writer.u64(entry.cause);
  writer.f64(entry.weight);
  writer.flag(entry.blame);
  writer.i64(entry.replaced_ns);
}

NodeHistory::Entry NodeHistory::load_entry(StateReader& reader, const abi::LoadNames& names) {
  Entry entry;
  entry.ts_ns = reader.i64();
  if (reader.flag()) entry.cause = names.cause(reader);  // kGone is kNone32: unknown
  entry.weight = reader.f64();
  entry.blame = reader.flag();
  entry.replaced_ns = reader.i64();
  return entry;
}

void NodeHistory::save(StateWriter& writer) const {
  writer.begin("history");
  std::vector<std::pair<std::string_view, SymbolId>> order;
  for (const auto& [id, entries] : nodes_) order.emplace_back(pack_->symbols->name(id), id);
  std::sort(order.begin(), order.end());
  writer.u64(order.size());
  for (const auto& [name, id] : order) {
    const Entries& entries = nodes_.at(id);
    writer.symbol(id);
    writer.u64(entries.size());
    for (const Entry& entry : entries) save(writer, entry);
  }
  for (const Fading& fading : by_cause_) fading.save(writer);
  incidents_.save(writer);
  unexplained_.save(writer);
  writer.end();
}

void NodeHistory::load(StateReader& reader, const abi::LoadNames& names) {
  if (!reader.enter("history")) return;
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const SymbolId id = reader.symbol();
    Entries& entries = nodes_[id];
    for (size_t count = reader.count(12); count > 0 && !reader.failed(); --count) {
      entries.push_back(load_entry(reader, names));
    }
  }
  for (const uint32_t cause : names.causes()) {
    Fading fading;
    fading.load(reader);
    if (cause != abi::LoadNames::kGone) by_cause_[cause] = fading;
  }
  by_cause_.back().load(reader);
  incidents_.load(reader);
  unexplained_.load(reader);
  reader.leave();
}

void NodeHistory::take_over(NodeHistory& old) {
  nodes_ = std::move(old.nodes_);
  by_cause_ = std::move(old.by_cause_);
  incidents_ = old.incidents_;
  unexplained_ = old.unexplained_;
}

}  // namespace reflex::adapt
