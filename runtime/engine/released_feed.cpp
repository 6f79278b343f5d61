// Steps of the engine: see released_feed.h.
#include "runtime/engine/released_feed.h"

#include <algorithm>
#include <span>

namespace reflex::engine {

void ReleasedFeed::count_late(const stream::Released& released, size_t at) {
  const int64_t after = std::min(released.late_after_ns[at] - 1, options_.until_ns);
  if (last_ts_ns_ != kNoTimeNs && after > last_ts_ns_) engine_.process({}, after);
  engine_.count_late(std::span(released.late).subspan(at, 1));
}

void ReleasedFeed::evaluate(const stream::Released& released) {
  const std::span<const abi::Record* const> all(released.records);
  size_t end = all.size();
  while (end > 0 && all[end - 1]->ts_ns > options_.until_ns) --end;
  const size_t step = std::max<size_t>(1, options_.step_events);
  size_t late = 0;
  for (size_t begin = 0; begin < end;) {
    if (late < released.late.size() && all[begin]->ts_ns >= released.late_after_ns[late]) {
      count_late(released, late++);
      continue;
    }
    size_t stop = std::min(begin + step, end);
    while (stop < end && all[stop]->ts_ns == all[stop - 1]->ts_ns) ++stop;
    if (late < released.late.size()) {
      const auto before = [](const abi::Record* r, int64_t ts_ns) { return r->ts_ns < ts_ns; };
      const auto next = std::lower_bound(all.begin() + begin, all.begin() + stop,
                                         released.late_after_ns[late], before);
      stop = static_cast<size_t>(next - all.begin());
    }
    const auto slice = all.subspan(begin, stop - begin);
    begin = stop;
    if (first_ts_ns_ == kNoTimeNs) first_ts_ns_ = slice.front()->ts_ns;
    if (options_.pace) options_.pace(first_ts_ns_, slice.back()->ts_ns);
    engine_.process(slice, slice.back()->ts_ns);
    last_ts_ns_ = slice.back()->ts_ns;
  }
  while (late < released.late.size()) count_late(released, late++);
  events_ += end;
  if (released.watermark_ns == INT64_MAX && !options_.complete_input) return;
  const int64_t watermark = std::min(released.watermark_ns, options_.until_ns);
  // Without records, too: in a stream that is silent an incident settles as its clock goes on.
  if (first_ts_ns_ == kNoTimeNs || end < all.size()) return;
  if (watermark <= last_ts_ns_ || watermark <= advanced_to_ns_) return;
  advanced_to_ns_ = watermark;
  engine_.process({}, watermark);
}

}  // namespace reflex::engine
