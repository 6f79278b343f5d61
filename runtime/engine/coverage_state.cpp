// Coverage as a saved state: what has been seen of which source, and declared gaps.
#include <algorithm>

#include "runtime/engine/coverage.h"

namespace reflex::engine {

void Coverage::save(StateWriter& writer) const {
  const SymbolTable& names = *pack_->symbols;
  const auto sorted = [&](const auto& map) {
    std::vector<std::pair<std::string_view, SymbolId>> order;
    for (const auto& entry : map) order.emplace_back(names.name(entry.first), entry.first);
    std::sort(order.begin(), order.end());
    return order;
  };
  writer.begin("coverage");
  writer.flag(all_);
  for (const int64_t since : structured_since_) writer.i64(since);
  const auto logs = sorted(logged_);
  writer.u64(logs.size());
  for (const auto& [name, node] : logs) writer.symbol(node);
  const auto nodes = sorted(gaps_);
  writer.u64(nodes.size());
  for (const auto& [name, node] : nodes) {
    const std::vector<Gap>& gaps = gaps_.at(node);
    writer.symbol(node);
    writer.u64(gaps.size());
    for (const Gap& gap : gaps) {
      writer.i64(gap.from_ns);
      writer.i64(gap.to_ns);
      writer.u64(gap.kinds.size());
      for (const abi::KindId kind : gap.kinds) writer.u64(kind);
    }
  }
  writer.end();
}

void Coverage::load(StateReader& reader, const abi::LoadNames& names) {
  if (!reader.enter("coverage")) return;
  all_ = reader.flag();
  for (const uint32_t kind : names.kinds()) {
    const int64_t since = reader.i64();
    if (kind != abi::LoadNames::kGone) structured_since_[kind] = since;
  }
  logged_.clear();
  gaps_.clear();
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) add_log(reader.symbol());
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const SymbolId node = reader.symbol();
    for (size_t gaps = reader.count(3); gaps > 0 && !reader.failed(); --gaps) {
      Gap gap{reader.i64(), reader.i64(), {}};
      const size_t kinds = reader.count();
      for (size_t i = 0; i < kinds; ++i) {
        const uint32_t kind = names.kind(reader);
        if (kind != abi::LoadNames::kGone) gap.kinds.push_back(static_cast<abi::KindId>(kind));
      }
      // A gap of kinds that are all gone is none; with no kinds it would be one of all.
      if (kinds == 0 || !gap.kinds.empty()) gaps_[node].push_back(std::move(gap));
    }
  }
  reader.leave();
  if (!reader.failed()) refresh_signals();
}

void Coverage::take_over(Coverage& old) {
  all_ = old.all_;
  structured_since_ = std::move(old.structured_since_);
  logged_ = std::move(old.logged_);
  gaps_ = std::move(old.gaps_);
  refresh_signals();
}

}  // namespace reflex::engine
