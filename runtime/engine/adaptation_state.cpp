// Adaptation as a saved state: rates, thresholds, histories, maintenance, and what is known of nodes.
#include <algorithm>
#include <limits>

#include "runtime/engine/adaptation.h"

namespace reflex::engine {

void Adaptation::save_nodes(StateWriter& writer) const {
  std::vector<std::pair<std::string_view, SymbolId>> order;
  for (const auto& [node, state] : nodes_) order.emplace_back(pack_->symbols->name(node), node);
  std::sort(order.begin(), order.end());
  writer.u64(order.size());
  for (const auto& [name, node] : order) {
    const NodeState& state = nodes_.at(node);
    writer.symbol(node);
    writer.symbol(state.cohort);
    writer.i64(state.held_from_ns);
    writer.i64(state.held_until_ns);
    writer.i64(state.confirmed_ns);
  }
}

void Adaptation::load_nodes(StateReader& reader) {
  for (size_t left = reader.count(5); left > 0 && !reader.failed(); --left) {
    NodeState& state = nodes_[reader.symbol()];
    state.cohort = reader.symbol();
    state.held_from_ns = reader.i64();
    state.held_until_ns = reader.i64();
    state.confirmed_ns = reader.i64();
  }
}

void Adaptation::save(StateWriter& writer) const {
  rates_.save(writer);
  thresholds_.save(writer);
  history_.save(writer);
  suppression_.save(writer);
  writer.begin("nodes");
  save_nodes(writer);
  std::vector<std::string_view> learned;  // of options_.known
  if (options_.known) {
    for (const auto& known : *options_.known) {
      if (!known_.contains(known.incident)) learned.push_back(known.incident);
    }
  }
  std::sort(learned.begin(), learned.end());
  writer.u64(learned.size());
  for (const std::string_view incident : learned) writer.text(incident);
  std::vector<const KnownIncident*> told;
  for (const auto& [incident, known] : told_) told.push_back(&known);
  std::sort(told.begin(), told.end(), [](const KnownIncident* a, const KnownIncident* b) {
    return a->incident < b->incident;
  });
  writer.u64(told.size());
  for (const KnownIncident* known : told) {
    writer.text(known->incident);
    writer.i64(known->ts_ns);
    writer.u64(known->culprits.size());
    for (const std::string& culprit : known->culprits) writer.text(culprit);
    writer.text(known->fault);
  }
  writer.end();
}

void Adaptation::load(StateReader& reader, abi::LoadNames& names) {
  const auto class_of = [this](SymbolId node) {
    return topology_->hw_class(node, std::numeric_limits<int64_t>::max());
  };
  rates_.load(reader, names, class_of);
  thresholds_.load(reader, names, class_of);
  history_.load(reader, names);
  suppression_.load(reader);
  if (!reader.enter("nodes")) return;
  load_nodes(reader);
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    known_.erase(std::string(reader.text()));
  }
  for (size_t left = reader.count(4); left > 0 && !reader.failed(); --left) {
    KnownIncident known;
    known.incident = reader.text();
    known.ts_ns = reader.i64();
    for (size_t i = reader.count(); i > 0 && !reader.failed(); --i) {
      known.culprits.emplace_back(reader.text());
    }
    known.fault = reader.text();
    told_[known.incident] = std::move(known);
  }
  reader.leave();
}

void Adaptation::take_over(Adaptation& old, const abi::SetChange& change) {
  rates_.take_over(old.rates_, change);
  thresholds_.take_over(old.thresholds_, change);
  history_.take_over(old.history_);
  suppression_.take_over(old.suppression_);
  nodes_ = std::move(old.nodes_);
  if (old.options_.known) {
    for (const auto& known : *old.options_.known) {
      if (!old.known_.contains(known.incident)) known_.erase(known.incident);
    }
  }
  told_ = std::move(old.told_);
}

}  // namespace reflex::engine
