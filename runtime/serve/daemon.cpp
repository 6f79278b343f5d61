// Start, stop, clock, status; see daemon.h. Reloads: daemon_reload.cpp, snapshots:
// daemon_state.cpp.
#include "runtime/serve/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/explain/explain.h"
#include "runtime/serve/wall_clock.h"

namespace reflex::serve {

namespace fs = std::filesystem;

Daemon::Daemon(DaemonOptions options) : options_(std::move(options)) {}

Daemon::~Daemon() {
  stop(false);
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

void Daemon::say(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void Daemon::find(const std::string& line) {
  say(line);
  const std::lock_guard lock(lanes_mutex_);
  started_ += line + "\n";
}

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  if (auto status = daemon->open(); !status.ok()) return status.error();
  daemon->begin();
  return daemon;
}

/// Two daemons in one folder would destroy each other's journal.
reflex::Status Daemon::lock_folder() {
  const std::string& folder = options_.config.main.text("state_dir");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{fmt::format("state_dir {}: {}", folder, error.message())};
  const std::string path = folder + "/lock";
  lock_fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (lock_fd_ < 0) return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return Error{fmt::format("another daemon runs in {}", folder)};
  }
  return ok_status();
}

reflex::Status Daemon::open() {
  if (auto status = lock_folder(); !status.ok()) return status;
  const ConfigTable& main = options_.config.main;
  const std::string& folder = main.text("state_dir");
  StoreOptions store;
  store.path = main.text("store.path").empty() ? folder + "/reflex.db" : main.text("store.path");
  auto opened = Store::open(store);
  if (!opened.ok()) return opened.error();
  store_ = std::move(opened).value();
  find("store: " + store_->found());
  std::vector<std::string> found;
  snapshots_ = std::make_unique<Snapshots>(folder + "/snapshots");
  if (auto status = snapshots_->prepare(); !status.ok()) return status;
  JournalOptions files{folder + "/journal", main.bytes("journal.segment"), options_.disk};
  // Were its files removed or cut, the newest state is still of use: the journal goes on behind it.
  files.first_position = snapshots_->newest_position();
  auto journal = Journal::open(files, found);
  if (!journal.ok()) return journal.error();
  journal_ = std::move(journal).value();
  for (const auto& line : found) find(line);
  find(fmt::format("journal: {} bytes, positions {} to {}", journal_->bytes(), journal_->begin(),
                   journal_->end()));
  publisher_ = std::make_unique<Publisher>(*store_);
  IngestLimits limits;
  limits.backlog_bytes_max = main.bytes("journal.backlog_max");
  limits.journal_bytes_max = main.bytes("journal.max");
  ingest_ = std::make_unique<Ingest>(*journal_, limits, [this] { return evaluated(); });
  config_ = std::make_shared<const Config>(options_.config);
  kept_ = std::make_unique<KeptSets>(folder + "/sets");
  // Without its folder (a full disk) a start goes on; a reload says that it cannot keep a set.
  if (auto made = kept_->prepare(journal_->end()); !made.ok()) find(made.error().message);
  loader_ = std::make_unique<SetLoader>(config_, options_.compile, *kept_);
  replay_end_ = journal_->end();
  return ok_status();
}

void Daemon::begin() {
  publisher_->start();
  auto loaded = loader_->load();
  if (auto* set = std::get_if<LoadedSet>(&loaded)) set->rest.reset();
  ::malloc_trim(0);  // what compiling left: a fork copies an entry for each page; nothing runs yet
  std::string because;
  std::shared_ptr<const LoadedSet> configured;
  if (const auto* failure = std::get_if<LoadFailure>(&loaded)) {
    because = failure->error;
    find("packs: " + failure->error);
    for (const auto& diagnostic : failure->diagnostics) say(diagnostic);
  } else {
    configured = std::make_shared<const LoadedSet>(std::move(std::get<LoadedSet>(loaded)));
  }
  const auto begun = begin_with(configured, /*counted=*/false);
  if (!begun.ok() && configured) because = begun.error().message;
  if (begun.ok() && !configured) {
    find("packs: going on with the copy of the last set that was good");
    const std::lock_guard lock(lanes_mutex_);
    marks_.last_reload_ok = false;
  }
  if (!live()) {
    find("no pack set is active: " + because);
    replay_begin_ = journal_->begin();
    if (auto status = ingest_->begin({}, journal_->begin()); !status.ok()) {
      find("journal: " + status.error().message);
    }
    const std::lock_guard lock(lanes_mutex_);
    no_set_because_ = "no pack set is active: " + because;
  }
  // Before the first body: until a tick has told the time, no stamp is too far in the future.
  if (options_.config.main.flag("clock.ticks")) (void)ingest_->append(EntryType::kTick, "");
  ticks_ = std::thread([this] { tick_loop(); });
  snapshots_thread_ = std::thread([this] { snapshot_loop(); });
}

std::shared_ptr<const Config> Daemon::config() const {
  const std::lock_guard lock(lanes_mutex_);
  return config_;
}

std::shared_ptr<RunningSet> Daemon::live() const {
  const std::lock_guard lock(lanes_mutex_);
  return live_;
}
std::shared_ptr<RunningSet> Daemon::shadow() const {
  const std::lock_guard lock(lanes_mutex_);
  return shadow_;
}

uint64_t Daemon::evaluated() const {
  const auto running = live();
  return running ? running->runner->position() : replay_begin_;
}

/// Once a second, by the wall clock; a daemon that stood still ticks once, not for each second.
void Daemon::tick_loop() {
  if (!options_.config.main.flag("clock.ticks")) return;
  std::unique_lock lock(loop_mutex_);
  while (!stopping_) {
    loop_changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    // Not while it replays, and not behind a long queue: time would run ahead of the events in it.
    const auto running = live();
    const uint64_t end = journal_->end();
    constexpr uint64_t kQueueMax = 64u << 20;
    if (running && running->runner->position() >= replay_end_ &&
        end - running->runner->position() < kQueueMax) {
      (void)ingest_->append(EntryType::kTick, "");
    }
    lock.lock();
  }
}

bool Daemon::ask(const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look,
                 std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  for (;;) {
    const auto running = live();
    if (!running) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    if (running->runner->ask([&](Lane& lane) { look(lane.engine(), *lane.pack()); }, left)) {
      return true;
    }
    if (running == live()) return false;  // else it was replaced: ask its successor
  }
}

reflex::Status Daemon::feedback(const Feedback& feedback) {
  Feedback told = feedback;
  if (told.confirmed && told.culprits.empty()) {
    // What is confirmed is what the verdict said.
    auto found = store_->verdict(told.verdict_id);
    if (!found.ok()) return found.error();
    if (!found.value()) return Error{fmt::format("there is no verdict {}", told.verdict_id)};
    auto verdict = explain::from_json(found.value()->json);
    if (!verdict.ok()) return verdict.error();
    told.culprits = verdict.value().culprits;
    if (told.incident.empty()) told.incident = verdict.value().incident;
    if (told.fault.empty() && !verdict.value().hypotheses.empty()) {
      told.fault = verdict.value().hypotheses.front().cause;
    }
  }
  const auto answer = ingest_->append(EntryType::kFeedback, feedback_payload(told));
  if (answer.outcome != IngestAnswer::Outcome::kAccepted) return Error{answer.error};
  return ok_status();
}

reflex::Status Daemon::suppress(const SuppressionOrder& order) {
  const auto answer = ingest_->append(EntryType::kSuppression, suppression_payload(order));
  if (answer.outcome != IngestAnswer::Outcome::kAccepted) return Error{answer.error};
  return ok_status();
}

serve::Status Daemon::status() {
  serve::Status status;
  std::shared_ptr<RunningSet> running;
  std::shared_ptr<RunningSet> shadow;
  std::function<std::vector<SinkStatus>()> sinks;
  std::function<std::map<std::string, uint64_t>()> behind;
  {
    const std::lock_guard lock(lanes_mutex_);
    status = marks_;
    status.started = started_;
    status.not_ready_because = no_set_because_;
    running = live_;
    shadow = shadow_;
    sinks = sink_status_;
    behind = source_behind_;
  }
  if (sinks) status.sinks = sinks();
  status.journal_begin = journal_->begin();
  status.journal_end = journal_->end();
  status.journal_bytes = status.journal_end - status.journal_begin;
  std::map<std::string, SourceStatus> sources;
  const auto accepted = ingest_->sources();
  for (const auto& [name, source] : accepted) {
    SourceStatus& row = sources[name];
    row.name = name;
    row.bodies = source.bodies;
    row.bytes = source.bytes;
    row.queue_bytes = source.bytes;
  }
  if (behind) {
    for (const auto& [name, messages] : behind()) {
      sources[name].name = name;
      sources[name].behind = messages;
    }
  }
  if (running) {
    const auto view = running->runner->view();
    status.live = view->status;
    status.live.jit_code_bytes = running->set.code_bytes;
    for (const SourceStatus& done : view->sources) {
      SourceStatus& row = sources[done.name];
      row.name = done.name;
      row.lines = done.lines;
      row.rejected = done.rejected;
      row.newest_ns = done.newest_ns;
      row.idle = done.idle;
      row.queue_bytes = row.bytes - std::min(row.bytes, done.bytes);
      if (done.newest_ns != INT64_MIN) {
        row.lag_s = static_cast<double>(wall_clock_ns() - done.newest_ns) / 1e9;
      }
    }
    const uint64_t position = running->runner->position();
    const uint64_t end = replay_end_;
    if (position < end || switching_) {
      const double share = static_cast<double>(position - replay_begin_) /
                           static_cast<double>(std::max<uint64_t>(1, end - replay_begin_));
      status.not_ready_because = fmt::format("replaying the journal: {:.0f} %", share * 100);
    }
    if (const auto error = running->runner->error(); !error.empty()) {
      status.not_ready_because = "reading the journal: " + error;
    }
  }
  if (const auto error = publisher_->error(); !error.empty() && status.not_ready_because.empty()) {
    status.not_ready_because = "verdicts cannot be stored: " + error;
  }
  if (const auto trouble = journal_->trouble(); !trouble.empty()) {
    status.not_ready_because = "journal: " + trouble;
  }
  if (shadow) {
    status.shadow = std::make_shared<LaneStatus>(shadow->runner->view()->status);
    status.shadow_since_ns = shadow->began_ns;
  }
  for (auto& [name, row] : sources) status.sources.push_back(std::move(row));
  status.ready = running && status.not_ready_because.empty();
  return status;
}

bool Daemon::settle(std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  const uint64_t end = journal_->end();
  while (evaluated() < end || switching_) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return publisher_->wait_stored(publisher_->pushed(), timeout);
}

bool Daemon::is_stopping() {
  const std::lock_guard lock(loop_mutex_);
  return stopping_;
}

void Daemon::stop(bool drain, const std::function<bool()>& hurry) {
  if (stopped_) return;
  stopped_ = true;
  if (ingest_) ingest_->stop();
  {
    const std::lock_guard lock(loop_mutex_);
    stopping_ = true;
  }
  loop_changed_.notify_all();
  if (ticks_.joinable()) ticks_.join();
  if (snapshots_thread_.joinable()) snapshots_thread_.join();
  if (auto running = live(); drain && running) {
    const uint64_t end = journal_->end();
    // Another set may take its place meanwhile.
    for (; running->runner->position() < end || switching_; running = live()) {
      if (!running->runner->error().empty()) break;
      if (hurry && hurry()) {
        drain = false;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (drain) {
      if (auto status = snapshot(); !status.ok()) say("snapshot: " + status.error().message);
    }
  }
  // A lane that waits for room in the queue must not be waited for.
  if (publisher_) publisher_->stop(drain);
  // Who changes sets waits for the live one: it may have made another one live by the end.
  if (const auto running = live()) running->runner->stop();
  if (reading_on_.joinable()) reading_on_.join();
  std::shared_ptr<RunningSet> shadow;
  std::shared_ptr<RunningSet> running;
  {
    const std::lock_guard lock(lanes_mutex_);
    shadow.swap(shadow_);
    running.swap(live_);
  }
  if (shadow) shadow->runner->stop();
  if (running) running->runner->stop();
}

}  // namespace reflex::serve
