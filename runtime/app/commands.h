// The commands of the `reflex` binary. Each adds itself to the command line and returns what runs.
//
// Exit codes (language.md B2): 0 ok, 1 findings, 2 invalid pack, 3 usage or I/O, 4 internal error.
// stdout carries data only; everything said to a person about the run goes to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace reflex::app {

enum ExitCode : int { kOk = 0, kFindings = 1, kInvalidPack = 2, kUsage = 3, kInternal = 4 };

/// Flags that every command has.
struct CommonFlags {
  std::string format = "text";  // text | json | sarif | github | md
  std::string color = "auto";   // auto | always | never
  bool quiet = false;
  [[nodiscard]] bool color_on(int fd) const;
};

using Command = std::function<int()>;

Command add_check(CLI::App& app, const CommonFlags& common);
Command add_fmt(CLI::App& app, const CommonFlags& common);
Command add_test(CLI::App& app, const CommonFlags& common);
Command add_run(CLI::App& app, const CommonFlags& common);
Command add_learn(CLI::App& app, const CommonFlags& common);
Command add_backtest(CLI::App& app, const CommonFlags& common);
Command add_feedback(CLI::App& app, const CommonFlags& common);
Command add_explain(CLI::App& app, const CommonFlags& common);
Command add_anonymize(CLI::App& app, const CommonFlags& common);
Command add_help_id(CLI::App& app, const CommonFlags& common);
Command add_new(CLI::App& app, const CommonFlags& common);
Command add_completion(CLI::App& app, const CommonFlags& common);
Command add_diff(CLI::App& app, const CommonFlags& common);
Command add_worker(CLI::App& app, const CommonFlags& common);
Command add_serve(CLI::App& app, const CommonFlags& common);
Command add_config(CLI::App& app, const CommonFlags& common);
/// reload, status, snapshot, shadow, promote: of a running daemon.
Command add_client(CLI::App& app, const CommonFlags& common);
Command add_schema(CLI::App& app, const CommonFlags& common);

}  // namespace reflex::app
