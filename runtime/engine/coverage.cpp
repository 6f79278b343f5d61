// Observed or not: see coverage.h.
#include "runtime/engine/coverage.h"

#include <algorithm>
#include <limits>

#include "runtime/base/time.h"
#include "runtime/engine/inventory_names.h"

namespace reflex::engine {
namespace {
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
}  // namespace

Coverage::Coverage(std::shared_ptr<const abi::CompiledPack> pack)
    : pack_(std::move(pack)),
      decoded_kind_(pack_->kinds.size(), 0),
      structured_since_(pack_->kinds.size(), kNoTimeNs),
      signal_since_(pack_->signals.size(), kNever) {
  for (const auto& decoder : pack_->decoders) {
    for (const auto& line : decoder.lines) {
      if (!line.ignore) decoded_kind_[line.kind] = 1;
    }
  }
  read_exceptions(nullptr);
}

void Coverage::read_exceptions(InventoryNames* names) {
  exceptions_.clear();
  for (size_t s = 0; s < pack_->signals.size(); ++s) {
    const abi::ExceptionPlan& plan = pack_->signals[s].exceptions;
    if (plan.rows.empty()) continue;
    exceptions_.resize(pack_->signals.size());
    const auto& keys = pack_->entity_kinds[pack_->signals[s].entity_kind].keys;
    for (const auto& row : plan.rows) {
      std::vector<uint64_t> values = row.values;
      SymbolId node = kNoSymbol;
      for (size_t i = 0; i < plan.positions.size(); ++i) {
        if (keys[plan.positions[i]] != "node") continue;
        node = static_cast<SymbolId>(values[i]);
        if (names != nullptr) node = names->node(node);
        values[i] = node;
        exceptions_[s].nodes.insert(node);
      }
      for (size_t i = 0; names != nullptr && i < plan.positions.size(); ++i) {
        if (keys[plan.positions[i]] != "gpu") continue;
        values[i] = static_cast<uint64_t>(names->gpu(node, static_cast<int64_t>(values[i])));
      }
      exceptions_[s].rows.insert(std::move(values));
    }
  }
}

bool Coverage::left_out(const abi::Firing& firing) const {
  const abi::SignalPlan& signal = pack_->signals[firing.signal];
  if (firing.ts_ns < signal.disabled_until_ns) return true;
  if (exceptions_.empty() || exceptions_[firing.signal].rows.empty()) return false;
  std::vector<uint64_t> values;
  for (const uint8_t position : signal.exceptions.positions) {
    values.push_back(firing.entity.values[position]);
  }
  return exceptions_[firing.signal].rows.contains(values);
}

void Coverage::add_log(SymbolId node) { logged_[node] = true; }

void Coverage::add_gap(SymbolId node, int64_t from_ns, int64_t to_ns,
                       std::vector<abi::KindId> kinds) {
  gaps_[node].push_back({from_ns, to_ns, std::move(kinds)});
}

std::vector<abi::KindId> Coverage::decoded_kinds() const {
  std::vector<abi::KindId> kinds;
  for (abi::KindId k = 0; k < decoded_kind_.size(); ++k) {
    if (decoded_kind_[k] != 0) kinds.push_back(k);
  }
  return kinds;
}

void Coverage::saw(const abi::Record& record, bool from_log) {
  if (!from_log) saw_kind(record.kind, record.ts_ns);
}

void Coverage::saw_kind(abi::KindId kind, int64_t ts_ns) {
  int64_t& since = structured_since_[kind];
  if (since != kNoTimeNs && ts_ns >= since) return;
  since = ts_ns;
  refresh_signals();
}

// Runs once a kind: asking is far more frequent than a kind's first event.
void Coverage::refresh_signals() {
  for (size_t s = 0; s < signal_since_.size(); ++s) {
    int64_t since = kNoTimeNs;
    for (const abi::KindId kind : pack_->signals[s].kinds) {
      const int64_t k = structured_since_[kind];
      since = std::max(since, k == kNoTimeNs ? kNever : k);
    }
    signal_since_[s] = since;
  }
}

bool Coverage::in_gap(abi::SignalId signal, SymbolId node, int64_t at_ns) const {
  if (gaps_.empty()) return false;
  const auto gap = gaps_.find(node);
  if (gap == gaps_.end()) return false;
  const auto& listens = pack_->signals[signal].kinds;
  return std::any_of(gap->second.begin(), gap->second.end(), [&](const Gap& g) {
    if (at_ns < g.from_ns || at_ns >= g.to_ns) return false;
    return g.kinds.empty() || std::any_of(g.kinds.begin(), g.kinds.end(), [&](abi::KindId kind) {
             return std::find(listens.begin(), listens.end(), kind) != listens.end();
           });
  });
}

bool Coverage::observed(abi::SignalId signal, SymbolId node, int64_t at_ns) const {
  if (in_gap(signal, node, at_ns) || at_ns < pack_->signals[signal].disabled_until_ns) return false;
  if (!exceptions_.empty() && exceptions_[signal].nodes.contains(node)) return false;
  if (all_ || signal_since_[signal] <= at_ns) return true;
  if (logged_.empty()) return false;
  const bool has_log = logged_.contains(node);
  const auto& kinds = pack_->signals[signal].kinds;
  return std::all_of(kinds.begin(), kinds.end(), [&](abi::KindId kind) {
    if (has_log && decoded_kind_[kind]) return true;
    const int64_t since = structured_since_[kind];
    return since != kNoTimeNs && since <= at_ns;
  });
}

}  // namespace reflex::engine
