// Reload, shadow, promote: see daemon.h and language.md B6.
//
// How a set takes the place of another: an entry of the journal says so, and is the place. In
// place: when the ids of both mean the same, the lane's thread lets the next lane take over the
// state of the old one behind that entry, and goes on with it. Else: the state of the live lane at
// some position goes into a candidate, which reads the journal from there on its own thread, muted.
// When it has caught up the entry is written, both come to stand behind it, and the candidate
// becomes the live one: what the old one said of open incidents counts as said. An event is before
// the entry, and the old set's, or behind it, and the new set's. What a start makes of the entries:
// daemon_sets.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "runtime/abi/same_ids.h"
#include "runtime/serve/config_change.h"
#include "runtime/serve/daemon.h"
#include "runtime/serve/wall_clock.h"

namespace reflex::serve {
namespace {

double ms_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
      .count();
}

// Why: a candidate that is as slow as the stream never catches up. After kFreeCatchUp the stream
// stops for moments shorter than a pause may be (5 ms); after kCatchUpMax until it is there.
constexpr auto kFreeCatchUp = std::chrono::seconds(5);
constexpr auto kBriefStop = std::chrono::milliseconds(3);
constexpr auto kCatchUpMax = std::chrono::seconds(60);
// Why: who edits rules reloads again and again; a fork for each would stop the stream for longer
// than the reload did. A crash meanwhile starts from the older snapshot, with the sets that the
// journal names.
constexpr auto kSnapshotAfterInPlace = std::chrono::seconds(2);

double us_between(std::chrono::steady_clock::time_point from,
                  std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

/// Until `next` is where `old` is; false when one of them ends. `longest_us`: of the stops of
/// `old`.
bool catch_up(LaneRunner& old, LaneRunner& next, double& longest_us) {
  const auto began = std::chrono::steady_clock::now();
  while (next.position() < old.position()) {
    if (old.is_stopping() || next.is_stopping()) return false;
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited > kCatchUpMax) return true;  // `old` will wait for it
    if (waited > kFreeCatchUp) {
      old.hold();
      const auto since = old.held_since();
      std::this_thread::sleep_for(kBriefStop);
      old.release();
      longest_us = std::max(longest_us, us_between(since, std::chrono::steady_clock::now()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

constexpr const char* kInPlace = "in place";
constexpr const char* kRestored = "restored";
constexpr const char* kShuttingDown =
    "the daemon is shutting down; the set is live with its next start";

std::vector<StateFate> plan_of(const LoadReport& report) {
  std::vector<StateFate> plan;
  for (const auto& row : report.rows)
    plan.push_back({row.name, row.kind, row.fate, row.why, row.bytes});
  return plan;
}

}  // namespace

void Daemon::refuse(const LoadFailure& failure, ReloadAnswer& answer) const {
  answer.outcome = failure.diagnostics.empty() ? ReloadAnswer::Outcome::kFailed
                                               : ReloadAnswer::Outcome::kInvalid;
  answer.diagnostics = failure.diagnostics;
  answer.error = failure.error;
  if (const auto running = live()) answer.set_sha256 = running->set.pack->set_sha256;
}

void Daemon::note_reload(const ReloadAnswer& answer) {
  using Outcome = ReloadAnswer::Outcome;
  const bool good = answer.outcome == Outcome::kSwapped || answer.outcome == Outcome::kUnchanged;
  const bool in_place = answer.path == kInPlace;
  {
    const std::lock_guard lock(lanes_mutex_);
    marks_.last_reload_ok = good;
    marks_.last_reload = std::make_shared<const ReloadAnswer>(answer);
    marks_.reloads_ok += good;
    marks_.reloads_failed += !good;
    if (good) marks_.last_reload_wall_ns = wall_clock_ns();
    if (answer.outcome == Outcome::kSwapped) {
      ++(in_place ? marks_.reloads_in_place : marks_.reloads_restored);
      marks_.last_swap_s = answer.pause_us / 1e6;
      marks_.last_compile_s = answer.compile_ms / 1e3;
    }
  }
  if (answer.outcome == Outcome::kSwapped) {
    say(
        fmt::format("reload: set {} is live; compiled in {:.1f} ms, {} in {:.1f} ms{}, the "
                    "stream paused {:.0f} us",
                    answer.set_sha256.substr(0, 12), answer.compile_ms,
                    in_place ? "taken over in place" : "restored", answer.restore_ms,
                    answer.path_reason.empty() ? "" : fmt::format(" ({})", answer.path_reason),
                    answer.pause_us));
    const std::lock_guard lock(loop_mutex_);
    if (!snapshot_wanted_) {
      snapshot_from_ = Clock::now() + (in_place ? kSnapshotAfterInPlace : Clock::duration::zero());
    }
    snapshot_wanted_ = true;
  }
  if (!answer.config_applied.empty()) {
    say(fmt::format("reload: in force now: {}", fmt::join(answer.config_applied, ", ")));
  }
  if (!answer.config_needs_restart.empty()) {
    say(fmt::format("reload: changed, in force after a restart: {}",
                    fmt::join(answer.config_needs_restart, ", ")));
  }
  if (!good) {
    say("reload: " + answer.error + "; the set in force stays");
    for (const auto& diagnostic : answer.diagnostics) say(diagnostic);
  }
}

ReloadAnswer Daemon::reload() {
  std::unique_lock one(reload_mutex_, std::try_to_lock);
  if (!one.owns_lock() && switching_) one.lock();  // a start that is not through is no reload
  if (!one.owns_lock()) {
    ReloadAnswer busy;
    busy.outcome = ReloadAnswer::Outcome::kBusy;
    busy.error = "another reload is under way";
    return busy;
  }
  ReloadAnswer answer;
  if (is_stopping()) {
    answer.error = kShuttingDown;
    return answer;
  }
  answer = reload_locked();
  note_reload(answer);
  return answer;
}

bool Daemon::reread_config(std::shared_ptr<const Config>& wanted, ReloadAnswer& answer) const {
  if (!options_.reread) return true;
  auto read = options_.reread();
  if (!read.ok()) {
    answer.error = read.error().message;
    return false;
  }
  for (const auto& key : changed_keys(options_.config, read.value())) {
    if (!is_live_key(key)) answer.config_needs_restart.push_back(key);
  }
  auto next = std::make_shared<const Config>(with_live_keys(*wanted, read.value()));
  answer.config_applied = changed_keys(*wanted, *next);
  wanted = std::move(next);
  return true;
}

ReloadAnswer Daemon::reload_locked() {
  using Outcome = ReloadAnswer::Outcome;
  ReloadAnswer answer;
  if (const auto running = live()) answer.set_sha256 = running->set.pack->set_sha256;
  const auto before = config();
  auto wanted = before;
  if (!reread_config(wanted, answer)) return answer;
  loader_->use(wanted);
  load_and_swap(answer);
  if (answer.outcome == Outcome::kSwapped || answer.outcome == Outcome::kUnchanged) {
    const std::lock_guard lock(lanes_mutex_);
    config_ = wanted;
  } else {  // never a part of it
    loader_->use(before);
    answer.config_applied.clear();
  }
  return answer;
}

void Daemon::load_and_swap(ReloadAnswer& answer) {
  auto running = live();
  auto loaded = loader_->load(running ? running->set.pack->symbols : nullptr);
  if (const auto* failure = std::get_if<LoadFailure>(&loaded)) return refuse(*failure, answer);
  LoadedSet& set = std::get<LoadedSet>(loaded);
  std::vector<std::shared_ptr<void>> over{std::move(set.rest)};
  answer.compile_ms = set.compile_ms;
  answer.diagnostics = set.diagnostics;
  if (!running) {
    answer.set_sha256 = set.pack->set_sha256;
    const auto status = begin_with(std::make_shared<const LoadedSet>(std::move(set)), true);
    answer.outcome = status.ok() ? ReloadAnswer::Outcome::kSwapped : ReloadAnswer::Outcome::kFailed;
    if (!status.ok()) answer.error = status.error().message;
    return;
  }
  if (set.identity == running->set.identity) {
    answer.outcome = ReloadAnswer::Outcome::kUnchanged;
    answer.set_sha256 = set.pack->set_sha256;
    return;
  }
  const std::string key = set.key;
  auto next = keep_and_swap(std::move(set), answer, over);
  // One that did not become live may be named in the journal all the same, at its end.
  if (!next) return kept_->retire(key, journal_->end());
  next->set.let_go_of_texts();
  over.push_back(std::move(running));
  free_behind(std::move(over));
}

std::shared_ptr<RunningSet> Daemon::keep_and_swap(LoadedSet set, ReloadAnswer& answer,
                                                  std::vector<std::shared_ptr<void>>& over) {
  if (auto kept = loader_->keep(set); !kept.ok()) {
    answer.error = kept.error().message;
    return nullptr;
  }
  auto next = swap_in_place(set, answer, over);
  if (next || !answer.error.empty()) return next;
  // No snapshot meanwhile: it could trim what the candidate has yet to read.
  const std::lock_guard still(snapshot_mutex_);
  SetEntry entry{set.key};
  next = candidate(std::move(set), LaneOutput::Mode::kCandidate, entry.base, answer);
  return next && swap_in(next, entry, answer) ? next : nullptr;
}

std::shared_ptr<RunningSet> Daemon::swap_in_place(LoadedSet& set, ReloadAnswer& answer,
                                                  std::vector<std::shared_ptr<void>>& over) {
  const auto began = Clock::now();
  const auto running = live();
  LaneRunner& runner = *running->runner;
  answer.path = kRestored;
  std::string differs = set.inventory != running->set.inventory
                            ? "an inventory"
                            : abi::ids_differ(*running->set.pack, *set.pack);
  if (!differs.empty()) {
    answer.path_reason = differs + " changed";
    return nullptr;
  }
  auto prepared =
      prepare(parts(), std::move(set), LaneOutput::Mode::kLive, &runner.lane_at_work().engine());
  if (!prepared.ok()) {
    answer.outcome = ReloadAnswer::Outcome::kFailed;
    answer.error = prepared.error().message;
    return nullptr;
  }
  auto& [next, lane] = prepared.value();
  answer.path_reason = lane->cannot_take_over(runner.lane_at_work());
  if (!answer.path_reason.empty()) {
    set = std::move(next->set);
    return nullptr;
  }
  next->runner = running->runner;
  reflex::Status wrote = ok_status();
  auto exchanged = runner.exchange(
      std::move(lane), [&](Lane& old, Lane& now) { now.take_over(old, next->report); },
      [&] {
        wrote = write_set({next->set.key});
        return wrote.ok();
      });
  if (!exchanged.old) {
    answer.outcome = ReloadAnswer::Outcome::kFailed;
    answer.error = wrote.ok() ? kShuttingDown : wrote.error().message;
    return nullptr;
  }
  {
    const std::lock_guard lock(lanes_mutex_);
    live_ = next;
  }
  kept_->retire(running->set.key, journal_->end());
  kept_->use(next->set.key);
  answer.path = kInPlace;
  answer.outcome = ReloadAnswer::Outcome::kSwapped;
  answer.set_sha256 = next->set.pack->set_sha256;
  answer.plan = plan_of(next->report);
  answer.pause_us = exchanged.stopped_us;
  answer.state_bytes = runner.view()->status.state_bytes;
  answer.restore_ms = ms_since(began);
  over.push_back(std::shared_ptr<Lane>(std::move(exchanged.old)));
  return next;
}

void Daemon::free_behind(std::vector<std::shared_ptr<void>> things) {
  if (freed_.valid()) freed_.wait();
  freed_ =
      std::async(std::launch::async, [things = std::move(things)]() mutable { things.clear(); });
}

std::shared_ptr<RunningSet> Daemon::candidate(LoadedSet set, LaneOutput::Mode mode, uint64_t& base,
                                              ReloadAnswer& answer) {
  const auto began = Clock::now();
  const auto running = live();
  answer.outcome = ReloadAnswer::Outcome::kFailed;
  answer.set_sha256 = running->set.pack->set_sha256;
  auto prepared = prepare(parts(), std::move(set), mode, nullptr);
  if (!prepared.ok()) {
    answer.error = prepared.error().message;
    return nullptr;
  }
  auto state = capture_state(*running->runner);
  if (!state.ok()) {
    answer.error = state.error().message;
    return nullptr;
  }
  base = state.value().position;
  answer.pause_us = state.value().pause_us;
  answer.state_bytes = state.value().bytes.size();
  auto made = with_state(parts(), std::move(prepared).value(), state.value().bytes, 0);
  if (!made.ok()) {
    answer.error = made.error().message;
    return nullptr;
  }
  answer.plan = plan_of(made.value()->report);
  answer.restore_ms = ms_since(began);
  made.value()->runner->start();
  return std::move(made).value();
}

bool Daemon::swap_in(const std::shared_ptr<RunningSet>& next, const SetEntry& entry,
                     ReloadAnswer& answer) {
  const auto running = live();
  LaneRunner& old = *running->runner;
  LaneRunner& candidate = *next->runner;
  answer.outcome = ReloadAnswer::Outcome::kFailed;
  answer.error = kShuttingDown;
  if (!catch_up(old, candidate, answer.pause_us)) return false;
  old.stop_behind_set();
  candidate.stop_behind_set();
  if (auto wrote = write_set(entry); !wrote.ok()) {
    old.do_not_stop_behind_set();
    answer.error = wrote.error().message;
    return false;
  }
  if (!old.wait_held() || !candidate.wait_held()) return false;
  const auto since = old.held_since();
  go_live(next, *running);
  candidate.release();
  answer.pause_us = std::max(answer.pause_us, us_between(since, Clock::now()));
  answer.error.clear();
  answer.outcome = ReloadAnswer::Outcome::kSwapped;
  answer.set_sha256 = next->set.pack->set_sha256;
  old.stop();
  return true;
}

ReloadAnswer Daemon::start_shadow(const std::vector<std::string>& paths) {
  const std::lock_guard one(reload_mutex_);
  auto loaded = loader_->load_paths(paths);
  ReloadAnswer answer;
  if (const auto* failure = std::get_if<LoadFailure>(&loaded)) {
    refuse(*failure, answer);
    answer.outcome = ReloadAnswer::Outcome::kInvalid;  // who asked has named them
    return answer;
  }
  LoadedSet& set = std::get<LoadedSet>(loaded);
  set.rest.reset();
  answer.compile_ms = set.compile_ms;
  answer.diagnostics = set.diagnostics;
  if (!live()) {
    answer.error = "no pack set is active";
    return answer;
  }
  const std::unique_lock still(snapshot_mutex_);  // until trimming knows of it
  uint64_t base = 0;
  const auto next = candidate(std::move(set), LaneOutput::Mode::kShadow, base, answer);
  if (!next) return answer;
  answer.outcome = ReloadAnswer::Outcome::kSwapped;
  answer.set_sha256 = next->set.pack->set_sha256;
  std::shared_ptr<RunningSet> before = next;
  {
    const std::lock_guard lock(lanes_mutex_);
    before.swap(shadow_);
  }
  if (before) before->runner->stop();
  say(fmt::format("shadow: set {} runs beside the live one", answer.set_sha256.substr(0, 12)));
  return answer;
}

ReloadAnswer Daemon::promote() {
  const std::lock_guard one(reload_mutex_);
  ReloadAnswer answer;
  const auto next = shadow();
  auto replaced = live();
  if (!next || !replaced) {
    answer.outcome = ReloadAnswer::Outcome::kNoShadow;
    return answer;
  }
  answer.compile_ms = next->set.compile_ms;
  answer.plan = plan_of(next->report);
  if (promote_warm(next, answer)) {
    {
      const std::lock_guard lock(lanes_mutex_);
      shadow_.reset();
    }
    if (auto kept = loader_->keep_promoted(next->set); !kept.ok()) say(kept.error().message);
    next->set.let_go_of_texts();
    free_behind({std::move(replaced)});
  }
  note_reload(answer);
  return answer;
}

/// Its state has grown since long before: a start could not make it again from that of the live
/// set.
bool Daemon::promote_warm(const std::shared_ptr<RunningSet>& next, ReloadAnswer& answer) {
  if (auto kept = loader_->keep(next->set); !kept.ok()) {
    answer.error = kept.error().message;
    return false;
  }
  const std::lock_guard still(snapshot_mutex_);
  auto state = capture_state(*next->runner);
  auto kept =
      state.ok() ? kept_->keep_state(next->set.key, state.value()) : reflex::Status(state.error());
  if (kept.ok()) return swap_in(next, {next->set.key, state.value().position, true}, answer);
  answer.error = kept.error().message;
  return false;
}

reflex::Status Daemon::drop_shadow() {
  const std::lock_guard one(reload_mutex_);
  std::shared_ptr<RunningSet> before;
  {
    const std::lock_guard lock(lanes_mutex_);
    before.swap(shadow_);
  }
  if (!before) return Error{"there is no shadow set"};
  before->runner->stop();
  return ok_status();
}

std::vector<std::shared_ptr<const abi::Verdict>> Daemon::shadow_verdicts() {
  const auto running = shadow();
  if (!running) return {};
  return running->output->shown();
}

}  // namespace reflex::serve
