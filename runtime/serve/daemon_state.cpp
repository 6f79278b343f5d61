// State on disk: the start from it, snapshots, trimming. See daemon.h.
#include <fmt/format.h>

#include "runtime/base/time.h"
#include "runtime/serve/daemon.h"
#include "runtime/serve/wall_clock.h"

namespace reflex::serve {

// The newest state that is good; each one that is not is told, and the next older one is tried, in
// the end the whole journal.
reflex::Status Daemon::begin_with(std::shared_ptr<const LoadedSet> configured, bool counted) {
  std::vector<std::string> found;
  const bool first_start = journal_->end() == 0;
  Beginning beginning;
  auto snapshot = snapshots_->newest(journal_->begin(), found);
  for (; snapshot && !beginning.running;) {
    const SnapshotHeader& header = snapshot->header;
    const uint64_t position = header.position;
    if (position <= journal_->end()) {
      auto made = begin_at(header, snapshot->state, configured.get(), found);
      if (made.ok()) {
        beginning = std::move(made).value();
        found.push_back(
            fmt::format("state: snapshot of {} at position {}, {} bytes; {} bytes of "
                        "the journal to read",
                        to_rfc3339(EventTime{header.wall_ns}), position, snapshot->state.size(),
                        journal_->end() - position));
        break;
      }
      found.push_back(
          fmt::format("snapshot at position {}: {} (passed over)", position, made.error().message));
    } else {
      found.push_back(
          fmt::format("snapshot at position {} is ahead of the journal (passed over)", position));
    }
    snapshot = snapshots_->before(position, journal_->begin(), found);
  }
  if (!beginning.running) {
    SnapshotHeader header;
    header.position = journal_->begin();
    auto made = begin_at(header, "", configured.get(), found);
    if (!made.ok()) return made.error();
    beginning = std::move(made).value();
    if (header.position > 0) {
      found.push_back(
          fmt::format("state: no snapshot can be used: what was before position {} is "
                      "forgotten",
                      header.position));
    } else if (!first_start) {
      found.push_back("state: no snapshot, the whole journal is read");
    } else {
      found.push_back("state: none, this is the first start");
    }
  }
  const RunningSet& running = *beginning.running;
  for (const auto& line : found) find(line);
  for (const auto& note : running.report.notes) find("state: " + note);
  replay_begin_ = running.runner->position();
  if (!counted) {
    auto read = ingest_->begin(running.runner->lane().book(), replay_begin_);
    if (!read.ok()) return read.error();
  }
  begin_reading(std::move(beginning), std::move(configured), /*wait=*/counted);
  return ok_status();
}

void Daemon::begin_reading(Beginning&& beginning, std::shared_ptr<const LoadedSet> configured,
                           bool wait) {
  const std::shared_ptr<RunningSet> running = std::move(beginning.running);
  running->set.let_go_of_texts();
  kept_->use(running->set.key);
  {
    const std::lock_guard lock(lanes_mutex_);
    live_ = running;
    no_set_because_.clear();
  }
  if (beginning.ahead.empty()) return running->runner->start();
  switching_ = true;
  replay_end_ = journal_->end();
  running->runner->stop_at(beginning.ahead.front().base());
  running->runner->start();
  if (wait) return read_on(beginning.ahead, configured.get());
  const auto locked = std::make_shared<std::promise<void>>();
  reading_on_ = std::thread([this, locked, ahead = std::move(beginning.ahead),
                             configured = std::move(configured)] {
    const std::lock_guard one(reload_mutex_);
    locked->set_value();
    read_on(ahead, configured.get());
  });
  locked->get_future().wait();  // no reload comes before it
}

reflex::Status Daemon::snapshot() {
  const std::lock_guard one(snapshot_mutex_);
  auto status = take_snapshot();
  const std::lock_guard lock(lanes_mutex_);
  marks_.last_snapshot_error = status.ok() ? "" : status.error().message;
  if (status.ok()) marks_.last_snapshot_wall_ns = wall_clock_ns();
  return status;
}

reflex::Status Daemon::take_snapshot() {
  const auto running = live();
  if (!running) return Error{"no pack set is active"};
  auto state = capture_state(*running->runner);
  if (!state.ok()) return state.error();
  // What the state has said is not said again after a restart: it must be in the store first.
  constexpr auto kStoreMax = std::chrono::seconds(60);
  if (!publisher_->wait_stored(publisher_->pushed(), kStoreMax)) {
    return Error{"the store does not take verdicts: " + publisher_->error()};
  }
  if (auto status = snapshots_->write(state.value(), wall_clock_ns()); !status.ok()) return status;
  {
    const std::lock_guard lock(lanes_mutex_);
    marks_.last_snapshot_pause_us = state.value().pause_us;
    marks_.last_snapshot_bytes = state.value().bytes.size();
  }
  uint64_t keep = running->runner->position();
  if (const auto oldest = snapshots_->oldest_position()) {
    keep = std::min(keep, *oldest);
  } else {
    return ok_status();  // the whole journal is the second way back
  }
  if (const auto beside = shadow()) keep = std::min(keep, beside->runner->position());
  // The journal goes by whole segments, sets as soon as no start from a snapshot reads with them.
  kept_->trim(keep);
  return journal_->trim(keep);
}

void Daemon::snapshot_loop() {
  const auto interval = [this] {
    return std::chrono::nanoseconds(config()->main.duration_ns("snapshot.interval"));
  };
  // Why an eighth: a stream that is faster than the interval was made for must not fill the
  // journal.
  const uint64_t bytes_between = options_.config.main.bytes("journal.max") / 8;
  uint64_t last_position = journal_->end();
  constexpr int64_t kDebounceNs = 500 * kNsPerMs;
  int64_t manifest_ns = manifest_changed_ns(*config());
  auto last = Clock::now();
  std::unique_lock lock(loop_mutex_);
  while (!stopping_) {
    loop_changed_.wait_for(lock, std::chrono::milliseconds(250),
                           [&] { return stopping_ || (snapshot_wanted_ &&
                                                      Clock::now() >= snapshot_from_); });
    if (stopping_) return;
    const bool wanted = snapshot_wanted_ && Clock::now() >= snapshot_from_;
    const bool due = wanted || Clock::now() >= last + interval() ||
                     journal_->end() - last_position > bytes_between;
    if (due) snapshot_wanted_ = false;
    lock.unlock();
    if (due) {
      last_position = journal_->end();
      last = Clock::now();
      if (auto status = snapshot(); !status.ok()) say("snapshot: " + status.error().message);
      Retention retention;
      const int64_t now = wall_clock_ns();
      retention.before_ns = now - config()->main.duration_ns("store.keep");
      retention.bytes_max = config()->main.bytes("store.max");
      retention.keys_before_ns = retention.before_ns;
      if (auto kept = store_->apply(retention); !kept.ok()) say("store: " + kept.error().message);
    }
    const auto now_in_force = config();
    const bool watch = now_in_force->main.flag("packs.watch");
    const int64_t changed_ns = watch ? manifest_changed_ns(*now_in_force) : manifest_ns;
    if (changed_ns != manifest_ns && wall_clock_ns() - changed_ns > kDebounceNs) {
      manifest_ns = changed_ns;
      const auto answer = reload();
      say(fmt::format("the manifest changed: {}",
                      answer.error.empty() ? "reloaded" : answer.error));
    }
    lock.lock();
  }
}

}  // namespace reflex::serve
