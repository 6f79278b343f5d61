// The histories that a Topology is made of. For topology.cpp and topology_state.cpp only.
#pragma once

#include <algorithm>
#include <string_view>

#include "runtime/topology/topology.h"

namespace reflex::topology {

template <typename T>
struct History {
  struct Entry {
    int64_t ts_ns;
    T value;
  };
  std::vector<Entry> entries;

  T& add(int64_t ts_ns, T value, int64_t horizon_ns) {
    auto at = std::upper_bound(entries.begin(), entries.end(), ts_ns,
                               [](int64_t t, const Entry& e) { return t < e.ts_ns; });
    // What is said again of one time replaces what was said before: no one can ask for that.
    if (at != entries.begin() && std::prev(at)->ts_ns == ts_ns) {
      --at;
      at->value = std::move(value);
    } else {
      at = entries.insert(at, Entry{ts_ns, std::move(value)});
    }
    // The newest entry at or before the horizon still answers for it; older ones are unreachable.
    const int64_t oldest_ns = entries.back().ts_ns - horizon_ns;
    size_t drop = 0;
    const size_t here = static_cast<size_t>(at - entries.begin());
    while (drop < here && entries[drop + 1].ts_ns <= oldest_ns) ++drop;
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(drop));
    return entries[here - drop].value;
  }
  [[nodiscard]] const T* at(int64_t ts_ns) const {
    if (entries.empty()) return nullptr;
    if (entries.back().ts_ns <= ts_ns) return &entries.back().value;
    auto it = std::upper_bound(entries.begin(), entries.end(), ts_ns,
                               [](int64_t t, const Entry& e) { return t < e.ts_ns; });
    return it == entries.begin() ? nullptr : &std::prev(it)->value;
  }
};

struct LabelVersion {
  Labels labels;
  abi::ClassId hw_class = 0;
};

struct Node {
  History<LabelVersion> labels;
  History<SymbolId> jobs;
  History<bool> maintenance;
  std::vector<int64_t> repairs_ns;
};

struct Job {
  std::vector<SymbolId> nodes;
  bool ended = false;
};

struct Topology::State {
  std::shared_ptr<const abi::CompiledPack> pack;
  std::unordered_map<SymbolId, Node> nodes;
  std::unordered_map<SymbolId, History<Job>> jobs;
  std::vector<std::string> ambiguous;  // sorted
  int64_t horizon_ns = 0;
  // Why these: an incident asks for the members of each place of its job, and places are few.
  std::vector<SymbolId> place_keys;
  /// Nodes that ever had a place (key << 32 | value), by id.
  std::unordered_map<uint64_t, std::vector<SymbolId>> ever_at;

  [[nodiscard]] bool is_place(SymbolId key) const {
    return std::find(place_keys.begin(), place_keys.end(), key) != place_keys.end();
  }
  void note_places(SymbolId node, const Labels& labels);
  [[nodiscard]] SymbolId symbol(const abi::Record& r, std::string_view field) const;
  [[nodiscard]] std::vector<SymbolId> symbols(const abi::Record& r, std::string_view field) const;
  /// Sets the class of labels that a node has from `ts_ns` on, and whether the node is ambiguous.
  void classify(const Topology& topology, SymbolId node, int64_t ts_ns, LabelVersion& version);
  [[nodiscard]] bool is_ancestor(abi::ClassId above, abi::ClassId below) const {
    for (size_t steps = 0; steps <= pack->classes.size(); ++steps) {
      if (above == below) return true;
      const abi::ClassId parent = pack->classes[below].parent;
      if (parent == below) return false;
      below = parent;
    }
    return false;
  }
  [[nodiscard]] abi::ClassId common_ancestor(abi::ClassId a, abi::ClassId b) const {
    for (size_t steps = 0; steps <= pack->classes.size(); ++steps) {
      if (is_ancestor(a, b)) return a;
      if (pack->classes[a].parent == a) break;
      a = pack->classes[a].parent;
    }
    return 0;
  }
};

}  // namespace reflex::topology
