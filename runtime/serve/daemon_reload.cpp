// Reload, shadow, promote: see daemon.h and language.md B6.
//
// How a set takes the place of another: the state of the live lane at some position P goes into a
// candidate, which reads the journal from P on its own thread, muted. When it is close, both are
// held at the same position; the candidate becomes the live one and goes on from there. An event
// is before that position, and the old set's, or behind it, and the new set's.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/serve/daemon.h"
#include "runtime/serve/wall_clock.h"

namespace reflex::serve {
namespace {

double ms_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
      .count();
}

// Why: half a millisecond of events, so that the last catch-up is shorter than a pause may be.
constexpr uint64_t kCloseBytes = 128u << 10;
// Why: a candidate that is slower than the stream never gets close; then the stream waits for it.
constexpr auto kCatchUpMax = std::chrono::seconds(60);

std::vector<StateFate> plan_of(const LoadReport& report) {
  std::vector<StateFate> plan;
  for (const auto& row : report.rows)
    plan.push_back({row.name, row.kind, row.fate, row.why, row.bytes});
  return plan;
}

}  // namespace

ReloadAnswer Daemon::refused(const LoadFailure& failure) const {
  ReloadAnswer answer;
  answer.outcome = failure.diagnostics.empty() ? ReloadAnswer::Outcome::kFailed
                                               : ReloadAnswer::Outcome::kInvalid;
  answer.diagnostics = failure.diagnostics;
  answer.error = failure.error;
  if (const auto running = live()) answer.set_sha256 = running->set.pack->set_sha256;
  return answer;
}

void Daemon::note_reload(const ReloadAnswer& answer) {
  using Outcome = ReloadAnswer::Outcome;
  const bool good = answer.outcome == Outcome::kSwapped || answer.outcome == Outcome::kUnchanged;
  {
    const std::lock_guard lock(lanes_mutex_);
    marks_.last_reload_ok = good;
    marks_.last_reload = std::make_shared<const ReloadAnswer>(answer);
    marks_.reloads_ok += good;
    marks_.reloads_failed += !good;
    if (good) marks_.last_reload_wall_ns = wall_clock_ns();
    if (answer.outcome == Outcome::kSwapped) {
      marks_.last_swap_s = answer.pause_us / 1e6;
      marks_.last_compile_s = answer.compile_ms / 1e3;
    }
  }
  if (answer.outcome == Outcome::kSwapped) {
    say(fmt::format(
        "reload: set {} is live; compiled in {:.1f} ms, restored in {:.1f} ms, the "
        "stream paused {:.0f} us",
        answer.set_sha256.substr(0, 12), answer.compile_ms, answer.restore_ms, answer.pause_us));
    const std::lock_guard lock(loop_mutex_);
    snapshot_wanted_ = true;
  } else if (!good) {
    say("reload: " + answer.error + "; the set in force stays");
    for (const auto& diagnostic : answer.diagnostics) say(diagnostic);
  }
}

ReloadAnswer Daemon::reload() {
  const std::unique_lock one(reload_mutex_, std::try_to_lock);
  if (!one.owns_lock()) {
    ReloadAnswer busy;
    busy.outcome = ReloadAnswer::Outcome::kBusy;
    busy.error = "another reload is under way";
    return busy;
  }
  ReloadAnswer answer = reload_locked();
  note_reload(answer);
  return answer;
}

ReloadAnswer Daemon::reload_locked() {
  auto loaded = loader_->load();
  if (const auto* failure = std::get_if<LoadFailure>(&loaded)) return refused(*failure);
  LoadedSet& set = std::get<LoadedSet>(loaded);
  ReloadAnswer answer;
  answer.compile_ms = set.compile_ms;
  answer.diagnostics = set.diagnostics;
  const auto running = live();
  if (!running) {
    const auto status = begin_with(std::move(set), &answer);
    answer.outcome = status.ok() ? ReloadAnswer::Outcome::kSwapped : ReloadAnswer::Outcome::kFailed;
    if (!status.ok()) answer.error = status.error().message;
    return answer;
  }
  if (set.identity == running->set.identity) {
    answer.outcome = ReloadAnswer::Outcome::kUnchanged;
    answer.set_sha256 = set.pack->set_sha256;
    return answer;
  }
  // No snapshot meanwhile: it could trim what the candidate has yet to read.
  const std::lock_guard still(snapshot_mutex_);
  const auto next = candidate(std::move(set), LaneOutput::Mode::kCandidate, answer);
  if (!next) return answer;
  if (swap_in(next, answer)) {
    if (auto kept = loader_->keep_copy(next->set); !kept.ok()) say(kept.error().message);
    next->set.files.clear();
  }
  return answer;
}

std::shared_ptr<RunningSet> Daemon::candidate(LoadedSet set, LaneOutput::Mode mode,
                                              ReloadAnswer& answer) {
  const auto began = Clock::now();
  const auto running = live();
  answer.outcome = ReloadAnswer::Outcome::kFailed;
  answer.set_sha256 = running->set.pack->set_sha256;
  auto state = capture_state(*running->runner);
  if (!state.ok()) {
    answer.error = state.error().message;
    return nullptr;
  }
  auto made = make_running(parts(), std::move(set), mode, state.value().bytes, 0);
  if (!made.ok()) {
    answer.error = made.error().message;
    return nullptr;
  }
  answer.plan = plan_of(made.value()->report);
  answer.restore_ms = ms_since(began);
  made.value()->runner->start();
  return std::move(made).value();
}

bool Daemon::swap_in(const std::shared_ptr<RunningSet>& next, ReloadAnswer& answer) {
  const auto running = live();
  LaneRunner& old = *running->runner;
  const auto until = Clock::now() + kCatchUpMax;
  while (next->runner->position() + kCloseBytes < old.position() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto began = Clock::now();
  if (!meet(old, *next->runner)) {
    old.release();
    answer.outcome = ReloadAnswer::Outcome::kFailed;
    answer.error = "the daemon is shutting down";
    return false;
  }
  {
    const std::lock_guard lock(lanes_mutex_);
    live_ = next;
  }
  next->output->go_live();
  next->runner->release();
  answer.pause_us = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
  answer.outcome = ReloadAnswer::Outcome::kSwapped;
  answer.set_sha256 = next->set.pack->set_sha256;
  old.stop();
  return true;
}

ReloadAnswer Daemon::start_shadow(const std::vector<std::string>& paths) {
  const std::lock_guard one(reload_mutex_);
  auto loaded = loader_->load_paths(paths);
  if (const auto* failure = std::get_if<LoadFailure>(&loaded)) return refused(*failure);
  LoadedSet& set = std::get<LoadedSet>(loaded);
  ReloadAnswer answer;
  answer.compile_ms = set.compile_ms;
  answer.diagnostics = set.diagnostics;
  if (!live()) {
    answer.error = "no pack set is active";
    return answer;
  }
  const std::unique_lock still(snapshot_mutex_);  // until trimming knows of it
  const auto next = candidate(std::move(set), LaneOutput::Mode::kShadow, answer);
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
  if (!next || !live()) {
    answer.error = "there is no shadow set";
    return answer;
  }
  answer.compile_ms = next->set.compile_ms;
  answer.plan = plan_of(next->report);
  if (swap_in(next, answer)) {
    {
      const std::lock_guard lock(lanes_mutex_);
      shadow_.reset();
    }
    if (auto kept = loader_->keep_promoted(next->set); !kept.ok()) say(kept.error().message);
    if (auto kept = loader_->keep_copy(next->set); !kept.ok()) say(kept.error().message);
    next->set.files.clear();
  }
  note_reload(answer);
  return answer;
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
