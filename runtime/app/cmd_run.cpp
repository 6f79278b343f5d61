// `reflex run`: batch over files in event time; verdict NDJSON on stdout.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "runtime/app/commands.h"
#include "runtime/app/heap_pages.h"
#include "runtime/app/input_options.h"
#include "runtime/app/load_packs.h"
#include "runtime/explain/explain.h"
#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory.h"
#include "runtime/engine/pipeline.h"
#include "runtime/learn/model_file.h"
#include "runtime/policy/policy.h"

namespace reflex::app {
namespace {

struct RunFlags {
  InputFlags input;
  std::string model;
  std::string history;
  std::string output;
  std::string rejects;
  std::string actions;
  std::string revisions = "all";
  std::string until;
  std::string as_of;
  std::string speed = "max";
  std::string fail_on;
  bool timings = false;
  bool no_progress = false;
  size_t restore_every = 0;
};

/// Where verdicts go: a file, stdout as NDJSON, or a table on a terminal.
class Output {
 public:
  Output(const RunFlags& flags, const CommonFlags& common) : flags_(flags), common_(common) {}
  ~Output() {
    if (file_ && file_ != stdout) std::fclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Status open() {
    if (!flags_.output.empty()) {
      file_ = std::fopen(flags_.output.c_str(), "w");
      if (!file_) return Error{fmt::format("cannot write {}", flags_.output)};
      return ok_status();
    }
    file_ = stdout;
    table_ = isatty(STDOUT_FILENO) != 0 && common_.format != "json";
    return ok_status();
  }

  void write(const abi::Verdict& verdict) {
    if (verdict.final_revision) {
      ++finals_;
      ++by_level_[verdict.level];
    }
    if (!verdict.final_revision && (table_ || flags_.revisions == "final")) return;
    std::string line;
    if (table_) {
      const bool color = common_.color_on(STDOUT_FILENO);
      if (!header_done_) line = explain::table_header(color) + "\n";
      header_done_ = true;
      line += explain::to_table_row(verdict, color) + "\n";
    } else {
      line = explain::to_json(verdict, flags_.timings) + "\n";
    }
    // Whole lines only, at once: a killed run leaves no half verdict and loses none that was made.
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) failed_ = true;
    if (std::fflush(file_) != 0) failed_ = true;
  }

  /// Verdicts must be on disk before we say that they are.
  Status close() {
    if (std::fflush(file_) != 0) failed_ = true;
    if (!failed_) return ok_status();
    return Error{fmt::format("writing verdicts to {} failed (disk full?)",
                             flags_.output.empty() ? "standard output" : flags_.output)};
  }

  [[nodiscard]] bool is_table() const { return table_; }
  [[nodiscard]] size_t finals() const { return finals_; }
  [[nodiscard]] const std::map<std::string, size_t>& by_level() const { return by_level_; }
  [[nodiscard]] size_t by_level_count(const std::string& level) const {
    const auto it = by_level_.find(level);
    return it == by_level_.end() ? 0 : it->second;
  }

 private:
  const RunFlags& flags_;
  const CommonFlags& common_;
  FILE* file_ = nullptr;
  bool table_ = false;
  bool header_done_ = false;
  bool failed_ = false;
  size_t finals_ = 0;
  std::map<std::string, size_t> by_level_;
};

Result<engine::PipelineOptions> run_options(const RunFlags& flags, const abi::CompiledPack& pack) {
  auto options = pipeline_options(flags.input);
  if (!options.ok()) return options;
  engine::PipelineOptions& o = options.value();
  if (!flags.until.empty()) {
    const auto t = parse_rfc3339(flags.until);
    if (!t) return Error{fmt::format("--until: '{}' is not an RFC 3339 time", flags.until)};
    o.until_ns = t->ns;
  }
  if (!flags.as_of.empty()) {
    const auto t = parse_rfc3339(flags.as_of);
    if (!t) return Error{fmt::format("--as-of: '{}' is not an RFC 3339 time", flags.as_of)};
    o.now_limit_ns = t->ns + pack.clock.future_skew_ns;
  }
  if (flags.speed != "max") {
    char* end = nullptr;
    o.speed = std::strtod(flags.speed.c_str(), &end);
    if (end == flags.speed.c_str() || (*end != '\0' && *end != 'x') || o.speed <= 0) {
      return Error{fmt::format("--speed: '{}' is neither 'max' nor like '10x'", flags.speed)};
    }
  }
  return options;
}

/// What was assumed, each once: a hundred logs without a zone are one line, not a hundred.
void print_notices(const std::vector<std::string>& notices, const CommonFlags& common) {
  std::map<std::string, std::pair<std::string, size_t>> by_text;  // text -> first file, count
  for (const auto& notice : notices) {
    const size_t colon = notice.find(": ");
    auto& [file, count] = by_text[notice.substr(colon == std::string::npos ? 0 : colon + 2)];
    if (count++ == 0) file = notice.substr(0, colon);
  }
  for (const auto& [text, where] : by_text) {
    print_note(common, where.second == 1
                           ? fmt::format("{}: {}", where.first, text)
                           : fmt::format("{} logs ({}, ...): {}", where.second, where.first, text));
  }
}

void print_summary(const engine::PipelineSummary& summary, const engine::Engine& engine,
                   const abi::LimitsPlan& limits, const Output& output, double seconds,
                   const CommonFlags& common) {
  const auto& c = summary.counters;
  std::string levels;
  for (const auto& [level, count] : output.by_level()) {
    levels += fmt::format("{}{} {}", levels.empty() ? "" : ", ", count, level);
  }
  print_note(common,
             fmt::format("{} lines, {} events evaluated, {:.2f} s; {} incidents, {} final "
                         "verdicts{}",
                         c.lines, summary.events_evaluated, seconds, engine.incidents_opened(),
                         output.finals(), levels.empty() ? "" : " (" + levels + ")"));
  if (c.rejected_total() > 0) print_note(common, "rejected: " + rejects_text(c));
  if (c.deduplicated > 0) print_note(common, fmt::format("{} duplicates folded", c.deduplicated));
  if (c.ahead_of_arrival > 0) {
    print_note(common, fmt::format("{} events are stamped more than a minute after their arrival: "
                                   "their time is that of the arrival; look at the clock of their "
                                   "source",
                                   c.ahead_of_arrival));
  }
  if (c.bad_fields > 0) {
    print_note(common, fmt::format("{} fields of wrong type were taken as missing", c.bad_fields));
  }
  if (summary.unknown_peers > 0) {
    print_note(common, fmt::format("{} times a peer was named by an address that no node has: give "
                                   "it as a label `ip` or `ip.NAME` (--inventory)",
                                   summary.unknown_peers));
  }
  if (engine.triggers_unplaced() > 0) {
    print_note(common, fmt::format("{} triggers on nodes that no job holds: give the placement "
                                   "(--inventory, or job.start events)",
                                   engine.triggers_unplaced()));
  }
  if (engine.firings_left_out() > 0) {
    print_note(common, fmt::format("{} firings were left out by overlays (disabled signals, "
                                   "exceptions)",
                                   engine.firings_left_out()));
  }
  const auto counters = engine.counters();
  if (counters.evictions > 0) {
    print_note(common,
               fmt::format("{} keys evicted by the pack's `keys` limit", counters.evictions));
  }
  if (counters.state_evictions > 0) {
    print_note(common, fmt::format("{} keys evicted by the packs' `state` limit of {} MiB",
                                   counters.state_evictions, limits.state_bytes_max >> 20));
  }
  if (counters.state_bytes > limits.state_bytes_max) {
    print_note(common,
               fmt::format("state took {} MiB, more than the packs' `state` limit of {} MiB",
                           counters.state_bytes >> 20, limits.state_bytes_max >> 20));
  }
}

/// A scheduler's word that something is wrong, which no incident of the packs listens to.
void print_unheard(const engine::Engine& engine, const abi::CompiledPack& pack,
                   const CommonFlags& common) {
  const uint64_t count = engine.events_by_kind()[abi::kIncidentOpen];
  const bool heard = std::any_of(pack.incidents.begin(), pack.incidents.end(), [](const auto& i) {
    return std::find(i.open_kinds.begin(), i.open_kinds.end(), abi::kIncidentOpen) !=
           i.open_kinds.end();
  });
  if (count == 0 || heard) return;
  print_note(common, fmt::format("{} incident.open events opened nothing: no incident of these "
                                 "packs opens on them; write `opens on .. or incident.open` in one",
                                 count));
}

class Runner {
 public:
  Runner(const RunFlags& flags, const CommonFlags& common)
      : flags_(flags), common_(common), output_(flags, common) {}

  int run() {
    if (flags_.input.events.empty() && flags_.input.logs.empty()) {
      print_error(common_, "nothing to read: give --events FILE or --log NODE=FILE");
      return kUsage;
    }
    Loaded loaded = load_packs(flags_.input.load, common_);
    if (loaded.exit_code != kOk) return loaded.exit_code;
    pack_ = loaded.compilation->pack;
    if (const int code = prepare(); code != kOk) return code;
    return read();
  }

 private:
  int fail(const Error& error) {
    print_error(common_, error.message);
    return error.exit_code;
  }

  int prepare() {
    if (auto status = check_files(flags_.input, {flags_.output, flags_.rejects, flags_.actions});
        !status.ok()) {
      return fail(status.error());
    }
    if (auto status = output_.open(); !status.ok()) return fail(status.error());
    if (!flags_.rejects.empty()) {
      rejects_.reset(std::fopen(flags_.rejects.c_str(), "w"));
      if (!rejects_) return fail(Error{fmt::format("cannot write {}", flags_.rejects)});
    }
    engine::EngineOptions& options = engine_options_;
    options.threads = flags_.input.threads;
    if (!flags_.model.empty()) {
      auto model = learn::load_model(flags_.model, *pack_);
      if (!model.ok()) return fail(model.error());
      options.model = std::make_shared<const abi::Model>(std::move(model).value());
    }
    auto known = load_history(flags_.history, common_);
    if (!known.ok()) return fail(known.error());
    options.known = std::move(known).value();
    if (auto status = make_engine(); !status.ok()) return fail(status.error());
    if (auto status = open_actions(); !status.ok()) return fail(status.error());
    for (const auto& path : flags_.input.inventories) {
      auto summary = engine::load_inventory(path, *pack_->symbols, engine_->topology());
      if (!summary.ok()) return fail(summary.error());
      for (const auto& warning : summary.value().warnings) logger_->warn("{}: {}", path, warning);
    }
    return kOk;
  }

  Status make_engine() {
    engine::EngineSinks sinks;
    sinks.verdict = [this](abi::Verdict&& v) {
      v.latency_ms = std::chrono::duration<double, std::milli>(Clock::now() - chunk_began_).count();
      if (policy_) policy_->on_verdict(v);
      output_.write(v);
    };
    auto created = engine::Engine::create(pack_, engine_options_, std::move(sinks));
    if (!created.ok()) return created.error();
    engine_ = std::move(created).value();
    return ok_status();
  }

  void make_policy() {
    policy::PolicySinks sinks;
    sinks.alert = [this](const policy::Alert& a) { write_action(policy::to_json(a)); };
    sinks.action = [this](const policy::ActionRequest& a) { write_action(policy::to_json(a)); };
    policy_ = std::make_unique<policy::Policy>(pack_, engine_->shared_topology(), std::move(sinks));
  }

  /// --restore-every: what goes on from the saved state. Null: it cannot be made.
  engine::Engine* fresh_engine() {
    StateWriter writer(*pack_->symbols);
    if (policy_) policy_->save(writer);
    const std::string alerts = writer.take();
    if (!make_engine().ok()) return nullptr;
    if (!policy_) return engine_.get();
    make_policy();
    StateReader reader(alerts, *pack_->symbols);
    std::vector<std::string> notes;
    return policy_->load(reader, notes).ok() ? engine_.get() : nullptr;
  }

  /// Rules on verdicts: their alerts and actions go to a file, nothing is run.
  Status open_actions() {
    if (flags_.actions.empty()) {
      if (!pack_->rules.empty()) {
        print_note(common_, fmt::format("{} rules on verdicts are not evaluated without --actions "
                                        "FILE",
                                        pack_->rules.size()));
      }
      return ok_status();
    }
    actions_.reset(std::fopen(flags_.actions.c_str(), "w"));
    if (!actions_) return Error{fmt::format("cannot write {}", flags_.actions)};
    make_policy();
    return ok_status();
  }

  void write_action(const std::string& line) {
    if (std::fwrite(line.data(), 1, line.size(), actions_.get()) != line.size()) {
      actions_failed_ = true;
    }
  }

  Status close_rejects() {
    if (rejects_ && std::fflush(rejects_.get()) != 0) rejects_failed_ = true;
    if (!rejects_failed_) return ok_status();
    return Error{fmt::format("writing {} failed (disk full?)", flags_.rejects)};
  }

  Status close_actions() {
    if (!policy_) return ok_status();
    policy_->finish(engine_->last_event_ns());
    if (std::fflush(actions_.get()) != 0) actions_failed_ = true;
    if (!actions_failed_) return ok_status();
    return Error{fmt::format("writing {} failed (disk full?)", flags_.actions)};
  }

  void on_reject(const stream::RejectedLine& line) {
    if (!common_.quiet && rejects_shown_++ < kRejectsShownMax) {
      logger_->warn("{}:{}: {}{}{}", pack_->symbols->name(line.source), line.line,
                    stream::to_text(line.reason), line.detail.empty() ? "" : ": ", line.detail);
    }
    if (rejects_) {
      const std::string row = fmt::format("{}\t{}\t{}\t{}\n", pack_->symbols->name(line.source),
                                          line.line, stream::to_text(line.reason), line.text);
      rejects_failed_ |= std::fwrite(row.data(), 1, row.size(), rejects_.get()) != row.size();
    }
  }

  int read() {
    auto options = run_options(flags_, *pack_);
    if (!options.ok()) return fail(options.error());
    ProgressBar bar(!flags_.no_progress && !common_.quiet && isatty(STDERR_FILENO) != 0 &&
                    !output_.is_table());
    engine::PipelineHooks hooks;
    hooks.rejected = [this](const stream::RejectedLine& line) { on_reject(line); };
    hooks.progress = [&](const engine::Progress& p) {
      chunk_began_ = Clock::now();
      bar.show(p);
    };
    options.value().restore_every = flags_.restore_every;
    hooks.fresh_engine = [this] { return fresh_engine(); };
    const auto began = Clock::now();
    chunk_began_ = began;
    auto summary = engine::run_pipeline(pack_, *engine_, options.value(), hooks);
    bar.clear();
    if (auto status = output_.close(); !status.ok()) return fail(status.error());
    if (auto status = close_actions(); !status.ok()) return fail(status.error());
    if (auto status = close_rejects(); !status.ok()) return fail(status.error());
    if (!summary.ok()) return fail(summary.error());
    print_notices(summary.value().notices, common_);
    for (const auto& node : engine_->topology().ambiguous_nodes()) {
      print_note(common_,
                 fmt::format("node {} matches two profiles; bound to their common base", node));
    }
    print_summary(summary.value(), *engine_, pack_->limits, output_,
                  std::chrono::duration<double>(Clock::now() - began).count(), common_);
    print_unheard(*engine_, *pack_, common_);
    const bool found = output_.finals() > output_.by_level_count("none");
    return flags_.fail_on == "verdict" && found ? kFindings : kOk;
  }

  using Clock = std::chrono::steady_clock;
  static constexpr size_t kRejectsShownMax = 20;
  struct CloseFile {
    void operator()(FILE* f) const { std::fclose(f); }
  };
  const RunFlags& flags_;
  const CommonFlags& common_;
  Output output_;
  std::shared_ptr<const abi::CompiledPack> pack_;
  engine::EngineOptions engine_options_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<policy::Policy> policy_;  // null: no rules are evaluated
  std::unique_ptr<FILE, CloseFile> rejects_;
  std::unique_ptr<FILE, CloseFile> actions_;
  bool actions_failed_ = false;
  bool rejects_failed_ = false;
  std::shared_ptr<spdlog::logger> logger_ = [] {
    auto logger = spdlog::stderr_color_mt("run");
    logger->set_pattern("reflex: %^%l%$: %v");
    return logger;
  }();
  size_t rejects_shown_ = 0;
  Clock::time_point chunk_began_;
};

}  // namespace

Command add_run(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<RunFlags>();
  auto* sub = app.add_subcommand("run", "read events and logs, write verdicts (NDJSON)");
  add_input_options(*sub, flags->input);
  sub->add_option("--model", flags->model, "learned numbers (`reflex learn`)");
  sub->add_option("--history", flags->history,
                  "labelled incidents (`reflex feedback`) for the history of nodes");
  sub->add_option("-o,--output", flags->output, "write verdicts to this file");
  sub->add_option("--rejects", flags->rejects, "write a sample of rejected lines to this file");
  sub->add_option("--actions", flags->actions,
                  "evaluate rules on verdicts; write their alerts and actions (NDJSON) to this file");
  sub->add_option("--revisions", flags->revisions, "all or final")
      ->check(CLI::IsMember({"all", "final"}));
  sub->add_option("--until", flags->until, "evaluate events up to this time (RFC 3339)");
  sub->add_option("--as-of", flags->as_of, "the wall clock that `future_skew` is held against");
  sub->add_option("--speed", flags->speed, "max, or 10x: pace by event time");
  sub->add_option("--fail-on", flags->fail_on, "verdict: exit 1 when any verdict is not 'none'")
      ->check(CLI::IsMember({"verdict"}));
  sub->add_flag("--timings", flags->timings, "add the wall-clock `timing` object to verdicts");
  sub->add_option("--restore-every", flags->restore_every,
                  "for tests: after every N pieces of input go on from a saved state, in a new engine");
  sub->add_flag("--no-progress", flags->no_progress, "no progress line on stderr");
  return [sub, flags, &common] {
    if (!sub->parsed()) return -1;
    put_heap_in_huge_pages();
    return Runner(*flags, common).run();
  };
}

}  // namespace reflex::app
