// Coverage: which signals can be seen on which node at all (attribution.md section 2,
// "unobserved").
//
// A signal is observed on a node when every kind that it listens to has a source that covers the
// node: a log of that node covers every kind that decoders make; a structured stream covers a kind
// on all nodes once it has carried any event of that kind. A declared gap makes a node unobserved
// for its span; so do overlays: a signal is not observed while it is disabled, nor on nodes that its
// exceptions name. Time: asked for a point in event time, so that it does not depend on batches.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/load_names.h"
#include "runtime/abi/record.h"

namespace reflex::engine {

class InventoryNames;

class Coverage {
 public:
  explicit Coverage(std::shared_ptr<const abi::CompiledPack> pack);

  /// Sites write exceptions as their sources name things; firings carry the inventory's names.
  void rename_exceptions(InventoryNames& names) { read_exceptions(&names); }
  void add_log(SymbolId node);
  /// Everything is observed everywhere (tests: what a script does not say did not happen).
  void assume_all() { all_ = true; }
  /// The node's sources of these kinds are silent; of all kinds when none is named.
  void add_gap(SymbolId node, int64_t from_ns, int64_t to_ns, std::vector<abi::KindId> kinds = {});
  /// What decoders make: the kinds of a node's logs.
  [[nodiscard]] std::vector<abi::KindId> decoded_kinds() const;
  /// A record of a structured stream; `from_log` records do not count.
  void saw(const abi::Record& record, bool from_log);
  /// The same, when only the kind and the time are known.
  void saw_kind(abi::KindId kind, int64_t ts_ns);

  /// Whether a source of the node that the signal listens to is declared silent at a time.
  [[nodiscard]] bool in_gap(abi::SignalId signal, SymbolId node, int64_t at_ns) const;
  [[nodiscard]] bool observed(abi::SignalId signal, SymbolId node, int64_t at_ns) const;
  /// Whether an overlay leaves a firing out: the signal is disabled, or its entity an exception.
  [[nodiscard]] bool left_out(const abi::Firing& firing) const;

  void save(StateWriter& writer) const;
  /// Replaces what is known of sources and gaps.
  void load(StateReader& reader, const abi::LoadNames& names);
  /// The same, of a set whose ids mean the same.
  void take_over(Coverage& old);

 private:
  struct Gap {
    int64_t from_ns;
    int64_t to_ns;
    std::vector<abi::KindId> kinds;
  };
  std::shared_ptr<const abi::CompiledPack> pack_;
  bool all_ = false;
  /// The exceptions of one signal: key values as ExceptionPlan::positions says, and their nodes.
  struct Exceptions {
    std::set<std::vector<uint64_t>> rows;
    std::unordered_set<SymbolId> nodes;
  };
  std::vector<Exceptions> exceptions_;  // [SignalId]; empty when no signal has any
  std::vector<uint8_t> decoded_kind_;  // [KindId]: some decoder makes it
  void refresh_signals();
  void read_exceptions(InventoryNames* names);
  std::vector<int64_t> structured_since_;  // [KindId], kNoTimeNs = never
  std::vector<int64_t> signal_since_;      // [SignalId] all its kinds are structured; kNever
  std::unordered_map<SymbolId, bool> logged_;
  std::unordered_map<SymbolId, std::vector<Gap>> gaps_;
};

}  // namespace reflex::engine
