// Reading, decoding, ordering, evaluating: see pipeline.h.
#include "runtime/engine/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/stream/line_source.h"
#include "runtime/stream/reorder.h"

namespace reflex::engine {
namespace {

/// One input with its decoders: `pieces` of them for NDJSON, one for a log.
struct Input {
  std::string path;
  SymbolId source = kNoSymbol;
  std::unique_ptr<stream::LineSource> lines;
  std::vector<std::unique_ptr<stream::NdjsonDecoder>> pieces;
  std::unique_ptr<stream::LogDecoder> log;
  int64_t progress_ns = kNoTimeNs;  // largest ts decoded
  uint64_t lines_too_long = 0;
  bool done = false;
};

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
        engine_(engine),
        options_(options),
        hooks_(hooks),
        reorder_(pack_, reorder_options()),
        started_(std::chrono::steady_clock::now()) {}

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
  [[nodiscard]] stream::RejectSink locked_sink();
  Status open_events(const std::string& path);
  Status open_log(const LogInput& input);
  Input* least_advanced();
  Status step(Input& input);
  void decode(Input& input, const stream::Chunk& chunk);
  void decode_pieces(Input& input, const stream::Chunk& chunk);
  void push(Input& input, stream::RecordBatch&& batch);
  void evaluate(const stream::Released& released);
  void pace(int64_t ts_ns);
  void report_progress();

  std::shared_ptr<const abi::CompiledPack> pack_;
  Engine& engine_;
  const PipelineOptions& options_;
  const PipelineHooks& hooks_;
  stream::Reorder reorder_;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::shared_ptr<const stream::LineMatcher> line_patterns_;
  stream::Released released_;
  PipelineSummary summary_;
  std::mutex reject_mutex_;
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
  for (unsigned i = 0; i < std::max(1u, options_.threads); ++i) {
    input->pieces.push_back(std::make_unique<stream::NdjsonDecoder>(pack_, locked_sink()));
  }
  reorder_.add_source(input->source, /*is_log=*/false);
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
  const SymbolId node = pack_->symbols->intern(log.node);
  if (!line_patterns_) line_patterns_ = stream::compile_line_patterns(*pack_);
  input->log = std::make_unique<stream::LogDecoder>(pack_, node, input->source, log_options,
                                                    locked_sink(), line_patterns_);
  reorder_.add_source(input->source, /*is_log=*/true);
  engine_.coverage().add_log(node);
  engine_.mark_log_source(input->source);
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

Input* Run::least_advanced() {
  Input* best = nullptr;
  for (const auto& input : inputs_) {
    if (!input->done && (!best || input->progress_ns < best->progress_ns)) best = input.get();
  }
  return best;
}

Status Run::read_all() {
  while (Input* input = least_advanced()) {
    if (auto status = step(*input); !status.ok()) return status;
  }
  reorder_.finish(released_);
  evaluate(released_);
  engine_.finish();
  return ok_status();
}

Status Run::step(Input& input) {
  auto chunk = input.lines->next(options_.chunk_bytes);
  if (!chunk.ok()) return Error(chunk.error()).in(input.path);
  input.lines_too_long += chunk.value().lines_too_long;
  if (chunk.value().text.empty()) {
    if (input.log) {
      stream::RecordBatch rest;
      input.log->finish(rest);
      push(input, std::move(rest));
    }
    input.done = true;
    reorder_.finish_source(input.source);
  } else {
    decode(input, chunk.value());
  }
  reorder_.release(released_);
  evaluate(released_);
  report_progress();
  return ok_status();
}

void Run::decode(Input& input, const stream::Chunk& chunk) {
  if (input.log) {
    stream::RecordBatch batch;
    input.log->decode(chunk.text, chunk.first_line, batch);
    push(input, std::move(batch));
  } else {
    decode_pieces(input, chunk);
  }
}

/// Splits the chunk at line ends, one piece a decoder; the order of records is that of the lines.
void Run::decode_pieces(Input& input, const stream::Chunk& chunk) {
  const size_t n = input.pieces.size();
  std::vector<std::string_view> texts;
  std::vector<uint64_t> first_lines;
  size_t begin = 0;
  uint64_t line = chunk.first_line;
  for (size_t i = 0; i < n && begin < chunk.text.size(); ++i) {
    size_t end = i + 1 == n ? chunk.text.size() : chunk.text.size() * (i + 1) / n;
    if (end <= begin) continue;
    const size_t newline = chunk.text.find('\n', end - 1);
    end = newline == std::string_view::npos ? chunk.text.size() : newline + 1;
    texts.push_back(chunk.text.substr(begin, end - begin));
    first_lines.push_back(line);
    if (i + 1 < n) line += stream::count_newlines(texts.back());
    begin = end;
  }
  std::vector<stream::RecordBatch> batches(texts.size());
  const auto decode_one = [&](size_t i) {
    input.pieces[i]->decode(texts[i], input.source, first_lines[i], batches[i]);
  };
  std::vector<std::jthread> workers;
  for (size_t i = 1; i < texts.size(); ++i) workers.emplace_back(decode_one, i);
  if (!texts.empty()) decode_one(0);
  workers.clear();  // joins
  for (auto& batch : batches) push(input, std::move(batch));
}

void Run::push(Input& input, stream::RecordBatch&& batch) {
  if (inputs_.size() > 1) {  // a single input is always the one that is read next
    for (const abi::Record* record : batch.records) {
      input.progress_ns = std::max(input.progress_ns, record->ts_ns);
    }
  }
  reorder_.push(std::move(batch));
}

void Run::pace(int64_t ts_ns) {
  if (options_.speed <= 0 || summary_.first_ts_ns == kNoTimeNs) return;
  const auto offset = std::chrono::nanoseconds(
      static_cast<int64_t>(static_cast<double>(ts_ns - summary_.first_ts_ns) / options_.speed));
  std::this_thread::sleep_until(started_ + offset);
}

void Run::evaluate(const stream::Released& released) {
  engine_.count_late(released.late);
  const std::span<const abi::Record* const> all(released.records);
  size_t end = all.size();
  while (end > 0 && all[end - 1]->ts_ns > options_.until_ns) --end;
  const size_t step = std::max<size_t>(1, options_.batch_events);
  for (size_t begin = 0; begin < end;) {
    // A stamp is never split: topology of one stamp holds for all of its events.
    size_t stop = std::min(begin + step, end);
    while (stop < end && all[stop]->ts_ns == all[stop - 1]->ts_ns) ++stop;
    const auto slice = all.subspan(begin, stop - begin);
    begin = stop;
    if (summary_.first_ts_ns == kNoTimeNs) summary_.first_ts_ns = slice.front()->ts_ns;
    pace(slice.back()->ts_ns);
    engine_.process(slice, slice.back()->ts_ns);
    summary_.last_ts_ns = slice.back()->ts_ns;
  }
  summary_.events_evaluated += end;
  // The end of the input is no time: nothing is known of what comes after the last event.
  if (released.watermark_ns == INT64_MAX && !options_.complete_input) return;
  const int64_t watermark = std::min(released.watermark_ns, options_.until_ns);
  if (end > 0 && end == all.size() && watermark > summary_.last_ts_ns) {
    engine_.process({}, watermark);
  }
}

void Run::report_progress() {
  if (!hooks_.progress) return;
  Progress progress;
  for (const auto& input : inputs_) {
    progress.bytes_read += input->lines->bytes_read();
    progress.bytes_total += input->lines->bytes_total();
  }
  progress.events = summary_.events_evaluated;
  hooks_.progress(progress);
}

PipelineSummary Run::finish() {
  for (const auto& input : inputs_) {
    for (const auto& piece : input->pieces) summary_.counters.add(piece->counters());
    if (input->log) {
      summary_.counters.add(input->log->counters());
      for (const auto& notice : input->log->notices()) {
        summary_.notices.push_back(input->path + ": " + notice);
      }
    }
    summary_.counters.rejected[static_cast<size_t>(stream::Reject::kLineTooLong)] +=
        input->lines_too_long;
  }
  summary_.counters.add(reorder_.counters());
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
