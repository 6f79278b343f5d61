// Live and frozen tables: see live_table.h.
#include "runtime/adapt/live_table.h"

#include <algorithm>

namespace reflex::adapt {
namespace {

/// Rows of thresholds; what both tables share.
class WithRows : public abi::TableSnapshot {
 public:
  explicit WithRows(std::shared_ptr<const ThresholdRows> rows) : thresholds_(std::move(rows)) {}
  [[nodiscard]] const abi::Value* row(abi::ClassId hw_class) const override {
    return thresholds_->classes[hw_class].values.data();
  }
  [[nodiscard]] const abi::Value* row_of_node(abi::ClassId hw_class, SymbolId node) const override {
    return thresholds_->of(hw_class, node).values.data();
  }
  [[nodiscard]] abi::TableOrigin origin(abi::AdaptiveId slot, abi::ClassId hw_class,
                                        SymbolId node) const override {
    const auto& origins = thresholds_->of(hw_class, node).origins;
    return slot < origins.size() ? origins[slot] : abi::TableOrigin{};
  }

 private:
  std::shared_ptr<const ThresholdRows> thresholds_;
};

class Live : public WithRows {
 public:
  Live(const BenignRates* rates, std::shared_ptr<const ThresholdRows> rows)
      : WithRows(std::move(rows)), rates_(rates) {}
  [[nodiscard]] uint64_t version() const override { return rates_ ? rates_->version() : 0; }
  [[nodiscard]] int64_t valid_from_ns() const override {
    return rates_ ? rates_->valid_from_ns() : kNoTimeNs;
  }
  [[nodiscard]] abi::BenignRate benign(abi::SignalId signal, abi::ClassId,
                                       SymbolId node) const override {
    return rates_ ? rates_->benign(signal, node) : abi::BenignRate{};
  }

 private:
  const BenignRates* rates_;
};

class Frozen : public WithRows {
 public:
  Frozen(const BenignRates& rates, std::shared_ptr<const ThresholdRows> rows, size_t signal_count,
         std::span<const SymbolId> nodes)
      : WithRows(std::move(rows)),
        version_(rates.version()),
        valid_from_ns_(rates.valid_from_ns()),
        signal_count_(signal_count),
        nodes_(nodes.begin(), nodes.end()) {
    std::sort(nodes_.begin(), nodes_.end());
    rates_.reserve(nodes_.size() * signal_count);
    for (const SymbolId node : nodes_) {
      for (abi::SignalId s = 0; s < signal_count; ++s) rates_.push_back(rates.benign(s, node));
    }
  }
  [[nodiscard]] uint64_t version() const override { return version_; }
  [[nodiscard]] int64_t valid_from_ns() const override { return valid_from_ns_; }
  [[nodiscard]] abi::BenignRate benign(abi::SignalId signal, abi::ClassId,
                                       SymbolId node) const override {
    const auto it = std::lower_bound(nodes_.begin(), nodes_.end(), node);
    if (it == nodes_.end() || *it != node) return {};
    return rates_[static_cast<size_t>(it - nodes_.begin()) * signal_count_ + signal];
  }

 private:
  uint64_t version_;
  int64_t valid_from_ns_;
  size_t signal_count_;
  std::vector<SymbolId> nodes_;  // sorted by id: only looked up, never listed
  std::vector<abi::BenignRate> rates_;
};

}  // namespace

std::shared_ptr<const abi::TableSnapshot> live(const BenignRates* rates,
                                               std::shared_ptr<const ThresholdRows> rows) {
  return std::make_shared<Live>(rates, std::move(rows));
}

std::shared_ptr<const abi::TableSnapshot> freeze(const BenignRates& rates,
                                                 std::shared_ptr<const ThresholdRows> rows,
                                                 size_t signal_count,
                                                 std::span<const SymbolId> nodes) {
  return std::make_shared<Frozen>(rates, std::move(rows), signal_count, nodes);
}

}  // namespace reflex::adapt
