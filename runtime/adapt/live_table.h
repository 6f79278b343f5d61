// LiveTable: what is measured at run time as a TableSnapshot.
//
// live() looks at the rates as they are now: right until the next advance(), which is as long as one
// verdict takes. freeze() copies what one incident asks for, so that it can be kept (learning).
// Thresholds come as rows that never change.
#pragma once

#include <memory>
#include <span>

#include "runtime/abi/table.h"
#include "runtime/adapt/benign_rates.h"
#include "runtime/adapt/thresholds.h"

namespace reflex::adapt {

/// `rates` may be null: nothing is measured (node_hours 0).
std::shared_ptr<const abi::TableSnapshot> live(const BenignRates* rates,
                                               std::shared_ptr<const ThresholdRows> rows);
std::shared_ptr<const abi::TableSnapshot> freeze(const BenignRates& rates,
                                                 std::shared_ptr<const ThresholdRows> rows,
                                                 size_t signal_count,
                                                 std::span<const SymbolId> nodes);

}  // namespace reflex::adapt
