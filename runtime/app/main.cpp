// The `reflex` command line. The only folder that links compiler and engine together.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>
// Only the version macro; no LLVM code is used outside compiler/backend/jit.

#include "compiler/diag/diagnostic.h"
#include "runtime/app/cmd_lsp.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/engine/engine_version.h"

namespace {

/// What to say of a word that is no command: CLI11 only says that one is required. Empty: it is
/// another error.
std::string unknown_command(const CLI::App& app, const CLI::ParseError& error) {
  const auto words = app.remaining();
  if (error.get_exit_code() == 0 || !app.get_subcommands().empty() || words.empty() ||
      words.front().starts_with('-')) {
    return {};
  }
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  const auto near = reflex::diag::did_you_mean(words.front(), names);
  return fmt::format("there is no command '{}'{}", words.front(),
                     near ? fmt::format("; did you mean '{}'?", *near) : "; see reflex --help");
}

int run(int argc, char** argv) {
  using namespace reflex::app;
  CLI::App app("Reflex: reads the events of a training cluster and names the faulty node.",
               "reflex");
  CommonFlags common;
  app.add_option("--format", common.format,
                 "text, json; of diagnostics also sarif or github, of diff md")
      ->check(CLI::IsMember({"text", "json", "sarif", "github", "md"}));
  app.add_option("--color", common.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-q,--quiet", common.quiet, "only data and errors");
  app.set_version_flag("--version",
                       fmt::format("reflex {} (dsl 1, llvm {})", reflex::engine::kEngineVersion,
                                   REFLEX_LLVM_VERSION));
  app.require_subcommand(1);
  app.fallthrough();  // common flags may stand after the command too
  std::vector<Command> commands;
  for (const auto add :
       {add_check, add_fmt, add_test, add_diff, add_lsp, add_run, add_explain, add_help_id,
        add_worker, add_schema, add_new, add_completion, add_anonymize, add_learn, add_backtest,
        add_feedback, add_serve, add_config, add_client}) {
    commands.push_back(add(app, common));
  }
  std::vector<std::string> arguments;  // from the last to the first, as CLI11 wants them
  for (int i = argc - 1; i > 0; --i) {
    // The one word with a single dash, as `go test` and language.md B1 have it.
    arguments.emplace_back(std::string_view(argv[i]) == "-run" ? "--run" : argv[i]);
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (const auto wrong = unknown_command(app, error); !wrong.empty()) {
      print_error(common, wrong);
      return kUsage;
    }
    const int code = app.exit(error);
    return code == 0 ? kOk : kUsage;
  }
  if (common.format == "md" && !app.got_subcommand("diff")) {
    print_error(common, "md is a form of diff alone: use text, json, sarif or github");
    return kUsage;
  }
  for (const auto& command : commands) {
    if (const int code = command(); code >= 0) return code;
  }
  return kUsage;
}

}  // namespace

/// A file that a bug report can carry (B2): what was asked and what went wrong.
static void write_report(int argc, char** argv, const char* what) {
  const std::string path = fmt::format("reflex-report-{}.txt", getpid());
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return;
  fmt::print(file, "reflex {}\nerror: {}\narguments:", reflex::engine::kEngineVersion, what);
  for (int i = 1; i < argc; ++i) fmt::print(file, " {}", argv[i]);
  fmt::print(file, "\n");
  std::fclose(file);
  std::fprintf(stderr, "reflex: report written to %s\n", path.c_str());
}

/// A closed standard stream must not become the first file that is opened.
static void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0) return;
  }
}

/// Data that did not reach standard output is an error, however late it shows.
static int with_output_checked(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "reflex: error: writing to standard output failed\n");
  return reflex::app::kUsage;
}

int main(int argc, char** argv) {
  open_standard_streams();
  try {
    return with_output_checked(run(argc, argv));
  } catch (const std::system_error& error) {
    // fmt::print says so when a stream cannot be written.
    std::fprintf(stderr, "reflex: error: %s\n", error.what());
    return reflex::app::kUsage;
  } catch (const std::exception& error) {
    // Exceptions do not cross folders; one that arrives here is a bug of ours (B2: exit 4).
    std::fprintf(stderr, "reflex: internal error: %s (please report)\n", error.what());
    write_report(argc, argv, error.what());
    return reflex::app::kInternal;
  }
}
