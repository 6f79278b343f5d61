// A daemon over a scratch folder with packs given as text, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/serve/daemon.h"
#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {

/// A job hang with two kinds of evidence; `limit` is a literal of a signal, `extra` more text.
std::string test_pack(int limit = 3, const std::string& extra = "");

class DaemonWorld {
 public:
  DaemonWorld();
  /// Replaces the configured packs.
  void write_pack(const std::string& text) const;
  [[nodiscard]] std::string write_pack_at(const std::string& folder, const std::string& text) const;
  [[nodiscard]] DaemonOptions options() const;
  /// Adds a failure of the test when it does not start.
  void start();
  /// As a process that was killed: nothing is said, drained or saved.
  void kill();
  Daemon& daemon() { return *daemon_; }
  /// Fails the test unless it is accepted.
  void give(const std::string& lines, const std::string& key = "");
  /// Everything that was accepted is in the store.
  void settle();
  /// "incident/revision/answer" of each stored verdict, in the order of the store.
  std::vector<std::string> verdicts();
  std::vector<std::string> said;                           // by the daemon
  std::vector<std::pair<std::string, std::string>> flags;  // more of the configuration
  std::shared_ptr<Disk> disk;
  std::function<Result<Config>()> reread;  // of DaemonOptions
  bool jit = false;
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

 private:
  ScratchFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  std::mutex mutex_;
};

/// NDJSON of job `job` on `nodes` nodes: start at `second`, errors on its first node, a hang.
std::string hang_of(int job, int second, int nodes = 4);
/// An event that lets everything before `second` be evaluated.
std::string later(int second);

}  // namespace reflex::serve
