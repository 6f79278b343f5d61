// The input of commands that replay events (run, learn, backtest): files, zones, threads.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/pipeline.h"

namespace reflex::app {

struct InputFlags {
  LoadRequest load;
  std::vector<std::string> inventories;
  std::vector<std::string> events;
  std::vector<std::string> logs;
  std::string tz;
  unsigned threads = 1;
  size_t batch = 4096;
  int year = 0;
};

/// What is known of earlier incidents, for the history of nodes (`--history`). Empty path: null.
Result<std::shared_ptr<const std::vector<engine::KnownIncident>>> load_history(
    const std::string& path, const CommonFlags& common);

/// packs, --profiles, --inventory, --events, --log, --threads, --batch, --year, --tz, --backend
void add_input_options(CLI::App& sub, InputFlags& flags);

/// Refuses what would lose data: an output that is one of the inputs, an input given twice, no input
/// at all, and an output that could not be written. Empty outputs are passed over.
Status check_files(const InputFlags& flags, const std::vector<std::string>& outputs);

Result<engine::PipelineOptions> pipeline_options(const InputFlags& flags);

/// "271 late, 2 no time": the lines that were left out, by reason.
std::string rejects_text(const stream::IngestCounters& counters);

/// A bar on stderr for input that takes longer than a moment.
class ProgressBar {
 public:
  ProgressBar(bool on, std::string what = "")
      : on_(on), what_(std::move(what)), started_(Clock::now()), last_(started_) {}
  void show(const engine::Progress& progress);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool on_;
  std::string what_;
  bool shown_ = false;
  Clock::time_point started_;
  Clock::time_point last_;
};

}  // namespace reflex::app
