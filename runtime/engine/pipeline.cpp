// Reading, decoding, ordering, evaluating: see pipeline.h.
#include "runtime/engine/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/engine/inventory_names.h"
#include "runtime/engine/read_ahead.h"
#include "runtime/engine/released_feed.h"
#include "runtime/stream/reject_sampler.h"
#include "runtime/stream/reorder.h"

namespace reflex::engine {
namespace {

int year_of(int64_t ts_ns) {
  const auto days = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(ts_ns)));
  return static_cast<int>(std::chrono::year_month_day(days).year());
}

class Run {
 public:
  Run(std::shared_ptr<const abi::CompiledPack> pack, Engine& engine, const PipelineOptions& options,
      const PipelineHooks& hooks)
      : pack_(std::move(pack)),
        engine_(&engine),
        options_(options),
        hooks_(hooks),
        names_(pack_, engine.topology()),
        reorder_(std::make_unique<stream::Reorder>(pack_, reorder_options(), locked_sink())),
        rejects_(own_counters_, locked_sink()),
        started_(std::chrono::steady_clock::now()) {
    engine_->coverage().rename_exceptions(names_);
    feed_ = std::make_unique<ReleasedFeed>(*engine_, feed_options());
  }

  Status open_all();
  Status read_all();
  PipelineSummary finish();

 private:
  [[nodiscard]] stream::ReorderOptions reorder_options() const {
    stream::ReorderOptions o;
    o.lateness_ns = pack_->clock.lateness_ns;
    o.idle_after_ns = pack_->clock.idle_after_ns;
    o.now_limit_ns = options_.now_limit_ns;
    return o;
  }
  [[nodiscard]] unsigned threads() const { return std::max(1u, options_.threads); }
  [[nodiscard]] stream::RejectSink locked_sink();
  Status open_events(const std::string& path);
  Status open_log(const LogInput& input);
  Status step(ReadAhead::Piece& piece);
  Status restore();
  Status bad_end(const ReadAhead::Piece& piece);
  void count_long_lines(const ReadAhead::Piece& piece);
  FeedOptions feed_options();
  void report_progress();

  std::shared_ptr<const abi::CompiledPack> pack_;
  Engine* engine_;
  const PipelineOptions& options_;
  const PipelineHooks& hooks_;
  InventoryNames names_;
  std::unique_ptr<stream::Reorder> reorder_;
  std::unique_ptr<ReleasedFeed> feed_;
  size_t pieces_ = 0;
  std::mutex reject_mutex_;
  stream::IngestCounters own_counters_;
  stream::RejectSampler rejects_;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::shared_ptr<const stream::LineMatcher> line_patterns_;
  stream::Released released_;
  PipelineSummary summary_;
  std::chrono::steady_clock::time_point started_;
};

stream::RejectSink Run::locked_sink() {
  if (!hooks_.rejected) return {};
  return [this](const stream::RejectedLine& line) {
    const std::lock_guard lock(reject_mutex_);
    hooks_.rejected(line);
  };
}

Status Run::open_events(const std::string& path) {
  auto lines = stream::open_lines(path);
  if (!lines.ok()) return lines.error();
  auto input = std::make_unique<Input>();
  input->path = path;
  input->source = pack_->symbols->intern(path == "-" ? "stdin" : path);
  input->lines = std::move(lines).value();
  for (unsigned i = 0; i < threads(); ++i) {
    input->decoders.push_back(std::make_unique<stream::NdjsonDecoder>(pack_, locked_sink()));
  }
  reorder_->add_source(input->source, /*is_log=*/false);
  inputs_.push_back(std::move(input));
  return ok_status();
}

Status Run::open_log(const LogInput& log) {
  auto lines = stream::open_lines(log.path);
  if (!lines.ok()) return lines.error();
  auto input = std::make_unique<Input>();
  input->path = log.path;
  input->source = pack_->symbols->intern(log.path == "-" ? log.node + ":stdin" : log.path);
  input->lines = std::move(lines).value();
  stream::LogOptions log_options = options_.log_options;
  log_options.base_ns = input->lines->modified_ns();
  if (!options_.year_given) log_options.year = year_of(log_options.base_ns);
  const SymbolId node = names_.node(pack_->symbols->intern(log.node));
  if (!line_patterns_) line_patterns_ = stream::compile_line_patterns(*pack_);
  input->log = std::make_unique<stream::LogDecoder>(pack_, node, input->source, log_options,
                                                    locked_sink(), line_patterns_);
  reorder_->add_source(input->source, /*is_log=*/true);
  engine_->coverage().add_log(node);
  engine_->mark_log_source(input->source);
  inputs_.push_back(std::move(input));
  return ok_status();
}

Status Run::open_all() {
  for (const auto& path : options_.events) {
    if (auto status = open_events(path); !status.ok()) return status;
  }
  for (const auto& log : options_.logs) {
    if (auto status = open_log(log); !status.ok()) return status;
  }
  return ok_status();
}

Status Run::read_all() {
  {
    ReadAhead ahead(inputs_, threads(), options_.chunk_bytes);
    engine_->signals().set_crew(&ahead);
    if (threads() > 1) engine_->set_crew(&ahead);
    Status status = ok_status();
    while (const auto piece = ahead.next()) {
      if (status = step(*piece); !status.ok()) break;
      if (options_.restore_every == 0 || ++pieces_ % options_.restore_every != 0) continue;
      if (status = restore(); !status.ok()) break;
      engine_->signals().set_crew(&ahead);
      if (threads() > 1) engine_->set_crew(&ahead);
    }
    engine_->set_crew(nullptr);
    if (!status.ok()) return status;
  }
  reorder_->finish(released_);
  feed_->evaluate(released_);
  engine_->finish();
  return ok_status();
}

Status Run::step(ReadAhead::Piece& piece) {
  piece.input->bytes_read = piece.bytes_read;
  count_long_lines(piece);
  if (piece.error) {
    if (auto status = bad_end(piece); !status.ok()) return status;
  }
  names_.rename(piece.batch);
  reorder_->push(std::move(piece.batch));
  if (piece.last) reorder_->finish_source(piece.input->source);
  reorder_->release(released_);
  feed_->evaluate(released_);
  report_progress();
  return ok_status();
}

/// Goes on in a new engine, a new reorder buffer and new names, from their saved states.
Status Run::restore() {
  StateWriter writer(*pack_->symbols);
  names_.save(writer);
  engine_->save(writer);
  reorder_->save(writer);
  const std::string state = writer.take();
  engine_->set_crew(nullptr);
  engine_ = hooks_.fresh_engine ? hooks_.fresh_engine() : nullptr;
  if (engine_ == nullptr) return Error{"there is no engine to go on with"};
  auto feed = std::make_unique<ReleasedFeed>(*engine_, feed_options());
  feed->resume(feed_->events(), feed_->first_ts_ns(), feed_->last_ts_ns());
  feed_ = std::move(feed);
  own_counters_.add(reorder_->counters());
  reorder_ = std::make_unique<stream::Reorder>(pack_, reorder_options(), locked_sink());
  StateReader reader(state, *pack_->symbols);
  if (!names_.load(reader)) return Error{"the state of the names is damaged"};
  auto loaded = engine_->load(reader);
  if (!loaded.ok()) return loaded.error();
  return reorder_->load(reader, loaded.value().notes);
}

/// A source that breaks off in the middle is bad data: what it gave counts, the others go on. One
/// that gives nothing (a folder, a broken disk) is a fault of the environment.
Status Run::bad_end(const ReadAhead::Piece& piece) {
  const Input& input = *piece.input;
  if (piece.bytes_read == 0) return Error(*piece.error).in(input.path);
  rejects_.reject(stream::Reject::kUnreadable, input.source, piece.chunk.first_line, {},
                  piece.error->message);
  summary_.notices.push_back(input.path + ": the rest was not read: " + piece.error->message);
  return ok_status();
}

void Run::count_long_lines(const ReadAhead::Piece& piece) {
  for (uint64_t i = piece.chunk.lines_too_long; i > 0; --i) {
    rejects_.reject(stream::Reject::kLineTooLong, piece.input->source, piece.chunk.first_line - i,
                    {}, "longer than 1 MiB");
  }
}

/// Steps of the engine, paced by event time when a speed is asked for.
FeedOptions Run::feed_options() {
  FeedOptions options;
  options.step_events = options_.batch_events;
  options.until_ns = options_.until_ns;
  options.complete_input = options_.complete_input;
  if (options_.speed <= 0) return options;
  options.pace = [this](int64_t first_ns, int64_t step_ns) {
    const auto offset = std::chrono::nanoseconds(
        static_cast<int64_t>(static_cast<double>(step_ns - first_ns) / options_.speed));
    std::this_thread::sleep_until(started_ + offset);
  };
  return options;
}

void Run::report_progress() {
  if (!hooks_.progress) return;
  Progress progress;
  for (const auto& input : inputs_) {
    progress.bytes_read += input->bytes_read;
    progress.bytes_total += input->lines->bytes_total();
  }
  progress.events = feed_->events();
  hooks_.progress(progress);
}

PipelineSummary Run::finish() {
  for (const auto& input : inputs_) {
    for (const auto& decoder : input->decoders) summary_.counters.add(decoder->counters());
    if (input->log) {
      summary_.counters.add(input->log->counters());
      for (const auto& notice : input->log->notices()) {
        summary_.notices.push_back(input->path + ": " + notice);
      }
    }
  }
  summary_.counters.add(own_counters_);
  summary_.counters.add(reorder_->counters());
  summary_.unknown_peers = names_.unknown_peers();
  summary_.events_evaluated = feed_->events();
  summary_.first_ts_ns = feed_->first_ts_ns();
  summary_.last_ts_ns = feed_->last_ts_ns();
  return std::move(summary_);
}

}  // namespace

Result<PipelineSummary> run_pipeline(std::shared_ptr<const abi::CompiledPack> pack, Engine& engine,
                                     const PipelineOptions& options, const PipelineHooks& hooks) {
  Run run(std::move(pack), engine, options, hooks);
  if (auto status = run.open_all(); !status.ok()) return status.error();
  if (auto status = run.read_all(); !status.ok()) return status.error();
  return run.finish();
}

}  // namespace reflex::engine
