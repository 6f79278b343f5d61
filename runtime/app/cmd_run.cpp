// `reflex run`: batch over files in event time; verdict NDJSON on stdout.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/attribution/explain.h"
#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory.h"
#include "runtime/engine/pipeline.h"

namespace reflex::app {
namespace {

struct RunFlags {
  LoadRequest load;
  std::vector<std::string> inventories;
  std::vector<std::string> events;
  std::vector<std::string> logs;
  std::string output;
  std::string rejects;
  std::string revisions = "all";
  std::string until;
  std::string as_of;
  std::string speed = "max";
  std::string tz;
  std::string fail_on;
  unsigned threads = 1;
  size_t batch = 4096;
  int year = 0;
  bool timings = false;
  bool no_progress = false;
};

/// Refuses what would lose data: an output that is one of the inputs, an input given twice.
Status check_files(const RunFlags& flags) {
  std::vector<std::string> inputs = flags.events;
  for (const auto& log : flags.logs) inputs.push_back(log.substr(log.find('=') + 1));
  const size_t streams = inputs.size();
  inputs.insert(inputs.end(), flags.inventories.begin(), flags.inventories.end());
  inputs.insert(inputs.end(), flags.load.packs.begin(), flags.load.packs.end());
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code none;
    return a == b || std::filesystem::equivalent(a, b, none);
  };
  for (size_t i = 0; i < streams; ++i) {
    for (size_t j = i + 1; j < streams; ++j) {
      if (same(inputs[i], inputs[j])) return Error{fmt::format("{} is given twice", inputs[j])};
    }
  }
  for (const std::string& output : {flags.output, flags.rejects}) {
    if (output.empty()) continue;
    for (const auto& input : inputs) {
      if (same(output, input)) {
        return Error{fmt::format("{} is an input; writing to it would destroy it", output)};
      }
    }
  }
  return ok_status();
}

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
      if (!header_done_) line = attribution::table_header(color) + "\n";
      header_done_ = true;
      line += attribution::to_table_row(verdict, color) + "\n";
    } else {
      line = attribution::to_json(verdict, flags_.timings) + "\n";
    }
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) failed_ = true;
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

/// A bar on stderr for input that takes longer than a moment; nothing when stderr is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(bool on) : on_(on), started_(Clock::now()), last_(started_) {}
  void show(const engine::Progress& progress) {
    const auto now = Clock::now();
    if (!on_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    const double s = std::chrono::duration<double>(now - started_).count();
    const double share = progress.bytes_total > 0 ? static_cast<double>(progress.bytes_read) /
                                                        static_cast<double>(progress.bytes_total)
                                                  : 0;
    fmt::print(stderr, "\r{:3.0f} %  {:.2f} M events  {:.2f} M/s   ", share * 100,
               static_cast<double>(progress.events) / 1e6,
               static_cast<double>(progress.events) / 1e6 / s);
    shown_ = true;
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r{:60}\r", "");
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool on_;
  bool shown_ = false;
  Clock::time_point started_;
  Clock::time_point last_;
};

Result<engine::PipelineOptions> pipeline_options(const RunFlags& flags,
                                                 const abi::CompiledPack& pack) {
  engine::PipelineOptions o;
  o.events = flags.events;
  o.threads = flags.threads;
  o.batch_events = flags.batch;
  if (flags.batch < 64) o.chunk_bytes = 4096;  // small batches are asked for to see every step
  for (const auto& log : flags.logs) {
    const size_t eq = log.find('=');
    if (eq == std::string::npos || eq == 0 || eq + 1 == log.size()) {
      return Error{fmt::format("--log wants NODE=FILE, got '{}'", log)};
    }
    o.logs.push_back({log.substr(0, eq), log.substr(eq + 1)});
  }
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
  if (!flags.tz.empty()) {
    const auto t = parse_rfc3339("1970-01-02T00:00:00" + flags.tz);
    if (!t) return Error{fmt::format("--tz: '{}' is not like '+01:00' or 'Z'", flags.tz)};
    o.log_options.utc_offset_ns = kNsPerDay - t->ns;
  }
  o.log_options.year = flags.year;
  o.year_given = flags.year != 0;
  return o;
}

std::string rejects_text(const stream::IngestCounters& counters) {
  std::string text;
  for (size_t i = 0; i < counters.rejected.size(); ++i) {
    if (counters.rejected[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counters.rejected[i],
                        stream::to_text(static_cast<stream::Reject>(i)));
  }
  return text;
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
  if (c.bad_fields > 0) {
    print_note(common, fmt::format("{} fields of wrong type were taken as missing", c.bad_fields));
  }
  if (engine.triggers_unplaced() > 0) {
    print_note(common, fmt::format("{} triggers on nodes that no job holds: give the placement "
                                   "(--inventory, or job.start events)",
                                   engine.triggers_unplaced()));
  }
  const auto counters = engine.counters();
  if (counters.evictions > 0) {
    print_note(common,
               fmt::format("{} keys evicted by the pack's `keys` limit", counters.evictions));
  }
  if (counters.state_bytes > limits.state_bytes_max) {
    print_note(common,
               fmt::format("state took {} MiB, more than the packs' `state` limit of {} MiB",
                           counters.state_bytes >> 20, limits.state_bytes_max >> 20));
  }
}

class Runner {
 public:
  Runner(const RunFlags& flags, const CommonFlags& common)
      : flags_(flags), common_(common), output_(flags, common) {}

  int run() {
    if (flags_.events.empty() && flags_.logs.empty()) {
      print_error(common_, "nothing to read: give --events FILE or --log NODE=FILE");
      return kUsage;
    }
    Loaded loaded = load_packs(flags_.load, common_);
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
    if (auto status = check_files(flags_); !status.ok()) return fail(status.error());
    if (auto status = output_.open(); !status.ok()) return fail(status.error());
    if (!flags_.rejects.empty()) {
      rejects_.reset(std::fopen(flags_.rejects.c_str(), "w"));
      if (!rejects_) return fail(Error{fmt::format("cannot write {}", flags_.rejects)});
    }
    engine::EngineOptions options;
    options.threads = flags_.threads;
    engine::EngineSinks sinks;
    sinks.verdict = [this](abi::Verdict&& v) {
      v.latency_ms = std::chrono::duration<double, std::milli>(Clock::now() - chunk_began_).count();
      output_.write(v);
    };
    auto created = engine::Engine::create(pack_, options, std::move(sinks));
    if (!created.ok()) return fail(created.error());
    engine_ = std::move(created).value();
    for (const auto& path : flags_.inventories) {
      auto summary = engine::load_inventory(path, *pack_->symbols, engine_->topology());
      if (!summary.ok()) return fail(summary.error());
      for (const auto& warning : summary.value().warnings) logger_->warn("{}: {}", path, warning);
    }
    return kOk;
  }

  void on_reject(const stream::RejectedLine& line) {
    if (!common_.quiet && rejects_shown_++ < kRejectsShownMax) {
      logger_->warn("{}:{}: {}{}{}", pack_->symbols->name(line.source), line.line,
                    stream::to_text(line.reason), line.detail.empty() ? "" : ": ", line.detail);
    }
    if (rejects_) {
      fmt::print(rejects_.get(), "{}\t{}\t{}\t{}\n", pack_->symbols->name(line.source), line.line,
                 stream::to_text(line.reason), line.text);
    }
  }

  int read() {
    auto options = pipeline_options(flags_, *pack_);
    if (!options.ok()) return fail(options.error());
    ProgressBar bar(!flags_.no_progress && !common_.quiet && isatty(STDERR_FILENO) != 0 &&
                    !output_.is_table());
    engine::PipelineHooks hooks;
    hooks.rejected = [this](const stream::RejectedLine& line) { on_reject(line); };
    hooks.progress = [&](const engine::Progress& p) {
      chunk_began_ = Clock::now();
      bar.show(p);
    };
    const auto began = Clock::now();
    chunk_began_ = began;
    auto summary = engine::run_pipeline(pack_, *engine_, options.value(), hooks);
    bar.clear();
    if (auto status = output_.close(); !status.ok()) return fail(status.error());
    if (!summary.ok()) return fail(summary.error());
    print_notices(summary.value().notices, common_);
    for (const auto& node : engine_->topology().ambiguous_nodes()) {
      print_note(common_,
                 fmt::format("node {} matches two profiles; bound to their common base", node));
    }
    print_summary(summary.value(), *engine_, pack_->limits, output_,
                  std::chrono::duration<double>(Clock::now() - began).count(), common_);
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
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<FILE, CloseFile> rejects_;
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
  sub->add_option("packs", flags->load.packs, "pack folders or .rfx files")->required();
  sub->add_option("--profiles", flags->load.profiles,
                  "hardware profiles (default: hwprofiles/ near the packs)");
  sub->add_option("--inventory", flags->inventories, "nodes, labels and jobs (JSON)");
  sub->add_option("--events", flags->events,
                  "NDJSON files, also .gz and .zst; - is standard input");
  sub->add_option("--log", flags->logs, "NODE=FILE: raw log text of one node");
  sub->add_option("-o,--output", flags->output, "write verdicts to this file");
  sub->add_option("--rejects", flags->rejects, "write a sample of rejected lines to this file");
  sub->add_option("--revisions", flags->revisions, "all or final")
      ->check(CLI::IsMember({"all", "final"}));
  sub->add_option("--until", flags->until, "evaluate events up to this time (RFC 3339)");
  sub->add_option("--as-of", flags->as_of, "the wall clock that `future_skew` is held against");
  sub->add_option("--speed", flags->speed, "max, or 10x: pace by event time");
  sub->add_option("--threads", flags->threads, "shards and decoders")->check(CLI::Range(1, 64));
  sub->add_option("--batch", flags->batch, "events per step")->check(CLI::Range(1, 1 << 20));
  sub->add_option("--year", flags->year, "year of log stamps without one");
  sub->add_option("--tz", flags->tz, "zone of log stamps without one, like +01:00");
  sub->add_option("--fail-on", flags->fail_on, "verdict: exit 1 when any verdict is not 'none'")
      ->check(CLI::IsMember({"verdict"}));
  sub->add_option("--backend", flags->load.backend, "jit or interp")
      ->check(CLI::IsMember({"jit", "interp"}));
  sub->add_flag("--timings", flags->timings, "add the wall-clock `timing` object to verdicts");
  sub->add_flag("--no-progress", flags->no_progress, "no progress line on stderr");
  return [sub, flags, &common] { return sub->parsed() ? Runner(*flags, common).run() : -1; };
}

}  // namespace reflex::app
