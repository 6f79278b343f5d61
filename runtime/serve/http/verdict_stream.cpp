// Followers of verdicts: see verdict_stream.h. Form: WHATWG HTML, server-sent events.
#include "runtime/serve/http/verdict_stream.h"

#include <fmt/format.h>

#include <algorithm>

namespace reflex::serve {

class VerdictStreams::Follower : public BodyStream {
 public:
  Follower(VerdictStreams& streams, const VerdictFilter& filter)
      : streams_(streams), filter_(filter) {
    filter_.newest_first = false;
    // Why 32: a verdict is some tens of KiB; a page is what one follower holds in memory.
    filter_.limit = 32;
  }
  ~Follower() override {
    const std::lock_guard lock(streams_.mutex_);
    --streams_.followers_;
  }

  bool next(std::string& piece) override {
    if (!begun_) {
      begun_ = true;
      piece += "retry: 2000\n: verdicts follow\n\n";
      return true;
    }
    uint64_t newest = 0;
    {
      std::unique_lock lock(streams_.mutex_);
      streams_.changed_.wait_for(lock, streams_.heartbeat_, [&] {
        return streams_.stopped_ || streams_.newest_ > filter_.after;
      });
      if (streams_.stopped_) return false;
      newest = streams_.newest_;
    }
    if (newest <= filter_.after) {
      piece += ": still here\n\n";
      return true;
    }
    auto page = streams_.store_.verdicts(filter_);
    if (!page) {
      piece += "event: error\ndata: the store cannot be read\n\n";
      return false;
    }
    for (const StoredVerdict& verdict : page.value().verdicts) {
      piece += fmt::format("id: {}\nevent: verdict\ndata: {}\n\n", verdict.sequence, verdict.json);
      filter_.after = verdict.sequence;
    }
    // What is left of it does not fit the filter.
    if (!page.value().more) filter_.after = std::max(filter_.after, newest);
    return true;
  }

 private:
  VerdictStreams& streams_;
  VerdictFilter filter_;
  bool begun_ = false;
};

VerdictStreams::VerdictStreams(Store& store, unsigned max, std::chrono::milliseconds heartbeat)
    : store_(store), max_(max), heartbeat_(heartbeat) {
  const auto counts = store_.counts();
  if (counts) newest_ = counts.value().last_verdict;
}

void VerdictStreams::tell(uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    newest_ = std::max(newest_, sequence);
  }
  changed_.notify_all();
}

std::shared_ptr<BodyStream> VerdictStreams::follow(const VerdictFilter& filter) {
  {
    const std::lock_guard lock(mutex_);
    if (followers_ >= max_ || stopped_) return nullptr;
    ++followers_;
  }
  return std::make_shared<Follower>(*this, filter);
}

uint64_t VerdictStreams::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

unsigned VerdictStreams::followers() const {
  const std::lock_guard lock(mutex_);
  return followers_;
}

void VerdictStreams::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace reflex::serve
