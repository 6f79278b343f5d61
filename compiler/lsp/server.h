// Server: the language server of LSP 3.17 behind one JSON message at a time.
//
// Contract: `handle_body` takes what the client sent, whatever it is, and answers through `send`:
// every request gets exactly one response, nothing leaves as an exception. Diagnostics are pushed
// 150 ms after the last change: the owner calls `tick` when `due` has come. Requests before
// `initialize` are refused, after `shutdown` too; `exit` ends with 0 only after `shutdown`.
// Not: reading and writing streams (serve.h). One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/lsp/rpc.h"
#include "compiler/lsp/workspace.h"

namespace reflex::lsp {

/// What running one test said.
struct TestResult {
  std::string title;
  bool passed = false;
  std::string report;
};
/// What the server cannot do itself: it lies below the runtime.
struct Hooks {
  /// Runs the tests of a file, or only the one that is declared at a line (from 1).
  std::function<Result<std::vector<TestResult>>(const std::vector<compiler::InMemoryFile>& files,
                                                const std::string& path,
                                                std::optional<uint32_t> line)>
      run_tests;
};

class Server {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(const Json&)>;
  Server(Hooks hooks, std::string version, Send send);

  void handle_body(const std::string& body);
  void handle(const Json& message);
  /// A request that the client took back before it was handled.
  void cancelled(const Json& id);
  /// A body that was over the limit.
  void refuse_body();

  [[nodiscard]] std::optional<Clock::time_point> due() const { return due_; }
  void tick(Clock::time_point now);
  [[nodiscard]] std::optional<int> exit_code() const { return exit_code_; }

 private:
  Json request(const std::string& method, const Json& params);
  void notify(const std::string& method, const Json& params);
  Json initialize(const Json& params);
  void register_watcher();
  Json execute(const Json& params);
  void did_open(const Json& params);
  void did_change(const Json& params);
  void did_change_watched(const Json& params);
  void did_change_folders(const Json& params);
  void configure(const Json& settings);
  void schedule() { due_ = Clock::now() + kDebounce; }
  void publish();
  void log(const std::string& message);

  // Source: language.md B4.
  static constexpr std::chrono::milliseconds kDebounce{150};

  Hooks hooks_;
  std::string version_;
  Send send_;
  Workspace workspace_;
  enum class State : uint8_t { kNew, kRunning, kShutDown } state_ = State::kNew;
  bool can_register_ = false;
  int64_t next_id_ = 1;
  std::vector<std::string> roots_;
  std::vector<std::string> paths_;
  std::optional<Clock::time_point> due_;
  std::optional<int> exit_code_;
  std::map<std::string, Json> shown_;  // by URI: what the client has
};

}  // namespace reflex::lsp
