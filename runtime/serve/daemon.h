// Daemon: `reflex serve` without its HTTP side: the journal, the live lane, snapshots, reloads.
//
// Threads: the live lane's, a shadow's, the publisher's, one for ticks, one for snapshots and the
// manifest, after a start that finds other sets in the journal one that changes them; sources and
// sinks have their own (see README.md). Locks are taken in the order reload,
// snapshot, lanes; none is held while a lane is waited for but those two.
// What happens at each failure: README.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/serve/body_form.h"
#include "runtime/serve/config.h"
#include "runtime/serve/ingest.h"
#include "runtime/serve/journal.h"
#include "runtime/serve/kept_sets.h"
#include "runtime/serve/port.h"
#include "runtime/serve/publisher.h"
#include "runtime/serve/running_set.h"
#include "runtime/serve/set_loader.h"
#include "runtime/serve/snapshots.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

struct DaemonOptions {
  Config config;
  /// Reads the configuration anew, at each reload; null: it stays what it is.
  std::function<Result<Config>()> reread;
  PackSource compile;
  std::function<void(const std::string&)> log;  // one line; from any thread
  std::shared_ptr<Disk> disk;                   // of the journal; null: the real one
};

class Daemon final : public DaemonPort {
 public:
  /// Returns when the state is there; the replay of the journal goes on behind it (not ready).
  static Result<std::unique_ptr<Daemon>> start(DaemonOptions options);
  /// stop(false) when it was not stopped.
  ~Daemon() override;

  /// Refuses new input, evaluates what was accepted, takes a snapshot, ends. `hurry` is looked at
  /// while it waits: true ends at once.
  void stop(bool drain, const std::function<bool()>& hurry = {});

  IngestAnswer accept(IngestBody&& body) override { return ingest_->accept(std::move(body)); }
  bool ask(const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look,
           std::chrono::milliseconds timeout) override;
  serve::Status status() override;
  ReloadAnswer reload() override;
  ReloadAnswer start_shadow(const std::vector<std::string>& paths) override;
  ReloadAnswer promote() override;
  reflex::Status drop_shadow() override;
  std::vector<std::shared_ptr<const abi::Verdict>> shadow_verdicts() override;
  reflex::Status snapshot() override;
  reflex::Status feedback(const Feedback& feedback) override;
  reflex::Status suppress(const SuppressionOrder& order) override;
  uint64_t subscribe(std::function<void(const LiveVerdict&)> told) override {
    return publisher_->subscribe(std::move(told));
  }
  void unsubscribe(uint64_t subscription) override { publisher_->unsubscribe(subscription); }
  std::vector<std::pair<double, uint64_t>> diagnosis_latency() override {
    return publisher_->latency();
  }

  Ingest& ingest() { return *ingest_; }
  Store& store() { return *store_; }
  Publisher& publisher() { return *publisher_; }
  /// As of the start, with the live keys (config_change.h) of the last good reload.
  [[nodiscard]] std::shared_ptr<const Config> config() const;
  /// Waits until everything accepted so far is evaluated and in the store (tests).
  bool settle(std::chrono::milliseconds timeout);
  /// Sinks report here.
  void set_sink_status(std::function<std::vector<SinkStatus>()> sinks) {
    const std::lock_guard lock(lanes_mutex_);
    sink_status_ = std::move(sinks);
  }

  /// Sources that know what waits outside: name and messages.
  void set_source_behind(std::function<std::map<std::string, uint64_t>()> behind) {
    const std::lock_guard lock(lanes_mutex_);
    source_behind_ = std::move(behind);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using SnapshotHeader = engine::SnapshotHeader;
  /// An entry of the journal that names a set.
  struct SetSwitch {
    uint64_t position = 0, next = 0;  // of its first byte, of what follows it
    SetEntry to;
    /// Where a lane stands before it: never behind the entry, where a snapshot of it would say that
    /// the set before reads on.
    [[nodiscard]] uint64_t base() const { return std::min(to.base, position); }
  };
  struct Beginning {
    std::shared_ptr<RunningSet> running;
    std::vector<SetSwitch> ahead;  // of other sets, in order
  };

  explicit Daemon(DaemonOptions options);
  reflex::Status open();
  reflex::Status lock_folder();
  void begin();
  /// Goes on from the newest state on disk. `configured`: live behind what is in the journal; null:
  /// there is none, and the last one that was live stays. `counted`: input has been counted from the
  /// start on.
  reflex::Status begin_with(std::shared_ptr<const LoadedSet> configured, bool counted);
  /// `wait`: the caller has the reload lock, and changes of the set are done when it returns.
  void begin_reading(Beginning&& beginning, std::shared_ptr<const LoadedSet> configured,
                     bool wait);
  /// A live set, not started, with a state (or none, "") of `from`.
  Result<Beginning> begin_at(const SnapshotHeader& from, std::string_view state,
                             const LoadedSet* configured, std::vector<std::string>& found);
  [[nodiscard]] std::vector<SetSwitch> switches_from(uint64_t position) const;
  reflex::Status note_configured(const LoadedSet& set, const std::string& first,
                                 std::vector<SetSwitch>& ahead);
  static void drop_idle_switches(uint64_t position, std::string& key,
                                 std::vector<SetSwitch>& ahead);
  void read_on(const std::vector<SetSwitch>& ahead, const LoadedSet* configured);
  Result<std::shared_ptr<RunningSet>> switch_at(const SetSwitch& at,
                                                const std::shared_ptr<RunningSet>& before,
                                                const LoadedSet* configured);
  void go_live(const std::shared_ptr<RunningSet>& next, RunningSet& before);
  reflex::Status write_set(const SetEntry& entry);
  RunningParts parts() { return {*journal_, *publisher_, replay_end_}; }
  std::shared_ptr<RunningSet> live() const;
  std::shared_ptr<RunningSet> shadow() const;
  [[nodiscard]] uint64_t evaluated() const;

  ReloadAnswer reload_locked();
  /// What the file says now goes into `wanted`; false: it cannot be read, `answer` says why.
  bool reread_config(std::shared_ptr<const Config>& wanted, ReloadAnswer& answer) const;
  void load_and_swap(ReloadAnswer& answer);
  void refuse(const LoadFailure& failure, ReloadAnswer& answer) const;
  std::shared_ptr<RunningSet> keep_and_swap(LoadedSet set, ReloadAnswer& answer,
                                            std::vector<std::shared_ptr<void>>& over);
  /// The next set takes the live lane's state over in place and is live; null: it cannot (`answer`
  /// says why as the reason of the path, and `set` is back), or it failed (as the error). What is
  /// over goes into `over`.
  std::shared_ptr<RunningSet> swap_in_place(LoadedSet& set, ReloadAnswer& answer,
                                            std::vector<std::shared_ptr<void>>& over);
  /// Lets go of what is not needed any more, on a thread of its own: one at a time.
  void free_behind(std::vector<std::shared_ptr<void>> things);
  /// A set with the state of the live one at `base`, at work; null: `answer` says why.
  std::shared_ptr<RunningSet> candidate(LoadedSet set, LaneOutput::Mode mode, uint64_t& base,
                                        ReloadAnswer& answer);
  bool promote_warm(const std::shared_ptr<RunningSet>& next, ReloadAnswer& answer);
  bool swap_in(const std::shared_ptr<RunningSet>& next, const SetEntry& entry,
               ReloadAnswer& answer);
  void note_reload(const ReloadAnswer& answer);

  [[nodiscard]] bool is_stopping();
  reflex::Status take_snapshot();
  void tick_loop();
  void snapshot_loop();
  void say(const std::string& line) const;
  void find(const std::string& line);

  DaemonOptions options_;
  int lock_fd_ = -1;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<KeptSets> kept_;
  std::unique_ptr<SetLoader> loader_;
  std::unique_ptr<Snapshots> snapshots_;
  std::atomic<uint64_t> replay_end_ = 0;
  uint64_t replay_begin_ = 0;

  std::mutex reload_mutex_;
  std::mutex snapshot_mutex_;
  mutable std::mutex lanes_mutex_;  // of what follows, up to the blank line
  std::shared_ptr<const Config> config_;
  std::shared_ptr<RunningSet> live_;
  std::shared_ptr<RunningSet> shadow_;
  std::string started_;
  std::string no_set_because_;
  serve::Status marks_;  // times and counts of reloads and snapshots
  std::function<std::vector<SinkStatus>()> sink_status_;
  std::function<std::map<std::string, uint64_t>()> source_behind_;

  std::mutex loop_mutex_;
  std::condition_variable loop_changed_;
  bool stopping_ = false;
  bool snapshot_wanted_ = false;
  Clock::time_point snapshot_from_{};  // not before
  bool stopped_ = false;
  std::thread ticks_;
  std::thread snapshots_thread_;
  std::future<void> freed_;  // under reload_mutex_
  std::thread reading_on_;   // with the sets that the journal names
  std::atomic<bool> switching_ = false;
};

}  // namespace reflex::serve
