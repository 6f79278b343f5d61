// ShadowComparison: what the shadow set answers otherwise than the live one.
//
// Compared are final verdicts, by incident, of event times from `since` on: since the shadow began,
// or since the oldest verdict that is still known of it (it keeps the newest 1,000). Up to `until`,
// the shadow's watermark: it may be a moment behind. Ids of incidents do not depend on the rules of
// either set beyond what opens them, so the same incident has the same id.
// Cost: reads the live set's finals of that time from the store, a page at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"
#include "runtime/serve/port.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

struct ShadowComparison {
  struct Incident {
    std::string incident, job;
    std::string live, shadow;  // "confirmed n3: gpu_memory"; "": no final verdict
    std::string live_id;       // of the live set's verdict
  };
  struct Firings {
    std::string signal;
    uint64_t live = 0, shadow = 0;
  };
  int64_t since_ns = INT64_MIN;
  uint64_t same = 0;                // incidents with the same answer
  std::vector<Incident> incidents;  // the others, by id
  /// Signals that fired differently often; both count on from the state that the shadow began with.
  std::vector<Firings> firings;
};

/// What a verdict says, in a few words: two of the same words answer the same.
std::string answer_words(const abi::Verdict& verdict);

/// Errors: of the store.
Result<ShadowComparison> compare_shadow(
    const Status& status, const std::vector<std::shared_ptr<const abi::Verdict>>& shadow,
    Store& store);

}  // namespace reflex::serve
