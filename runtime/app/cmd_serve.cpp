// `reflex serve`: the daemon; `reflex config`: what it is told.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "runtime/app/commands.h"
#include "runtime/app/config_check.h"
#include "runtime/app/config_options.h"
#include "runtime/app/load_packs.h"
#include "runtime/app/serve_packs.h"
#include "runtime/base/check.h"
#include "runtime/engine/engine_version.h"
#include "runtime/serve/config_manual.h"
#include "runtime/serve/daemon.h"
#include "runtime/serve/http/http_server.h"
#include "runtime/serve/listen_address.h"
#include "runtime/serve/sinks/sink.h"
#include "runtime/serve/sources/source.h"
#include "runtime/serve/status_text.h"

namespace reflex::app {
namespace {

/// Signals are taken by one thread that waits for them, so that no handler runs anywhere.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&set_, number);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  /// The next one; 0 when there was none within the time.
  int wait(int ms) const {
    const timespec time{ms / 1000, (ms % 1000) * 1'000'000L};
    const int number = ::sigtimedwait(&set_, nullptr, &time);
    return number < 0 ? 0 : number;
  }

 private:
  sigset_t set_;
};

/// Of values that read_config() found good.
Result<serve::HttpConfig> http_config(const serve::ConfigTable& main) {
  serve::HttpConfig config;
  const auto listen = serve::parse_listen(main.text("http.listen"));
  RFX_CHECK(listen.has_value());
  config.host = listen->host;
  config.port = listen->port;
  config.insecure = main.flag("http.insecure");
  if (const auto& path = main.text("http.tokens"); !path.empty()) {
    auto tokens = serve::read_token_file(path);
    if (!tokens.ok()) return tokens.error();
    config.tokens = std::move(tokens).value();
  }
  config.tls_certificate = main.text("http.tls_cert");
  config.tls_key = main.text("http.tls_key");
  config.rates.requests_per_second = static_cast<double>(main.number("http.rate_max"));
  config.rates.bytes_per_second = static_cast<double>(main.bytes("http.rate_bytes_max"));
  config.body_bytes_max = main.bytes("http.body_max");
  config.bodies_bytes_max = main.bytes("http.bodies_max");
  config.connections_max = static_cast<unsigned>(main.number("http.connections_max"));
  config.streams_max = static_cast<unsigned>(main.number("http.streams_max"));
  config.console = main.flag("http.console");
  config.version = engine::kEngineVersion;
  return config;
}

/// glibc keeps what is freed in an arena for each thread that ever allocated: every reload loads a
/// state on another thread, so that a daemon with 100 MB of state held 1 GB after 50 of them.
void give_memory_back() {
  // Why 2: the lane and who talks HTTP; more arenas are more places where freed memory stays.
  ::mallopt(M_ARENA_MAX, 2);
  // Why no malloc_trim(): it holds the arenas while it works; with it one swap of ten took 5 s.
  // Why 1 MiB: whole states and large bodies are pages of their own, given back at once; the blocks
  // of the stream (256 KiB) are not.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

class Server {
 public:
  Server(serve::Config config, ConfigFlags flags, const CommonFlags& common)
      : config_(std::move(config)), flags_(std::move(flags)), common_(common) {}

  int run() {
    give_memory_back();
    if (auto status = start(); !status.ok()) {
      print_error(common_, status.error().message);
      return status.error().exit_code;
    }
    loop();
    return kOk;
  }

 private:
  void log(const std::string& line) const { print_note(common_, line); }

  Status start() {
    const auto log = [this](const std::string& line) { this->log(line); };
    ::umask(0027);  // verdicts and names of nodes are nobody else's
    serve::DaemonOptions options;
    options.config = config_;
    options.reread = [flags = flags_] { return load_config(flags); };
    options.compile = serve_packs(config_.main.text("packs.backend"));
    options.log = log;
    auto http = http_config(config_.main);
    if (!http.ok()) return http.error();
    http_config_ = std::move(http).value();
    auto daemon = serve::Daemon::start(std::move(options));
    if (!daemon.ok()) return daemon.error();
    daemon_ = std::move(daemon).value();
    for (const auto& table : config_.sinks) {
      auto sink = serve::make_sink(table, daemon_->store(), daemon_->publisher());
      if (!sink.ok()) return sink.error();
      sinks_.push_back(std::move(sink).value());
    }
    std::vector<std::string> names;
    for (const auto& sink : sinks_) names.push_back(sink->status().name);
    if (auto status = daemon_->store().keep_sinks(names); !status.ok()) return status.error();
    daemon_->set_sink_status([this] {
      std::vector<serve::SinkStatus> all;
      for (const auto& sink : sinks_) all.push_back(sink->status());
      return all;
    });
    for (const auto& table : config_.sources) {
      auto source = serve::make_source(table, daemon_->ingest(), log);
      if (!source.ok()) return source.error();
      sources_.push_back(std::move(source).value());
    }
    daemon_->set_source_behind([this] {
      std::map<std::string, uint64_t> behind;
      for (const auto& source : sources_) {
        if (const auto messages = source->behind()) behind[source->name()] = *messages;
      }
      return behind;
    });
    auto server = serve::HttpServer::start(http_config_, *daemon_, daemon_->store());
    if (!server.ok()) return server.error();
    server_ = std::move(server).value();
    for (const auto& sink : sinks_) sink->start();
    for (const auto& source : sources_) source->start();
    log(fmt::format("serving at {}", server_->address()));
    return ok_status();
  }

  void loop() {
    for (;;) {
      const int number = signals_.wait(1000);
      if (number == SIGHUP) {
        const serve::ReloadAnswer answer = daemon_->reload();
        if (answer.outcome == serve::ReloadAnswer::Outcome::kUnchanged) {
          log("reload: unchanged, set " + answer.set_sha256.substr(0, 12));
        }
      } else if (number == SIGUSR1) {
        fmt::print(stderr, "{}", serve::status_text(daemon_->status()));
      } else if (number == SIGTERM || number == SIGINT) {
        return stop();
      }
    }
  }

  void stop() {
    log("stopping: what was accepted is evaluated, then the state is saved (again to stop at "
        "once)");
    for (const auto& source : sources_) source->stop();
    daemon_->stop(true, [this] {
      const int number = signals_.wait(1);
      if (number != SIGTERM && number != SIGINT) return false;
      ::_exit(kOk);  // what is in the journal is not lost
    });
    server_->stop();
    for (const auto& sink : sinks_) sink->stop();
    log("stopped");
  }

  serve::Config config_;
  ConfigFlags flags_;
  const CommonFlags& common_;
  Signals signals_;  // before any thread is made
  serve::HttpConfig http_config_;
  std::unique_ptr<serve::Daemon> daemon_;
  std::vector<std::unique_ptr<serve::Sink>> sinks_;
  std::vector<std::unique_ptr<serve::Source>> sources_;
  std::unique_ptr<serve::HttpServer> server_;
};

}  // namespace

namespace {

/// For messages: the file, or that there is none.
std::string what_was_read(const ConfigFlags& flags) {
  const std::string file = config_file(flags);
  return file.empty() ? "the configuration (no file, only defaults, environment and --set)" : file;
}

}  // namespace

Command add_serve(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<ConfigFlags>();
  auto* sub = app.add_subcommand("serve", "run as a daemon: live input, verdicts over HTTP");
  add_config_options(*sub, *flags);
  return [sub, flags, &common] {
    if (!sub->parsed()) return -1;
    auto config = read_config(*flags);
    if (!config.ok()) {
      print_error(common, config.error().message);
      return static_cast<int>(kUsage);
    }
    const auto problems = check_config(config.value(), CheckedFor::kStart);
    if (!problems.empty()) {
      print_error(common, fmt::format("{} is not valid\n{}", what_was_read(*flags),
                                      fmt::join(problems, "\n")));
      return static_cast<int>(kUsage);
    }
    if (config_file(*flags).empty()) {
      print_note(common, fmt::format("no --config and no {}: every key has its default (an example: "
                                     "`reflex config default > reflex.toml`)",
                                     kStandardConfig));
    }
    return Server(std::move(config.value().config), *flags, common).run();
  };
}

namespace {

/// As `serve` would read it. 3: something is wrong, or it cannot be read.
int check_file(const ConfigFlags& flags, const CommonFlags& common) {
  const std::string name = what_was_read(flags);
  const auto config = read_config(flags);
  if (!config.ok()) {
    print_error(common, config.error().message);
    return kUsage;
  }
  const auto problems = check_config(config.value(), CheckedFor::kReport);
  if (problems.empty()) {
    print_note(common, fmt::format("{}: nothing is wrong", name));
    return kOk;
  }
  print_error(common, fmt::format("{} is not valid\n{}", name, fmt::join(problems, "\n")));
  return kUsage;
}

}  // namespace

Command add_config(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<ConfigFlags>();
  auto checked = std::make_shared<ConfigFlags>();
  auto* sub = app.add_subcommand("config", "the configuration of `serve`");
  sub->require_subcommand(1);
  auto* show = sub->add_subcommand("show", "every value in force and where it comes from");
  add_config_options(*show, *flags);
  auto* standard = sub->add_subcommand("default", "an example with every key and its default");
  auto* check = sub->add_subcommand(
      "check", "what is wrong with a file, REFLEX_* of the environment and --set, before `serve`");
  add_config_options(*check, *checked);
  check->add_option("file", checked->file, "the same as --config FILE")->excludes("--config");
  auto* manual = sub->add_subcommand("manual", "reflex.toml(5), as roff");
  return [=, &common] {
    if (!sub->parsed()) return -1;
    if (check->parsed()) return check_file(*checked, common);
    if (manual->parsed()) {
      fmt::print("{}", serve::config_manual());
      return static_cast<int>(kOk);
    }
    if (standard->parsed()) {
      fmt::print("{}", serve::example_config());
      return static_cast<int>(kOk);
    }
    (void)show;
    auto config = load_config(*flags);
    if (!config.ok()) {
      print_error(common, config.error().message);
      return static_cast<int>(kUsage);
    }
    fmt::print("{}", serve::show_config(config.value()));
    return static_cast<int>(kOk);
  };
}

}  // namespace reflex::app
