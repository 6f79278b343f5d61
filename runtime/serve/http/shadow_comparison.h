// ShadowComparison: what the shadow set answers otherwise than the live one.
//
// Compared are final verdicts, by incident, of event times from `since` on: since the shadow began,
// or since the oldest verdict that is still known of it (it keeps the newest 1,000) or of the store
// (retention); up to the lower of the two watermarks: either may be a moment behind. An incident that
// one of them has yet to finish (`settle` differs) is none of the differences until then. The id of
// an incident is made of its type, its job and when it opened: the same incident has the same id.
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
  uint64_t open = 0;                // final in one of them, not yet in the other
  std::vector<Incident> incidents;  // the others, by id
  /// Signals that fired differently often; both count on from the state that the shadow began with.
  /// Up to the watermark of each: of sets with another lateness they differ for a while.
  std::vector<Firings> firings;
};

/// What a verdict says, in a few words: two of the same words answer the same.
std::string answer_words(const abi::Verdict& verdict);

/// Errors: of the store.
Result<ShadowComparison> compare_shadow(
    const Status& status, const std::vector<std::shared_ptr<const abi::Verdict>>& shadow,
    Store& store);

}  // namespace reflex::serve
