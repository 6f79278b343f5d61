// Which set reads which part of the journal: see daemon.h, and README.md ("Which set reads what").
//
// Every set that becomes live is kept (kept_sets.h) and named by an entry of the journal before it
// says a word. A start reads the journal from its snapshot on with the sets that are named there,
// each up to the entry of the next one; the configured one, when it is another, comes last.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/serve/daemon.h"

namespace reflex::serve {

reflex::Status Daemon::write_set(const SetEntry& entry) {
  const auto answer = ingest_->append(EntryType::kSet, set_payload(entry));
  if (answer.outcome == IngestAnswer::Outcome::kAccepted) return ok_status();
  return Error{"the journal cannot note the set: " + answer.error};
}

std::vector<Daemon::SetSwitch> Daemon::switches_from(uint64_t position) const {
  std::vector<SetSwitch> switches;
  Journal::Reader reader(*journal_, position);
  for (Entry entry; reader.next(entry);) {
    if (entry.type != EntryType::kSet) continue;
    if (auto to = read_set(entry.payload)) {
      switches.push_back({entry.position, entry.next, std::move(*to)});
    }
  }
  return switches;
}

/// The configured set comes behind all that is there, when it is not the last one already.
reflex::Status Daemon::note_configured(const LoadedSet& set, const std::string& first,
                                       std::vector<SetSwitch>& ahead) {
  if (auto kept = loader_->keep(set); !kept.ok()) return kept;
  if (set.key == (ahead.empty() ? first : ahead.back().to.key)) return ok_status();
  const uint64_t position = journal_->end();
  SetEntry entry{set.key};
  if (auto wrote = write_set(entry); !wrote.ok()) return wrote;
  ahead.push_back({position, journal_->end(), std::move(entry)});
  return ok_status();
}

/// Leaves those that change something behind `position`, where `key` is live; `key` becomes the set
/// that reads on from there.
void Daemon::drop_idle_switches(uint64_t position, std::string& key,
                                std::vector<SetSwitch>& ahead) {
  std::string live = key;
  std::erase_if(ahead,
                [&](const SetSwitch& at) { return std::exchange(live, at.to.key) == at.to.key; });
  // To load a state into another set is what a change does: the first one needs no set before it.
  if (ahead.empty() || ahead.front().position != position || ahead.front().to.warm) return;
  key = ahead.front().to.key;
  ahead.erase(ahead.begin());
}

Result<Daemon::Beginning> Daemon::begin_at(const SnapshotHeader& from, std::string_view state,
                                           const LoadedSet* configured,
                                           std::vector<std::string>& found) {
  Beginning beginning;
  auto& ahead = beginning.ahead;
  ahead = switches_from(from.position);
  std::string key = from.set_key;
  // Nothing was evaluated yet; or by an engine that named no sets.
  if (key.empty() && !ahead.empty()) key = ahead.front().to.key;
  if (configured != nullptr) {
    if (auto noted = note_configured(*configured, key, ahead); !noted.ok()) {
      found.push_back("packs: " + noted.error().message);
    }
    if (key.empty()) key = configured->key;
  }
  drop_idle_switches(from.position, key, ahead);
  std::variant<LoadedSet, LoadFailure> set = LoadFailure{};
  if (configured != nullptr && configured->key == key) {
    set = *configured;
  } else {
    set = loader_->load_kept(key);
  }
  if (const auto* failure = std::get_if<LoadFailure>(&set)) {
    if (configured == nullptr) return Error{failure->error};
    found.push_back(fmt::format(
        "state: the set that was live at position {} cannot be had ({}): the configured "
        "one reads on from there",
        from.position, failure->error));
    set = *configured;
    ahead.clear();
  }
  LoadedSet& first = std::get<LoadedSet>(set);
  first.rest.reset();
  auto made =
      make_running(parts(), std::move(first), LaneOutput::Mode::kLive, state, from.position);
  if (!made.ok()) return made.error();
  beginning.running = std::move(made).value();
  return beginning;
}

/// Reads on, changing the set where the journal says so. On a thread of its own; the reload lock is
/// held all the while.
void Daemon::read_on(const std::vector<SetSwitch>& ahead, const LoadedSet* configured) {
  std::shared_ptr<RunningSet> running = live();
  for (size_t i = 0; i < ahead.size() && running->runner->wait_held(); ++i) {
    auto next = switch_at(ahead[i], running, configured);
    if (next.ok()) {
      running = std::move(next).value();
    } else if (!running->runner->is_stopping()) {
      find(
          fmt::format("journal: position {}: set {} cannot take over ({}): the one before it stays",
                      ahead[i].position, ahead[i].to.key, next.error().message));
      const std::lock_guard lock(lanes_mutex_);
      marks_.last_reload_ok = false;
    }
    if (i + 1 < ahead.size()) {
      running->runner->stop_at(ahead[i + 1].base());
    } else {
      running->runner->release();
    }
  }
  switching_ = false;
}

/// What the reload did then: the set `at` takes over from `before`, which stands where the state
/// was taken. It stands behind the entry when it is returned, and is live.
Result<std::shared_ptr<RunningSet>> Daemon::switch_at(const SetSwitch& at,
                                                      const std::shared_ptr<RunningSet>& before,
                                                      const LoadedSet* configured) {
  std::variant<LoadedSet, LoadFailure> set = LoadFailure{};
  if (configured != nullptr && configured->key == at.to.key) {
    set = *configured;
  } else {
    set = loader_->load_kept(at.to.key);
  }
  if (const auto* failure = std::get_if<LoadFailure>(&set)) return Error{failure->error};
  // No snapshot meanwhile: it could trim what the next lane has yet to read.
  const std::lock_guard still(snapshot_mutex_);
  std::string state;
  if (at.to.warm) {
    auto kept = kept_->read_state(at.to.key, at.to.base);
    if (!kept.ok()) return kept.error();
    state = std::move(kept.value().state);
  } else {
    auto captured = capture_state(*before->runner);
    if (!captured.ok()) return captured.error();
    state = std::move(captured.value().bytes);
  }
  std::get<LoadedSet>(set).rest.reset();
  auto made = make_running(parts(), std::move(std::get<LoadedSet>(set)),
                           LaneOutput::Mode::kCandidate, state, 0);
  if (!made.ok()) return made.error();
  std::shared_ptr<RunningSet> next = std::move(made).value();
  next->set.let_go_of_texts();
  next->runner->stop_at(at.next);
  next->runner->start();
  before->runner->stop_at(at.next);
  if (!before->runner->wait_held() || !next->runner->wait_held()) {
    return Error{"the daemon is shutting down"};
  }
  go_live(next, *before);
  find(fmt::format("journal: from position {} on with set {}", at.next, next->set.key));
  for (const auto& note : next->report.notes) find("state: " + note);
  return next;
}

/// `next` and `before` stand at one position: `next` is the live set from here on.
void Daemon::go_live(const std::shared_ptr<RunningSet>& next, RunningSet& before) {
  next->runner->lane().follow(before.runner->lane());
  {
    const std::lock_guard lock(lanes_mutex_);
    live_ = next;
  }
  next->output->go_live();
  kept_->use(next->set.key);
  kept_->retire(before.set.key, journal_->end());
}

}  // namespace reflex::serve
